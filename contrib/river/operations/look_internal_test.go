package operations

import (
	"fmt"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACreateIsFoundAmongManyLaterOnes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		skew  time.Duration // how far the database's clock is ahead
		pages int
	}{
		"clocks agree":  {pages: 1},
		"clocks differ": {skew: 20 * time.Minute, pages: 4}, // one without a match around the request, then three
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t)
			client := gw.Client()
			sent := gw.Clock.Now()
			created, err := client.Transactions.Create(t.Context(), charge("order-1"))
			require.NoError(t, err)
			require.NoError(t, gw.Clock.Advance(5*time.Minute))
			for i := range 200 {
				_, err = client.Transactions.Create(t.Context(), charge(fmt.Sprintf("later-%d", i)))
				require.NoError(t, err)
			}
			require.NoError(t, gw.Faults.Add(mockserver.Status(500).On("transactions.list").Times(1)))

			s := &session{client: client, timeout: 10 * time.Second, since: sent.Add(test.skew), sent: sent.Add(test.skew + time.Second)}
			got, err := CreateTransaction(charge("order-1")).look(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Equal(t, applied, got.finding)
			assert.Equal(t, created.ID, got.result.(*gateway.Transaction).ID)
			assert.Equal(t, test.pages+1, gw.Requests.Count("transactions.list"), "one page failed and was read again")
		})
	}
}

func charge(reference string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: reference, Amount: 500, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com"},
		Products: []gateway.Product{{Name: "Mug", Price: 500}},
	}
}

// The client rejects the repeat of an operation that an earlier release, with
// laxer rules, has sent. The outbox must not repeat it forever.
func TestARepeatThatTheClientRejectsIsARejection(t *testing.T) {
	t.Parallel()
	order := charge("order-1")
	order.Products = nil
	_, err := mockserver.Run(t).Client().Transactions.Create(t.Context(), order, gateway.RepeatOf(time.Now()))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	rejection := rejectionIn(err)
	require.NotNil(t, rejection)
	assert.Equal(t, "validation", rejection.Kind)
	require.Len(t, rejection.Fields, 1)
	assert.Equal(t, "products", rejection.Fields[0].Field)
}
