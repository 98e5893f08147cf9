package fence_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"pawl/fence"
)

func TestATokenIsReadable(t *testing.T) {
	t.Parallel()
	for seq, want := range map[int64]string{
		1795969942676573: "1795969942·676573", 1000000: "1·000000", 999999: "999999", 5: "5", 0: "0", -1795969942676573: "-1795969942676573",
	} {
		if got := fence.FormatSeq(seq); got != want {
			t.Errorf("FormatSeq(%d) = %q, want %q", seq, got, want)
		}
	}
	tok := fence.Token{Lock: "job:settle", Seq: 1795969942676573}
	if got, want := tok.String(), "job:settle#1795969942·676573"; got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, nil)).Info("refused", "lease", tok)
	if want := `"lease":{"lock":"job:settle","token":1795969942676573}`; !strings.Contains(b.String(), want) {
		t.Errorf("log line %s lacks %s", b.String(), want)
	}
}

func TestOnlyWhatALockCanIssueIsValid(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string]bool{
		"job:settle": true, strings.Repeat("x", 255): true, strings.Repeat("é", 127): true, "a'b\\c\nd": true,
		"": false, strings.Repeat("x", 256): false, "a\x00b": false, "\xff": false,
	} {
		if got := (fence.Token{Lock: lock, Seq: 1}).Valid(); got != want {
			t.Errorf("lock %q: valid %v, want %v", lock, got, want)
		}
	}
	for _, seq := range []int64{0, -1} {
		if (fence.Token{Lock: "x", Seq: seq}).Valid() {
			t.Errorf("seq %d is valid", seq)
		}
	}
}

func TestAnInvalidTokenIsRefusedBeforeTheDatabaseIsAsked(t *testing.T) {
	t.Parallel()
	ctx, bad := t.Context(), fence.Token{Lock: "job:settle"}
	for what, err := range map[string]error{ // a nil database would panic
		"Do": fence.Do(ctx, nil, bad, nil), "Guard": fence.Guard(ctx, nil, bad), "Claim": fence.Claim(ctx, nil, bad, "x"),
		"Check": fence.Check(ctx, nil, bad, "x"), "Once": fence.Once(ctx, nil, bad, "x"), "Refused": fence.Refused(ctx, nil, bad, "", ""),
	} {
		if err == nil || !strings.Contains(err.Error(), `seq of lock "job:settle" is 0; give the token of a lease`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
