package lockrepo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// newHeartbeat asks over two connections of its own, which are opened when
// they are first needed.
func newHeartbeat(cfg *pgxpool.Config, m *metrics) heartbeat {
	const name = "pawl heartbeat"
	all, single := &line{cfg: cfg, m: m, name: name}, &line{cfg: cfg, m: m, name: name}
	return heartbeat{batch: all.batch, one: single.one, close: func() { all.close(); single.close() }}
}

// line is one connection, replaced when it breaks. A pool wouldn't do: the
// place of a broken connection is free again only after its farewell, which
// takes 15 s when the network swallows packets. One caller at a time.
type line struct {
	cfg  *pgxpool.Config
	m    *metrics
	name string // what the server knows it by

	conn   *pgx.Conn
	pooled *bool // nil: not known yet
}

// batch is heartbeat.batch.
func (n *line) batch(ctx context.Context, ls []Lease) ([]verdict, time.Time, error) {
	out := make([]verdict, len(ls))
	var now time.Time
	if err := n.do(ctx, beatQuery(ls, out, &now)); err != nil {
		return nil, now, fmt.Errorf("lockrepo: renew %d leases: %w", len(ls), err)
	}
	var rest []Lease
	var places []int
	for i := range out {
		if out[i].expires.IsZero() {
			rest, places = append(rest, ls[i]), append(places, i)
		}
	}
	if len(rest) == 0 {
		return out, now, nil
	}
	why := make([]verdict, len(rest)) // without an answer, these are asked for one by one
	if n.do(ctx, causeQuery(rest, why)) == nil {
		for i, at := range places {
			out[at] = why[i]
		}
	}
	return out, now, nil
}

// one is heartbeat.one.
func (n *line) one(ctx context.Context, l Lease) (out verdict, now time.Time, err error) {
	err = n.do(ctx, query{renewSQL, []any{l.Token.Lock, l.Token.Seq, l.Grant.String(), l.TTL}, single(&out.expires, &now)})
	if !errors.Is(err, pgx.ErrNoRows) {
		out.expires = out.expires.UTC()
		return out, now, err
	}
	why := make([]verdict, 1)
	if err := n.do(ctx, causeQuery([]Lease{l}, why)); err != nil || why[0].lost == nil {
		why[0].lost = &LostError{Token: l.Token, Cause: ErrNotHeld} // no row is an answer
	}
	return why[0], now, nil
}

// do runs q under ctx's deadline. The server gives up first, so that the
// connection lives on.
func (n *line) do(ctx context.Context, q query) error {
	if err := n.connect(ctx); err != nil {
		return err
	}
	limit := callTimeout
	if until, ok := ctx.Deadline(); ok {
		limit = time.Until(until) * 4 / 5
	}
	defer n.m.roundTrip(time.Now())
	return one(ctx, n.conn, limit, q)
}

// connect replaces a closed connection, whose farewell pgx says in the
// background.
func (n *line) connect(ctx context.Context) error {
	if n.conn != nil && !n.conn.IsClosed() {
		return nil
	}
	cc, err := connConfig(ctx, n.cfg)
	if err != nil {
		return err
	}
	if n.pooled == nil {
		found, err := IsPooled(ctx, cc)
		if err != nil {
			return err
		}
		n.pooled = &found
	}
	adapt(cc, *n.pooled, n.name, nil)
	if n.conn, err = pgx.ConnectConfig(ctx, cc); err != nil {
		n.conn = nil
		return fmt.Errorf("lockrepo: connect: %w", err)
	}
	if n.cfg.AfterConnect == nil {
		return nil
	}
	if err := n.cfg.AfterConnect(ctx, n.conn); err != nil {
		closeConn(ctx, n.conn)
		return fmt.Errorf("lockrepo: after connect: %w", err)
	}
	return nil
}

func (n *line) close() {
	if n.conn != nil {
		closeConn(context.Background(), n.conn)
		n.conn = nil
	}
}

// closeConn says goodbye, for a moment.
func closeConn(ctx context.Context, c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
