package schedule_test

import (
	"fmt"
	"time"

	"pawl/jobs/schedule"
)

func ExampleSchedule_Notes() {
	s, err := schedule.Parse(schedule.Spec{Expr: "15 2 * * *", Zone: "Europe/Berlin"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range s.Notes(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)) {
		fmt.Println(n.At.Format(time.RFC3339), n.Text)
	}
	// Output:
	// 2027-03-28T01:00:00Z 02:15 does not exist in Europe/Berlin on 2027-03-28; it will run at 03:00 that day (dst.gap: after)
	// 2027-10-31T00:15:00Z 02:15 comes twice in Europe/Berlin on 2027-10-31; it will run in the first pass only (dst.overlap: first)
}
