package paymentcode_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// sample is the example in the central bank's BR Code manual.
const sample = "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-426655440000" +
	"5204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D"

func withCRC(text string) string { return text + fmt.Sprintf("%04X", paymentcode.CRC16(text)) }

func TestChecksumOfTheCentralBankSample(t *testing.T) {
	t.Parallel()
	assert.Equal(t, sample, withCRC(sample[:len(sample)-4]))
}

// The expected codes are written by hand, except for the checksum, which the
// sample verifies.
func TestCodes(t *testing.T) {
	t.Parallel()
	const (
		id   = "0198c5a0-3c5e-7f2a-8d11-1234567890ab"
		tail = "5802BR" + "5912GATEWAY MOCK" + "6009SAO PAULO" + "62070503***" + "6304"
	)
	assert.Equal(t, withCRC("000201"+"010212"+
		"2678"+"0014br.gov.bcb.pix"+"2556pix.mock.invalid/v2/"+id+
		"52040000"+"5303986"+"540519.99"+tail), paymentcode.ChargeCode(id, 1999))
	assert.Equal(t, withCRC("000201"+"010212"+
		"2679"+"0014br.gov.bcb.pix"+"2557pix.mock.invalid/rec/"+id+
		"52040000"+"5303986"+tail), paymentcode.ConsentCode(id, 0), "no amount field")
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{
		1:                     "54040.01",
		10:                    "54040.10",
		100:                   "54041.00",
		123_456:               "54071234.56",
		100_000_000:           "54101000000.00",
		9_007_199_254_740_991: "541790071992547409.91",
	} {
		assert.Contains(t, paymentcode.ChargeCode("x", cents), "5303986"+want+"5802BR")
	}
}
