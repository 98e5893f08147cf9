package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Enter: all lanes that the transaction will ever need, at once, by name. The same as pawl.lane.
const laneSQL = `
insert into pawl.lanes as n (lock) select distinct unnest($1::text[]) collate "C" order by 1
on conflict (lock) do update set seq = n.seq + 1`

// Leave: last, as a statement of its own, with a snapshot taken after the lanes were granted.
const leaveSQL = `select pawl.leave($1::text[])`

// Enter and leave, where nothing else is changed.
const advanceSQL = `select pawl.advance($1::text[])`

// No transaction of ours waits longer than this for a row or a lane: whoever holds one for long holds up that lock
// alone, not all that share the transaction or the loop. Who asked asks again.
const mostWait = 250 * time.Millisecond

func (r *Runner) lockTimeoutSQL() string {
	return fmt.Sprintf("set local lock_timeout = '%dms'", r.mostWait.Milliseconds())
}

// transact sends a batch as one READ COMMITTED transaction in one round trip. A role's
// default_transaction_isolation must not matter.
func (r *Runner) transact(ctx context.Context, b *pgx.Batch) error {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	whole := &pgx.Batch{}
	whole.Queue("begin isolation level read committed")
	whole.Queue(r.lockTimeoutSQL())
	whole.QueuedQueries = append(whole.QueuedQueries, b.QueuedQueries...)
	whole.Queue("commit")
	err = conn.SendBatch(ctx, whole).Close()
	if err != nil && !conn.Conn().IsClosed() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback") // without it the pool closes the connection
	}
	return err
}

// statement calls one of pawl's functions that do all of a transaction. Where our connections are READ COMMITTED by default
// it is a statement of its own; behind a pooler, which takes no defaults, it is sent with BEGIN and COMMIT.
func (r *Runner) statement(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) error {
	if r.pooled {
		var b pgx.Batch
		b.Queue(sql, args...).Query(read)
		return r.transact(ctx, &b)
	}
	rows, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	return read(rows)
}

// stepwise begins a transaction of several round trips. Between two of them the process may stop, or lose its network,
// with lanes in hand: the server doesn't wait for it.
func stepwise() pgx.TxOptions {
	return pgx.TxOptions{BeginQuery: "begin isolation level read committed; set local idle_in_transaction_session_timeout = '5s'"}
}

// advance makes the lane rule true for some locks, in a transaction of its own.
func (r *Runner) advance(ctx context.Context, locks ...string) error {
	var b pgx.Batch
	b.Queue(advanceSQL, locks)
	return r.transact(ctx, &b)
}

type batch = pgx.Batch

// laneBatch enters one lane, queues what changes its periods, and leaves.
func laneBatch(lock string, changes func(*batch)) *batch {
	var b batch
	b.Queue(laneSQL, []string{lock})
	changes(&b)
	b.Queue(leaveSQL, []string{lock})
	return &b
}
