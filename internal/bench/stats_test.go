package bench_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// report gives the median, the 99th percentile and the largest.
func report(b *testing.B, ds []time.Duration, what string) {
	b.Helper()
	slices.Sort(ds)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(ds[len(ds)/2]), what+"-median-ms")
	b.ReportMetric(ms(ds[len(ds)*99/100]), what+"-p99-ms")
	b.ReportMetric(ms(ds[len(ds)-1]), what+"-max-ms")
	b.ReportMetric(0, "ns/op")
}

// ownCPU is what this process has used of a core.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is what the server with this pid has used, with the backends that live and those that it has waited for.
func serverCPU(postmaster int) (total time.Duration) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		panic(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:])) // f[0] is the state
		number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		switch {
		case pid == postmaster:
			total += time.Duration(number(11)+number(12)+number(13)+number(14)) * 10 * time.Millisecond
		case number(1) == postmaster:
			total += time.Duration(number(11)+number(12)) * 10 * time.Millisecond
		}
	}
	return total
}
