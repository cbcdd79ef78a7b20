package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

const adminToken = "operator-of-this-test"

// world is a running shop with its own database and gateway.
type world struct {
	*testing.T

	gw   *mockserver.Server
	db   *sql.DB
	shop *shop
}

// start starts a shop and its jobs.
func start(t *testing.T, opts ...mockserver.Option) *world {
	t.Helper()
	w := opened(t, opts...)
	w.run()
	return w
}

// run runs the shop's jobs until the test ends.
func (w *world) run() {
	w.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.shop.Run(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.Errorf("run: %v", err)
		}
	})
}

// opened returns a shop whose jobs don't run.
func opened(t *testing.T, opts ...mockserver.Option) *world {
	t.Helper()
	db, _ := newDatabase(t)
	gw := mockserver.Run(t, append(opts, mockserver.WithOpeningBalance(1_000_000))...)
	cfg := config{webhookSecret: gw.Secret(), adminToken: gateway.NewSecret(adminToken)}
	s, err := open(t.Context(), db, gw.Client(), cfg, merchant.Config{
		SendTimeout: 3 * time.Second, SettleAfter: 6 * time.Second, PollInterval: 50 * time.Millisecond,
	}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	gw.Webhooks.Send(s.Webhook("shop"))
	return &world{T: t, gw: gw, db: db, shop: s}
}

// newDatabase returns a schema that only this test uses, and its address.
func newDatabase(t *testing.T) (db *sql.DB, address string) {
	t.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		t.Skip("DATABASE_URL is not set: run ../../integration/with-postgres go test ./...")
	}
	admin, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer admin.Close() //nolint:errcheck // it was only used here
	name := "t_" + strings.ToLower(rand.Text()[:16])
	_, err = admin.ExecContext(t.Context(), `CREATE SCHEMA `+name)
	require.NoError(t, err)
	address = url + "&search_path=" + name
	db, err = sql.Open("pgx", address)
	require.NoError(t, err)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { _ = db.Close() })
	return db, address
}

// ask sends a request with a token and reads its response.
func (w *world) ask(token, method, path string, body any) (status int, response string) {
	w.Helper()
	raw, err := json.Marshal(body)
	require.NoError(w, err)
	r := httptest.NewRequestWithContext(w.Context(), method, path, bytes.NewReader(raw))
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	w.shop.handler().ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// fails sends an operator's request and expects an error.
func (w *world) fails(want int, method, path string, body any) (text string) {
	w.Helper()
	status, response := w.ask(adminToken, method, path, body)
	require.Equal(w, want, status, response)
	var e struct {
		Error string `json:"error"`
	}
	require.NoError(w, json.Unmarshal([]byte(response), &e))
	require.NotEmpty(w, e.Error)
	return e.Error
}

// call sends an operator's request and returns the record in its response.
func (w *world) call(method, path string, body any) (v record) {
	w.Helper()
	status, response := w.ask(adminToken, method, path, body)
	require.Equal(w, 200, status, response)
	require.NoError(w, json.Unmarshal([]byte(response), &v))
	return v
}

func (w *world) get(path string) record {
	w.Helper()
	return w.call("GET", path, nil)
}

// settled waits until every webhook is delivered and handled, and every callback ran.
func (w *world) settled() {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for range 2 { // a callback may have sent something
		require.NoError(w, w.gw.Wait(ctx))
		require.NoError(w, w.shop.Idle(ctx))
	}
}

// transaction returns the transaction of an order's last charge.
func (w *world) transaction(order string) string {
	w.Helper()
	o, err := w.shop.Order(w.Context(), order)
	require.NoError(w, err)
	require.NotEmpty(w, o.Charges)
	return o.Charges[len(o.Charges)-1].TransactionID
}

func (w *world) made() int {
	w.Helper()
	page, err := w.gw.Client().Transactions.List(w.Context(), gateway.TransactionListParams{})
	require.NoError(w, err)
	return page.Total
}

// warehouse returns the tasks of the warehouse, such as "send order001 2 mug ana@example.com".
func (w *world) warehouse() (list []string) {
	w.Helper()
	status, response := w.ask(adminToken, "GET", "/shipments", nil)
	require.Equal(w, 200, status, response)
	var tasks []shipment
	require.NoError(w, json.Unmarshal([]byte(response), &tasks))
	for _, is := range tasks {
		list = append(list, fmt.Sprintf("%s %s %d %s %s", is.Task, is.ID, is.Quantity, is.SKU, is.Email))
	}
	return list
}

type object = map[string]any

func mugs(method gateway.Method, token string) object {
	return object{
		"sku": "mug", "quantity": 2, "method": method, "token": token, "name": "Ana Souza", "email": "ana@example.com",
		"document": object{"type": "CPF", "number": "52998224725"},
	}
}

func with(o, change object) object {
	o = maps.Clone(o)
	maps.Copy(o, change)
	return o
}

// In both dialects, and with a gateway that reports as a transaction's amount what it
// settles.
func TestAPixOrderIsPaidShippedAndRefunded(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]mockserver.Option{
		"document": nil, "live": {mockserver.WithDialect(mockserver.Live)},
		"settled in part": {mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, opts...)
			o := w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
			assert.Equal(t, merchant.Pending, o.State)
			assert.EqualValues(t, 7980, o.Amount)
			assert.Contains(t, o.PixCode, "br.gov.bcb.pix")
			assert.Equal(t, o, w.call("PUT", "/orders/order001", mugs(gateway.Pix, "")), "the page is reloaded")
			assert.Equal(t, o, w.get("/orders/order001"))
			w.fails(409, "PUT", "/refunds/return01", object{"order": "order001"})
			assert.Empty(t, w.warehouse())

			require.NoError(t, w.gw.Webhooks.Duplicate("transaction.paid"))
			require.NoError(t, w.gw.Transactions.Pay(w.transaction("order001")))
			w.settled()
			assert.Equal(t, record{ID: "order001", Amount: 7980, State: merchant.Paid}, w.get("/orders/order001"))
			assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse())
			assert.Equal(t, 1, w.made())

			assert.Equal(t, record{ID: "return01", Amount: 3990, State: merchant.Done}, w.call("PUT", "/refunds/return01", object{"order": "order001", "up_to": 3990}))
			w.settled()
			assert.Equal(t, record{ID: "order001", Amount: 7980, State: merchant.Paid, Refunded: 3990}, w.get("/orders/order001"))
			assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse(), "one of the two was returned")
			w.call("PUT", "/refunds/return02", object{"order": "order001"})
			w.settled()
			assert.Equal(t, record{ID: "order001", Amount: 7980, State: merchant.Refunded, Refunded: 7980}, w.get("/orders/order001"))
			assert.Empty(t, w.warehouse())
			w.fails(409, "PUT", "/refunds/return03", object{"order": "order001"})
		})
	}
}

func TestAnOrderIsPaidWithAnotherCard(t *testing.T) {
	t.Parallel()
	w := start(t)
	o := w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_3ds_1"))
	assert.Equal(t, merchant.Pending, o.State)
	require.NotNil(t, o.Challenge)
	assert.NotEmpty(t, o.Challenge.ClientSecret.Reveal())
	require.NoError(t, w.gw.Transactions.FailChallenge(w.transaction("order001")))
	require.NoError(t, w.shop.Reconcile(t.Context())) // a refusal has no webhook
	o = w.get("/orders/order001")
	assert.Equal(t, merchant.Failed, o.State)
	assert.NotEmpty(t, o.Reason)
	assert.Nil(t, o.Challenge)

	o = w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_used_1"))
	assert.Equal(t, merchant.Failed, o.State, "the gateway rejects a used token")
	o = w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_captured_1"))
	assert.Equal(t, merchant.Paid, o.State)
	assert.Equal(t, o, w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_captured_2")))
	w.settled()
	assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse())
	assert.Equal(t, 2, w.made())
}

func TestAnOrderThatIsPaidTwiceShipsOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
	first := w.transaction("order001")
	w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_captured_1"))
	require.NoError(t, w.gw.Transactions.Pay(first))
	w.settled()
	assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse())
	assert.EqualValues(t, 7980, w.get("/orders/order001").Refunded)
}

func TestADisputeHoldsTheShipment(t *testing.T) {
	t.Parallel()
	w := start(t, mockserver.WithDialect(mockserver.Live))
	w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
	id := w.transaction("order001")
	require.NoError(t, w.gw.Transactions.Pay(id))
	w.settled()
	require.NoError(t, w.gw.Transactions.OpenDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context())) // it has no webhook
	w.settled()
	assert.Equal(t, merchant.Disputed, w.get("/orders/order001").State)
	assert.Empty(t, w.warehouse())
	w.fails(409, "PUT", "/shipments/order001/sent", nil) // its label was printed before
	require.NoError(t, w.gw.Clock.Advance(time.Hour))
	require.NoError(t, w.gw.Transactions.WinDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	w.settled()
	assert.Equal(t, merchant.Paid, w.get("/orders/order001").State)
	assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse())
}

// What was sent before the dispute is asked for, until it is won.
func TestADisputeOfWhatWasSent(t *testing.T) {
	t.Parallel()
	w := start(t, mockserver.WithDialect(mockserver.Live))
	w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
	id := w.transaction("order001")
	require.NoError(t, w.gw.Transactions.Pay(id))
	w.settled()
	w.call("PUT", "/shipments/order001/sent", nil)
	assert.Empty(t, w.warehouse())
	require.NoError(t, w.gw.Transactions.OpenDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	w.settled()
	assert.Equal(t, []string{"ask_back order001 2 mug ana@example.com"}, w.warehouse())
	require.NoError(t, w.gw.Clock.Advance(time.Hour))
	require.NoError(t, w.gw.Transactions.WinDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	w.settled()
	assert.Empty(t, w.warehouse(), "it is not sent twice")
}

// The callback of the payment runs only after the dispute was opened.
func TestAPaymentThatIsDisputedAtOnceShipsWhenItIsWon(t *testing.T) {
	t.Parallel()
	w := opened(t, mockserver.WithDialect(mockserver.Live))
	w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
	id := w.transaction("order001")
	require.NoError(t, w.gw.Transactions.Pay(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	require.NoError(t, w.gw.Transactions.OpenDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	w.run()
	w.settled()
	assert.Empty(t, w.warehouse())
	require.NoError(t, w.gw.Clock.Advance(time.Hour))
	require.NoError(t, w.gw.Transactions.WinDispute(id))
	require.NoError(t, w.shop.Reconcile(t.Context()))
	w.settled()
	assert.Equal(t, []string{"send order001 2 mug ana@example.com"}, w.warehouse())
}

func TestBadRequestsStoreNothing(t *testing.T) {
	t.Parallel()
	w := opened(t)
	for field, change := range map[string]object{
		"sku": {"sku": "gold"}, "quantity": {"quantity": 0}, "method": {"method": "cash"}, "document": {"document": nil}, "buyer.email": {"email": "ana"},
		"JSON": {"amount": 1}, // the price is the shop's
	} {
		assert.Contains(t, w.fails(422, "PUT", "/orders/order001", with(mugs(gateway.Pix, ""), change)), field)
	}
	assert.Contains(t, w.fails(422, "PUT", "/orders/order%200", mugs(gateway.Pix, "")), "id")
	w.fails(422, "PUT", "/members/member01", object{"name": "Ana Souza", "email": "ana@example.com"})
	w.fails(422, "PUT", "/payouts/payout01", object{"amount": 0, "key_type": "EMAIL", "key_value": "supplier@example.com"})
	for _, table := range []string{"orders", "members", "payouts", "gateway_charges", "gateway_subscriptions", "gateway_payouts"} {
		var n int
		require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n))
		assert.Zero(t, n, table)
	}
	for _, path := range []string{"/orders/order001", "/members/member01", "/payouts/payout01"} {
		w.fails(404, "GET", path, nil)
	}
	w.fails(404, "PUT", "/refunds/return01", object{"order": "order001"})
	w.fails(404, "POST", "/links/gold", nil)
	assert.Zero(t, w.made())
}

// An id belongs to one order, refund, member and payout.
func TestAnIDIsNotUsedTwice(t *testing.T) {
	t.Parallel()
	w := start(t)
	ana := object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_ok_ana"}
	bill := object{"amount": 120_000, "key_type": "EMAIL", "key_value": "supplier@example.com"}
	w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_captured_1"))
	w.call("PUT", "/refunds/return01", object{"order": "order001", "up_to": 3990})
	w.call("PUT", "/members/member01", ana)
	w.call("PUT", "/payouts/payout01", bill)
	w.fails(409, "PUT", "/orders/order001", with(mugs(gateway.Pix, ""), object{"quantity": 3}))
	w.fails(409, "PUT", "/orders/order001", with(mugs(gateway.Pix, ""), object{"sku": "coffee"}))
	w.fails(409, "PUT", "/refunds/return01", object{"order": "order001", "up_to": 7980})
	w.fails(409, "PUT", "/members/member01", with(ana, object{"email": "bia@example.com"}))
	w.fails(409, "PUT", "/payouts/payout01", with(bill, object{"amount": 130_000}))
	w.fails(409, "PUT", "/payouts/payout01", with(bill, object{"key_value": "another@example.com"}))
	w.settled()
	assert.Equal(t, 2, w.made(), "the order and the first month")
}

func TestOnlyTheOperatorMovesMoneyOut(t *testing.T) {
	t.Parallel()
	w := opened(t)
	for _, route := range []string{
		"PUT /refunds/return01", "DELETE /members/member01", "PUT /payouts/payout01", "GET /payouts/payout01", "POST /links/mug", "GET /problems",
		"GET /shipments", "PUT /shipments/order001/sent",
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, token := range []string{"", "operator-of-this-tesT", adminToken + "x"} {
			status, response := w.ask(token, method, path, object{})
			assert.Equal(t, 401, status, "%s: %s", route, response)
		}
	}
}

func TestARefundWhoseOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.call("PUT", "/orders/order001", mugs(gateway.CreditCard, "pgct_captured_1"))
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(502).Applied().On("transactions.refund")))
	refund := object{"order": "order001", "up_to": 3990}
	assert.Equal(t, merchant.Unknown, w.call("PUT", "/refunds/return01", refund).State)
	w.gw.Faults.Clear()
	w.settled()
	assert.Equal(t, record{ID: "return01", Amount: 3990, State: merchant.Done}, w.call("PUT", "/refunds/return01", refund))
	assert.EqualValues(t, 3990, w.get("/orders/order001").Refunded)
	tx, err := w.gw.Client().Transactions.Get(t.Context(), w.transaction("order001"))
	require.NoError(t, err)
	assert.EqualValues(t, 3990, tx.RefundedAmount)
}

func TestAMemberPaysEveryMonth(t *testing.T) {
	t.Parallel()
	w := start(t)
	m := w.call("PUT", "/members/member01", object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_ok_ana"})
	assert.EqualValues(t, 4990, m.Amount)
	w.settled()
	assert.Equal(t, "active 1 4990", w.member("member01"))
	paid := w.get("/members/member01").PaidUntil
	require.NoError(t, w.gw.Clock.AdvanceTo(paid.Add(time.Hour)))
	w.settled()
	assert.Equal(t, "active 2 9980", w.member("member01"))
	next := w.get("/members/member01").PaidUntil
	assert.True(t, next.After(paid))

	// Dunning: the next charge fails, and its retry doesn't.
	s, err := w.shop.Subscription(t.Context(), "member01")
	require.NoError(t, err)
	require.NoError(t, w.gw.Subscriptions.FailNextCharges(s.SubscriptionID, 1))
	require.NoError(t, w.gw.Clock.AdvanceTo(next.Add(time.Hour)))
	w.settled()
	assert.Equal(t, "past_due 2 9980", w.member("member01"))
	assert.Equal(t, next, w.get("/members/member01").PaidUntil)
	require.NoError(t, w.gw.Clock.Advance(8*24*time.Hour))
	w.settled()
	assert.Equal(t, "active 3 14970", w.member("member01"))

	assert.Equal(t, merchant.State(gateway.SubscriptionCancelScheduled), w.call("DELETE", "/members/member01", nil).State)
	require.NoError(t, w.gw.Clock.Advance(40*24*time.Hour))
	w.settled()
	assert.Equal(t, "canceled 3 14970", w.member("member01"))
}

// member returns the shop's row of a member, with the number and the sum of the invoices.
func (w *world) member(id string) (line string) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT concat_ws(' ', state, count(charge), COALESCE(SUM(amount), 0))
		FROM members LEFT JOIN invoices ON member_id = id WHERE id = $1 GROUP BY id`, id).Scan(&line))
	return line
}

func TestAMembershipThatNeedsAChallenge(t *testing.T) {
	t.Parallel()
	w := start(t)
	m := w.call("PUT", "/members/member01", object{"name": "Ana Souza", "email": "ana@example.com", "token": "pgct_3ds_ana"})
	assert.Equal(t, merchant.State(gateway.SubscriptionIncomplete), m.State)
	require.NotNil(t, m.Challenge)
	s, err := w.shop.Subscription(t.Context(), "member01")
	require.NoError(t, err)
	require.NoError(t, w.gw.Transactions.PassChallenge(s.Charges[0].TransactionID))
	w.settled()
	m = w.get("/members/member01")
	assert.Equal(t, merchant.State(gateway.SubscriptionActive), m.State)
	assert.Nil(t, m.Challenge)
	assert.Equal(t, "active 1 4990", w.member("member01"))
}

func TestPayoutsArePaidOrFail(t *testing.T) {
	t.Parallel()
	w := start(t)
	bill := object{"amount": 120_000, "key_type": "EMAIL", "key_value": "supplier@example.com"}
	for _, id := range []string{"payout01", "payout02"} {
		p := w.call("PUT", "/payouts/"+id, bill)
		assert.Equal(t, record{ID: id, Amount: 120_000, State: merchant.Pending}, p)
		assert.Equal(t, p, w.call("PUT", "/payouts/"+id, bill), "sent twice, paid once")
		assert.Equal(t, p, w.get("/payouts/"+id))
	}
	page, err := w.gw.Client().Transfers.List(t.Context(), gateway.TransferListParams{})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	for _, transfer := range page.Items {
		require.NoError(t, w.gw.Transfers.Process(transfer.ID))
		end := w.gw.Transfers.Settle
		if transfer.ExternalRef == "shop-payout02-payout" {
			end = w.gw.Transfers.Fail
		}
		require.NoError(t, end(transfer.ID))
	}
	w.settled()
	assert.Equal(t, record{ID: "payout01", Amount: 120_000, State: merchant.Paid}, w.get("/payouts/payout01"))
	failed := w.get("/payouts/payout02")
	assert.Equal(t, merchant.Failed, failed.State)
	assert.NotEmpty(t, failed.Reason)
}

func TestASaleByLinkShips(t *testing.T) {
	t.Parallel()
	w := start(t)
	status, response := w.ask(adminToken, "POST", "/links/coffee", nil)
	require.Equal(t, 200, status, response)
	link := new(gateway.CheckoutLink)
	require.NoError(t, json.Unmarshal([]byte(response), link))
	_, again := w.ask(adminToken, "POST", "/links/coffee", nil)
	assert.Equal(t, response, again)
	client := w.gw.Client()
	session, err := client.CheckoutSessions.Open(t.Context(), link.Slug())
	require.NoError(t, err)
	_, err = client.CheckoutSessions.Update(t.Context(), link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{Name: "Bia Lima", Email: "bia@example.com"}, PaymentMethod: gateway.Pix,
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Checkout.Pay(link.Slug()))
	w.settled()
	page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	id := page.Items[0].ID
	assert.Equal(t, []string{"send " + id + " 1 coffee bia@example.com"}, w.warehouse())
	w.call("PUT", "/shipments/"+id+"/sent", nil)
	assert.Empty(t, w.warehouse())
	w.fails(409, "PUT", "/shipments/"+id+"/sent", nil)                                     // once
	_, err = client.Transactions.Refund(t.Context(), id, gateway.RefundParams{Full: true}) // in the gateway's console
	require.NoError(t, err)
	w.settled()
	assert.Equal(t, []string{"ask_back " + id + " 1 coffee bia@example.com"}, w.warehouse())
}

func TestProblemsAreListed(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, response := w.ask(adminToken, "GET", "/problems", nil)
	assert.JSONEq(t, `[]`, response)
	w.call("PUT", "/orders/order001", mugs(gateway.Pix, ""))
	_, err := w.db.ExecContext(t.Context(), `DELETE FROM orders`) // the callback finds no row
	require.NoError(t, err)
	require.NoError(t, w.gw.Transactions.Pay(w.transaction("order001")))
	require.Eventually(t, func() bool {
		_, response = w.ask(adminToken, "GET", "/problems", nil)
		return strings.Contains(response, `"kind":"callback"`) && strings.Contains(response, `"order":"order001"`)
	}, time.Minute, 20*time.Millisecond, "a payment that no order takes must be seen")
}

// On a signal, a request in progress is finished, although its charge is not made yet.
func TestServeFinishesTheRequestInProgress(t *testing.T) {
	t.Parallel()
	w := opened(t)
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, signal := context.WithCancel(t.Context())
	defer signal()
	ended := make(chan error, 1)
	go func() { ended <- w.shop.serve(ctx, listener, w.shop.handler()) }()

	lock, err := w.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer lock.Rollback() //nolint:errcheck // it only holds the request up
	_, err = lock.ExecContext(t.Context(), `LOCK TABLE orders IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	body, err := json.Marshal(mugs(gateway.Pix, ""))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("http://%s/orders/order001", listener.Addr()), bytes.NewReader(body))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	responded := make(chan record, 1)
	go func() {
		defer close(responded)
		res, err := client.Do(request)
		if !assert.NoError(t, err) {
			return
		}
		defer res.Body.Close() //nolint:errcheck // it was read
		var v record
		assert.NoError(t, json.NewDecoder(res.Body).Decode(&v))
		responded <- v
	}()
	require.Eventually(t, func() bool {
		var waiting int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'orders'::regclass`).Scan(&waiting)
		return err == nil && waiting == 1
	}, time.Minute, 5*time.Millisecond, "the request must wait")
	signal()
	require.Eventually(t, func() bool {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, time.Minute, 5*time.Millisecond, "nothing new must be accepted")
	require.NoError(t, lock.Rollback())
	o := <-responded
	assert.Equal(t, merchant.Pending, o.State)
	assert.NotEmpty(t, o.PixCode)
	require.NoError(t, <-ended)
}

// A caller is not told that nothing happened if it may have, nor what the database said.
func TestWhatMayHaveBeenStored(t *testing.T) {
	t.Parallel()
	s := &shop{log: slog.New(slog.DiscardHandler)}
	for err, want := range map[error]int{
		fmt.Errorf("%w: %w: the connection to 10.0.0.1 was lost", merchant.ErrMaybeStored, merchant.ErrState): 503,
		merchant.ErrCurrency: 409, merchant.ErrState: 409, errors.New("the disk of 10.0.0.1 is full"): 500,
	} {
		rec := httptest.NewRecorder()
		s.respond(rec, httptest.NewRequestWithContext(t.Context(), "PUT", "/orders/order001", nil), nil, err)
		assert.Equal(t, want, rec.Code)
		assert.Equal(t, want == 503, strings.Contains(rec.Body.String(), "may have been stored"))
		assert.NotContains(t, rec.Body.String(), "10.0.0.1")
	}
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := configFromEnv(func(string) string { return "" })
	require.EqualError(t, err, "DATABASE_URL is not set\nGATEWAY_WEBHOOK_SECRET is not set\nADMIN_TOKEN is not set")
}
