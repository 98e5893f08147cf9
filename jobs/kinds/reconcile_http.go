package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"pawl/jobs"
)

// ReceiptPages are receipts in a JSON list that a server has, page by page. URL and Key are required.
//
// A page leads to the next one by the value at Next, or without Next by its Link header with rel="next". Whatever it says, pages
// stay on the host and scheme of the first.
type ReceiptPages struct {
	URL       Text              // http or https, of the first page; may hold from and to, which are escaped
	Headers   map[string]Text   // of each request; may hold from and to
	Items     string            // a JSON pointer to the list in a page; empty: the page is the list
	Key       string            // the same to the idempotency key in an item
	Detail    string            // to what people are shown; empty: the item
	Next      string            // to the next page's URL in a page; nothing there, null or "": it was the last
	NextParam string            // the parameter of the URL that gets the value at Next, which then is no URL
	MaxPage   int64             // bytes; default 4 MiB; a longer page is a failure
	Transport http.RoundTripper // default one of its own
}

const mostPages = 100_000

func (p ReceiptPages) ready() (func(context.Context, *jobs.Run, func(string) string, each) error, error) {
	p.MaxPage = cmp.Or(p.MaxPage, 4<<20)
	if p.Transport == nil {
		p.Transport = newTransport()
	}
	for name, pointer := range map[string]string{"HTTP.Items": p.Items, "HTTP.Key": p.Key, "HTTP.Detail": p.Detail, "HTTP.Next": p.Next} {
		if pointer != "" && !strings.HasPrefix(pointer, "/") || pointer == "" && name == "HTTP.Key" {
			return nil, &ConfigError{name, pointer, "use a JSON pointer, such as /id"}
		}
	}
	switch {
	case p.URL == nil || !isHTTP(literal(p.URL)):
		return nil, &ConfigError{"HTTP.URL", "", "give an http or https URL with a host"}
	case p.MaxPage < 0 || p.MaxPage > mostResponse:
		return nil, &ConfigError{"HTTP.MaxPage", p.MaxPage, "use 1 to 67108864 bytes, which is 64 MiB"}
	case p.NextParam != "" && p.Next == "":
		return nil, &ConfigError{"HTTP.NextParam", p.NextParam, "set Next too: where its value is in a page"}
	}
	client := http.Client{Transport: p.Transport, CheckRedirect: sameHost}
	return func(ctx context.Context, _ *jobs.Run, value func(string) string, f each) error {
		return p.pages(ctx, &client, value, f)
	}, nil
}

// pages reads one page after the other.
func (p ReceiptPages) pages(ctx context.Context, client *http.Client, value func(string) string, f each) error {
	first, err := url.Parse(p.URL.Expand(escaped(value)))
	if err != nil {
		return errors.New("its URL can't be used") // the error would show it, secrets and all
	}
	seen := map[string]bool{}
	for at, n := first, 1; at != nil; n++ {
		if seen[at.String()] || n > mostPages {
			return fmt.Errorf("page %d: its address is that of an earlier page, or there are more than %d: pages never end", n, mostPages)
		}
		seen[at.String()] = true
		page, link, err := p.page(ctx, client, at.String(), value)
		if err == nil {
			err = p.items(page, f)
		}
		if err == nil {
			at, err = p.next(page, link, at, first)
		}
		if err != nil {
			return fmt.Errorf("page %d: %w", n, err)
		}
	}
	return nil
}

// page reads the page at an address, and its Link header.
func (p ReceiptPages) page(ctx context.Context, client *http.Client, at string, value func(string) string) (page any, link []string, err error) {
	req, err := ask(ctx, http.MethodGet, Plain(at), http.NoBody, "", p.Headers, value)
	if err != nil {
		return nil, nil, err
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, plain(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, p.MaxPage+1))
	switch {
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		return nil, nil, &jobs.RetryError{After: retryAfter(res.Header.Get("Retry-After"), time.Now()), Err: fmt.Errorf("answered %s", res.Status)}
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, nil, fmt.Errorf("answered %s: %.100q", res.Status, body)
	case err != nil:
		return nil, nil, fmt.Errorf("broke off: %w", err)
	case int64(len(body)) > p.MaxPage:
		return nil, nil, fmt.Errorf("has more than %d bytes: ask for smaller pages", p.MaxPage)
	}
	if page, err = decode(body); err != nil {
		return nil, nil, fmt.Errorf("is not JSON: it begins %.100q", body)
	}
	return page, res.Header.Values("Link"), nil
}

// items gives each receipt of a page.
func (p ReceiptPages) items(page any, f each) error {
	list, there := point(page, p.Items)
	items, isList := list.([]any)
	switch where := cmp.Or(p.Items, "it"); {
	case !there:
		return fmt.Errorf("has no %s: it is %s", where, short(page))
	case !isList:
		return fmt.Errorf("%s is %s, where a list is expected", where, short(list))
	}
	for i, item := range items {
		r, err := receipt(item, p.Key, p.Detail)
		if err != nil {
			return fmt.Errorf("item %d %w", i+1, err)
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// next is where the next page is, nil after the last.
func (p ReceiptPages) next(page any, link []string, at, first *url.URL) (*url.URL, error) {
	to := linked(link)
	if p.Next != "" {
		v, _ := point(page, p.Next)
		switch v := v.(type) {
		case nil:
			to = ""
		case string:
			to = v
		case fmt.Stringer: // a number
			to = v.String()
		case bool:
			return nil, fmt.Errorf("%s is %t, where the next page's address is expected", p.Next, v)
		default:
			return nil, fmt.Errorf("%s is %s, where the next page's address is expected", p.Next, short(v))
		}
	}
	switch {
	case to == "":
		return nil, nil //nolint:nilnil // it was the last
	case p.NextParam != "":
		u := *first
		query := u.Query()
		query.Set(p.NextParam, to)
		u.RawQuery = query.Encode()
		return &u, nil
	}
	u, err := at.Parse(to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the next page's address %.100q can't be used", to)
	case u.Scheme != first.Scheme || !strings.EqualFold(u.Host, first.Host):
		return nil, fmt.Errorf("the next page is elsewhere, at %s://%s, which is not followed", u.Scheme, u.Host)
	}
	u.User = first.User
	return u, nil
}

var (
	aLink   = regexp.MustCompile(`<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:"[^"]*"|[^\s;,"]*))?)*)`)
	itsRels = regexp.MustCompile(`(?i);\s*rel\s*=\s*"?([^";,]*)`)
)

// linked is the address of the next page that Link headers have (RFC 8288), or "".
func linked(header []string) string {
	for _, link := range aLink.FindAllStringSubmatch(strings.Join(header, ", "), -1) {
		if rels := itsRels.FindStringSubmatch(link[2]); rels != nil && slices.Contains(strings.Fields(strings.ToLower(rels[1])), "next") {
			return link[1]
		}
	}
	return ""
}
