package shop_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

func TestALostResponseChargesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, gw := open(t)
		require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))

		charge, err := s.Charge(t.Context(), order("1001"))
		require.NoError(t, err, "the client retries and recovers the transaction")
		all, err := gateway.Collect(gw.Client().Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, charge.ID, all[0].ID)
	})
}

func TestAnUnknownOutcomeIsResolvedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, gw := open(t)
		require.NoError(t, gw.Faults.Add(mockserver.Status(502).Applied())) // each time, to every call
		_, err := s.Charge(t.Context(), order("1001"))
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)

		gw.Faults.Clear()
		charge, err := s.Charge(t.Context(), order("1001")) // the same reference
		require.NoError(t, err)
		assert.Equal(t, "1001", charge.ExternalRef)
	})
}

func TestManyRandomFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, gw := open(t, mockserver.WithSeed(42)) // the seed also chooses which calls fail
		require.NoError(t, gw.Faults.Add(
			mockserver.LoseResponse().Probability(0.2),
			mockserver.Status(503).Probability(0.2),
			mockserver.HangUntilTimeout().Probability(0.1),
		))
		var workers sync.WaitGroup
		for i := range 100 {
			workers.Go(func() {
				for {
					if _, err := s.Charge(t.Context(), order(fmt.Sprint(i))); err == nil {
						return
					}
				}
			})
		}
		workers.Wait()
		gw.Faults.Clear()
		page, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
		require.NoError(t, err)
		assert.Equal(t, 100, page.Total)
	})
}
