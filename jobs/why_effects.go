package jobs

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// whyEffect is the last try of an effect that isn't done.
type whyEffect struct {
	ID                                  int64
	Effect, IdempotencyKey, State, Said string
}

// Those that nobody knows, and those that a person has given up. A shard's are its period's: they are told of the shard that
// was at them last.
const whyEffectsSQL = `
select e.id, e.effect, e.idempotency_key, e.state, coalesce(e.error, '') as said
  from pawl.effects e
 where e.job = @job and e.key = @period and e.revision = @revision and e.state in ('intended', 'uncertain', 'dropped') and (e.sends > 0 or e.state = 'dropped')
   and not exists (select from pawl.effects n where n.job = e.job and n.key = e.key and n.revision = e.revision and n.effect = e.effect and n.try > e.try)
   and (@period = @key or exists (select from pawl.runs r where r.id = e.run and r.job = @job and r.key = @key))
 order by e.state = 'dropped', e.id limit @most`

// effects tells which effects of a period that isn't running have no outcome, and who finds out.
func (t *teller) effects(x whyPeriod, dead []whyShard) (said []string, err error) {
	if x.State == stateRunning {
		return nil, nil
	}
	list, err := ask[whyEffect](t, whyEffectsSQL, pgx.NamedArgs{"period": x.whole(), "revision": x.KeyRevision, "most": mostTold + 1})
	if err != nil {
		return nil, err
	}
	asks := x.Reason == stateUncertain || slices.ContainsFunc(dead, func(s whyShard) bool { return s.Reason == stateUncertain })
	for i, e := range list {
		if i == mostTold {
			return append(said, fmt.Sprintf("There are more such effects: pawl effects ls --job %s --period %s", t.job, x.whole())), nil
		}
		if text := t.effect(e, x, asks); text != "" {
			said = append(said, text)
		}
	}
	return said, nil
}

func (t *teller) effect(e whyEffect, x whyPeriod, asks bool) string {
	id := strconv.FormatInt(e.ID, 10)
	what := fmt.Sprintf("Effect %s (%s", id, e.Effect)
	if e.State == EffectDropped {
		if x.State != stateDead {
			return ""
		}
		return fmt.Sprintf("%s) was given up by a person: a run that needs it is told so, and can only go on without it. If it can't, end the period: pawl job cancel %s %s --reason TEXT", what, t.job, x.whole())
	}
	text := fmt.Sprintf("%s, idempotency key %s) is %s", what, e.IdempotencyKey, e.State)
	if e.Said != "" {
		text += " (" + firstLine(e.Said) + ")"
	}
	decide := fmt.Sprintf("pawl effects decide %s done|failed|dropped --reason TEXT", id)
	switch {
	case x.State == stateOpen, x.State == stateDead && !asks:
		return text + ": the next run finds out or sends it again, as its policy says, unless a person decides before: " + decide
	case x.State == stateDead:
		return text + ": it waits for a decision. Find out whether it has happened, and say so: " + decide
	}
	return text + ", and no run comes that finds out: find out whether it has happened, and say so: " + decide
}

// effectWords names an effect.
func effectWords(id, key string) string {
	if key == "" { // it is kept no longer
		return "effect " + id
	}
	return "effect " + id + " (" + key + ")"
}
