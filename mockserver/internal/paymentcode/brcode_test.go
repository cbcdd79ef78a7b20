package paymentcode_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
	"github.com/gateway-go/gateway/pix"
)

const (
	id   = "0198c5a0-3c5e-7f2a-8d11-1234567890ab"
	tail = "5802BR" + "5912GATEWAY MOCK" + "6009SAO PAULO" + "62070503***"
)

// The expected codes are written by hand, except for the checksum, which the
// decoder verifies.
func TestCodes(t *testing.T) {
	t.Parallel()
	const (
		charge     = "2678" + "0014br.gov.bcb.pix" + "2556pix.mock.invalid/v2/" + id
		recurrence = "8079" + "0014br.gov.bcb.pix" + "2557pix.mock.invalid/rec/" + id
	)
	for name, tc := range map[string]struct{ code, want string }{
		"a charge":                 {paymentcode.ChargeCode(id, 1999), "000201010212" + charge + "520400005303986540519.99" + tail},
		"consent and first charge": {paymentcode.ConsentCode(id, 1999), "000201010212" + charge + "520400005303986540519.99" + tail + recurrence},
		"consent alone":            {paymentcode.ConsentCode(id, 0), "000201" + "26180014br.gov.bcb.pix" + "520400005303986" + tail + recurrence},
	} {
		assert.Equal(t, tc.want, tc.code[:len(tc.code)-len("6304ABCD")], name)
		_, err := pix.Decode(tc.code)
		require.NoError(t, err, name)
	}
}

// Amounts up to the largest that JSON can represent exactly.
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
