package operations

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
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
	_, err := mockserver.Run(t).Client().Transactions.Create(t.Context(), order, gateway.FirstSent(time.Now()))
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
		got, err := test.op.look(t.Context(), newSession(client, time.Now()), nil)
		require.NoError(t, err)
		assert.Equal(t, test.want, got.finding, "%+v: %s", test.op, got.why)
	}
}

// A subscription that differs from the request in anything that both name is another one.
func TestAnotherSubscriptionIsNotOurs(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	made := CreateSubscription{
		IdempotencyKey: "club-1", CustomerID: customer.ID, Amount: 500, Interval: gateway.IntervalMonth, IntervalCount: 2,
		PaymentMethod: gateway.SubscriptionPixAutomatic,
	}
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams(made))
	require.NoError(t, err)
	for name, change := range map[string]func(*CreateSubscription){
		"customer":       func(c *CreateSubscription) { c.CustomerID = "01a2e092-1600-755d-9c5a-82b509a0a918" },
		"amount":         func(c *CreateSubscription) { c.Amount = 501 },
		"interval":       func(c *CreateSubscription) { c.Interval = gateway.IntervalWeek },
		"interval count": func(c *CreateSubscription) { c.IntervalCount = 1 },
		"payment method": func(c *CreateSubscription) { c.PaymentMethod = gateway.SubscriptionCreditCard },
		"defaults":       func(c *CreateSubscription) { c.IntervalCount, c.PaymentMethod = 0, "" },
	} {
		other := made
		change(&other)
		assert.NotEmpty(t, other.differs(sub), name)
		got, err := other.look(t.Context(), newSession(client, time.Now()), nil)
		require.NoError(t, err)
		assert.Zero(t, got, name)
	}
	assert.Empty(t, made.differs(sub))
	got, err := made.look(t.Context(), newSession(client, time.Now()), nil)
	require.NoError(t, err)
	assert.Equal(t, unclear, got.finding, "it looks like this one, but responses have no key")

	sub.IntervalCount, sub.PaymentMethod = 0, "" // a gateway that reports neither
	made.IntervalCount, made.PaymentMethod = 1, ""
	assert.Empty(t, made.differs(sub))
}

// filterless is a gateway that ignores the filter of its list of customers, and may
// not show their references.
type filterless struct {
	next http.RoundTripper
	hide bool
}

func (f filterless) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return f.next.RoundTrip(req)
	}
	req = req.Clone(req.Context())
	query := req.URL.Query()
	query.Del("external_ref")
	req.URL.RawQuery = query.Encode()
	resp, err := f.next.RoundTrip(req)
	if err != nil || !f.hide {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	body = bytes.ReplaceAll(body, []byte(`"externalRef":`), []byte(`"ref":`))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, err
}

// The customer with our reference is ours if the client would take it for ours too.
func TestACustomerIsFoundByItsReference(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	member := CreateCustomer{Name: "Ana", Email: "ana@example.com", ExternalRef: "member-1"}
	made, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams(member))
	require.NoError(t, err)
	for i := range 250 {
		_, err = gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Rui", Email: fmt.Sprintf("%d@example.com", i)})
		require.NoError(t, err)
	}
	spelled, other, missing := member, member, member
	spelled.Name, spelled.Email = "Ana Souza", "Ana@Example.com"
	other.Email = "rui@example.com"
	missing.ExternalRef = "member-2"
	for name, next := range map[string]http.RoundTripper{"filter": gw.Transport(), "no filter": filterless{gw.Transport(), false}} {
		for _, test := range []struct {
			op   CreateCustomer
			want finding
		}{{member, applied}, {spelled, applied}, {other, unclear}, {missing, notApplied}} {
			got, err := test.op.look(t.Context(), newSession(gw.Client(gateway.WithHTTPClient(&http.Client{Transport: next})), time.Now()), nil)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.finding, "%s: %v: %s", name, test.op, got.why)
			if got.finding == applied {
				assert.Equal(t, made.ID, got.result.(*gateway.Customer).ID)
			}
		}
	}
	blind := gw.Client(gateway.WithHTTPClient(&http.Client{Transport: filterless{gw.Transport(), true}}))
	got, err := member.look(t.Context(), newSession(blind, time.Now()), nil)
	require.NoError(t, err)
	assert.Equal(t, unclear, got.finding)
	assert.Contains(t, got.why, made.ID)
	got, err = other.look(t.Context(), newSession(blind, time.Now()), nil)
	require.NoError(t, err)
	assert.Equal(t, notApplied, got.finding, "no customer has the address")
}

// A list with page numbers is searched over several jobs too.
func TestASearchContinuesByPageNumber(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	member := CreateCustomer{Name: "Ana", Email: "ana@example.com", ExternalRef: "member-1"}
	_, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams(member))
	require.NoError(t, err)
	for i := range 350 {
		_, err = gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Rui", Email: fmt.Sprintf("%d@example.com", i)})
		require.NoError(t, err)
	}
	s := newSession(gw.Client(gateway.WithHTTPClient(&http.Client{Transport: filterless{next: gw.Transport()}})), time.Now())
	s.maxPages = 2
	_, err = member.look(t.Context(), s, nil)
	require.ErrorIs(t, err, errSearchLimit)
	s.maxPages = 1000
	got, err := member.look(t.Context(), s, nil)
	require.NoError(t, err)
	assert.Equal(t, applied, got.finding)
	assert.Equal(t, 3, s.search.Pages, "the last one is not counted")
	assert.Equal(t, 4, gw.Requests.Count("customers.list"))
}

// Live gateways add the mandate's status to the metadata of a Pix Automatico, and change it
// between the requests of an update.
func TestTheMandateInMetadataIsNoUpdate(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	client := gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 500, Interval: gateway.IntervalMonth, PaymentMethod: gateway.SubscriptionPixAutomatic,
	})
	require.NoError(t, err)
	for _, metadata := range []map[string]any{{"plan": "gold"}, {"plan": "blue"}} {
		update := UpdateSubscription{Key: "u-1", SubscriptionID: sub.ID}
		update.Params.Metadata = gateway.Some(metadata)
		s := newSession(client, gw.Clock.Now())
		before, _, err := update.begin(t.Context(), s)
		require.NoError(t, err)
		if sub.Status == gateway.SubscriptionIncomplete {
			require.NoError(t, gw.Subscriptions.Authorize(sub.ID)) // which changes mandate_status
		}
		got, err := update.look(t.Context(), s, &before)
		require.NoError(t, err)
		assert.Equal(t, notApplied, got.finding, got.why)
		_, err = update.send(t.Context(), s, &before)
		require.NoError(t, err)
		got, err = update.look(t.Context(), s, &before)
		require.NoError(t, err)
		assert.Equal(t, applied, got.finding, got.why)
		sub, err = client.Subscriptions.Get(t.Context(), sub.ID)
		require.NoError(t, err)
		encoded, err := json.Marshal(sub.Metadata)
		require.NoError(t, err)
		assert.Contains(t, string(encoded), "provider_recurring")
	}
}
