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

			s := newSession(client, sent.Add(test.skew))
			s.sent = s.since.Add(time.Second)
			got, err := CreateTransaction(charge("order-1")).look(t.Context(), s, nil)
			require.NoError(t, err)
			assert.Equal(t, applied, got.finding)
			assert.Equal(t, created.ID, got.result.(*gateway.Transaction).ID)
			assert.Equal(t, test.pages+1, gw.Requests.Count("transactions.list"), "one page failed and was read again")
		})
	}
}

func newSession(client *gateway.Client, sent time.Time) *session {
	return &session{
		client: client, timeout: 10 * time.Second, since: sent, sent: sent,
		search: &search{}, searchUntil: time.Now().Add(time.Hour), maxPages: 1000,
	}
}

// A gateway may forget a cursor before the next job continues the search: it starts
// again, and the pages count.
func TestASearchStartsAgainIfItsCursorIsRejected(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	sent := gw.Clock.Now()
	_, err := client.Transactions.Create(t.Context(), charge("order-1"))
	require.NoError(t, err)
	for i := range 250 {
		_, err = client.Transactions.Create(t.Context(), charge(fmt.Sprintf("later-%d", i)))
		require.NoError(t, err)
	}
	s := newSession(client, sent)
	s.searchUntil = time.Now() // one page a job
	look := func() (verdict, error) { return CreateTransaction(charge("order-1")).look(t.Context(), s, nil) }
	_, err = look()
	require.Error(t, err, "not even one page can be read")
	s.searchUntil = time.Now().Add(time.Hour)
	s.maxPages = 2
	_, err = look()
	require.ErrorIs(t, err, errSearchLimit)
	assert.Equal(t, "the list was searched over 2 pages, back to "+sent.UTC().Format(time.RFC3339), s.search.String())

	s.maxPages = 10
	require.NoError(t, gw.Faults.Add(mockserver.Status(400).On("transactions.list").Times(1)))
	_, err = look()
	require.ErrorIs(t, err, gateway.ErrValidation)
	assert.Empty(t, s.search.Cursor)
	got, err := look()
	require.NoError(t, err)
	assert.Equal(t, applied, got.finding)
	assert.Equal(t, 4, s.search.Pages, "two before and two after the rejection; the last one is not counted")
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

// A payout or charge with our reference is not ours if it differs in anything
// that the client compares too.
func TestAnotherResourceWithTheReferenceIsNotOurs(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	payout := CreateTransfer{PixKeyType: gateway.PixKeyPhone, PixKeyValue: "+5511987654321", Amount: 900, ExternalRef: "payout-1"}
	_, err := client.Transfers.Create(t.Context(), gateway.TransferParams(payout))
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), charge("order-1"))
	require.NoError(t, err)

	other, sameKey := payout, payout
	other.PixKeyValue, sameKey.PixKeyValue = "+5511987654322", "11987654321"
	dollars := charge("order-1")
	dollars.Currency = gateway.USD
	for _, test := range []struct {
		op   Operation
		want finding
	}{
		{payout, applied},
		{sameKey, applied},
		{other, unclear},
		{CreateTransaction(charge("order-1")), applied},
		{CreateTransaction(dollars), unclear},
	} {
		got, err := test.op.look(t.Context(), newSession(client, gw.Clock.Now()), nil)
		require.NoError(t, err)
		assert.Equal(t, test.want, got.finding, "%+v: %s", test.op, got.why)
	}
}
