package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver"
)

func pixCharge(reference string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: reference,
		Amount:      4990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}
}

// withCharges returns a client of a gateway that has n charges, order-1 to
// order-n.
func withCharges(t *testing.T, n int, opts ...mockserver.Option) (*mockserver.Server, *gateway.Client) {
	t.Helper()
	gw := mockserver.Run(t, opts...)
	client := gw.Client()
	for i := range n {
		_, err := client.Transactions.Create(t.Context(), pixCharge(fmt.Sprintf("order-%d", i+1)))
		require.NoError(t, err)
	}
	return gw, client
}

func TestTransactionPages(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		_, client := withCharges(t, 7, mockserver.WithDialect(dialect))
		var forward []string
		var sizes []int
		var last *gateway.Page[gateway.TransactionSummary]
		for page, err := range client.Transactions.Pages(t.Context(), gateway.TransactionListParams{Limit: 3}) {
			require.NoError(t, err)
			for _, item := range page.Items {
				forward = append(forward, item.ExternalRef)
			}
			sizes, last = append(sizes, len(page.Items)), page
		}
		assert.Equal(t, []int{3, 3, 1}, sizes)
		assert.Equal(t, []string{"order-7", "order-6", "order-5", "order-4", "order-3", "order-2", "order-1"}, forward)
		assert.Equal(t, 7, last.Total)
		assert.False(t, last.HasMore())

		// From the last page's cursor backwards, nearest page first.
		back := gateway.TransactionListParams{Limit: 3, Cursor: last.PrevCursor, Direction: gateway.DirectionPrev}
		items, err := gateway.Collect(client.Transactions.All(t.Context(), back), 0)
		require.NoError(t, err)
		references := make([]string, 0, len(items))
		for _, item := range items {
			references = append(references, item.ExternalRef)
		}
		slices.Sort(references)
		assert.Equal(t, []string{"order-2", "order-3", "order-4", "order-5", "order-6", "order-7"}, references)
	}
}

// The moments of a filter are as exact as those of the answers, so that a
// transaction's own created_at finds it.
func TestTransactionsWithinASecond(t *testing.T) {
	t.Parallel()
	gw, client := withCharges(t, 1)
	require.NoError(t, gw.Clock.Advance(250*time.Millisecond))
	second, err := client.Transactions.Create(t.Context(), pixCharge("order-2"))
	require.NoError(t, err)
	for want, params := range map[string]gateway.TransactionListParams{
		"order-2":         {From: second.CreatedAt.Time},
		"order-2 order-1": {To: second.CreatedAt.Time},
		"order-1":         {To: second.CreatedAt.Add(-time.Millisecond)},
	} {
		page, err := client.Transactions.List(t.Context(), params)
		require.NoError(t, err)
		var found []string
		for _, item := range page.Items {
			found = append(found, item.ExternalRef)
		}
		assert.Equal(t, want, strings.Join(found, " "))
	}
}

func TestTransactionAllStopsWhereItIsTold(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 5)
	items, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 2}), 3)
	require.NoError(t, err)
	assert.Len(t, items, 3)
}

func TestFindByExternalRef(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 3)
	found, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{})
	require.NoError(t, err)
	assert.Equal(t, "order-1", found.ExternalRef)
	assert.NotNil(t, found.Pix, "it is the whole transaction")

	_, err = client.Transactions.FindByExternalRef(t.Context(), "order", gateway.FindOptions{})
	require.ErrorIs(t, err, gateway.ErrNotFound, "a part of a reference is no reference")
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{Since: time.Now().AddDate(100, 0, 0)})
	require.ErrorIs(t, err, gateway.ErrNotFound)
	_, err = client.Transactions.FindByExternalRef(t.Context(), "", gateway.FindOptions{})
	require.ErrorIs(t, err, gateway.ErrValidation)
}

func TestFindByExternalRefReadsNoMorePagesThanAllowed(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 101)
	_, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{MaxPages: 1})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "it may be on a page that was not read")
	require.NotErrorIs(t, err, gateway.ErrNotFound)
	require.ErrorContains(t, err, "find_by_external_ref: the outcome is unknown: none of the newest 100 transactions, back to 2027-01-04T12:00:00Z")
	found, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{MaxPages: 2})
	require.NoError(t, err)
	assert.Equal(t, "order-1", found.ExternalRef)
}

func TestWaitEndsWithThePayment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		client := gw.Client()
		tx, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
		require.NoError(t, err)
		go func() {
			time.Sleep(5 * time.Second)
			assert.NoError(t, gw.Transactions.Pay(tx.ID))
		}()
		began := time.Now()
		paid, err := client.Transactions.Wait(t.Context(), tx.ID, nil, gateway.WaitOptions{})
		require.NoError(t, err)
		assert.True(t, paid.Settled())
		// Reads after 0, 1, 2.5, 4.75 and 8.125 seconds.
		assert.Equal(t, 8125*time.Millisecond, time.Since(began))
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := mockserver.Run(t).Client()
		tx, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		last, err := client.Transactions.Wait(ctx, tx.ID, nil, gateway.WaitOptions{First: 10 * time.Second, Longest: 20 * time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, last)
		assert.Equal(t, gateway.TransactionPending, last.Status)
	})
}

func TestWaitWaitsOutWhatPasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK}
		body := golden(t, "transactions/get.response.json")
		client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithMaxAttempts(1),
			gateway.WithHTTPClient(&http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
				status := answers[0]
				answers = answers[1:]
				return (&files.Exchange{Status: status, Body: body, Header: http.Header{"Retry-After": {"30"}}}).Respond(r)
			})}))
		require.NoError(t, err)
		began := time.Now()
		_, err = client.Transactions.Wait(t.Context(), "tx", func(*gateway.Transaction) bool { return true }, gateway.WaitOptions{})
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(began), "twice what the gateway asked for")
		assert.Empty(t, answers)
	})
}

func TestWaitEndsWithWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t).Client()
	last, err := client.Transactions.Wait(t.Context(), "01941700-0000-7000-8000-000000000000", nil, gateway.WaitOptions{})
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Nil(t, last)
}
