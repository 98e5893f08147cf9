package schedule_test

import (
	"errors"
	"testing"

	"pawl/jobs/schedule"
)

func TestAFieldErrorSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]error{"0 0 30 2 *": schedule.ErrNever, "0 0 13 * 5": schedule.ErrDays, "@daily": schedule.ErrZoneName} {
		spec := schedule.Spec{Expr: expr}
		if want == schedule.ErrZoneName { //nolint:errorlint // the very one
			spec.Zone = "Mars/Olympus_Mons"
		}
		_, err := schedule.Parse(spec)
		var field *schedule.FieldError
		if !errors.Is(err, want) || !errors.As(err, &field) || field.Problem != want.Error() || field.Error() != err.Error() {
			t.Errorf("%s: %v", expr, err)
		}
	}
	_, err := schedule.Parse(schedule.Spec{Expr: "0 */6 * * *", Period: "day"})
	var many *schedule.TicksError
	if !errors.As(err, &many) || many.Ticks != 4 || many.Expr != "0 */6 * * *" || many.Where != "a day" {
		t.Errorf("%+v of %v", many, err)
	}
}
