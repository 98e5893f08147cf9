package keys

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pawl/internal/pgtest"
)

func TestAKeyThatMakesNoSenseIsRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	s, _ := newStore(nil)
	good := Key{Name: "a", Role: Reader, CreatedBy: "ops"}
	for want, change := range map[string]func(k *Key){
		`role "boss" does not exist: give reader`: func(k *Key) { k.Role = "boss" },
		`role "" does not exist`:                  func(k *Key) { k.Role = "" },
		`name " " is empty`:                       func(k *Key) { k.Name = " " },
		`name "a\n" is empty`:                     func(k *Key) { k.Name = "a\n" },
		`longer than 100 bytes`:                   func(k *Key) { k.Name = strings.Repeat("a", 101) },
		`maker "" is empty`:                       func(k *Key) { k.CreatedBy = "" },
		`prefix "\xff" is longer`:                 func(k *Key) { k.Prefix = "\xff" },
		`than 255 bytes or has control`:           func(k *Key) { k.Prefix = strings.Repeat("p", 256) },
	} {
		k := good
		change(&k)
		if _, _, err := s.Create(t.Context(), k); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one sentence with %q", err, want)
		}
	}
	if _, err := s.Revoke(t.Context(), "a", ""); err == nil || !strings.Contains(err.Error(), "say who revokes") {
		t.Errorf("revoked by nobody: %v", err)
	}
}

func TestAKeyInJSONHasItsWords(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(Key{})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var words []string
	for w := range m {
		words = append(words, w)
	}
	slices.Sort(words)
	if got := strings.Join(words, " "); got != "approver created_at created_by expires_at id last_used_at name prefix revoked_at role" {
		t.Error(got)
	}
}

func TestKeysWorkBehindAPooler(t *testing.T) {
	t.Parallel()
	url := pgtest.Pooler(t, pgtest.URL(t))
	s, w := newStore(pgtest.Open(t, strings.Replace(url, "default_query_exec_mode=exec", "default_query_exec_mode=cache_statement", 1)))
	bearer, k := mustCreate(t, s, Key{Name: "a"})
	var all sync.WaitGroup
	for range 20 {
		w.add(time.Hour)
		for range 4 {
			all.Go(func() {
				if _, err := s.Check(t.Context(), bearer); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if _, err := s.Revoke(t.Context(), k.ID, "ops"); err != nil {
		t.Error(err)
	}
}
