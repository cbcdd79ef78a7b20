package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// world is a shop that runs, and its gateway.
type world struct {
	*testing.T

	gw   *mockserver.Server
	shop *Shop
}

func start(t *testing.T) *world {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live), mockserver.WithOpeningBalance(100_000))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	s, err := Open(t.Context(), db, gw.Client(), gw.Secret(), merchant.Config{PollInterval: 20 * time.Millisecond})
	require.NoError(t, err)
	gw.Webhooks.Send(s.Webhook("shop"))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	return &world{T: t, gw: gw, shop: s}
}

// settled waits until every webhook is handled, and every callback was called.
func (w *world) settled() {
	w.Helper()
	for range 2 { // a callback may have sent something
		require.NoError(w, w.gw.Wait(w.Context()))
		require.NoError(w, w.shop.Reconcile(w.Context())) // a dispute of a Pix has no webhook
		require.NoError(w, w.shop.Idle(w.Context()))
	}
}

// pays places an order, which is paid, and returns its transaction.
func (w *world) pays(order string) (transaction string) {
	w.Helper()
	_, err := w.shop.db.ExecContext(w.Context(), `INSERT INTO orders (id, product, price, name, email, cpf)
		VALUES (?, 'Book', 1990, 'Ana Souza', 'ana@example.com', '52998224725')`, order)
	require.NoError(w, err)
	c, err := w.shop.pay(w.Context(), order, "")
	require.NoError(w, err)
	require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
	return c.TransactionID
}

// is returns the state of an order, and whether it is to be packed and was sent.
func (w *world) is(order string) string {
	w.Helper()
	var state string
	var pack, sent bool
	require.NoError(w, w.shop.db.QueryRowContext(w.Context(), `SELECT state, EXISTS (SELECT 1 FROM to_pack WHERE id = ?1), sent_at IS NOT NULL
		FROM orders WHERE id = ?1`, order).Scan(&state, &pack, &sent))
	return fmt.Sprintf("%s, pack %t, sent %t", state, pack, sent)
}

// A dispute stops a parcel that was not sent yet. If it is won, that is sent, and what was sent
// before is not sent twice.
func TestADispute(t *testing.T) {
	t.Parallel()
	w := start(t)
	before, after, never := w.pays("before"), w.pays("after"), w.pays("never")
	w.settled()
	require.NoError(t, w.shop.send(t.Context(), "before"))
	assert.Equal(t, "paid, pack false, sent true", w.is("before"))
	assert.Equal(t, "paid, pack true, sent false", w.is("after"))
	for _, id := range []string{before, after, never} {
		require.NoError(t, w.gw.Transactions.OpenDispute(id))
	}
	w.settled()
	assert.Equal(t, "disputed, pack false, sent true", w.is("before"), "it is to be asked for")
	assert.Equal(t, "disputed, pack false, sent false", w.is("after"))
	require.ErrorIs(t, w.shop.send(t.Context(), "after"), sql.ErrNoRows, "its label was printed before")
	require.NoError(t, w.gw.Clock.Advance(time.Hour))
	require.NoError(t, w.gw.Transactions.WinDispute(before))
	require.NoError(t, w.gw.Transactions.WinDispute(after))
	require.NoError(t, w.gw.Transactions.LoseDispute(never))
	w.settled()
	assert.Equal(t, "paid, pack false, sent true", w.is("before"))
	require.ErrorIs(t, w.shop.send(t.Context(), "before"), sql.ErrNoRows)
	assert.Equal(t, "paid, pack true, sent false", w.is("after"))
	require.NoError(t, w.shop.send(t.Context(), "after"))
	assert.Equal(t, "disputed, pack false, sent false", w.is("never"))
}

// A part that goes back does not keep the parcel; all of it does.
func TestARefund(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.pays("A1")
	w.settled()
	for _, step := range []struct {
		total int
		want  string
	}{{500, "paid, pack true, sent false"}, {1990, "refunded, pack false, sent false"}} {
		form := url.Values{"return": {fmt.Sprint("R", step.total)}, "total": {fmt.Sprint(step.total)}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admin/orders/A1/refund", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response := httptest.NewRecorder()
		w.shop.Handler().ServeHTTP(response, r)
		assert.Equal(t, http.StatusSeeOther, response.Code, response.Body.String())
		w.settled()
		assert.Equal(t, step.want, w.is("A1"))
	}
}

// A sale by link is packed like an order.
func TestASaleByLink(t *testing.T) {
	t.Parallel()
	w := start(t)
	tx, err := w.shop.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	sale := merchant.Charge{ID: "C1", Link: "book", Buyer: &gateway.Buyer{Email: "bia@example.com"}}
	for _, state := range []merchant.State{merchant.Paid, merchant.Disputed, merchant.Paid} {
		require.NoError(t, goods(t.Context(), tx, &merchant.Goods{Sale: &sale, State: state}))
	}
	require.NoError(t, tx.Commit())
	require.NoError(t, w.shop.send(t.Context(), "C1"))
	require.ErrorIs(t, w.shop.send(t.Context(), "C1"), sql.ErrNoRows)
}

// A member may come in until the end of the month that was paid.
func TestAMember(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, err := w.shop.join(t.Context(), "M1", gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com", Phone: "11987654321"}, 2990, "pgct_ok_ana")
	require.NoError(t, err)
	w.settled()
	var state string
	var until int64
	require.NoError(t, w.shop.db.QueryRowContext(t.Context(), `SELECT state, paid_until FROM members WHERE id = 'M1'`).Scan(&state, &until))
	assert.Equal(t, "active", state)
	assert.InDelta(t, 30, time.Unix(until, 0).Sub(w.gw.Clock.Now()).Hours()/24, 2)
}

// Whoever presses a button is told that it may have worked, if it may have.
func TestWhatMayHaveWorked(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		nil: http.StatusSeeOther, sql.ErrNoRows: http.StatusConflict, errors.New("no"): http.StatusBadGateway,
		fmt.Errorf("x: %w", merchant.ErrMaybeStored): http.StatusServiceUnavailable,
	} {
		response := httptest.NewRecorder()
		form(func(*http.Request, string) error { return err })(response, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		assert.Equal(t, want, response.Code)
		assert.Equal(t, want == http.StatusServiceUnavailable, strings.Contains(response.Body.String(), "may have worked"))
	}
	response := httptest.NewRecorder()
	parcel := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admin/parcels/1/send", nil)
	form(func(*http.Request, string) error { return nil })(response, parcel)
	assert.Equal(t, http.StatusNoContent, response.Code, "a sale by link has no page")
}
