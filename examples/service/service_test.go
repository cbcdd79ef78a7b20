package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	adminToken = "operator-of-this-test"
	cpf        = "52998224725"
)

// world is a shop with its own database and gateway.
type world struct {
	*testing.T

	gw   *mockserver.Server
	db   *sql.DB
	shop *shop
}

// open starts a shop. integration/with-postgres starts PostgreSQL.
func open(t *testing.T, opts ...mockserver.Option) *world {
	t.Helper()
	if os.Getenv("DATABASE_URL") == "" {
		t.Skip("DATABASE_URL is not set: run ../../integration/with-postgres go test ./...")
	}
	w := &world{T: t, db: database(t)}
	w.gw = mockserver.Run(t, append(opts, mockserver.WithStart(time.Now()), mockserver.WithOpeningBalance(1_000_000))...)
	w.start()
	return w
}

const settledInPart = "settled in part"

// settings are the gateways that the shop must work with: those of each dialect, and
// one that reports in the amount of a transaction what it settles.
func settings() map[string][]mockserver.Option {
	return map[string][]mockserver.Option{
		"document": nil, "live": {mockserver.WithDialect(mockserver.Live)},
		settledInPart: {mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)},
	}
}

// inEachSetting runs a test in each of the settings.
func inEachSetting(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	for name, opts := range settings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, opts...))
		})
	}
}

// database returns a schema that only this test uses.
func database(t *testing.T) *sql.DB {
	t.Helper()
	db, _ := schemaOf(t)
	return db
}

// schemaOf also returns the address of the schema.
func schemaOf(t *testing.T) (db *sql.DB, address string) {
	t.Helper()
	admin, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	require.NoError(t, err)
	defer admin.Close() //nolint:errcheck // it was only used here
	name := "t_" + strings.ToLower(rand.Text()[:16])
	_, err = admin.ExecContext(t.Context(), `CREATE SCHEMA `+name)
	require.NoError(t, err)
	address = os.Getenv("DATABASE_URL") + "&search_path=" + name
	db, err = sql.Open("pgx", address)
	require.NoError(t, err)
	db.SetMaxOpenConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db, address
}

// start starts a process of the shop: a client, a receiver, workers.
func (w *world) start() {
	w.Helper()
	cfg := config{webhookSecret: w.gw.Secret(), adminToken: gateway.NewSecret(adminToken), backoff: func(int) time.Duration { return 10 * time.Millisecond }}
	client := w.gw.Client(gateway.WithAccount("shop"), gateway.WithBackoff(time.Millisecond, time.Millisecond))
	s, err := newShop(w.Context(), cfg, w.db, client, slog.New(slog.DiscardHandler))
	require.NoError(w, err)
	s.receiver.Start()
	w.shop = s
	w.gw.Webhooks.Send(s.receiver)
	w.Cleanup(func() {
		if err := s.receiver.Shutdown(context.Background()); err != nil {
			w.Errorf("shutdown: %v", err)
		}
	})
}

// stop ends the process.
func (w *world) stop() {
	w.Helper()
	require.NoError(w, w.shop.receiver.Shutdown(w.Context()))
	for _, e := range w.gw.Webhooks.Endpoints() {
		require.NoError(w, w.gw.Webhooks.RemoveEndpoint(e.ID))
	}
}

// call sends a request and reads its response.
func (w *world) call(method, path string, body, into any) int {
	w.Helper()
	raw, err := json.Marshal(body)
	require.NoError(w, err)
	r := httptest.NewRequestWithContext(w.Context(), method, path, bytes.NewReader(raw))
	r.Header.Set("Authorization", "Bearer "+adminToken)
	rec := httptest.NewRecorder()
	w.shop.handler().ServeHTTP(rec, r)
	if into != nil {
		require.NoError(w, json.Unmarshal(rec.Body.Bytes(), into), rec.Body)
	}
	return rec.Code
}

// settled waits until every webhook is delivered and handled.
func (w *world) settled() {
	w.Helper()
	require.NoError(w, w.gw.Wait(w.Context()))
	require.Eventually(w, func() bool {
		n, err := w.shop.receiver.Counts(w.Context())
		return err == nil && n.Waiting+n.Claimed == 0
	}, time.Minute, 5*time.Millisecond)
	n, err := w.shop.receiver.Counts(w.Context())
	require.NoError(w, err)
	require.Zero(w, n.Dead, "dead letters")
}

type object = map[string]any

func mug(method gateway.Method, token string) object {
	return object{
		"sku": "mug", "quantity": 2, "method": method, "token": token, "name": "Ana Souza", "email": "ana@example.com",
		"document": object{"type": "CPF", "number": cpf},
	}
}

func ana() gateway.BuyerParams {
	return gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: cpf}}
}

func (w *world) order(id string) (o order) {
	w.Helper()
	require.Equal(w, 200, w.call("GET", "/orders/"+id, nil, &o))
	return o
}

func (w *world) transaction(orderID string) string {
	w.Helper()
	o, err := w.shop.order(w.Context(), orderID)
	require.NoError(w, err)
	require.NotEmpty(w, o.transactionID)
	return o.transactionID
}

func (w *world) count(query string, args ...any) (n int) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), query, args...).Scan(&n))
	return n
}

func (w *world) shipments(orderID string) int {
	w.Helper()
	return w.count(`SELECT count(*) FROM shipments WHERE order_id = $1`, orderID)
}

func (w *world) charges() int {
	w.Helper()
	page, err := w.gw.Client().Transactions.List(w.Context(), gateway.TransactionListParams{})
	require.NoError(w, err)
	return page.Total
}

func TestAPixOrderIsPaidAndShippedOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o))
	assert.Equal(t, orderPending, o.State)
	assert.EqualValues(t, 7980, o.Amount)
	assert.Contains(t, o.PixCode, "br.gov.bcb.pix")
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o), "the page is reloaded")
	assert.Equal(t, 1, w.charges())

	require.NoError(t, w.gw.Webhooks.Duplicate("transaction.paid"))
	require.NoError(t, w.gw.Transactions.Pay(w.transaction("order0001")))
	w.settled()
	assert.Equal(t, orderPaid, w.order("order0001").State)
	assert.Equal(t, 1, w.shipments("order0001"))

	other := mug(gateway.Pix, "")
	other["quantity"] = 3
	assert.Equal(t, 409, w.call("PUT", "/orders/order0001", other, nil))
}

// The mock's default is the document dialect; live gateways are stricter.
func TestTheWholeLifeInBothDialects(t *testing.T) {
	t.Parallel()
	for name, opts := range settings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, opts...)
			require.Equal(t, 200, w.call("PUT", "/orders/pix00001", mug(gateway.Pix, ""), nil))
			require.Equal(t, orderPending, w.order("pix00001").State)
			require.NoError(t, w.gw.Transactions.Pay(w.transaction("pix00001")))
			w.settled()
			require.Equal(t, orderPaid, w.order("pix00001").State)
			require.Equal(t, 200, w.call("POST", "/orders/pix00001/refund", nil, nil))
			w.settled()
			assert.Equal(t, orderRefunded, w.order("pix00001").State)

			card := mug(gateway.CreditCard, "pgct_3ds_ana")
			delete(card, "document")
			require.Equal(t, 200, w.call("PUT", "/orders/card0001", card, nil))
			assert.NotEmpty(t, w.order("card0001").Challenge)
			require.NoError(t, w.gw.Transactions.PassChallenge(w.transaction("card0001")))
			w.settled()
			assert.Equal(t, orderPaid, w.order("card0001").State)
			assert.Equal(t, 1, w.shipments("card0001"))

			in := object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_ok_ana"}
			var m member
			require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
			require.NoError(t, w.gw.Clock.Advance(35*24*time.Hour))
			w.settled()
			assert.Equal(t, 2, w.count(`SELECT count(*) FROM charges`))

			require.Equal(t, 200, w.call("PUT", "/payouts/payout01", supplier(), nil))
			require.NoError(t, w.gw.Transfers.Process(w.transfer("payout01")))
			require.NoError(t, w.gw.Transfers.Settle(w.transfer("payout01")))
			w.settled()
			assert.Equal(t, "paid", w.payout("payout01").State)
		})
	}
}

// A repeat sends the stored document again; it is cleared once the charge exists.
func TestTheDocumentIsStoredUntilTheChargeExists(t *testing.T) {
	t.Parallel()
	w := open(t, mockserver.WithDialect(mockserver.Live))
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502)))
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	w.gw.Faults.Clear()
	assert.Equal(t, 1, w.count(`SELECT count(*) FROM orders WHERE state = 'new' AND document = $1`, cpf))
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	assert.Equal(t, orderPending, w.order("order0001").State)
	assert.Zero(t, w.count(`SELECT count(*) FROM orders WHERE document <> '' OR document_type <> ''`))
	tx, err := w.gw.Client().Transactions.Get(t.Context(), w.transaction("order0001"))
	require.NoError(t, err)
	assert.Equal(t, cpf, tx.Buyer.Document.Number)
}

func TestBadOrdersStoreNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, change := range map[string]object{
		"sku":      {"sku": "gold"},
		"quantity": {"quantity": 0},
		"method":   {"method": "cash"},
		"amount":   {"amount": 1}, // the price is the shop's
		"document": {"document": nil},
		"type":     {"document": object{"type": "RG", "number": cpf}},
		"number":   {"document": object{"type": "CPF", "number": "529.982.247-25"}},
		"company":  {"document": object{"type": "CNPJ", "number": cpf}},
	} {
		in := mug(gateway.Pix, "")
		maps.Copy(in, change)
		assert.Equal(t, 422, w.call("PUT", "/orders/order0001", in, nil), name)
	}
	assert.Equal(t, 422, w.call("PUT", "/orders/1", mug(gateway.Pix, ""), nil))
	assert.Zero(t, w.count(`SELECT count(*) FROM orders`))
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/orders/order0001/refund", nil)
	rec := httptest.NewRecorder()
	w.shop.handler().ServeHTTP(rec, r)
	assert.Equal(t, 401, rec.Code)

	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.CreditCard, "pgct_used_1"), &o))
	assert.Equal(t, orderFailed, o.State, "the gateway rejects a used token")
}

func TestALostResponseChargesOnce(t *testing.T) {
	t.Parallel()
	inEachSetting(t, testALostResponseChargesOnce)
}

func testALostResponseChargesOnce(t *testing.T, w *world) {
	t.Helper()
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o))
	assert.Equal(t, orderPending, o.State)
	assert.Equal(t, 1, w.charges())
}

// A rejection of the repeat says nothing about the first request: an order that was
// charged must not fail, nor may a payout that was sent be made again.
func TestARejectedRepeatDecidesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.gw.Webhooks.Hold()
	payout := object{"amount": 120000, "key_type": "EMAIL", "key_value": "supplier@example.com"}
	requests := map[string]any{"/orders/order0001": mug(gateway.Pix, ""), "/payouts/payout01": payout}
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502).Applied()))
	for path, body := range requests {
		require.Equal(t, 200, w.call("PUT", path, body, nil))
	}
	w.gw.Faults.Clear()
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(422).On("transactions.create"), mockserver.Status(422).On("transfers.create")))
	for path, body := range requests {
		require.Equal(t, 200, w.call("PUT", path, body, nil))
	}
	var p struct{ State string }
	require.Equal(t, 200, w.call("GET", "/payouts/payout01", nil, &p))
	assert.Equal(t, orderPending, w.order("order0001").State)
	assert.Equal(t, "pending", p.State)
	assert.Equal(t, 1, w.charges())
}

func TestAnUnknownOutcomeIsResolvedByTheReconciler(t *testing.T) {
	t.Parallel()
	inEachSetting(t, testAnUnknownOutcomeIsResolvedByTheReconciler)
}

func testAnUnknownOutcomeIsResolvedByTheReconciler(t *testing.T, w *world) {
	t.Helper()
	w.gw.Webhooks.Hold()
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502).Applied().On("transactions.*")))
	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o))
	assert.Equal(t, orderNew, o.State)
	w.gw.Faults.Clear()
	_, err := w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	o = w.order("order0001")
	assert.Equal(t, orderPending, o.State)
	assert.NotEmpty(t, o.PixCode)
	assert.Equal(t, 1, w.charges())
}

func TestAnOrderKnownOnlyFromWebhooksShowsItsCode(t *testing.T) {
	t.Parallel()
	w := open(t)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502).Applied().On("transactions.create")))
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	w.gw.Faults.Clear()
	w.settled()
	assert.Contains(t, w.order("order0001").PixCode, "br.gov.bcb.pix")
	assert.Equal(t, 1, w.charges())
}

// The gateway's clock is behind: its transaction is older than the order.
func TestAUsedReferenceIsFoundDespiteTheClocks(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.gw.Webhooks.Hold()
	_, err := w.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: "order-order0001", Amount: 7980, Method: gateway.Pix,
		Buyer:    ana(),
		Products: []gateway.Product{{Name: "Order order0001", Price: 7980}},
	})
	require.NoError(t, err)
	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o))
	assert.Equal(t, orderPending, o.State)
	assert.Contains(t, o.PixCode, "br.gov.bcb.pix")
	assert.Equal(t, 1, w.charges())
}

func TestAnOperationThatWasNeverAppliedIsFailedOrResent(t *testing.T) {
	t.Parallel()
	w := open(t)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502)))
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	w.call("PUT", "/payouts/payout01", supplier(), nil)
	w.gw.Faults.Clear()

	sum, err := w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, sum.Undecided, "the attempts may still arrive")
	_, err = w.db.ExecContext(t.Context(), `UPDATE orders SET created_at = now() - interval '1 hour'`)
	require.NoError(t, err)
	_, err = w.db.ExecContext(t.Context(), `UPDATE payouts SET created_at = now() - interval '1 hour'`)
	require.NoError(t, err)
	_, err = w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, orderFailed, w.order("order0001").State)
	assert.Equal(t, "pending", w.payout("payout01").State)
}

func TestAWebhookBeforeItsOrderWaits(t *testing.T) {
	t.Parallel()
	w := open(t)
	early, err := w.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: "order-order0001", Amount: 7980, Method: gateway.Pix,
		Buyer:    ana(),
		Products: []gateway.Product{{Name: "Order order0001", Price: 7980}},
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Transactions.Pay(early.ID))
	require.NoError(t, w.gw.Wait(t.Context()))
	assert.Zero(t, w.count(`SELECT count(*) FROM orders`))

	_, _, err = w.shop.insertOrder(t.Context(), order{ID: "order0001", Amount: 7980, Method: gateway.Pix})
	require.NoError(t, err) // the late commit
	w.settled()
	assert.Equal(t, orderPaid, w.order("order0001").State)
	assert.Equal(t, 1, w.shipments("order0001"))
}

func TestAWrongAmountIsReviewedAndNotShipped(t *testing.T) {
	t.Parallel()
	w := open(t)
	_, _, err := w.shop.insertOrder(t.Context(), order{ID: "order0001", Amount: 7980, Method: gateway.Pix})
	require.NoError(t, err)
	cheap, err := w.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: "order-order0001", Amount: 1, Method: gateway.Pix,
		Buyer:    ana(),
		Products: []gateway.Product{{Name: "Order order0001", Price: 1}},
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Transactions.Pay(cheap.ID))
	w.settled()
	o := w.order("order0001")
	assert.Equal(t, orderReview, o.State)
	assert.Equal(t, "paid BRL 0.01, not BRL 79.80", o.Reason)
	assert.Zero(t, w.shipments("order0001"))
}

// Another system of the account has used the reference: its charge must not be shown to
// the buyer, and its payment does not pay the order.
func TestAChargeOfAnotherSystemIsReviewed(t *testing.T) {
	t.Parallel()
	inEachSetting(t, func(t *testing.T, w *world) {
		t.Helper()
		other, err := w.gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
			ExternalRef: "order-order0001", Amount: 100, Method: gateway.Pix, Buyer: ana(), Products: []gateway.Product{{Name: "Another system's", Price: 100}},
		})
		require.NoError(t, err)
		var o order
		require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), &o))
		assert.Equal(t, orderReview, o.State)
		assert.Empty(t, o.PixCode)
		require.NoError(t, w.gw.Transactions.Pay(other.ID))
		w.settled()
		assert.Equal(t, orderReview, w.order("order0001").State)
		assert.Zero(t, w.shipments("order0001"))
	})
}

func TestARefundInPartThatWasMadeElsewhere(t *testing.T) {
	t.Parallel()
	inEachSetting(t, func(t *testing.T, w *world) {
		t.Helper()
		w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
		id := w.transaction("order0001")
		require.NoError(t, w.gw.Transactions.Pay(id))
		for _, refunded := range []int64{1000, 3500} {
			_, err := w.gw.Client().Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: refunded - w.refunded("order0001")})
			require.NoError(t, err)
			w.settled()
			assert.Equal(t, orderPaid, w.order("order0001").State)
			assert.Equal(t, refunded, w.refunded("order0001"))
		}
		assert.Equal(t, 1, w.shipments("order0001"))
	})
}

func (w *world) refunded(orderID string) (cents int64) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT refunded FROM orders WHERE id = $1`, orderID).Scan(&cents))
	return cents
}

func TestARefund(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]*mockserver.Fault{
		"response": nil, "lost response": lost("transactions.refund"),
		"settled in part": nil, "settled in part, lost response": lost("transactions.refund"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opts []mockserver.Option
			if strings.HasPrefix(name, settledInPart) {
				opts = settings()[settledInPart]
			}
			w := open(t, opts...)
			w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
			assert.Equal(t, 409, w.call("POST", "/orders/order0001/refund", nil, nil), "it is not paid")
			require.NoError(t, w.gw.Transactions.Pay(w.transaction("order0001")))
			w.settled()
			if fault != nil {
				require.NoError(t, w.gw.Faults.Add(*fault))
			}
			var o order
			require.Equal(t, 200, w.call("POST", "/orders/order0001/refund", nil, &o))
			assert.Equal(t, orderRefunded, o.State)
			w.settled()
			assert.Equal(t, orderRefunded, w.order("order0001").State)
			assert.Equal(t, 409, w.call("POST", "/orders/order0001/refund", nil, nil), "there is nothing left")
		})
	}
}

func lost(op string) *mockserver.Fault {
	f := mockserver.LoseResponse().On(op).Times(1)
	return &f
}

func TestARefundWithoutAResponseIsReconciled(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	require.NoError(t, w.gw.Transactions.Pay(w.transaction("order0001")))
	w.settled()
	require.NoError(t, w.gw.Webhooks.Drop("transaction.refunded"))
	require.NoError(t, w.gw.Faults.Add(*lost("transactions.refund"), mockserver.Status(503).On("transactions.get")))
	var o order
	require.Equal(t, 200, w.call("POST", "/orders/order0001/refund", nil, &o))
	assert.Equal(t, orderRefunding, o.State)
	w.settled()
	w.gw.Faults.Clear()
	_, err := w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	w.settled()
	assert.Equal(t, orderRefunded, w.order("order0001").State)
}

func TestThreeDSecure(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, id := range []string{"passes01", "fails001"} {
		var o order
		require.Equal(t, 200, w.call("PUT", "/orders/"+id, mug(gateway.CreditCard, "pgct_3ds_"+id), &o))
		assert.Equal(t, orderPending, o.State)
		w.settled()
		assert.NotEmpty(t, w.order(id).Challenge, "webhooks leave it in place")
	}
	require.NoError(t, w.gw.Transactions.PassChallenge(w.transaction("passes01")))
	require.NoError(t, w.gw.Transactions.FailChallenge(w.transaction("fails001")))
	w.settled()
	_, err := w.shop.reconciler.Once(t.Context()) // a refusal sends no webhook
	require.NoError(t, err)
	w.settled()
	passed, failed := w.order("passes01"), w.order("fails001")
	assert.Equal(t, orderPaid, passed.State)
	assert.Empty(t, passed.Challenge)
	assert.Equal(t, 1, w.shipments("passes01"))
	assert.Equal(t, orderFailed, failed.State)
	assert.Equal(t, "refused", failed.Reason)
	assert.Zero(t, w.shipments("fails001"))
}

func TestACardThatIsCapturedShips(t *testing.T) {
	t.Parallel()
	w := open(t)
	var o order
	require.Equal(t, 200, w.call("PUT", "/orders/order0001", mug(gateway.CreditCard, "pgct_captured_1"), &o))
	assert.Equal(t, orderPaid, o.State)
	w.settled()
	assert.Equal(t, 1, w.shipments("order0001"))
}

func TestAMissedWebhookIsReconciled(t *testing.T) {
	t.Parallel()
	inEachSetting(t, testAMissedWebhookIsReconciled)
}

func testAMissedWebhookIsReconciled(t *testing.T, w *world) {
	t.Helper()
	w.call("PUT", "/orders/paid0001", mug(gateway.Pix, ""), nil)
	w.call("PUT", "/orders/expired1", mug(gateway.Pix, ""), nil)
	w.settled()
	require.NoError(t, w.gw.Webhooks.Drop("transaction.paid"))
	require.NoError(t, w.gw.Transactions.Pay(w.transaction("paid0001")))
	require.NoError(t, w.gw.Clock.Advance(25*time.Hour))
	w.settled()
	assert.Equal(t, orderPending, w.order("paid0001").State)

	for range 2 {
		_, err := w.shop.reconciler.Once(t.Context())
		require.NoError(t, err)
		w.settled()
		assert.Equal(t, orderPaid, w.order("paid0001").State)
		assert.Equal(t, 1, w.shipments("paid0001"))
		assert.Equal(t, orderFailed, w.order("expired1").State)
	}
}

func TestAMissedChargebackIsReconciled(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.call("PUT", "/orders/order0001", mug(gateway.CreditCard, "pgct_captured_1"), nil)
	w.settled()
	require.Equal(t, orderPaid, w.order("order0001").State)
	require.NoError(t, w.gw.Webhooks.Drop("transaction.chargedback"))
	require.NoError(t, w.gw.Transactions.Chargeback(w.transaction("order0001")))
	w.settled()
	require.Equal(t, orderPaid, w.order("order0001").State)

	w.shop.cfg.compareEvery = time.Hour
	_, err := w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	w.settled()
	assert.Equal(t, orderPaid, w.order("order0001").State, "it was compared less than an hour ago")

	w.shop.cfg.compareEvery = 0
	_, err = w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	w.settled()
	assert.Equal(t, orderChargeback, w.order("order0001").State)
}

func TestAMemberPaysEveryMonth(t *testing.T) {
	t.Parallel()
	w := open(t)
	in := object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_ok_ana"}
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.create").Times(1), mockserver.LoseResponse().On("customers.create").Times(1)))
	var m member
	require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
	w.settled()
	require.Equal(t, 200, w.call("GET", "/members/member01", nil, &m))
	assert.Equal(t, "active", m.State)
	first := *m.PaidUntil
	assert.Equal(t, 1, w.count(`SELECT count(*) FROM charges`))

	require.NoError(t, w.gw.Webhooks.Duplicate("subscription.renewed"))
	require.NoError(t, w.gw.Clock.Advance(35*24*time.Hour))
	w.settled()
	require.Equal(t, 200, w.call("GET", "/members/member01", nil, &m))
	assert.True(t, m.PaidUntil.After(first))
	assert.Equal(t, 2, w.count(`SELECT count(*) FROM charges`))

	in["token"] = "pgct_ok_another" // the page is sent again with a new token
	require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
	page, err := w.gw.Client().Subscriptions.List(t.Context(), gateway.SubscriptionListParams{})
	require.NoError(t, err)
	assert.Equal(t, 1, page.Total)
}

// A subscription's webhook that arrives before its member is committed must
// wait: to the database, an UPDATE of a missing row is not an error.
func TestAWebhookBeforeItsMemberWaits(t *testing.T) {
	t.Parallel()
	w := open(t)
	client := w.gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: membershipPrice, Currency: gateway.BRL, Interval: gateway.IntervalMonth,
		Token: "pgct_ok_ana", IdempotencyKey: "member-member01", Metadata: map[string]any{"member": "member01"},
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Clock.Advance(time.Minute))
	_, err = client.Subscriptions.Cancel(t.Context(), sub.ID, gateway.SubscriptionCancelParams{})
	require.NoError(t, err)
	// created, started and updated are each handled more than once.
	require.Eventually(t, func() bool { return w.shop.receiver.Stats()[webhook.OutcomeFailed] >= 9 }, time.Minute, time.Millisecond,
		"the events of an unknown member must be retried")
	_, err = w.db.ExecContext(t.Context(), `INSERT INTO members (id, name, email) VALUES ('member01', 'Ana Souza', 'ana@example.com')`)
	require.NoError(t, err) // the late commit
	w.settled()
	m, err := w.shop.member(t.Context(), "member01")
	require.NoError(t, err)
	assert.Equal(t, "cancel_scheduled", m.State)
	assert.NotNil(t, m.PaidUntil)
	assert.Equal(t, 1, w.count(`SELECT count(*) FROM charges`))
}

// lostMembership subscribes member01, but the gateway's response is lost. It returns
// the request.
func (w *world) lostMembership() object {
	w.Helper()
	w.gw.Webhooks.Hold()
	require.NoError(w, w.gw.Faults.Add(mockserver.Status(502).Applied().On("subscriptions.create")))
	in := object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_ok_ana"}
	var m member
	require.Equal(w, 200, w.call("PUT", "/members/member01", in, &m))
	require.Equal(w, "new", m.State)
	w.gw.Faults.Clear()
	return in
}

func TestAMembershipOfUnknownOutcomeIsFoundWithADifferentToken(t *testing.T) {
	t.Parallel()
	w := open(t)
	in := w.lostMembership()
	in["token"] = "pgct_ok_another"
	var m member
	require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
	assert.Equal(t, "active", m.State)
}

// The repeat is rejected, but the first request created the subscription.
func TestAMembershipOfUnknownOutcomeIsFoundAfterARejection(t *testing.T) {
	t.Parallel()
	w := open(t)
	in := w.lostMembership()
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(422).On("subscriptions.create")))
	require.Equal(t, 422, w.call("PUT", "/members/member02", in, nil), "there is no earlier request")
	var m member
	require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
	assert.Equal(t, "active", m.State)
}

func TestAMembershipThatNeedsAChallenge(t *testing.T) {
	t.Parallel()
	w := open(t)
	in := object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_3ds_ana"}
	var m member
	require.Equal(t, 200, w.call("PUT", "/members/member01", in, &m))
	assert.Equal(t, "incomplete", m.State)
	assert.NotEmpty(t, m.Challenge)
	stored, err := w.shop.member(t.Context(), "member01")
	require.NoError(t, err)
	sub, err := w.gw.Client().Subscriptions.Get(t.Context(), stored.subscriptionID)
	require.NoError(t, err)
	require.NoError(t, w.gw.Transactions.PassChallenge(sub.Transactions[0].ID))
	w.settled()
	require.Equal(t, 200, w.call("GET", "/members/member01", nil, &m))
	assert.Equal(t, "active", m.State)
}

func supplier() object {
	return object{"amount": 120_000, "key_type": "EMAIL", "key_value": "torrefacao@example.com"}
}

func (w *world) payout(id string) (p payout) {
	w.Helper()
	require.Equal(w, 200, w.call("GET", "/payouts/"+id, nil, &p))
	return p
}

func (w *world) transfer(id string) (transferID string) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT transfer_id FROM payouts WHERE id = $1`, id).Scan(&transferID))
	return transferID
}

func TestPayoutsSettleAndFail(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, id := range []string{"payout01", "payout02"} {
		require.Equal(t, 200, w.call("PUT", "/payouts/"+id, supplier(), nil))
		require.Equal(t, 200, w.call("PUT", "/payouts/"+id, supplier(), nil), "sent twice, paid once")
		require.NoError(t, w.gw.Transfers.Process(w.transfer(id)))
	}
	require.NoError(t, w.gw.Transfers.Settle(w.transfer("payout01")))
	require.NoError(t, w.gw.Transfers.Fail(w.transfer("payout02")))
	w.settled()
	assert.Equal(t, "paid", w.payout("payout01").State)
	assert.Equal(t, "failed", w.payout("payout02").State)
	page, err := w.gw.Client().Transfers.List(t.Context(), gateway.TransferListParams{})
	require.NoError(t, err)
	assert.Equal(t, 2, page.Total)
}

func TestAPayoutIsMatchedBeforeItsIDIsStored(t *testing.T) {
	t.Parallel()
	w := open(t)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502).Applied().On("transfers.create")))
	require.Equal(t, 200, w.call("PUT", "/payouts/payout01", supplier(), nil)) // an unknown outcome
	w.gw.Faults.Clear()
	w.settled() // payout.created names a transfer that is not stored yet
	assert.Equal(t, "pending", w.payout("payout01").State)
	require.NoError(t, w.gw.Transfers.Process(w.transfer("payout01")))
	require.NoError(t, w.gw.Transfers.Settle(w.transfer("payout01")))
	w.settled()
	assert.Equal(t, "paid", w.payout("payout01").State)
}

func TestARestartLosesNothing(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil)
	w.settled()
	w.stop()
	require.NoError(t, w.gw.Transactions.Pay(w.transaction("order0001"))) // no process receives it
	w.start()
	_, err := w.shop.reconciler.Once(t.Context())
	require.NoError(t, err)
	w.settled()
	assert.Equal(t, orderPaid, w.order("order0001").State)
	assert.Equal(t, 1, w.shipments("order0001"))
}

func TestConcurrentRequestsForOneOrderChargeOnce(t *testing.T) {
	t.Parallel()
	w := open(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if code := w.call("PUT", "/orders/order0001", mug(gateway.Pix, ""), nil); code != 200 {
				t.Errorf("status %d, want 200", code)
			}
		})
	}
	all.Wait()
	w.settled()
	assert.Equal(t, 1, w.charges())
}

// The whole service: on a signal it finishes the request in progress.
func TestServeShutsDownGracefully(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- w.shop.serve(ctx, listener) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, 200, res.StatusCode)
	cancel()
	require.NoError(t, <-ended)
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := configFromEnv(func(string) string { return "" })
	require.EqualError(t, err, "not set: DATABASE_URL, GATEWAY_WEBHOOK_SECRET, ADMIN_TOKEN")
}
