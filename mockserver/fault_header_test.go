package mockserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// TestTheHeaderAsksForTheSameFault: a fault in the header X-Mock-Fault has the
// same effect on the request and on the books as the same fault added in Go.
func TestTheHeaderAsksForTheSameFault(t *testing.T) {
	t.Parallel()
	for _, fault := range []mockserver.Fault{
		mockserver.Latency(800 * time.Millisecond),
		mockserver.Latency(time.Minute),
		mockserver.Status(503).RetryAfter(2 * time.Second),
		mockserver.Status(429).RetryAfter(1500 * time.Millisecond),
		mockserver.Status(500).CodedBody(),
		mockserver.Status(500).NoBody().Latency(time.Second),
		mockserver.Status(404),
		mockserver.Status(500).Applied(),
		mockserver.ResetBefore(),
		mockserver.LoseResponse(),
		mockserver.Truncate(),
		mockserver.EmptyBody(),
		mockserver.HTMLPage(),
		mockserver.HTMLPage().Applied().RetryAfter(time.Second),
		mockserver.BadJSON(),
		mockserver.HangUntilTimeout(),
		mockserver.HangUntilTimeout().Applied(),
		mockserver.UnknownEnum(),
		mockserver.ExtraField(),
		mockserver.StaleRead(),
	} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				added := callUnderFault(t, func(gw *mockserver.Server, op string) gateway.RequestOption {
					require.NoError(t, gw.Faults.Add(fault.On(op).Times(1)))
					return gateway.MaxAttempts(1)
				})
				requested := callUnderFault(t, func(*mockserver.Server, string) gateway.RequestOption {
					return gateway.Header("X-Mock-Fault", fault.String())
				})
				assert.Equal(t, added, requested)
			})
		})
	}
}

// callUnderFault makes a create, a read and a refund, one attempt each, with the
// fault that hit adds, and returns what the caller learns and what the gateway
// stores.
func callUnderFault(t *testing.T, hit func(gw *mockserver.Server, op string) gateway.RequestOption) []string {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithSeed(1))
	client := gw.Client(gateway.WithMaxAttempts(1))
	var records []string
	record := func(format string, args ...any) { records = append(records, fmt.Sprintf(format, args...)) }

	began := time.Now()
	made, err := client.Transactions.Create(t.Context(), order("order-1"), hit(gw, "transactions.create"))
	record("create: %s", resultOf(made, err))
	made, err = client.Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(made.ID))

	read, err := client.Transactions.Get(t.Context(), made.ID, hit(gw, "transactions.get"))
	record("read: %s", resultOf(read, err))
	refund, err := client.Transactions.Refund(t.Context(), made.ID, gateway.RefundParams{Amount: 400}, hit(gw, "transactions.refund"))
	record("refund: %s", resultOf(refund, err))
	record("after %s", time.Since(began))

	for tx, err := range client.Transactions.All(t.Context(), gateway.TransactionListParams{}) {
		require.NoError(t, err)
		record("%s %s %d", tx.ExternalRef, tx.Status, tx.RefundedAmount)
	}
	return records
}

func resultOf[T any](result *T, err error) string {
	var outcome *gateway.OutcomeError
	var failed *gateway.Error
	switch {
	case errors.As(err, &outcome) && errors.As(err, &failed):
		return fmt.Sprintf("%v %s %s %s", err, outcome.ResourceID, failed.RetryAfter, failed.Body)
	case errors.As(err, &failed):
		return fmt.Sprintf("%v %s %s", err, failed.RetryAfter, failed.Body)
	case err != nil:
		return err.Error()
	default:
		text, err := json.Marshal(result)
		return fmt.Sprintf("%s %v", text, err)
	}
}
