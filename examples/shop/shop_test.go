package shop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/examples/shop"
	"github.com/gateway-go/gateway/mockserver"
)

func order(id string) shop.Order {
	return shop.Order{ID: id, Cents: 4990, Buyer: gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com"}}
}

func TestAPaidOrderIsShipped(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t) // a gateway for this test alone, closed when the test ends
	s := shop.New(gw.Client())
	receiver, err := s.Receiver(gw.Secret())
	require.NoError(t, err)
	gw.Webhooks.Send(receiver) // signed, in memory

	charge, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	assert.Contains(t, charge.Pix.QRCode, "br.gov.bcb.pix")
	assert.Zero(t, s.Shipped("1001"))

	require.NoError(t, gw.Transactions.Pay(charge.ID)) // what the buyer's bank does
	require.NoError(t, gw.Wait(t.Context()))           // until the webhooks are delivered
	assert.Equal(t, 1, s.Shipped("1001"))
}

// open returns a shop and the gateway behind it.
func open(t *testing.T, opts ...mockserver.Option) (*shop.Shop, *mockserver.Server) {
	t.Helper()
	gw := mockserver.Run(t, opts...)
	s := shop.New(gw.Client())
	receiver, err := s.Receiver(gw.Secret())
	require.NoError(t, err)
	gw.Webhooks.Send(receiver)
	return s, gw
}

func TestAReloadedPageChargesOnce(t *testing.T) {
	t.Parallel()
	s, gw := open(t)
	first, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	second, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	assert.Equal(t, first.ID, second.ID)

	sent := gw.Requests.Find("transactions.create")
	require.Len(t, sent, 2)
	assert.Contains(t, sent[1].Body, `"external_ref":"1001"`)
	assert.Contains(t, sent[1].Response, "DUPLICATE_EXTERNAL_REF")
}

func TestTwoShopsOfOneGateway(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	for _, key := range []string{"sk_test_north", "sk_test_south"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			account := gw.Account(key) // empty, and isolated from other accounts
			charge, err := shop.New(account.Client()).Charge(t.Context(), order("1001"))
			require.NoError(t, err)
			require.NoError(t, account.Transactions.Pay(charge.ID))
		})
	}
}

func TestBothDialects(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			s, gw := open(t, mockserver.WithDialect(dialect))
			o := order("1001")
			o.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"} // required for a Pix in the live dialect
			charge, err := s.Charge(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, gw.Transactions.Pay(charge.ID))
			require.NoError(t, gw.Wait(t.Context()))
			assert.Equal(t, 1, s.Shipped("1001"))
		})
	}
}

// A live gateway may report in amount what it settles: the order is still paid with
// what was charged, and a refund may be larger than what is settled.
func TestAnOrderThatIsSettledInPart(t *testing.T) {
	t.Parallel()
	s, gw := open(t, mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27))
	o := order("1001")
	o.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
	charge, err := s.Charge(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, int64(961), charge.Amount) // of 4990
	assert.Equal(t, o.Cents, charge.Charged())
	require.NoError(t, gw.Transactions.Pay(charge.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, 1, s.Shipped("1001"))
}

func TestARunCanBeRepeated(t *testing.T) {
	t.Parallel()
	s, gw := open(t, mockserver.WithSeed(1)) // with a seed, ids and codes repeat
	snapshot, err := gw.Snapshot()
	require.NoError(t, err)
	first, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)

	require.NoError(t, gw.Restore(snapshot)) // back to the snapshot, with its clock
	second, err := s.Charge(t.Context(), order("1001"))
	require.NoError(t, err)
	assert.Equal(t, first.Pix.QRCode, second.Pix.QRCode)
}
