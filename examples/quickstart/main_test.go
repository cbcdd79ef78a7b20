package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/recording"
	"github.com/gateway-go/gateway/mockserver"
)

// The tests must not use a gateway that the environment configures.
func TestMain(m *testing.M) {
	for _, name := range []string{"GATEWAY_BASE_URL", "GATEWAY_API_KEY", "GATEWAY_AUTH"} {
		_ = os.Unsetenv(name)
	}
	m.Run()
}

func TestEveryStep(t *testing.T) {
	t.Parallel()
	out, problems, code := quickstart(t)

	require.Zero(t, code, problems)
	assert.Empty(t, problems)
	for _, want := range []string{
		"BRL 154.70",
		"00020101021226780014br.gov.bcb.pix",
		"webhook      transaction.paid, signature verified",
		"status       partially_refunded",
		"refunded     BRL 60.00, BRL 94.70 remain paid",
		"The gateway has one charge with the reference order-2027-0117-",
		"Everything went as expected",
	} {
		assert.Contains(t, out, want)
	}
}

// The README shows a recording. Only ids, references, codes and the duration
// of the run may differ from the program's current output.
func TestTheRecordedSessionIsWhatItPrints(t *testing.T) {
	t.Parallel()
	svg, err := os.ReadFile(filepath.FromSlash("../../docs/quickstart.svg"))
	require.NoError(t, err)
	recorded, err := recording.Text(svg)
	require.NoError(t, err)
	out, problems, code := quickstart(t)
	require.Zero(t, code, problems)

	varies := regexp.MustCompile(`(?m)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|order-2027-0117-\w{6}|E99999999\d{12}\w{11}|6304[0-9A-F]{4}$|in \S+s\.$`)
	want := varies.ReplaceAllString(strings.Join(recording.Plain(out), "\n"), "…")
	got := varies.ReplaceAllString(strings.Join(recorded[1:], "\n"), "…")

	assert.Equal(t, "$ go run ./examples/quickstart", recorded[0])
	assert.Equal(t, want, got, "run go generate ./examples/quickstart")
}

func TestOrderOfOneCentIsRefundedInFull(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cent.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"number": "1", "buyer": {"name": "Ana", "email": "ana@example.com"},
		"items": [{"name": "Bala", "price": 1, "quantity": 1}]}`), 0o600))

	out, problems, code := quickstart(t, "-order", file)

	require.Zero(t, code, problems)
	assert.Contains(t, out, "refunded     BRL 0.01, BRL 0.00 remain paid")
}

func TestInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"unknown flag": {[]string{"-oder", "x"}, "flag provided but not defined: -oder"},
		"no flag":      {[]string{"order.json"}, "an order file is given with -order"},
		"no file":      {[]string{"-order", "none.json"}, "none.json"},
	} {
		_, problems, code := quickstart(t, tc.args...)
		assert.Equal(t, exitNoStart, code, name)
		assert.Contains(t, problems, tc.want, name)
	}
	_, problems, code := quickstart(t, "-h")
	assert.Zero(t, code, "help is not a failure")
	assert.Contains(t, problems, "-order file")
}

// The same, against a gateway over the network.
func TestGatewayFromTheEnvironment(t *testing.T) {
	mock := mockserver.Run(t)
	t.Setenv("GATEWAY_BASE_URL", listen(t, mock))
	t.Setenv("GATEWAY_API_KEY", mock.Key())

	out, problems, code := quickstart(t)

	require.Zero(t, code, problems)
	assert.Contains(t, out, "status       partially_refunded")
	assert.Contains(t, out, "The same charge again, as after a crash")
	assert.Contains(t, out, "The gateway has one charge with the reference")
	assert.NotContains(t, out, "webhook", "that gateway can't reach this process")
	assert.NotContains(t, out, "sk_test_mock")

	_, problems, code = quickstart(t)
	require.Zero(t, code, "a second run against the same gateway: %s", problems)
}

func TestProductionIsNotPaid(t *testing.T) {
	mock := mockserver.Run(t, mockserver.WithProduction())
	t.Setenv("GATEWAY_BASE_URL", listen(t, mock))
	t.Setenv("GATEWAY_API_KEY", mock.Key())

	out, problems, code := quickstart(t)

	require.Zero(t, code, problems)
	assert.Contains(t, out, "the charge stays unpaid")
	assert.NotContains(t, out, "refund")
}

// If the gateway doesn't behave as expected, the program reports it and exits
// with 1.
func TestUnexpectedResponse(t *testing.T) {
	mock := mockserver.Run(t)
	require.NoError(t, mock.Faults.Add(mockserver.UnknownEnum().On("transactions.create")))
	t.Setenv("GATEWAY_BASE_URL", listen(t, mock))
	t.Setenv("GATEWAY_API_KEY", mock.Key())

	_, problems, code := quickstart(t)

	assert.Equal(t, exitUnexpected, code)
	assert.Contains(t, problems, "a new Pix charge should be pending")
}

func TestEnvironmentWithoutKey(t *testing.T) {
	t.Setenv("GATEWAY_BASE_URL", "https://sandbox.example.com")
	t.Setenv("GATEWAY_API_KEY", "")

	_, problems, code := quickstart(t)

	assert.Equal(t, exitNoStart, code)
	assert.Contains(t, problems, "GATEWAY_API_KEY is not set")
}

func listen(t *testing.T, mock *mockserver.Server) string {
	t.Helper()
	base, err := mock.Listen("127.0.0.1:0")
	require.NoError(t, err)
	return base
}

func quickstart(t *testing.T, args ...string) (out, problems string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(args, &stdout, &stderr)
	return stdout.String(), strings.TrimSpace(stderr.String()), code
}
