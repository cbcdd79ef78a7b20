package operations_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	riveroperations "github.com/gateway-go/gateway/contrib/river/operations"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/operations"
)

const (
	privateDocument  = "52998224725"
	privateFormatted = "529.982.247-25"
	privateEmail     = "ana.souza@example.com"
	privatePhone     = "+5511987654321"
	privateKey       = "beto@example.com"
	privateToken     = "pgct_4f9a1c7e2b"
	privateText      = "call " + privatePhone + " or write to " + privateEmail + ", document " + privateFormatted
)

func assertPrivate(t *testing.T, text, where string) {
	t.Helper()
	for _, private := range []string{
		privateDocument, privateFormatted, privateEmail, privatePhone, privatePhone[3:], privateKey, privateToken,
	} {
		assert.NotContains(t, text, private, where)
	}
}

// assertShownPrivately prints a value in every way in which a merchant may log it.
func assertShownPrivately(t *testing.T, v any) {
	t.Helper()
	for _, shown := range []any{v, &v, struct{ Shown any }{v}, []any{v}, map[string]any{"v": v}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%d", "%s", "%q", "%x"} {
			assertPrivate(t, fmt.Sprintf(verb, shown), fmt.Sprintf("%T with %s", v, verb))
		}
		var text, json bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&json, nil)} {
			log := slog.New(handler)
			log.InfoContext(t.Context(), "x", slog.Any("v", shown))
			log.WithGroup("g").With(slog.Any("v", shown)).InfoContext(t.Context(), "x", slog.Group("h", slog.Any("v", shown)))
		}
		assertPrivate(t, text.String(), fmt.Sprintf("%T in a text log", v))
		assertPrivate(t, json.String(), fmt.Sprintf("%T in a JSON log", v))
	}
}

// privateKeys are the keys of [privateOperations].
var privateKeys = []string{"order-1", "payout-1", "member-1", "club-1", "update-1", "refund-1", "cancel-1", "end-1"}

// privateOperations returns one operation of each kind, with personal data wherever
// it may be.
func privateOperations(customer, transaction, transfer, subscription string) []operations.Operation {
	charge := order("order-1", 500)
	charge.Buyer = gateway.BuyerParams{
		Name: "Ana Souza", Email: privateEmail, Phone: privatePhone, Document: &gateway.Document{Type: gateway.CPF, Number: privateDocument},
	}
	charge.Metadata = privateText
	return []operations.Operation{
		operations.CreateTransaction(charge),
		operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: privateKey, Amount: 900, ExternalRef: "payout-1", Description: privateText},
		operations.CreateCustomer{
			Name: "Ana Souza", Email: privateEmail, Phone: privatePhone, Document: &gateway.Document{Type: gateway.CPF, Number: privateDocument}, ExternalRef: "member-1",
		},
		operations.CreateSubscription{
			CustomerID: customer, Amount: 990, Token: privateToken, Interval: gateway.IntervalMonth, IdempotencyKey: "club-1",
			Metadata: map[string]any{"note": privateText},
		},
		operations.UpdateSubscription{Key: "update-1", SubscriptionID: subscription, Params: gateway.SubscriptionUpdateParams{
			Metadata: gateway.Some(map[string]any{"note": privateText}),
		}},
		operations.Refund{Key: "refund-1", TransactionID: transaction, Amount: 300, Reason: privateText},
		operations.CancelTransfer{Key: "cancel-1", TransferID: transfer, Reason: privateText},
		operations.CancelSubscription{Key: "end-1", SubscriptionID: subscription, Reason: privateText},
	}
}

func TestNothingShowsPersonalData(t *testing.T) {
	t.Parallel()
	ops := privateOperations(someID, someID, someID, someID)
	for _, op := range ops {
		assertShownPrivately(t, op)
	}
	charge, _ := ops[0].(operations.CreateTransaction)
	payout, _ := ops[1].(operations.CreateTransfer)
	member, _ := ops[2].(operations.CreateCustomer)
	club, _ := ops[3].(operations.CreateSubscription)
	update, _ := ops[4].(operations.UpdateSubscription)
	refund, _ := ops[5].(operations.Refund)
	entry := &operations.Entry{Key: "refund-1"}
	sub := &gateway.Subscription{ID: someID, CustomerID: someID}
	for _, result := range []any{
		operations.TransactionResult{Entry: entry, Operation: charge, Value: &gateway.Transaction{Buyer: gateway.Buyer{
			Name: "Ana Souza", Email: privateEmail, Phone: privatePhone, Document: &gateway.Document{Type: gateway.CPF, Number: privateDocument},
		}}},
		operations.TransferResult{Entry: entry, Operation: payout, Value: &gateway.Transfer{PixKey: privateKey}},
		operations.CustomerResult{Entry: entry, Operation: member, Value: &gateway.Customer{
			Name: "Ana Souza", Email: privateEmail, Phone: privatePhone, Document: &gateway.Document{Type: gateway.CPF, Number: privateDocument},
		}},
		operations.SubscriptionResult{Entry: entry, Operation: club, Value: sub},
		operations.UpdateSubscriptionResult{Entry: entry, Operation: update, Value: sub},
		operations.RefundResult{Entry: entry, Operation: refund, Value: &gateway.Refund{Message: privateText}},
	} {
		assertShownPrivately(t, result)
	}
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount("shop"))
	require.NoError(t, err)
	db := new(sql.DB) // nothing opens it
	outbox, err := operations.New(database.Postgres(db), operations.Config{Client: client, Logger: quiet})
	require.NoError(t, err)
	river, err := riveroperations.New(new(pgxpool.Pool), operations.Config{Client: client, Logger: quiet})
	require.NoError(t, err)
	for _, shown := range []any{outbox, river, *client} {
		assert.NotContains(t, fmt.Sprintf("%+v %#v", shown, shown), "sk_test_x")
	}
}

// echo is a gateway that fails with the request in its error, and with characters
// that PostgreSQL can't store in JSON.
type echo struct {
	next   http.RoundTripper
	healed atomic.Bool
}

func (e *echo) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet || e.healed.Load() {
		return e.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf(`{"type":"about:blank","title":"Error \u0000 %s","status":503,"detail":%q}`, "\xff\xfe", body)
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Content-Type": {"application/problem+json"}, "X-Request-Id": {"req\xff"}},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: req,
	}, nil
}

// The gateway's errors, a handler's and a panic repeat personal data and contain
// characters that PostgreSQL rejects. They reach neither River, the stored errors,
// the logs nor the observer, no job stays running, and every operation ends.
func TestErrorsAreStoredCleanly(t *testing.T) {
	t.Parallel()
	each(t, testErrorsAreStoredCleanly, onRiver, onSQLite)
}

func testErrorsAreStoredCleanly(t *testing.T, e engine) {
	t.Helper()
	logs := &logBuffer{}
	w := open(t, e, func(c *operations.Config) {
		c.Logger, c.SettleAfter = slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Second
		c.HandlerTimeout = 2 * time.Second // the lease after a panic
	})
	client := w.client()
	charge := w.paid(1000)
	transfer, err := client.Transfers.Create(t.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "c@example.com", Amount: 700})
	require.NoError(t, err)
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "c@example.com"})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth})
	require.NoError(t, err)

	gw := &echo{next: w.gw.Transport()}
	w.through(gw)
	var panics, failures atomic.Int32
	bad := "broken \x00\xff: " + privateText
	w.config.Observe = func(_ context.Context, o operations.Observation) {
		assertPrivate(t, fmt.Sprintf("%v %+v %#v %d", o, o, o, o.Err), "an observation")
		if o.Event == operations.EventDone && panics.Add(1) <= 2 {
			panic(bad)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, o)
	}
	w.outbox = w.newOutbox()
	w.outbox.handle(func(entry *operations.Entry, _ error) error {
		if entry.Kind == "transactions.refund" && failures.Add(1) <= 2 {
			return errors.New(bad)
		}
		return nil
	})
	w.start(w.outbox)
	ops := privateOperations(customer.ID, charge.ID, transfer.ID, sub.ID)
	w.add(ops...)
	w.saw(operations.EventUnknown)
	for _, key := range privateKeys {
		require.Eventually(t, func() bool {
			list, err := w.outbox.List(t.Context(), operations.Query{Key: key})
			return assert.NoError(t, err) && len(list[0].History) >= 2 || list[0].State == operations.Waiting && list[0].Kind == "subscriptions.cancel"
		}, time.Minute, 10*time.Millisecond, key)
	}
	gw.healed.Store(true)
	for _, key := range privateKeys {
		e := w.reaches(key, operations.Done)
		assertPrivate(t, fmt.Sprintf("%+v", *e), key)
	}
	assert.Positive(t, panics.Load())
	assert.Equal(t, int32(3), failures.Load())
	if e == onRiver {
		w.checkJobs(len(ops))
	}
	rows, err := w.db.QueryContext(t.Context(), `SELECT CAST(progress AS text) FROM gateway_operations`)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var stored string
		require.NoError(t, rows.Scan(&stored))
		assertPrivate(t, stored, "the stored errors")
	}
	require.NoError(t, rows.Err())
	assertPrivate(t, logs.text(), "the log")
	assert.Contains(t, logs.text(), "handler_failed")
}

// checkJobs checks that River's jobs ended, and that their errors are clean.
func (w *world) checkJobs(least int) {
	w.Helper()
	var jobs, running, failed int
	var texts string
	require.Eventually(w, func() bool {
		require.NoError(w, w.pool.QueryRow(w.Context(), `SELECT count(*), count(*) FILTER (WHERE state = 'running' AND attempted_at < now() - interval '3 seconds'),
			count(*) FILTER (WHERE cardinality(errors) > 0), string_agg(args::text || metadata::text || COALESCE(errors::text, ''), E'\n') FROM river_job`).
			Scan(&jobs, &running, &failed, &texts))
		return running == 0
	}, time.Minute, 100*time.Millisecond, "jobs must not stay running")
	assert.GreaterOrEqual(w, jobs, least)
	assert.Positive(w, failed, "the panic is an error of its job")
	assert.Contains(w, texts, "broken")
	assertPrivate(w.T, texts, "River's jobs")
}
