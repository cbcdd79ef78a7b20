package paymentcode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// A published boleto of Banco do Brasil: 1 real, factor 3737.
const (
	vectorLine    = "00190.50095 40144.816069 06809.350314 3 37370000000100"
	vectorBarcode = "00193373700000001000500940144816060680935031"
)

func TestBoletoVector(t *testing.T) {
	t.Parallel()
	assert.Equal(t, strings.NewReplacer(".", "", " ", "").Replace(vectorLine), paymentcode.Line(vectorBarcode))
	assert.Equal(t, vectorBarcode[4], paymentcode.CheckDigit(vectorBarcode[:4]+vectorBarcode[5:]))
}

func TestBoleto(t *testing.T) {
	t.Parallel()
	due := time.Date(2027, time.January, 7, 12, 0, 0, 0, time.UTC)
	for free, want := range map[string]string{
		"42":                                   "0000000000000000000000042",
		"0198c5a0-3c5e-7f2a-8d11-1234567890ab": "0001985035728111234567890",
		"":                                     "0000000000000000000000000",
		"12345678901234567890123456":           "2345678901234567890123456",
	} {
		barcode := paymentcode.Barcode(due, 123_456, free)
		assert.Len(t, barcode, 44)
		assert.Equal(t, "9999", barcode[:4], "bank and currency")
		assert.Equal(t, paymentcode.CheckDigit(barcode[:4]+barcode[5:]), barcode[4])
		assert.Equal(t, "1684", barcode[5:9], "factor: 684 days after the rollover")
		assert.Equal(t, "0000123456", barcode[9:19], "amount")
		assert.Equal(t, want, barcode[19:], "free field")
		assert.Len(t, paymentcode.Line(barcode), 47)
	}
}

func TestDueFactor(t *testing.T) {
	t.Parallel()
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 15, 0, 0, 0, time.UTC)
	}
	for _, tc := range []struct {
		name string
		at   time.Time
		want int
	}{
		{"before the base", day(1997, time.October, 6), 0},
		{"the base", day(1997, time.October, 7), 0},
		{"the day after", day(1997, time.October, 8), 1},
		{"first 1000", day(2000, time.July, 3), 1000},
		{"due date of the vector", day(2007, time.December, 31), 3737},
		{"last day of the first cycle", day(2025, time.February, 21), 9999},
		{"rollover", day(2025, time.February, 22), 1000},
		{"the day after the rollover", day(2025, time.February, 23), 1001},
		{"last day of the second cycle", day(2049, time.October, 13), 9999},
		{"second rollover", day(2049, time.October, 14), 1000},
		{"still the 21st in Brasília", time.Date(2025, 2, 22, 2, 59, 0, 0, time.UTC), 9999},
		{"the 22nd in Brasília", time.Date(2025, 2, 22, 3, 0, 0, 0, time.UTC), 1000},
	} {
		assert.Equal(t, tc.want, paymentcode.DueFactor(tc.at), tc.name)
	}
}
