package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func mailbox(name, from string) Job {
	return Outbox(Job{Name: name, RenameFrom: from}, func(context.Context, *Run, Dispatch) error { return nil })
}

func enqueues(ctx context.Context, pool *pgxpool.Pool, outbox string, bodies ...any) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var errs []error
		for _, b := range bodies {
			_, err := Enqueue(ctx, tx, Message{Outbox: outbox, Key: "k", Body: b})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// numbered are the messages of all keys in the order in which they will be sent, each with its number.
const numberedSQL = `
select p.job || ' ' || m.key || ' ' || m.seq || ': ' || m.body from pawl.periods p join pawl.outbox m on m.job = p.job and m.period = p.key order by p.lock, p.scheduled_at`

// Its key was new, so that the rename has not met its row; it commits when the rename is long done.
func TestAMessageWhoseTransactionWasOpenWhileItsOutboxWasRenamedIsSentBehindTheOthers(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, mailbox("mail", ""))
	open, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Rollback(context.Background())
	for _, body := range []string{"late", "later"} {
		if _, err := Enqueue(t.Context(), open, Message{Outbox: "mail", Key: "k", Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	next := openedOn(t, pool)
	next.mustHave(t, mailbox("post", "mail"))
	for range 3 {
		if err := next.bringAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := exec(t, pool, `select count(*) from pawl.renames where done_at is not null`); n != 1 {
		t.Fatal("the rename isn't done")
	}
	if err := enqueues(t.Context(), pool, "post", "first"); err != nil {
		t.Fatal(err)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.enqueued(t.Context(), "job:mail#k"); err != nil { // a replica that has heard of the commit makes a delivery
		t.Fatal(err)
	}
	for range 2 { // what has come is delivered in the next round
		if err := next.backstop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`post k 1: "first"`, `post k 2: "late"`, `post k 3: "later"`}
	if got := texts(t, pool, numberedSQL); !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
	if err := enqueues(t.Context(), pool, "post", "last"); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, pool, numberedSQL); got[len(got)-1] != `post k 4: "last"` {
		t.Errorf("then %q", got)
	}
	if n := exec(t, pool, `select count(*) from pawl.lanes n join pawl.river_job j on j.id = n.delivery where n.lock = 'job:mail#k' and j.kind = 'pawl.post' and j.state = 'available'`); n != 1 {
		t.Error("nobody who has the outbox fetches what has come late")
	}
	if n := exec(t, pool, `select count(*) from pawl.outbox_keys where job = 'mail'`) + exec(t, pool, `select count(*) from pawl.renames where done_at is null`); n != 0 {
		t.Error("something is left under the former name")
	}
}

// It has met the row of its key that the rename was about to take along.
func TestAMessageUnderAFormerNameIsRefused(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, mailbox("mail", ""))
	if err := enqueues(t.Context(), pool, "mail", "first"); err != nil {
		t.Fatal(err)
	}
	rename, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rename.Rollback(context.Background())
	for _, sql := range []string{renameScheduleSQL, renameOutboxSQL} {
		if _, err := rename.Exec(t.Context(), sql, "mail", "post"); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- enqueues(context.WithoutCancel(t.Context()), pool, "mail", "second") }()
	waitForLock(t, pool)
	if err := rename.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrUnknownJob) {
		t.Errorf("Enqueue = %v, want ErrUnknownJob", err)
	}
	if got := texts(t, pool, `select job || ' ' || key || ' ' || seq from pawl.outbox_keys`); !slices.Equal(got, []string{"post k 1"}) {
		t.Errorf("keys %q", got)
	}
}

func TestAPausedOutboxSendsNothing(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, mailbox("mail", ""))
	if err := enqueues(t.Context(), pool, "mail", 1); err != nil {
		t.Fatal(err)
	}
	if err := Pause(t.Context(), pool, "mail", PauseConfig{Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := enqueues(t.Context(), pool, "mail", 2); err != nil {
		t.Fatal(err)
	}
	if run := r.beginOn(t, "job:mail#k"); run != nil {
		t.Fatal("a message is sent that was enqueued before the pause")
	}
	if _, err := Resume(t.Context(), pool, "mail", "ann", ""); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		run := r.beginOn(t, "job:mail#k")
		if run == nil {
			t.Fatalf("message %d isn't sent after the pause", i+1)
		}
		if got := texts(t, pool, `select body from pawl.outbox where period = $1`, run.Period.Key); got[0] != string(rune('1'+i)) {
			t.Errorf("message %s comes as number %d", got[0], i+1)
		}
		r.completes(t, run)
	}
}

// From SQL nobody has looked at it before.
func TestWhatIsNoMessageIsRefusedAlsoFromSQL(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	r.mustHave(t, mailbox("mail", ""))
	for what, args := range map[string][]any{
		"no key": {"", "{}"}, "a long key": {strings.Repeat("k", 121), "{}"}, "no JSON": {"k", "hello"}, "much": {"k", `"` + strings.Repeat("x", 1<<16) + `"`}, "null": {nil, "{}"}, "nothing": {"k", nil},
	} {
		if _, err := pool.Exec(t.Context(), `select pawl.enqueue('mail', $1, $2)`, args...); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if list, err := NewHistory(pool).Messages(t.Context(), MessageFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%d messages, %v", len(list), err)
	}
}
