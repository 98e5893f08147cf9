package kinds_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"pawl/internal/pgtest"
	"pawl/jobs"
	"pawl/jobs/kinds"
)

// The first reply is lost; what the receiver says of the key decides whether it gets another request.
func TestAReceiverIsAskedWhatHasBecomeOfARequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says []string // of each probe: a status, or the state in the answer
		sent int
		done string // where the outcome comes from
	}{
		"it has it":                       {[]string{"settled"}, 1, `"state":"settled"`},
		"it has not":                      {[]string{"404", "404"}, 2, `{"status":201}`},
		"in progress, then it has it":     {[]string{"pending", "settled"}, 1, `"state":"settled"`},
		"out of order, then it has it":    {[]string{"500", "500", "settled"}, 1, `"state":"settled"`},
		"not yet, and then it has got it": {[]string{"404", "settled"}, 1, `"state":"settled"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			posts, probes := 0, []string{}
			x := receive(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					if posts++; posts == 1 {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(http.StatusCreated)
					return
				}
				probes = append(probes, r.URL.Query().Get("key")+" "+r.Header.Get("X-Key"))
				switch say := c.says[min(len(probes), len(c.says))-1]; say {
				case "404":
					w.WriteHeader(http.StatusNotFound)
				case "500":
					w.WriteHeader(http.StatusInternalServerError)
				default:
					_, _ = io.WriteString(w, `{"state":"`+say+`"}`)
				}
			})
			start(t, jobs.Config{Pool: pool}, retold(t, kinds.HTTP{URL: kinds.Plain(x.URL), Probe: &kinds.Probe{
				URL: template(x.URL + "/payments?key={{effect.key}}"), Headers: map[string]kinds.Text{"X-Key": template("{{effect.key}}")},
				Expect: kinds.Answer{Pointer: "/state", Equals: "settled"},
			}}))
			until(t, pool, 1, `select count(*) from pawl.periods where state = 'complete'`)
			e := journal(t, pool)[0]
			if posts != c.sent || len(probes) != len(c.says) || e.State != jobs.EffectDone || !strings.Contains(string(e.Response), c.done) {
				t.Errorf("%d requests, %d probes, %s %s", posts, len(probes), e.State, e.Response)
			}
			for _, asked := range probes {
				if asked != e.IdempotencyKey+" "+e.IdempotencyKey {
					t.Errorf("asked for %q, want %q twice", asked, e.IdempotencyKey)
				}
			}
		})
	}
}
