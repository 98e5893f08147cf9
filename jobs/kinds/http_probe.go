package kinds

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"pawl/jobs"
)

// probing is a [Probe] that is ready to be asked.
type probing struct {
	Probe
	want any
}

// ready returns the probe with its defaults, or what can't be used.
func (p Probe) ready() (*probing, error) {
	p.Method = cmp.Or(p.Method, http.MethodGet)
	if len(p.Absent) == 0 {
		p.Absent = []int{http.StatusNotFound}
	}
	switch {
	case p.Method != http.MethodGet && p.Method != http.MethodHead:
		return nil, &ConfigError{"Probe.Method", p.Method, "use GET or HEAD: it may change nothing"}
	case p.URL == nil || !isHTTP(literal(p.URL)):
		return nil, &ConfigError{"Probe.URL", "", "give an http or https URL with a host"}
	case p.Method == http.MethodHead && p.Expect.Pointer != "":
		return nil, &ConfigError{"Probe.Expect", p.Expect.Pointer, "use GET: the answer to HEAD has no body"}
	}
	for _, status := range p.Absent {
		if slices.Contains(p.Expect.Status, status) || len(p.Expect.Status) == 0 && p.Expect.has(status) {
			return nil, &ConfigError{"Probe.Absent", status, "it can't also be the status of what has happened: leave out one of the two"}
		}
	}
	want, err := p.Expect.wanted("Probe.Expect")
	return &probing{p, want}, err
}

// probe asks the receiver what has become of a key.
func (w httpWork) probe(ctx context.Context, run *jobs.Run, key string, rec *recorder) (any, error) {
	p, all := w.probing, values(run)
	value := func(name string) string {
		if name == "effect.key" {
			return key
		}
		return all(name)
	}
	req, err := ask(ctx, p.Method, p.URL, http.NoBody, "", p.Headers, value)
	if err != nil {
		return nil, err
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("probe: %w", plain(err))
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = rec.Write([]byte("probe: "))
	body, err := w.read(res, rec)
	_, _ = rec.Write([]byte("\n"))
	switch {
	case slices.Contains(p.Absent, res.StatusCode):
		return nil, fmt.Errorf("%w: probe: answered %s", jobs.ErrAbsent, res.Status)
	case !p.Expect.has(res.StatusCode):
		return nil, fmt.Errorf("probe: answered %s", res.Status)
	case err != nil:
		return nil, fmt.Errorf("probe: answer broke off: %w", err)
	}
	if err := w.whole(body); err != nil {
		return nil, fmt.Errorf("probe: answer %w", err)
	}
	if err := p.Expect.matches(body, p.want); err != nil {
		return nil, fmt.Errorf("probe: answer: %w", err)
	}
	return answer(res.StatusCode, body), nil
}
