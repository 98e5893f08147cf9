package jobs

import (
	"context"
	"testing"
	"time"
)

func TestWhatIsDoneWithAnEffectDependsOnWhatIsRecordedAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 16, 12, 0, 0, 0, time.UTC)
	some := func(context.Context, string) (any, error) { return "", nil }
	probe := EffectConfig{OnUncertain: UncertainProbe, KeyLifetime: time.Hour, Probe: some}
	retry, ask := EffectConfig{OnUncertain: UncertainRetry, KeyLifetime: time.Hour}, EffectConfig{OnUncertain: UncertainAsk, KeyLifetime: time.Hour}
	none := EffectConfig{OnUncertain: UncertainAsk, KeyLifetime: NoKeys}
	until := retry
	until.ValidUntil = now
	e := func(state string, age time.Duration) entry {
		return entry{state: state, request: "r", operation: "theirs", sends: 1, at: now.Add(-age)}
	}
	changed, mine, past := e(EffectIntended, 0), e(EffectIntended, 0), e(EffectFailed, 0)
	changed.request, mine.operation, past.validUntil = "other", "mine", &now
	unsent, over := e(EffectIntended, 48*time.Hour), e(EffectIntended, 0)
	unsent.request, unsent.sends, over.sends, over.validUntil = "other", 0, 0, &now
	for name, c := range map[string]struct {
		c    EffectConfig
		e    entry
		want step
	}{
		"nothing":                         {retry, entry{}, stepFresh},
		"nothing, too late":               {until, entry{}, stepExpired},
		"done":                            {retry, e(EffectDone, 48*time.Hour), stepAnswer},
		"dropped":                         {retry, e(EffectDropped, 0), stepDropped},
		"failed":                          {retry, e(EffectFailed, 0), stepFresh},
		"failed long ago":                 {retry, e(EffectFailed, 48*time.Hour), stepFresh},
		"failed, too late":                {retry, past, stepExpired},
		"changed":                         {retry, changed, stepChanged},
		"intended":                        {retry, e(EffectIntended, time.Minute), stepAgain},
		"intended, a person would be":     {ask, e(EffectIntended, time.Minute), stepAgain},
		"intended, no keys":               {none, e(EffectIntended, 0), stepPerson},
		"intended by this call":           {none, mine, stepAgain},
		"intended, forgotten":             {retry, e(EffectIntended, time.Hour), stepPerson},
		"never sent":                      {ask, unsent, stepUnsent},
		"never sent, no keys":             {none, unsent, stepUnsent},
		"never sent, valid no more":       {retry, over, stepExpired},
		"uncertain":                       {retry, e(EffectUncertain, time.Minute), stepAgain},
		"uncertain, valid no more":        {until, e(EffectUncertain, time.Minute), stepPerson},
		"intended, the receiver is asked": {probe, e(EffectIntended, time.Minute), stepProbe},
		"uncertain, forgotten, asked":     {probe, e(EffectUncertain, time.Hour), stepInquire},
		"uncertain, a person is asked":    {ask, e(EffectUncertain, time.Minute), stepPerson},
		"uncertain, of no keys, is asked": {none, e(EffectUncertain, time.Minute), stepPerson},
	} {
		if got := c.c.next(c.e, "r", "mine", now); got != c.want {
			t.Errorf("%s: step %d, want %d", name, got, c.want)
		}
	}
}

// Who sees that it differs may not see what it is.
func TestAChangedRequestIsToldByItsPlaces(t *testing.T) {
	t.Parallel()
	for want, c := range map[string][2]string{
		"it":               {`1`, `2`},
		"/body/a~1b, /url": {`{"url":"x","body":{"a/b":1,"c":2}}`, `{"url":"y","body":{"a/b":2,"c":2}}`},
		"/list/1/x":        {`{"list":[1,{"x":1}]}`, `{"list":[1,{"x":null}]}`},
		"/list":            {`{"list":[1]}`, `{"list":[1,2]}`},
		"/body":            {`{"method":"POST","body":"100 cents"}`, `{"method":"POST","body":{"cents":100}}`},
		"/a, /b, /c, more": {`{"a":1,"b":1,"c":1}`, `{"d":1}`},
	} {
		if got := changes(c[0], c[1]); got != want {
			t.Errorf("%s and %s: %s, want %s", c[0], c[1], got, want)
		}
	}
}

func TestTheKeyOfAnEffectHasNeitherTokenNorAttempt(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ revision, refused int }{
		"settle:2026-09-16": {1, 0}, "settle:2026-09-16:try-2": {1, 1}, "settle:2026-09-16:rev-3": {3, 0}, "settle:2026-09-16:rev-3:try-2": {3, 1},
	} {
		if got := effectKey("settle", "2026-09-16", c.revision, c.refused); got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}
