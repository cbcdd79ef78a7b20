package mockserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// failedTest is a TB whose test has failed.
type failedTest struct {
	cleanup []func()
	log     strings.Builder
}

func (*failedTest) Helper()                        {}
func (f *failedTest) Cleanup(do func())            { f.cleanup = append(f.cleanup, do) }
func (*failedTest) Failed() bool                   { return true }
func (f *failedTest) Logf(text string, a ...any)   { fmt.Fprintf(&f.log, text, a...) }
func (f *failedTest) Fatalf(text string, a ...any) { fmt.Fprintf(&f.log, text, a...) }

func TestAFailedTestSeesWhatHappened(t *testing.T) {
	t.Parallel()
	tb := &failedTest{}
	gw := mockserver.Run(tb)
	gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.ErrorIs(t, err, gateway.ErrDuplicate)
	require.NoError(t, gw.Wait(t.Context()))
	for _, do := range tb.cleanup {
		do()
	}
	for _, text := range []string{
		"the clock is at 2027-01-04T12:00:00Z; 2 requests (latest last):", "POST /v2/transactions -> 201", "-> 409", "DUPLICATE_EXTERNAL_REF",
		"2 webhooks (latest last):", "transaction.created of", "pending, attempts: 1, the response has status 418",
	} {
		assert.Contains(t, tb.log.String(), text)
	}
	assert.NotContains(t, tb.log.String(), gw.Key())
}

func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	tb := &failedTest{}
	assert.Nil(t, mockserver.Run(tb, nil))
	assert.Contains(t, tb.log.String(), "an option is nil")
}
