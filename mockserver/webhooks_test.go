package mockserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// shop is a merchant's receiver. It accepts only deliveries signed with the
// secret, unless all is set, and records their kinds.
type shop struct {
	all   bool // also unsigned deliveries
	mu    sync.Mutex
	kinds []webhook.Kind
	bad   []error
	then  func(*webhook.Event)
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if err := webhook.Verify(r.Header, body, gateway.NewSecret("whsec_mock")); err != nil && !s.all {
		s.mu.Lock()
		s.bad = append(s.bad, err)
		s.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	e, err := webhook.Parse(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.kinds = append(s.kinds, e.Kind)
	s.mu.Unlock()
	if s.then != nil {
		s.then(e)
	}
	_, _ = io.WriteString(w, `{"received":true}`)
}

func (s *shop) got() []webhook.Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := s.kinds
	s.kinds = nil
	return kinds
}

func TestWebhooksOfAPayment(t *testing.T) {
	t.Parallel()
	gw, shop := mockserver.Run(t), &shop{}
	gw.Webhooks.Send(shop)
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []webhook.Kind{"transaction.created", "transaction.pending"}, shop.got())

	require.NoError(t, gw.Transactions.Pay(made.ID))
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []webhook.Kind{"transaction.paid"}, shop.got())

	d := gw.Webhooks.Deliveries()[2]
	assert.Equal(t, "transaction.paid", d.Kind)
	assert.Equal(t, made.ID, d.ResourceID)
	assert.Equal(t, mockserver.DeliveryDelivered, d.State)
	assert.Equal(t, `{"received":true}`, d.Attempts[0].Response)
}

// A merchant mounts several receivers at different paths of one router.
func TestEachHandlerGetsItsEventsAtItsPath(t *testing.T) {
	t.Parallel()
	gw, orders, books := mockserver.Run(t), &shop{}, &shop{}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/orders", orders)
	mux.Handle("POST /webhooks/books", books)
	require.NoError(t, gw.Webhooks.SendTo("/webhooks/orders", mux))
	require.NoError(t, gw.Webhooks.SendTo("/webhooks/books?tenant=1", mux))
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	both := []webhook.Kind{"transaction.created", "transaction.pending"}
	assert.Equal(t, both, orders.got())
	assert.Equal(t, both, books.got())
	assert.Equal(t, "/webhooks/orders", gw.Webhooks.Endpoints()[0].Path)

	saved, err := gw.Snapshot()
	require.NoError(t, err)
	require.NoError(t, gw.Restore(saved))
	_, err = gw.Client().Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, both, orders.got(), "a restored endpoint has its path")

	for want, e := range map[string]mockserver.Endpoint{
		`not "webhooks"`:          {Handler: mux, Path: "webhooks"},
		`not "//shop.test/"`:      {Handler: mux, Path: "//shop.test/"},
		`not "/a b"`:              {Handler: mux, Path: "/a b"},
		`not "https://shop.test"`: {Handler: mux, Path: "https://shop.test"},
		"path requires a handler": {URL: "https://shop.test/", Path: "/hook"},
		"can't both be set":       {URL: "https://shop.test/", Handler: mux},
		"must be an http or":      {},
	} {
		_, err := gw.Webhooks.AddEndpoint(e)
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, gw.Webhooks.SendTo("", mux), "needs a path")
	require.ErrorContains(t, gw.Webhooks.SendTo("/", nil), "and a handler")
	assert.Len(t, gw.Webhooks.Endpoints(), 2)
}

func TestAHandlerMayCallTheGateway(t *testing.T) {
	t.Parallel()
	gw, shop := mockserver.Run(t), &shop{}
	client := gw.Client()
	var read, advance, wait error
	shop.then = func(e *webhook.Event) {
		_, read = client.Transactions.Get(context.Background(), e.ResourceID)
		advance = gw.Clock.Advance(time.Hour)
		wait = gw.Wait(context.Background())
	}
	gw.Webhooks.Send(shop)
	_, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(time.Hour))
	require.NoError(t, read)
	require.ErrorContains(t, advance, "inside a webhook handler")
	require.ErrorContains(t, wait, "inside a webhook handler")
}

func TestDisturbedWebhooks(t *testing.T) {
	t.Parallel()
	gw, shop := mockserver.Run(t), &shop{}
	gw.Webhooks.Send(shop)
	client := gw.Client()
	pay := func(ref string) {
		made, err := client.Transactions.Create(t.Context(), order(ref))
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
		shop.got()
		require.NoError(t, gw.Transactions.Pay(made.ID))
		require.NoError(t, gw.Wait(t.Context()))
	}
	const paid = "transaction.paid"

	require.NoError(t, gw.Webhooks.Drop(paid))
	pay("dropped")
	assert.Empty(t, shop.got())

	require.NoError(t, gw.Webhooks.Duplicate(paid))
	pay("twice")
	assert.Equal(t, []webhook.Kind{paid, paid}, shop.got())

	require.NoError(t, gw.Webhooks.CorruptSignature(paid))
	pay("corrupt")
	require.NoError(t, gw.Webhooks.StaleTimestamp("transaction.*"))
	assert.Empty(t, shop.got())
	require.ErrorIs(t, shop.bad[0], webhook.ErrInvalidSignature)
	require.NoError(t, gw.Clock.Advance(5*time.Second))
	assert.Equal(t, []webhook.Kind{paid}, shop.got())

	pay("stale")
	require.ErrorIs(t, shop.bad[1], webhook.ErrStaleTimestamp)
	shop.got()

	require.NoError(t, gw.Webhooks.Delay(paid, time.Hour))
	pay("late")
	assert.Empty(t, shop.got())
	require.NoError(t, gw.Clock.Advance(time.Hour))
	assert.Equal(t, []webhook.Kind{"transaction.created", paid}, shop.got(), "the earlier stale one is redelivered, too")

	require.ErrorContains(t, gw.Webhooks.Drop("transactions.paid"), "transaction.paid")
}

func TestHoldAndReleaseFromATest(t *testing.T) {
	t.Parallel()
	gw, shop := mockserver.Run(t), &shop{}
	gw.Webhooks.Send(shop)
	gw.Webhooks.Hold()
	made, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(made.ID))
	require.NoError(t, gw.Wait(t.Context()))
	var held []string
	for _, d := range gw.Webhooks.Deliveries() {
		assert.Equal(t, mockserver.DeliveryHeld, d.State)
		held = append(held, d.ID)
	}
	require.NoError(t, gw.Webhooks.Release(held[2], held[0]))
	require.NoError(t, gw.Webhooks.Release())
	require.NoError(t, gw.Wait(t.Context()))
	got := shop.got()
	assert.Equal(t, []webhook.Kind{"transaction.paid", "transaction.created", "transaction.pending"}, got)
}

func TestEndpointsOfAnAccount(t *testing.T) {
	t.Parallel()
	gw, all, own := mockserver.Run(t), &shop{}, &shop{}
	other := gw.Account("sk_test_other")
	gw.Webhooks.Send(all)
	e, err := other.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: own, Secret: gateway.NewSecret("whsec_mock"), Events: []string{"transaction.created"}})
	require.NoError(t, err)
	for _, client := range []string{gw.Key(), "sk_test_other"} {
		_, err := gw.Account(client).Client().Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err)
	}
	require.NoError(t, gw.Wait(t.Context()))
	assert.Len(t, all.got(), 4)
	assert.Equal(t, []webhook.Kind{"transaction.created"}, own.got())
	assert.Len(t, other.Webhooks.Endpoints(), 1)
	assert.Len(t, gw.Webhooks.Endpoints(), 2)
	assert.Len(t, other.Webhooks.Deliveries(), 3)
	require.NoError(t, other.Webhooks.RotateSecret(e.ID, gateway.NewSecret("whsec_new_0001")))
	require.NoError(t, other.Webhooks.RemoveEndpoint(e.ID))
	require.Error(t, other.Webhooks.RemoveEndpoint(e.ID))
	_, err = gw.Webhooks.AddEndpoint(mockserver.Endpoint{URL: "shop"})
	require.Error(t, err)
}

func TestAPausedEndpointGetsNoEvent(t *testing.T) {
	t.Parallel()
	gw, own := mockserver.Run(t), &shop{}
	account := gw.Account("sk_test_other")
	e, err := account.Webhooks.AddEndpoint(mockserver.Endpoint{Handler: own, Secret: gateway.NewSecret("whsec_mock")})
	require.NoError(t, err)
	create := func(ref string) {
		_, err := account.Client().Transactions.Create(t.Context(), order(ref))
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
	}
	require.NoError(t, account.Webhooks.PauseEndpoint(e.ID))
	assert.True(t, account.Webhooks.Endpoints()[0].Paused)
	create("order-1")
	assert.Empty(t, own.got())
	assert.Equal(t, mockserver.DeliveryNoEndpoint, account.Webhooks.Deliveries()[0].State)
	require.NoError(t, account.Webhooks.ResumeEndpoint(e.ID))
	assert.False(t, account.Webhooks.Endpoints()[0].Paused)
	create("order-2")
	assert.Len(t, own.got(), 2, "only what happened since the endpoint was resumed")
	require.Error(t, gw.Account("sk_test_third").Webhooks.PauseEndpoint(e.ID), "it is another account's")
	require.Error(t, account.Webhooks.ResumeEndpoint("ep_9"))
}

func TestASampleOfEveryKindIsSigned(t *testing.T) {
	t.Parallel()
	gw, all := mockserver.Run(t), &shop{}
	gw.Webhooks.Send(all) // it verifies the signature
	ids := map[string]bool{}
	for _, kind := range webhook.DocumentedKinds() {
		for range 2 { // each sample is a new event
			id, err := gw.Webhooks.SendSample(kind)
			require.NoError(t, err, kind)
			ids[id] = true
		}
	}
	require.NoError(t, gw.Wait(t.Context()))
	assert.Len(t, ids, 2*len(webhook.DocumentedKinds()))
	assert.Len(t, all.got(), 2*len(webhook.DocumentedKinds()))
	for _, d := range gw.Webhooks.Deliveries() {
		assert.Equal(t, mockserver.DeliveryDelivered, d.State, d.Kind)
	}
	for _, kind := range []webhook.Kind{"", "transaction.lost", webhook.TransactionExpired} {
		_, err := gw.Webhooks.SendSample(kind)
		require.ErrorContains(t, err, "kind must be one that the gateway sends", kind)
	}
}

func TestASampleAndAPauseOutliveTheProcess(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "gateway.data")
	gw, err := mockserver.New(mockserver.WithDataFile(file))
	require.NoError(t, err)
	account := gw.Account("sk_test_other")
	e, err := account.Webhooks.AddEndpoint(mockserver.Endpoint{URL: "http://127.0.0.1:1/hook"})
	require.NoError(t, err)
	account.Webhooks.Hold()
	id, err := account.Webhooks.SendSample(webhook.PayoutFailed)
	require.NoError(t, err)
	require.NoError(t, account.Webhooks.PauseEndpoint(e.ID))
	want := account.Webhooks.Deliveries()
	require.NoError(t, gw.Close())
	again := mockserver.Run(t, mockserver.WithDataFile(file))
	account = again.Account("sk_test_other")
	assert.True(t, account.Webhooks.Endpoints()[0].Paused)
	got := account.Webhooks.Deliveries()
	require.Len(t, got, 1)
	assert.Equal(t, id, got[0].EventID)
	assert.Equal(t, string(want[0].Body), string(got[0].Body))
}

func TestNotifyURLInMemory(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	var signed []string
	gw.Webhooks.ServeHost("shop.example", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signed = append(signed, r.URL.Path+r.Header.Get(webhook.DefaultSignatureHeader))
	}))
	params := order("order-1")
	params.NotifyURL = "https://shop.example/hook"
	_, err := gw.Client().Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	assert.Equal(t, []string{"/hook", "/hook"}, signed, "notify_url is never signed")
}

// A handler of every host gets what no other handler gets.
func TestAHandlerServesEveryHost(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	var got []string
	serve := func(name string) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = append(got, fmt.Sprint(name, " ", r.Host, r.URL.Path, " ", r.TLS != nil))
		})
	}
	gw.Webhooks.ServeHost("*", serve("any"))
	gw.Webhooks.ServeHost("shop.test", serve("own"))
	for _, host := range []string{"shop.test", "metadata.invalid"} { // the second is never sent over the network
		params := order("order-" + host)
		params.NotifyURL = "https://" + host + "/hook"
		_, err := gw.Client().Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		require.NoError(t, gw.Wait(t.Context()))
	}
	assert.Equal(t, []string{
		"own shop.test/hook true", "own shop.test/hook true", "any metadata.invalid/hook true", "any metadata.invalid/hook true",
	}, got)
}
