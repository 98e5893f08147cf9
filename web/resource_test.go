package web

import (
	"slices"
	"strings"
	"testing"
)

func TestAPathIsANameAndAnAction(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]apiPath{
		"a":                        {Resource: "a"},
		"a/renew":                  {Resource: "a", Action: "renew"},
		"a/history":                {Resource: "a", Action: "history"},
		"acct:1/check":             {Resource: "acct:1", Action: "check"},
		"a/%72enew":                {Resource: "a", Action: "renew"},
		"renew":                    {Resource: "renew"},
		"zz%2Frenew":               {Resource: "zz/renew"},
		"%2f%2F/renew":             {Resource: "//", Action: "renew"},
		"..":                       {Resource: ".."},
		"%2e%2e%2fadmin":           {Resource: "../admin"},
		"p+q":                      {Resource: "p+q"},
		"x%27%3BDROP%20TABLE%3B--": {Resource: "x';DROP TABLE;--"},
		"%F0%9F%94%92":             {Resource: "🔒"},
		"é":                        {Resource: "é"},
		"%20a%20":                  {Resource: " a "},
		"a%3Fb%23":                 {Resource: "a?b#"},
	} {
		got, ok := parsePath(escaped)
		if !ok || got.Resource != want.Resource || got.Action != want.Action || got.Faults != nil {
			t.Errorf("%s = %+v, %t; want %+v", escaped, got, ok, want)
		}
	}
	for _, escaped := range []string{"", "/", "/a", "//a", "a/", "a/b", "a/renew/", "a//renew", "a/renew/x", "a/Renew", "a/%zz", "%zz", "a%", "a%2", "%2/renew"} {
		if got, ok := parsePath(escaped); ok {
			t.Errorf("%q is a path: %+v", escaped, got)
		}
	}
}

func TestANameInAPathHasLimits(t *testing.T) {
	t.Parallel()
	r, euro := strings.Repeat("r", 255), strings.Repeat("%E2%82%AC", 85)
	for _, escaped := range []string{r, euro, strings.Repeat("%72", 255)} {
		if p, ok := parsePath(escaped + "/renew"); !ok || len(p.Resource) != 255 {
			t.Errorf("%.20s… of 255 bytes: %+v, %t", escaped, p, ok)
		}
	}
	bad := []string{r + "r", euro + "%E2%82%AC", "n%00b", "%FF%FE", "%C0%AF", "%ED%A0%80", "x%0D%0Ay", "%7F", "%C2%85", "%20", "%E2%80%8B", "\xff"}
	for _, escaped := range bad {
		p, ok := parsePath(escaped)
		if !ok || p.Resource != "" || len(p.Faults) != 1 || p.Faults[0].Pointer != "/resource" {
			t.Errorf("%.20s: %+v, %t", escaped, p, ok)
		}
	}
	if !slices.ContainsFunc(bad, func(s string) bool { return len(s) > 255 }) {
		t.Error("no name is over the limit")
	}
}
