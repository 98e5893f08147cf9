package clocks

import (
	"testing"
	"time"
)

func TestTheLargestOfTheClocksThatNobodySetsIsProven(t *testing.T) {
	t.Parallel()
	then := Now()
	at := func(mono, wall, boot time.Duration) Reading {
		return Reading{At: then.At.Add(mono), Wall: then.Wall.Add(wall), Boot: then.Boot + boot}
	}
	for name, c := range map[string]struct {
		now           Reading
		proven, ahead time.Duration
	}{
		"all go alike":           {at(3, 3, 3), 3, 0},
		"the machine has slept":  {at(3, 9, 9), 9, 0},
		"no clock of the boot":   {at(3, 3, 0), 3, 0},
		"the wall clock was set": {at(3, 50, 3), 3, 47},
		"it was set back":        {at(3, -50, 3), 3, -53},
	} {
		if proven, ahead := c.now.Proven(then), c.now.Ahead(then); proven != c.proven || ahead != c.ahead {
			t.Errorf("%s: %d proven and %d ahead, want %d and %d", name, proven, ahead, c.proven, c.ahead)
		}
	}
}
