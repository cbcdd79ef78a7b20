package merchant_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// The personal data in a rejection's text.
const rejection = `{"type":"about:blank","title":"Rejected","status":422,"code":"BUYER_REJECTED",` +
	`"detail":"Ana Souza, Rua das Laranjeiras 12, ana@example.com, is not accepted"}`

// rejecting responds to some requests as a gateway that repeats the buyer's data.
func (w *world) rejecting(rejects func(r *http.Request) bool) {
	w.through(roundTripper(func(r *http.Request) (*http.Response, error) {
		if !rejects(r) {
			return w.gw.Transport().RoundTrip(r)
		}
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return &http.Response{
			Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(rejection)), ContentLength: int64(len(rejection)),
		}, nil
	}))
}

// souza describes a charge of a buyer with an address.
func souza(order string, amount int64) merchant.ChargeParams {
	p := voucher(order, amount)
	p.Buyer.Name, p.Buyer.Address.Street = "Ana Souza", "Rua das Laranjeiras 12"
	return p
}

// stores returns where a table of the merchant's side has a text. Requests and events are
// those of other packages, and have it until they are done.
func (w *world) stores(texts ...string) (places []string) {
	w.Helper()
	query := `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name LIKE 'gateway%' ORDER BY 1`
	if w.dialect == database.DialectSQLite {
		query = `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'gateway%' ORDER BY 1`
	}
	tables := w.strings(query)
	require.Contains(w, tables, "gateway_charges")
	for _, table := range tables {
		if table == "gateway_operations" || table == "gateway_webhook_events" {
			continue
		}
		places = append(places, w.storesIn(table, texts)...)
	}
	return places
}

func (w *world) storesIn(table string, texts []string) (places []string) {
	w.Helper()
	rows, err := w.reader.QueryContext(w.Context(), `SELECT * FROM `+table)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(w, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(w, rows.Scan(into...))
		for i, value := range values {
			stored := fmt.Sprint(value)
			if b, ok := value.([]byte); ok {
				stored = string(b)
			}
			for _, text := range texts {
				if strings.Contains(strings.ToLower(stored), strings.ToLower(text)) {
					places = append(places, table+"."+columns[i]+" has "+text)
				}
			}
		}
	}
	require.NoError(w, rows.Err())
	return places
}

// strings returns the first column of a query.
func (w *world) strings(query string) (list []string) {
	w.Helper()
	rows, err := w.reader.QueryContext(w.Context(), query)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	for rows.Next() {
		var s string
		require.NoError(w, rows.Scan(&s))
		list = append(list, s)
	}
	require.NoError(w, rows.Err())
	return list
}

// Fault 26. The text of a rejection repeats the name and the street of the buyer: it is in
// no table of the merchant's side.
func TestTheTextOfARejectionIsNotStoredWithTheBuyersData(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		name    string
		rejects func(r *http.Request) bool
		do      func(w *world) (reason string)
	}{
		{"a charge", posts("/v2/transactions"), func(w *world) string {
			c := w.charge(souza(w.order("S1"), 700))
			require.Equal(w, merchant.Failed, c.State)
			return c.Reason
		}},
		{"a refund", func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/refund") }, func(w *world) string {
			c := w.charge(souza(w.order("S1"), 700))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			w.refresh(c.ID)
			r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, Full: true})
			require.NoError(w, err)
			require.Equal(w, merchant.Rejected, r.State)
			return r.Reason
		}},
		{"a payout", posts("/v2/transfers"), func(w *world) string {
			p := w.pay(bill("b", w.order("S1"), 1000))
			require.Equal(w, merchant.Rejected, p.State)
			return p.Reason
		}},
		{"a subscription", posts("/v2/subscriptions"), func(w *world) string { return w.rejected() }},
		{"a customer", posts("/v2/customers"), func(w *world) string { return w.rejected() }},
	} {
		t.Run(is.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.rejecting(is.rejects)
				w.patient().members().open()
				reason := is.do(w)
				assert.NotEmpty(w, reason, "why it was rejected")
				for _, secret := range []string{"Souza", "Laranjeiras", "ana@example.com"} {
					assert.NotContains(w, reason, secret)
				}
				w.start()
				w.eventually("the callbacks are called", func() bool { return w.health().Callbacks.Waiting == 0 })
				assert.Empty(w, w.stores("Souza", "Laranjeiras", "ana@example.com"))
			}, mockserver.WithOpeningBalance(1_000_000))
		})
	}
}

// posts selects the creates of a resource.
func posts(path string) func(r *http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Path == path }
}

// rejected subscribes a member, which is rejected.
func (w *world) rejected() (reason string) {
	w.Helper()
	p := w.member("M1", "pgct_ok_1")
	p.Customer.Name = "Ana Souza"
	s := w.subscribe(p)
	require.Equal(w, merchant.Rejected, s.State)
	return s.Reason
}

// formulas begin a formula in some spreadsheet, also in the full width of East Asian fonts.
const formulas = "=+-@\t\r＝＋－＠"

// Fault 27. An order whose number a buyer has chosen is no formula, whether a spreadsheet
// separates cells by commas, semicolons or tabs.
func TestAnExportHasNoFormulas(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		c := w.sold("E1", 700)
		ids := []string{"=1+1", "A1;=1+1", "＝1+1", "\t=1", "A1\t=1+1", "A1;\"=1+1", "A1; @x", "＋1", "A1;－1", "\r\n=1", "plain-1"}
		for i, id := range ids {
			w.exec(`INSERT INTO gateway_facts (key, account, book, stream, subject, record, charge, kind, amount, currency, about, at, month, source, created_at, callback, delivered_at, due_at, attempts, error)
				SELECT ?, account, book, stream, ?, ?, charge, kind, amount, currency, about, at, month, source, created_at, '', created_at, due_at, 0, '' FROM gateway_facts
				WHERE kind = 'paid' AND subject = 'order/E1'`, fmt.Sprintf("%s/%d", id, i), "order/"+id, id)
		}
		var text strings.Builder
		require.NoError(w, w.m.Export(w.Context(), &text, "", c.PaidAt.UTC().Format("2006-01"), merchant.CSV))
		rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
		require.NoError(w, err)
		column := make(map[string]int)
		for i, name := range rows[0] {
			column[name] = i
		}
		require.GreaterOrEqual(w, len(rows), len(ids)+2)
		var found []string
		for _, row := range rows[1:] {
			for _, name := range []string{"order", "record", "key"} {
				for _, cell := range strings.FieldsFunc(row[column[name]], func(r rune) bool { return strings.ContainsRune(",;\t\r\n", r) }) {
					if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " \u00a0\"")); strings.ContainsRune(formulas, first) {
						found = append(found, fmt.Sprintf("%s %q", name, row[column[name]]))
					}
				}
			}
		}
		assert.Empty(w, found, "cells that begin with a formula")
		assert.Contains(w, text.String(), "plain-1", "other numbers are unchanged")
	})
}

// Fault 27. An ID with NUL or invalid UTF-8 is in no database: nothing is found, or the ID is
// invalid, and the database is not asked.
func TestAnIDThatNoDatabaseCanStore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		w.charge(pix(w.order("A1"), 700))
		ctx := w.Context()
		for _, id := range []string{"A1\x00", "\x00", "A1\xff", "\xc3\x28", "A\x001"} {
			in := func(run func(tx *txn) error) (err error) {
				w.tx(func(tx *txn) error {
					err = run(tx)
					return nil // and the transaction is usable after an error
				})
				return err
			}
			if hits, err := w.m.Find(ctx, id); err == nil {
				assert.Empty(w, hits)
			} else {
				w.noSuch("Find", id, err)
			}
			if o, err := w.m.Order(ctx, id); err == nil {
				assert.Empty(w, o.Charges)
			} else {
				w.noSuch("Order", id, err)
			}
			if steps, err := w.m.Story(ctx, id); err == nil {
				assert.Empty(w, steps)
			} else {
				w.noSuch("Story", id, err)
			}
			params := pix(id, 700)
			for name, err := range map[string]error{
				"CloseOrderTx": in(func(tx *txn) error { return w.m.CloseOrderTx(ctx, tx, id) }),
				"ChargeTx":     in(func(tx *txn) error { _, err := w.m.ChargeTx(ctx, tx, params); return err }),
				"RefundTx": in(func(tx *txn) error {
					_, err := w.m.RefundTx(ctx, tx, merchant.RefundParams{ID: id, Order: "A1", Full: true})
					return err
				}),
				"RefundTx of an order": in(func(tx *txn) error {
					_, err := w.m.RefundTx(ctx, tx, merchant.RefundParams{ID: "r", Order: id, Full: true})
					return err
				}),
				"PayoutTx": in(func(tx *txn) error { _, err := w.m.PayoutTx(ctx, tx, bill(id, "A1", 1000)); return err }),
				"PayoutTx for an order": in(func(tx *txn) error {
					_, err := w.m.PayoutTx(ctx, tx, bill("b", id, 1000))
					return err
				}),
				"CancelSubscriptionTx": in(func(tx *txn) error { _, err := w.m.CancelSubscriptionTx(ctx, tx, id, ""); return err }),
				"Adjust":               w.m.Adjust(ctx, merchant.AdjustParams{ID: "k1", Order: id, Amount: 100, By: "Rui", Why: "why"}),
				"Refresh":              w.m.Refresh(ctx, id),
			} {
				w.noSuch(name, id, err)
			}
			for _, kind := range []string{"order", "charge", "refund", "payout", "subscription"} {
				_, err := w.m.Record(ctx, "", kind, id)
				w.noSuch("Record of a "+kind, id, err)
			}
			for _, place := range []string{"", "problem/", "callback/", "event/shop/", "operation/shop/"} {
				_, err := w.m.Problem(ctx, place+id)
				w.noSuch("Problem", place+id, err)
				w.noSuch("Resolve", place+id, w.m.Resolve(ctx, place+id, by(merchant.Dismiss)))
			}
			_, err := w.m.Send(ctx, id)
			w.noSuch("Send", id, err)
			_, err = w.m.PayoutByID(ctx, id)
			w.noSuch("PayoutByID", id, err)
			_, err = w.m.Subscription(ctx, id)
			w.noSuch("Subscription", id, err)
			_, err = w.m.Link(ctx, mug(id, 100))
			w.noSuch("Link", id, err)
			subscribe := merchant.SubscribeParams{ID: id, Customer: gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"}}
			subscribe.Amount, subscribe.Interval, subscribe.Token = 2990, gateway.IntervalMonth, "pgct_ok_1"
			_, err = w.m.Subscribe(ctx, subscribe)
			w.noSuch("Subscribe", id, err)
		}
	})
}

// noSuch checks the error of a call with an ID that can't exist.
func (w *world) noSuch(call, id string, err error) {
	w.Helper()
	assert.True(w, errors.Is(err, merchant.ErrNotFound) || errors.Is(err, gateway.ErrValidation), "%s(%q): %v", call, id, err)
}

// Fault 27, the pages.
func TestAPageOfAnIDThatNoDatabaseCanStore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		w.charge(pix(w.order("A1"), 700))
		o := w.office("Rui")
		for _, id := range []string{"A1\x00", "A1\xff", "\x00"} {
			value := url.QueryEscape(id)
			for _, path := range []string{
				"order?id=", "charge?id=", "refund?id=", "payout?id=", "subscription?id=", "find?q=", "problem?id=", "problem?id=event/shop/", "dead-letters?account=",
				"month?month=", "month?account=", "dead-letters?account=shop&resource=", "dead-letters?account=shop&kind=", "export?month=" + time.Now().Format("2006-01") + "&account=",
			} {
				out := o.get(path + value)
				assert.Less(w, out.Code, 500, "%s%s: %s", path, value, read(out))
			}
		}
	})
}
