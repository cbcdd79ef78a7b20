package paymentcode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// The vector of a boleto that Banco do Brasil printed: 1 real, factor 3737.
const (
	vectorLine    = "00190.50095 40144.816069 06809.350314 3 37370000000100"
	vectorBarcode = "00193373700000001000500940144816060680935031"
)

func TestBoletoVector(t *testing.T) {
	t.Parallel()

	barcode, err := paymentcode.BarcodeOfLine(vectorLine)
	require.NoError(t, err)
	assert.Equal(t, vectorBarcode, barcode)

	line, err := paymentcode.LineOfBarcode(vectorBarcode)
	require.NoError(t, err)
	assert.Equal(t, strings.NewReplacer(".", "", " ", "").Replace(vectorLine), line)
	assert.Equal(t, vectorLine, paymentcode.FormatLine(line))
}

func TestBoleto(t *testing.T) {
	t.Parallel()
	b := paymentcode.Boleto{
		Due:    time.Date(2027, time.January, 7, 12, 0, 0, 0, time.UTC),
		Amount: 123_456,
		Free:   "42",
	}

	barcode, line := b.Barcode(), b.Line()

	require.Len(t, barcode, 44)
	require.Len(t, line, 47)
	assert.Equal(t, "9999", barcode[:4], "bank and currency")
	assert.Equal(t, "1684", barcode[5:9], "factor: 684 days after the first 1000")
	assert.Equal(t, "0000123456", barcode[9:19], "amount")
	assert.Equal(t, "0000000000000000000000042", barcode[19:], "free field")

	back, err := paymentcode.BarcodeOfLine(line)
	require.NoError(t, err)
	assert.Equal(t, barcode, back)
	forth, err := paymentcode.LineOfBarcode(barcode)
	require.NoError(t, err)
	assert.Equal(t, line, forth)
}

// Any one wrong digit of a line or a bar code is noticed. In a bar code the
// check digit 1 stands for three remainders, so a few wrong digits of the body
// pass there, as they do in a bank.
func TestBoletoOneWrongDigit(t *testing.T) {
	t.Parallel()
	for _, b := range []paymentcode.Boleto{
		{Due: time.Date(2027, 1, 7, 12, 0, 0, 0, time.UTC), Amount: 100, Free: "1234567890123456789012345"},
		{Due: time.Date(2025, 2, 22, 12, 0, 0, 0, time.UTC), Amount: 100_000_000, Free: "9"},
	} {
		line := b.Line()
		for i := range line[:32] { // the fields with a digit of their own
			_, err := paymentcode.BarcodeOfLine(wrongDigit(line, i))
			require.Error(t, err, "digit %d of %s", i, line)
		}
		barcode := b.Barcode()
		_, err := paymentcode.LineOfBarcode(wrongDigit(barcode, 4))
		require.Error(t, err)
	}
	for i := range vectorBarcode { // its check digit, 3, stands for one remainder
		_, err := paymentcode.LineOfBarcode(wrongDigit(vectorBarcode, i))
		require.Error(t, err, "digit %d", i)
	}
}

func wrongDigit(s string, i int) string {
	return s[:i] + string('0'+(s[i]-'0'+1)%10) + s[i+1:]
}

func TestBoletoRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "1", vectorLine + "0", vectorBarcode, strings.Replace(vectorLine, "1", "x", 1)} {
		_, err := paymentcode.BarcodeOfLine(s)
		require.Error(t, err, s)
	}
	for _, s := range []string{"", vectorLine, vectorBarcode + "0", "x" + vectorBarcode[1:]} {
		_, err := paymentcode.LineOfBarcode(s)
		require.Error(t, err, s)
	}
	assert.Equal(t, "too short", paymentcode.FormatLine("too short"))
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
		{"of the vector", day(2007, time.December, 31), 3737},
		{"last of the first round", day(2025, time.February, 21), 9999},
		{"rollover", day(2025, time.February, 22), 1000},
		{"the day after it", day(2025, time.February, 23), 1001},
		{"last of the second round", day(2049, time.October, 13), 9999},
		{"second rollover", day(2049, time.October, 14), 1000},
		{"still the 21st in Brasília", time.Date(2025, 2, 22, 2, 59, 0, 0, time.UTC), 9999},
		{"the 22nd in Brasília", time.Date(2025, 2, 22, 3, 0, 0, 0, time.UTC), 1000},
	} {
		assert.Equal(t, tc.want, paymentcode.DueFactor(tc.at), tc.name)
	}
}

func FuzzBoleto(f *testing.F) {
	f.Add(int64(1_740_000_000), int64(1), "0")
	f.Add(int64(0), int64(9_999_999_999), "9999999999999999999999999999")
	f.Add(int64(4_000_000_000), int64(0), "x")
	f.Fuzz(func(t *testing.T, due, amount int64, free string) {
		if amount < 0 || due < 0 || due > 1e11 {
			return
		}
		b := paymentcode.Boleto{Due: time.Unix(due, 0), Amount: amount, Free: free}
		barcode, err := paymentcode.BarcodeOfLine(paymentcode.FormatLine(b.Line()))
		require.NoError(t, err)
		assert.Equal(t, b.Barcode(), barcode)
	})
}
