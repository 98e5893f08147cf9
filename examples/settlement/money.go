package settlement

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// basisPoints make a whole.
const basisPoints = 10_000

// Fee is amount × bps / 10,000 in minor units, rounded half to even (banker's
// rounding), so that many half cents favour neither side. The amount may be
// negative. The rate is 0 to 10,000 basis points; within it no amount
// overflows. The database's function fee says the same.
func Fee(amount int64, bps int) int64 {
	// The amount is split so that no product passes 10⁸.
	part := amount % basisPoints * int64(bps)
	whole := amount/basisPoints*int64(bps) + part/basisPoints
	rest := part % basisPoints
	odd := whole%2 != 0
	switch half := int64(basisPoints / 2); {
	case rest > half, rest == half && odd:
		return whole + 1
	case rest < -half, rest == -half && odd:
		return whole - 1
	}
	return whole
}

// Decimals says how many digits of a currency's amounts follow the point: 2
// for most, 0 for those without a minor unit. It errs on a currency that this
// example doesn't know.
func Decimals(currency string) (int, error) {
	switch currency {
	case "CHF", "EUR", "GBP", "USD":
		return 2, nil
	case "JPY", "KRW":
		return 0, nil
	}
	return 0, fmt.Errorf("settlement: currency %q is unknown: use one of CHF, EUR, GBP, JPY, KRW, USD", currency)
}

// ParseMinor reads a decimal amount, such as "8.91", as minor units. Fewer
// decimals than the currency has are filled up; more are an error, since to
// drop them would lose money.
func ParseMinor(amount, currency string) (int64, error) {
	decimals, err := Decimals(currency)
	if err != nil {
		return 0, err
	}
	whole, fraction, pointed := strings.Cut(amount, ".")
	digits := strings.TrimLeft(whole, "+-")
	if digits == "" || len(whole)-len(digits) > 1 || pointed && fraction == "" ||
		len(fraction) > decimals || strings.ContainsAny(fraction, "+-_") {
		return 0, fmt.Errorf("settlement: amount %q isn't one in %s: write digits with at most %d decimals", amount, currency, decimals)
	}
	minor, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("settlement: amount %q isn't one in %s: %w", amount, currency, err)
	}
	return minor, nil
}

// FormatMinor writes minor units as a decimal amount with its currency, such
// as "8.91 EUR" or "891 JPY". An unknown currency's are written as they are.
func FormatMinor(minor int64, currency string) string {
	decimals, err := Decimals(currency)
	if err != nil || decimals == 0 {
		return fmt.Sprintf("%d %s", minor, currency)
	}
	sign, size := "", uint64(minor)
	if minor < 0 {
		sign, size = "-", -uint64(minor)
	}
	unit := uint64(math.Pow10(decimals))
	return fmt.Sprintf("%s%d.%0*d %s", sign, size/unit, decimals, size%unit, currency)
}
