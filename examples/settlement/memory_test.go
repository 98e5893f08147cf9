package settlement

import (
	"runtime"
	"testing"
)

// Not parallel: it counts what the process allocates.
func TestTheWorkersMemoryDoesNotGrowWithThePayments(t *testing.T) {
	allocated := func(payments int) uint64 {
		s, pool := generated(t, Config{}, Input{Payments: payments, Days: 1})
		settleAll(t, s, pool, newToken(1)) // warms the pool up
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		settleAll(t, s, pool, newToken(2))
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := allocated(1000), allocated(50_000)
	if many > 2*few+1<<16 {
		t.Errorf("settling 50,000 payments allocated %d bytes, 1,000 payments %d", many, few)
	}
}
