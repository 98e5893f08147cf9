package jobs

import (
	"errors"
	"slices"
	"testing"

	"pawl/jobs/alert"
)

func TestEachChannelIsTakenOverByItself(t *testing.T) {
	t.Parallel()
	r, pool := opened(t)
	at := func(name, url string) alert.Channel { return alert.Channel{Name: name, URL: url} }
	r.channels = []alert.Channel{at("day", "https://old.example/"), at("gone", "https://old.example/"), at("kept", "https://old.example/"), at("ops", "https://old.example/")}
	if errs := r.reloadChannels(t.Context(), Change{}); errs != nil || len(r.alerting()) != 4 {
		t.Errorf("a change that says nothing of channels: %v, %v", errs, r.alerting())
	}
	errs := r.reloadChannels(t.Context(), Change{
		Channels:     []alert.Channel{at("new", "https://new.example/"), at("new", "https://other.example/"), at("ops", "ftp://new.example/"), at("day", "https://new.example/")},
		KeepChannels: []string{"kept", "never"},
	})
	var of *ChannelError
	if len(errs) != 2 || !errors.As(errs[0], &of) || of.Channel != "new" || !errors.As(errs[1], &of) || of.Channel != "ops" {
		t.Errorf("errors %v", errs)
	}
	want := []alert.Channel{at("day", "https://new.example/"), at("kept", "https://old.example/"), at("new", "https://new.example/"), at("ops", "https://old.example/")}
	same := func(a, b alert.Channel) bool { return a.Name == b.Name && a.URL == b.URL }
	if got := r.alerting(); !slices.EqualFunc(got, want, same) {
		t.Errorf("channels %v, want %v", got, want)
	}
	if n := exec(t, pool, `select count(*) from pawl.channels where name in ('default/new', 'default/day')`); n != 2 {
		t.Errorf("%d channels are noted", n)
	}
}
