package paymentcode_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// sample is the central bank's, from the manual of the BR Code.
const sample = "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-426655440000" +
	"5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D"

func TestCentralBankSample(t *testing.T) {
	t.Parallel()
	want := paymentcode.BRCode{
		Key:  "123e4567-e12b-12d1-a456-426655440000",
		Name: "Fulano de Tal",
		City: "BRASILIA",
	}

	got, err := paymentcode.ParseBRCode(sample)

	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, sample, want.String())
}

func TestChargeCode(t *testing.T) {
	t.Parallel()
	text := paymentcode.ChargeCode("0198c5a0-3c5e-7f2a-8d11-1234567890ab", 1999)

	// Written out by hand, but for the check sum, which the sample proves.
	assert.Equal(t, "000201"+"010212"+
		"2678"+"0014br.gov.bcb.pix"+"2556pix.mock.invalid/v2/0198c5a0-3c5e-7f2a-8d11-1234567890ab"+
		"52040000"+"5303986"+"540519.99"+"5802BR"+"5912GATEWAY MOCK"+"6009SAO PAULO"+
		"62070503***"+"6304", text[:len(text)-4])

	parsed, err := paymentcode.ParseBRCode(text)
	require.NoError(t, err)
	assert.Equal(t, paymentcode.BRCode{
		URL:    "pix.mock.invalid/v2/0198c5a0-3c5e-7f2a-8d11-1234567890ab",
		Once:   true,
		Amount: 1999,
		Name:   "GATEWAY MOCK",
		City:   "SAO PAULO",
	}, parsed)
}

func TestBRCodeAmounts(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{
		1:           "54040.01",
		10:          "54040.10",
		100:         "54041.00",
		123_456:     "54071234.56",
		100_000_000: "54101000000.00",
	} {
		text := paymentcode.ChargeCode("x", cents)
		assert.Contains(t, text, "5303986"+want+"5802BR")
		parsed, err := paymentcode.ParseBRCode(text)
		require.NoError(t, err)
		assert.Equal(t, cents, parsed.Amount)
	}
	assert.Contains(t, paymentcode.ChargeCode("x", 0), "53039865802BR", "no amount, no field")
}

func TestBRCodeFitsItsFields(t *testing.T) {
	t.Parallel()
	text := paymentcode.BRCode{
		URL:  strings.Repeat("u", 78),
		Name: "Padaria São João da Boa Vista",
		City: "SAO JOAO DA BOA VISTA",
		TxID: strings.Repeat("t", 26),
	}.String()

	parsed, err := paymentcode.ParseBRCode(text)

	require.NoError(t, err)
	assert.Equal(t, paymentcode.BRCode{
		URL:  strings.Repeat("u", 77),
		Name: "Padaria S?o Jo?o da Boa V",
		City: "SAO JOAO DA BOA",
		TxID: strings.Repeat("t", 25),
	}, parsed)
}

func TestParseBRCodeRefuses(t *testing.T) {
	t.Parallel()
	head := sample[:len(sample)-8]
	for name, text := range map[string]string{
		"empty":              "",
		"cut off":            sample[:len(sample)-1],
		"one digit changed":  strings.Replace(sample, "123e", "124e", 1),
		"letters swapped":    strings.Replace(sample, "Fulano", "Fualno", 1),
		"no check sum":       head,
		"text after the sum": sample + "0",
		"field twice":        paymentcode.WithCRC(head + "5802BR"),
		"length no number":   paymentcode.WithCRC("00x201" + head[6:]),
		"length too long":    paymentcode.WithCRC(strings.Replace(head, "6207", "6299", 1)),
		"sign as length":     paymentcode.WithCRC("00+201" + head[6:]),
		"other format":       paymentcode.WithCRC("000202" + head[6:]),
		"other currency":     paymentcode.WithCRC(strings.Replace(head, "5303986", "5303840", 1)),
		"other country":      paymentcode.WithCRC(strings.Replace(head, "5802BR", "5802AR", 1)),
		"no account":         paymentcode.WithCRC("0002015204000053039865802BR5901x6001y62070503***"),
		"other arrangement":  paymentcode.WithCRC(strings.Replace(head, "br.gov.bcb.pix", "br.gov.bcb.pox", 1)),
		"account cut off":    paymentcode.WithCRC(strings.Replace(head, "0136123e", "0137123e", 1)),
		"neither key nor url": paymentcode.WithCRC(
			"000201" + "26180014br.gov.bcb.pix" + "53039865802BR5901x6001y62070503***"),
		"amount not decimal":  paymentcode.WithCRC(strings.Replace(head, "5802BR", "54031.0"+"5802BR", 1)),
		"amount without unit": paymentcode.WithCRC(strings.Replace(head, "5802BR", "5403.10"+"5802BR", 1)),
		"amount negative":     paymentcode.WithCRC(strings.Replace(head, "5802BR", "5405-1.00"+"5802BR", 1)),
		"letters with marks":  paymentcode.WithCRC(strings.Replace(head, "Fulano de Tal", "Fulano de Tã", 1)),
	} {
		_, err := paymentcode.ParseBRCode(text)
		assert.ErrorContains(t, err, "BR Code: ", name)
	}
}

func TestParseBRCodeTakesLowerCaseSum(t *testing.T) {
	t.Parallel()
	_, err := paymentcode.ParseBRCode(strings.Replace(sample, "1D3D", "1d3d", 1))
	assert.NoError(t, err)
}

// Whatever is written can be read, and reads as it was written unless a value
// had to be cut or cleaned.
func FuzzBRCode(f *testing.F) {
	f.Add("pix.mock.invalid/v2/1", "", true, int64(1999), "Fulano", "BRASILIA", "")
	f.Add("", "fulano@example.com", false, int64(0), "Fulano de Tal", "SAO PAULO", "abc123")
	f.Add("", "", false, int64(-1), "", "São Paulo", "***")
	f.Add(strings.Repeat("é", 99), "x", true, int64(1)<<62, "\x00", "\xff", "6304")
	f.Fuzz(func(t *testing.T, url, key string, once bool, amount int64, name, city, txid string) {
		in := paymentcode.BRCode{URL: url, Key: key, Once: once, Amount: amount, Name: name, City: city, TxID: txid}
		text := in.String()
		if url == "" && key == "" || amount >= 1e15 {
			return // names nobody to pay, or does not fit
		}

		first, err := paymentcode.ParseBRCode(text)

		require.NoError(t, err, text)
		assert.Equal(t, text, first.String(), "reads and writes the same")
		assert.Equal(t, once, first.Once)
		assert.Equal(t, max(0, amount), first.Amount)
	})
}

// Nothing that was read is lost when it is written and read again.
func FuzzParseBRCode(f *testing.F) {
	f.Add(sample)
	f.Add(paymentcode.ChargeCode("x", 100_000_000))
	f.Add("6304")
	f.Fuzz(func(t *testing.T, text string) {
		for _, candidate := range []string{text, paymentcode.WithCRC(text)} {
			first, err := paymentcode.ParseBRCode(candidate)
			if err != nil {
				continue
			}
			again, err := paymentcode.ParseBRCode(first.String())
			require.NoError(t, err)
			if len(first.URL+first.Key) <= 77 && len(first.Name) <= 25 && len(first.City) <= 15 && len(first.TxID) <= 25 {
				assert.Equal(t, first, again)
			}
		}
	})
}
