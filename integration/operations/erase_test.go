package operations_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// personal are the values that must not stay in a row.
var personal = []string{"Beatriz", "Nogueira", "bia@example.com", "11912345678", "39053344705", "pgct_secret", "Rua Augusta", "203.0.113.9", "birthday"}

// assertErased requires that no row contains personal data: neither that of the params
// nor of the gateway's responses.
func (w *world) assertErased(rows int) {
	w.Helper()
	stored := w.stored()
	assert.Len(w, stored, rows)
	for key, row := range stored {
		for _, value := range personal {
			assert.NotContains(w, row, value, key)
		}
	}
}

// stored returns the text of each row, by key.
func (w *world) stored() map[string]string {
	w.Helper()
	rows, err := w.db.QueryContext(w.Context(), `SELECT key, o.* FROM gateway_operations AS o`)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(w, err)
	stored := make(map[string]string)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new([]byte)
		}
		require.NoError(w, rows.Scan(values...))
		var text []string
		for i, value := range values {
			text = append(text, fmt.Sprintf("%s: %s", columns[i], *value.(*[]byte)))
		}
		stored[string(*values[0].(*[]byte))] = strings.Join(text, "\n")
	}
	require.NoError(w, rows.Err())
	return stored
}

// personalOperations returns operations with personal data, each as it is inserted, and
// one with the same key that differs in such a value only.
func (w *world) personalOperations() (ops, others []operations.Operation) {
	w.Helper()
	client := w.client()
	customer, err := client.Customers.Create(w.Context(), gateway.CustomerParams{Name: "Beatriz Nogueira", Email: "bia@example.com", Phone: "11912345678"})
	require.NoError(w, err)
	sub, err := client.Subscriptions.Create(w.Context(), gateway.SubscriptionParams{CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth})
	require.NoError(w, err)
	payout, err := client.Transfers.Create(w.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "bia@example.com", Amount: 700})
	require.NoError(w, err)
	transactionID := w.paid(1000).ID

	build := func(other string) []operations.Operation {
		document := &gateway.Document{Type: gateway.CPF, Number: "39053344705"}
		if other != "" {
			document = &gateway.Document{Type: gateway.CPF, Number: "52998224725"}
		}
		charge := order("order-1", 500)
		charge.Buyer = gateway.BuyerParams{Name: "Beatriz Nogueira", Email: "bia@example.com", Phone: "11912345678", Document: document}
		charge.Metadata, charge.IPAddress = "birthday", "203.0.113.9"
		pixKey, token := gateway.PixKey("bia@example.com"), gateway.CardToken("pgct_secret")
		if other != "" {
			pixKey, token = "eva@example.com", "pgct_other"
		}
		return []operations.Operation{
			operations.CreateTransaction(charge),
			operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: pixKey, Amount: 900, ExternalRef: "payout-1", Description: "birthday"},
			operations.CreateCustomer{
				Name: "Beatriz Nogueira", Email: "bia@example.com", Phone: "11912345678", Document: document, ExternalRef: "member-1",
				Address: &gateway.Address{Street: "Rua Augusta", City: "São Paulo", State: "SP", ZipCode: "01304001", Country: "BR"}, IPAddress: "203.0.113.9",
			},
			operations.CreateSubscription{
				CustomerID: customer.ID, Amount: 990, Token: token, Interval: gateway.IntervalMonth, IdempotencyKey: "club-1", Metadata: map[string]any{"note": "birthday"},
			},
			operations.UpdateSubscription{Key: "update-1", SubscriptionID: sub.ID, Params: gateway.SubscriptionUpdateParams{
				Metadata: gateway.Some(map[string]any{"note": "birthday" + other}),
			}},
			operations.CancelSubscription{Key: "end-1", SubscriptionID: sub.ID, Reason: "birthday" + other},
			operations.CancelTransfer{Key: "cancel-1", TransferID: payout.ID, Reason: "birthday" + other},
			operations.Refund{Key: "refund-1", TransactionID: transactionID, Amount: 300, Reason: "birthday" + other},
			// Rejected: more than was paid.
			operations.Refund{Key: "refund-2", TransactionID: transactionID, Amount: 9000, Reason: "birthday" + other},
		}
	}
	return build(""), build("2")
}

// recognizes requires that each operation is found by its key, and that another one
// with this key is an error.
func (w *world) recognizes(ops, others []operations.Operation) {
	w.Helper()
	for i, e := range w.add(ops...) {
		assert.True(w, e.Existing, e.Key)
		_, err := w.outbox.insert(w.Context(), others[i:i+1], nil)
		require.ErrorIs(w, err, operations.ErrKeyReused, e.Key)
	}
}

// blabber is a gateway that repeats what it was sent, and loses the first response to
// each write, so that the history has errors.
type blabber struct{ next http.RoundTripper }

func (b blabber) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || req.Body == nil {
		return b.next.RoundTrip(req)
	}
	sent, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(sent))
	resp, err := b.next.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		return resp, err
	}
	_ = resp.Body.Close()
	text := fmt.Sprintf(`{"type":"about:blank","title":"Unavailable","status":503,"detail":%q}`, sent)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	return resp, nil
}

func TestAnOperationIsErasedOnceItIsDone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		w.through(blabber{w.gw.Transport()})
		ops, others := w.personalOperations()
		entries := w.add(ops...)
		for _, value := range personal {
			assert.Contains(t, fmt.Sprint(w.stored()), value)
		}
		w.recognizes(ops, others)
		for _, op := range []string{"transactions.create", "transfers.create", "customers.create", "subscriptions.create", "transactions.refund"} {
			require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).Applied().On(op).Times(1)))
		}
		w.start(w.outbox)
		for _, e := range entries {
			done := w.reaches(e.Key, operations.Done)
			assert.NotEmpty(t, done.History, e.Key)
			assert.Positive(t, done.Sends, e.Key)
		}
		_, rejection := w.result("refund-2")
		assert.NotEmpty(t, rejection)
		w.assertErased(len(ops))
		w.recognizes(ops, others)
		assert.Contains(t, w.stored()["order-1"], "503 Unavailable", "the history stays readable")
		assert.Contains(t, w.stored()["order-1"], `\"external_ref\":\"order-1\"`)
	})
}

func TestAnOperationIsErasedOnceItIsCanceled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		ops, others := w.personalOperations()
		for _, entry := range w.add(ops...) {
			require.NoError(t, w.outbox.cancel(t.Context(), entry.ID))
		}
		w.assertErased(len(ops))
		w.recognizes(ops, others)
		w.start(w.outbox)
		w.add(operations.CreateTransaction(order("later", 500)))
		w.reaches("later", operations.Done)
		assert.Equal(t, 2, w.gw.Requests.Count("transactions.create"), "the one to refund, and the later one")
	})
}

// The transaction of the handler erases: an operation whose handler fails keeps what a
// second run needs.
func TestAnOperationWhoseHandlerFailsIsNotErased(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.HandlerAttempts = 1 })
		broken := true
		w.outbox.handle(func(*operations.Entry, error) error {
			if broken {
				return errRolledBack
			}
			return nil
		})
		w.start(w.outbox)
		ops, others := w.personalOperations()
		first := w.add(ops[0])[0]
		w.reaches(first.Key, operations.Dead)
		assert.Contains(t, w.stored()[first.Key], "39053344705")
		w.recognizes(ops[:1], others[:1])
		broken = false
		require.NoError(t, w.outbox.Retry(t.Context(), first.ID))
		w.reaches(first.Key, operations.Done)
		value, _ := w.result(first.Key)
		assert.NotEmpty(t, value)
		w.assertErased(1)
	})
}
