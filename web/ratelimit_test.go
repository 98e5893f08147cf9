package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAddressIsClosedForTheRestOfItsMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, from, other := newLimiter(), netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
		for range wrongKeys {
			if wait := l.closed(from, "wrong", time.Now()); wait != 0 {
				t.Fatalf("closed for %v too soon", wait)
			}
			l.failed(from, "wrong", time.Now())
			time.Sleep(time.Second) // real clock: none, the bubble's
		}
		if wait := l.closed(from, "wrong", time.Now()); wait != 50*time.Second {
			t.Errorf("closed for %v, want 50s", wait)
		}
		if wait := l.closed(other, "wrong", time.Now()); wait != 0 {
			t.Errorf("another address is closed for %v", wait)
		}
		time.Sleep(50 * time.Second) // real clock: none, the bubble's
		if wait := l.closed(from, "wrong", time.Now()); wait != 0 {
			t.Errorf("closed for %v after its minute", wait)
		}
		l.failed(from, "wrong", time.Now())
		if n := l.wrong[from].n; n != 1 {
			t.Errorf("%d wrong keys in the next minute, want 1", n)
		}
	})
}

func TestAKnownKeyPassesAClosedAddressUntilItIsWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, from := newLimiter(), netip.MustParsePrefix("10.0.0.1/32")
		l.right("good", time.Now())
		shut := func() {
			for range wrongKeys {
				l.failed(from, "bad", time.Now())
			}
		}
		shut()
		if l.closed(from, "good", time.Now()) != 0 || l.closed(from, "new", time.Now()) == 0 {
			t.Error("a known key must pass, and an unknown one wait")
		}
		l.failed(from, "good", time.Now()) // it was revoked
		if l.closed(from, "good", time.Now()) == 0 {
			t.Error("a key that has become wrong still passes")
		}
		l.right("good", time.Now())
		time.Sleep(knownFor) // real clock: none, the bubble's
		shut()
		if l.closed(from, "good", time.Now()) == 0 {
			t.Error("a key that wasn't seen for long still passes")
		}
	})
}

func TestTheLimitersMemoryIsBounded(t *testing.T) {
	t.Parallel()
	l, now := newLimiter(), time.Now()
	for i := range 3 * remembered {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		l.failed(netip.PrefixFrom(addr, 32), "bad", now.Add(time.Duration(i)))
		l.right(fmt.Sprint(i), now.Add(time.Duration(i)))
	}
	if len(l.wrong) != remembered || len(l.known) != remembered {
		t.Errorf("%d addresses and %d keys, want %d of each", len(l.wrong), len(l.known), remembered)
	}
	if _, ok := l.wrong[netip.MustParsePrefix("10.0.0.0/32")]; ok {
		t.Error("the oldest address was kept")
	}
}

func TestAnAddressIsTheServersWordAndANetworkOfIPv6IsOne(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"10.1.2.3:99": "10.1.2.3/32", "[::ffff:10.1.2.3]:99": "10.1.2.3/32", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "@": "invalid Prefix", "": "invalid Prefix",
	} {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": {"8.8.8.8"}}}
		if got := addressOf(r).String(); got != want {
			t.Errorf("addressOf(%q) = %s, want %s", remote, got, want)
		}
	}
}
