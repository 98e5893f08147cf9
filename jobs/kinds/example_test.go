package kinds_test

import (
	"fmt"

	"pawl/jobs"
	"pawl/jobs/kinds"
)

// A file of SQL that settles a day: guard, statements, expectation and completion are one commit.
func ExampleSQL() {
	settle := kinds.SQL{
		Text:   `insert into settled select day, sum(amount) from trades where day = $1::date group by day`,
		Args:   []any{template("{{period.key}}")},
		Expect: kinds.Rows{Op: "=", N: 1},
	}
	fn, err := settle.Func()
	if err != nil {
		fmt.Println(err)
		return
	}
	job := jobs.Job{Name: "settle", Schedule: "15 2 * * *", Func: fn}
	fmt.Println(job.Name, "is", settle.Badge())
	_, err = kinds.SQL{Text: `begin; update trades set settled = true; commit`}.Func()
	fmt.Println(err)
	// Output:
	// settle is fenced, once
	// kinds: Text "BEGIN": transactions are begun and ended by pawl, and settings stay on the connection: leave it out, or write SET LOCAL
}
