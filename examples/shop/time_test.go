package shop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/shop"
	"github.com/gateway-go/gateway/mockserver"
)

func TestAPixCodeThatExpires(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)

	require.NoError(t, gw.Clock.Advance(24*time.Hour))
	charge, err = gw.Client().Transactions.Get(t.Context(), charge.ID)
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionExpired, charge.Status)
	require.Error(t, gw.Transactions.Pay(charge.ID), "the state does not allow it")
	assert.Zero(t, s.Shipped("1001"))
}

func TestAMemberPaysEveryMonth(t *testing.T) {
	t.Parallel()
	s, gw := open(t) // its clock starts at 4 January 2027, unless WithStart sets it
	ana, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	membership, err := s.Join(t.Context(), ana.ID, "pgct_ok")
	require.NoError(t, err)

	require.NoError(t, gw.Clock.Advance(45*24*time.Hour)) // one renewal; its webhooks have arrived
	assert.Equal(t, "2027-03-04", s.PaidUntil("ana@example.com").Format(time.DateOnly))

	require.NoError(t, gw.Subscriptions.FailNextCharges(membership.ID, 1))
	require.NoError(t, gw.Clock.Advance(31*24*time.Hour))
	assert.Equal(t, "2027-03-04", s.PaidUntil("ana@example.com").Format(time.DateOnly), "the renewal of March failed")
}

func TestARateLimitedCallIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, gw := open(t) // made inside the bubble
		busy := mockserver.Status(429).RetryAfter(40 * time.Second)
		require.NoError(t, gw.Faults.Add(busy.On("transactions.create").Times(2)))

		began := time.Now()
		_, err := s.Charge(t.Context(), order("1001"))
		require.NoError(t, err)
		assert.Equal(t, 80*time.Second, time.Since(began)) // but no real time
	})
}

// A client that uses a socket can't run in a bubble: it gets short waits instead.
func TestARetryOverASocketDoesNotWait(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	require.NoError(t, gw.Faults.Add(mockserver.Status(503).On("transactions.create").Times(2)))
	baseURL, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)

	client, err := gateway.New(baseURL, gateway.BearerToken(gw.Key()),
		gateway.WithBackoff(time.Millisecond, 10*time.Millisecond)) // in tests only
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	_, err = shop.New(client).Charge(t.Context(), order("1001"))
	require.NoError(t, err)
}
