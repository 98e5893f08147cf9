package jobs

import "testing"

// A run that starts on a lock which was released by force is the successor; the lease stays forced. A released lease
// has none: nobody lost it.
func TestTheNextRunIsTheSuccessorOfAForcedLeaseAndOfNoReleasedOne(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"forced", "released"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, pool := opened(t)
			owes(t, pool, "1")
			exec(t, pool, `insert into pawl.locks (name, token, incarnation, renewed_at) select 'L', 7, incarnation, now() from pawl.clock returning 1`)
			exec(t, pool, `insert into pawl.tenures (lock, token, grant_id, ended_at, how) values ('L', 7, gen_random_uuid(), now(), $1) returning 1`, how)
			next := r.mustStart(t, pool)
			want := int64(0)
			if how == "forced" {
				want = 1
			}
			if n := exec(t, pool, `select count(*) from pawl.tenures where how = $1 and successor = $2`, how, next.token.Seq); n != want {
				t.Errorf("%d tenures name the successor, want %d", n, want)
			}
		})
	}
}
