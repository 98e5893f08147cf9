package settlement

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pawl/internal/pgtest"
)

func TestAFeeIsRoundedHalfToEven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount int64
		bps    int
		want   int64
	}{
		{0, 290, 0},
		{100, 50, 0},  // 0.5: to 0
		{300, 50, 2},  // 1.5: to 2
		{500, 50, 2},  // 2.5: to 2
		{700, 50, 4},  // 3.5: to 4
		{-100, 50, 0}, // the same below zero
		{-300, 50, -2},
		{-500, 50, -2},
		{-700, 50, -4},
		{99, 50, 0},
		{101, 50, 1},
		{501, 50, 3},
		{891, 290, 26}, // 25.839
		{10_000, 5000, 5000},
		{10_001, 5000, 5000}, // 5000.5: a tie that isn't in the first 10,000
		{30_003, 5000, 15_002},
		{1234, 0, 0},
		{1234, 10_000, 1234},
		{math.MaxInt64, 10_000, math.MaxInt64},
		{math.MinInt64, 10_000, math.MinInt64},
	} {
		if got := Fee(c.amount, c.bps); got != c.want {
			t.Errorf("Fee(%d, %d) = %d, want %d", c.amount, c.bps, got, c.want)
		}
	}
}

// pairs are amounts and rates of every size, a third of them near a tie.
func pairs(n int) (amounts []int64, rates []int32) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		amount, bps := r.Int64()>>r.IntN(63), r.Int32N(basisPoints+1)
		if r.IntN(3) == 0 {
			bps = []int32{1, 50, 250, 1000, 2500, 5000}[r.IntN(6)]
			tie := int64(basisPoints / 2 / bps)
			amount = tie*(2*r.Int64N(1_000_000)+1) + r.Int64N(3) - 1
		}
		if r.IntN(2) == 0 {
			amount = -amount
		}
		amounts, rates = append(amounts, amount), append(rates, bps)
	}
	return amounts, rates
}

// exactFee is the rule by the book, in numbers without a size.
func exactFee(amount int64, bps int32) int64 {
	ten4 := big.NewInt(basisPoints)
	product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(int64(bps)))
	whole, rest := new(big.Int).DivMod(product, ten4, new(big.Int)) // floor
	twice := rest.Lsh(rest, 1)
	if c := twice.Cmp(ten4); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64()
}

func TestGoAndTheDatabaseRoundAlike(t *testing.T) {
	t.Parallel()
	pool, s := pgtest.New(t), New(Config{})
	if err := s.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	amounts, rates := pairs(20_000)
	// The control statement's rule, too: the two statements must not share a fault or differ.
	rows, err := pool.Query(t.Context(), s.sql(`
select $schema.fee(amount, bps), (case when abs(x - trunc(x)) = 0.5 then 2 * round(x / 2) else round(x) end)::bigint
  from unnest($1::bigint[], $2::int[]) with ordinality p (amount, bps, n)
 cross join lateral (select amount::numeric * bps * 0.0001 as x) f order by n`), amounts, rates)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	i, ties := 0, 0
	for ; rows.Next(); i++ {
		var fee, decimal int64
		if err := rows.Scan(&fee, &decimal); err != nil {
			t.Fatal(err)
		}
		want := exactFee(amounts[i], rates[i])
		if got := Fee(amounts[i], int(rates[i])); got != want || fee != want || decimal != want {
			t.Fatalf("%d at %d bps: Go %d, SQL %d, SQL in decimals %d, want %d", amounts[i], rates[i], got, fee, decimal, want)
		}
		if r := amounts[i] % basisPoints * int64(rates[i]) % basisPoints; r == 5000 || r == -5000 {
			ties++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if i != len(amounts) || ties < 1000 {
		t.Fatalf("%d of %d pairs, %d of them ties: too few to say anything", i, len(amounts), ties)
	}
}

func TestAnAmountIsReadToItsLastDigitOrRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount, currency string
		want             int64
		ok               bool
	}{
		{"8.91", "EUR", 891, true},
		{"8.9", "EUR", 890, true},
		{"8", "USD", 800, true},
		{"-0.50", "USD", -50, true},
		{"891", "JPY", 891, true},
		{"92233720368547758.07", "GBP", math.MaxInt64, true},
		{"92233720368547758.08", "GBP", 0, false},
		{"8.911", "EUR", 0, false},
		{"8.0", "JPY", 0, false},
		{"8.", "EUR", 0, false},
		{".5", "EUR", 0, false},
		{"", "EUR", 0, false},
		{"--5", "EUR", 0, false},
		{"5.-1", "EUR", 0, false},
		{"1e3", "EUR", 0, false},
		{"1", "XXX", 0, false},
	} {
		got, err := ParseMinor(c.amount, c.currency)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("ParseMinor(%q, %s) = %d, %v; want %d, ok %t", c.amount, c.currency, got, err, c.want, c.ok)
		}
	}
}

func TestAnAmountIsWrittenWithItsCurrencysDecimals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{
		{891, "EUR", "8.91 EUR"},
		{5, "USD", "0.05 USD"},
		{-5, "USD", "-0.05 USD"},
		{-123456, "CHF", "-1234.56 CHF"},
		{891, "JPY", "891 JPY"},
		{891, "XXX", "891 XXX"},
		{math.MinInt64, "GBP", "-92233720368547758.08 GBP"},
	} {
		if got := FormatMinor(c.minor, c.currency); got != c.want {
			t.Errorf("FormatMinor(%d, %s) = %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}
