package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/examples/internal/crew"
)

func main() {
	crew.Main(work)
	var broken bool
	crew.Example{
		Name: "stock",
		Define: func(flags *flag.FlagSet) {
			flags.BoolVar(&broken, "broken", false, "sell on sight, which the check finds")
		},
		Play: func(ctx context.Context, f crew.Flags) (crew.Report, error) { return play(ctx, f, broken) },
	}.Main()
}

// sales are those of one item.
type sales struct {
	Units    int `json:"units"` // that ever were on the shelf
	Left     int `json:"left"`
	Orders   int `json:"orders"` // for a unit each
	Oversold int `json:"oversold"`
}

// report is what a play has come to. The lock alone is expected to oversell; the others aren't.
type report struct {
	OK          bool  `json:"ok"`
	LockAlone   sales `json:"lock_alone"`
	Condition   sales `json:"condition"`
	Reservation sales `json:"reservation"`
	Paid        int   `json:"paid"`
	Released    int   `json:"released"`       // declined by the bank: the unit went back
	Charged     int   `json:"charged"`        // orders that the bank has charged
	Wrong       int   `json:"wrong_payments"` // charged and not paid, paid and not charged, or charged twice
	crew.Faults
}

// Right tells whether each way but the lock alone has sold each unit once, and charged each order once.
func (r report) Right() bool { return r.OK }

func (r report) String() string {
	verdict := "each unit was sold once and each order charged once, but for the lock alone"
	if !r.OK {
		verdict = "WRONG: sold or charged twice"
	}
	text := verdict
	for _, way := range []struct {
		name string
		sales
	}{{"a lock alone", r.LockAlone}, {"a condition", r.Condition}, {"a reservation", r.Reservation}} {
		text += fmt.Sprintf("\n  %-13s  %d of %d units sold, %d oversold", way.name, way.Orders, way.Units, way.Oversold)
	}
	return text + fmt.Sprintf("\n  %d orders paid, %d charged, %d declined; %d wrong payments\n  %s", r.Paid, r.Charged, r.Released, r.Wrong, r.Faults)
}

const (
	salesSQL = `
select i.units, i.quantity, count(o.id), greatest(0, count(o.id) + i.quantity - i.units) from items i
  left join orders o on o.item = i.id and o.state <> 'released' where i.id = $1 group by i.id`
	moneySQL = `
select (select count(*) from orders where state = 'paid'), (select count(*) from orders where state = 'released'),
       (select count(distinct "order") from bank where accepted),
       (select count(*) from orders o full join (select "order", count(*) filter (where accepted) as n from bank group by 1) b on b."order" = o.id
         where o.item = 'seats' and coalesce(b.n, 0) <> (o.state = 'paid')::int or o.id is null)`
	openSQL = `
select exists (select from orders where state = 'reserved')`
	// The seats are off the shelf, and those that went back are sold again: until then nothing is done.
	closeSQL = `update items set units = units - quantity, quantity = 0 where id in ('shirts', 'seats')`
)

// play sells, kills and pauses, and looks at what was sold.
func play(ctx context.Context, f crew.Flags, broken bool) (r report, err error) {
	stalled := false
	p := crew.Play{
		Flags: f, Strikes: 2, Pause: 2 * ttl, Create: create,
		Feed: func(ctx context.Context, pool *pgxpool.Pool) error {
			if !stalled {
				if err := wakeStalled(ctx, pool); err != nil {
					return err
				}
				stalled = true
			}
			return restock(ctx, pool)
		},
		Done: func(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
			if _, err := pool.Exec(ctx, closeSQL); err != nil {
				return false, err
			}
			var open bool
			err := pool.QueryRow(ctx, openSQL).Scan(&open)
			return !open, err
		},
		Check: func(ctx context.Context, pool *pgxpool.Pool, f crew.Faults) (crew.Report, error) {
			r.Faults = f
			r.Pauses++ // the buyer that stood still
			err := r.read(ctx, pool)
			return r, err
		},
	}
	if broken {
		p.Env = []string{brokenEnv + "=1"}
	}
	return r, p.Run(ctx)
}

const stalledSQL = `
select coalesce((select pid from stall), 0), (select count(*) from orders where item = 'last-one')`

// wakeStalled continues the buyer that stands still with the last unit's lock, once another has bought the unit, and lets it
// write.
func wakeStalled(ctx context.Context, pool *pgxpool.Pool) error {
	for woken := false; ; {
		var pid, sold int
		if err := pool.QueryRow(ctx, stalledSQL).Scan(&pid, &sold); err != nil {
			return err
		}
		switch {
		case woken && sold > 1:
			return nil
		case !woken && pid != 0 && sold > 0:
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				return err
			}
			woken = true
		}
		if wait(ctx, ttl/20); ctx.Err() != nil {
			return errors.New("the last one was not sold twice")
		}
	}
}

func (r *report) read(ctx context.Context, pool *pgxpool.Pool) error {
	var b pgx.Batch
	for id, s := range map[string]*sales{"last-one": &r.LockAlone, "shirts": &r.Condition, "seats": &r.Reservation} {
		b.Queue(salesSQL, id).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Units, &s.Left, &s.Orders, &s.Oversold) })
	}
	b.Queue(moneySQL).QueryRow(func(row pgx.Row) error { return row.Scan(&r.Paid, &r.Released, &r.Charged, &r.Wrong) })
	if err := pool.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	right := func(s sales) bool {
		return s.Oversold == 0 && s.Left >= 0 && s.Orders+s.Left == s.Units && s.Orders > 0
	}
	r.OK = right(r.Condition) && right(r.Reservation) && r.LockAlone.Oversold > 0 && r.Wrong == 0 && r.Paid == r.Charged
	return nil
}
