package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawl/jobs"
)

const (
	jobName = "payout"
	ttl     = time.Second
	checker = "payout-check"
)

// payout is the job's work.
type payout struct {
	pool   *pgxpool.Pool
	url    string
	client http.Client
	broken bool // the token is a part of the key
}

func (p *payout) job(start time.Time) jobs.Job {
	return jobs.Job{
		Name: jobName, Schedule: "@daily", Start: start, TTL: ttl, MaxRetries: 50, RetryDelay: 100 * time.Millisecond, RetryMaxDelay: time.Second, Func: p.pay,
	}
}

const (
	owedSQL = `
select merchant, cents from payout.owed o where day = $1 and not exists (select from payout.paid p where p.day = o.day and p.merchant = o.merchant) order by merchant`
	paidSQL = `insert into payout.paid (day, merchant, cents, ref, token) values ($1, $2, $3, $4, $5)`
)

// pay pays all merchants of a day. Each payment is an effect, and what the provider answered is entered in our books.
func (p *payout) pay(ctx context.Context, run *jobs.Run) error {
	rows, err := p.pool.Query(ctx, owedSQL, run.Period.Key)
	if err != nil {
		return err
	}
	owed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x payment, err error) {
		x.Day = run.Period.Key
		return x, row.Scan(&x.Merchant, &x.Cents)
	})
	if err != nil {
		return err
	}
	for i, x := range owed {
		booked, err := p.one(ctx, run, x)
		if err != nil {
			return err
		}
		err = run.Tx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, paidSQL, x.Day, x.Merchant, booked.Cents, booked.Ref, run.Token().Seq)
			return err
		})
		if err != nil {
			return err
		}
		run.Progress(int64(i+1), int64(len(owed)))
	}
	return nil
}

// one pays one merchant. A lost reply is asked for again at once, with the same key; a payment that was declined for good is tried
// once more, which has a key of its own.
func (p *payout) one(ctx context.Context, run *jobs.Run, x payment) (booked payment, err error) {
	for range 10 {
		res, err := run.Effect(ctx, x.Merchant, x, func(ctx context.Context, key string) (any, error) {
			if p.broken {
				key += ":" + strconv.FormatInt(run.Token().Seq, 10)
			}
			return p.call(ctx, key, x)
		})
		var effect *jobs.EffectError
		switch {
		case err == nil:
			return booked, json.Unmarshal(res, &booked)
		case ctx.Err() != nil || !errors.As(err, &effect):
			return booked, err
		}
	}
	return booked, fmt.Errorf("%s is not paid after ten calls", x.Merchant)
}

// call says of each answer what is sure.
func (p *payout) call(ctx context.Context, key string, x payment) (any, error) {
	body, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/payouts", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err // it may have arrived
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusCreated:
		return json.RawMessage(text), nil
	case res.StatusCode == http.StatusUnprocessableEntity:
		return nil, fmt.Errorf("%w: %s", jobs.ErrFailed, text)
	}
	return nil, fmt.Errorf("answered %s", res.Status) // 409: it is being worked on
}

// check compares our journal with the provider's ledger.
func (p *payout) check() (jobs.Job, error) {
	return jobs.Reconcile(jobs.Job{Name: checker, Schedule: "@manual", TTL: ttl}, jobs.Reconciliation{
		Of: jobName, Settle: time.Millisecond,
		List: func(ctx context.Context, _, _ time.Time, each func(jobs.Receipt) error) error {
			all, err := p.ledger(ctx)
			for _, x := range all {
				if err == nil {
					err = each(jobs.Receipt{IdempotencyKey: x.Key, Detail: fmt.Sprintf("%s %s %d cents", x.Day, x.Merchant, x.Cents), Body: x})
				}
			}
			return err
		},
		Differs: func(ours jobs.EffectInfo, theirs jobs.Receipt) string {
			asked, got := payment{}, theirs.Body.(payment)
			if err := json.Unmarshal(ours.Request, &asked); err != nil || asked.Cents != got.Cents || asked.Merchant != got.Merchant {
				return fmt.Sprintf("we asked for %s, they have paid %s %d cents", ours.Request, got.Merchant, got.Cents)
			}
			return ""
		},
	})
}

func (p *payout) ledger(ctx context.Context) (all []payment, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/payouts", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return all, json.NewDecoder(res.Body).Decode(&all)
}
