package operations_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

const someID = "01a20000-0000-7000-8000-000000000000"

func TestValidateNamesTheFieldAndTheRule(t *testing.T) {
	t.Parallel()
	for _, wrong := range []struct {
		op    operations.Operation
		field string
	}{
		{operations.CreateTransaction(order("", 500)), "external_ref is required"},
		{operations.CreateTransaction(order("order-1", 0)), "amount"},
		{payout("", 900), "external_ref is required"},
		{operations.CreateSubscription{CustomerID: someID, Amount: 1, Token: "pgct_ok", Interval: gateway.IntervalMonth}, "idempotency_key is required"},
		{operations.Refund{TransactionID: someID, Full: true}, "key is required"},
		{operations.Refund{Key: "k", Full: true}, "transaction_id is required"},
		{operations.Refund{Key: "k", TransactionID: "../transfers", Full: true}, "transaction_id is required"},
		{operations.Refund{Key: "k", TransactionID: someID}, "amount is required unless up_to or full is set"},
		{operations.Refund{Key: "k", TransactionID: someID, Amount: 1, Full: true}, "amount is required unless up_to or full is set"},
		{operations.Refund{Key: "k", TransactionID: someID, Amount: -1}, "amount"},
		{operations.Refund{Key: "k", TransactionID: someID, UpTo: -1}, "up_to"},
		{operations.Refund{Key: "k", TransactionID: someID, Full: true, Reason: strings.Repeat("x", 501)}, "reason"},
		{operations.Refund{Key: "k", TransactionID: someID, UpTo: 1, RefundedAtMost: new(int64)}, "refunded_at_most may be set only with amount"},
		{operations.Refund{Key: "k", TransactionID: someID, Amount: 1, RefundedAtMost: new(int64(-1))}, "refunded_at_most must be at least 0"},
		{operations.CancelTransfer{Key: strings.Repeat("k", 256), TransferID: someID}, "key must have at most 255"},
		{operations.CancelSubscription{Key: "k\x00", SubscriptionID: someID}, "control characters"},
		{operations.Refund{Key: "return-17\n", TransactionID: someID, Full: true}, "control characters"},
		{operations.Refund{Key: " return-17", TransactionID: someID, Full: true}, "begin or end with a space"},
		{operations.CreateTransaction(order("order-1\t", 500)), "control characters"},
		{operations.Refund{Key: "return\xff", TransactionID: someID, Full: true}, "valid UTF-8"},
		{operations.UpdateSubscription{Key: "k", SubscriptionID: someID, Params: gateway.SubscriptionUpdateParams{FailurePolicy: "sometimes"}}, "failure_policy"},
	} {
		err := wrong.op.Validate()
		require.ErrorIs(t, err, gateway.ErrValidation, "%T", wrong.op)
		assert.ErrorContains(t, err, wrong.field, "%T", wrong.op)
	}
}

func TestValuesThatCannotBeStoredExactlyAreRejected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		for message, metadata := range map[string]map[string]any{
			"large numbers": {"n": int64(1<<53 + 1)},
			"U+0000":        {"n": "a\x00b"},
			"as JSON":       {"n": make(chan int)},
		} {
			err := w.insertRejected(operations.UpdateSubscription{
				Key: "k", SubscriptionID: someID, Params: gateway.SubscriptionUpdateParams{Metadata: gateway.Some(metadata)},
			})
			require.ErrorIs(t, err, gateway.ErrValidation)
			require.ErrorContains(t, err, message)
		}
	}, onPostgres, onSQLite)
}

// insertRejected returns the error of an operation. The transaction must be usable
// after it.
func (w *world) insertRejected(op operations.Operation) (rejected error) {
	w.Helper()
	o := w.outbox.(*in[*sql.Tx])
	require.NoError(w, o.begin(w.Context(), func(tx *sql.Tx) error {
		_, rejected = o.InsertTx(w.Context(), tx, op)
		return o.exec(w.Context(), tx, "", "", "", "", "")
	}))
	return rejected
}

func TestAProcessWithoutAHandlerSendsNothing(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	bare, err := w.connected.outbox(w.config)
	require.NoError(t, err)
	stop := w.start(bare)
	w.add(operations.CreateTransaction(order("order-1", 500)))
	w.saw(operations.EventUnhandled)
	stop()
	assert.Zero(t, w.gw.Requests.Count(""))
	list, err := w.outbox.List(t.Context(), operations.Query{Key: "order-1"})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, operations.Waiting, list[0].State)
	assert.Zero(t, list[0].Sends)
}

func TestAnUpdateThatSomeoneElseOverwroteWaitsForAPerson(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	customer, err := w.gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := w.gw.Client().Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("subscriptions.update").Times(1)))
	w.start(w.outbox)
	w.add(operations.UpdateSubscription{Key: "update", SubscriptionID: sub.ID, Params: gateway.SubscriptionUpdateParams{
		Metadata: gateway.Some(map[string]any{"tier": "gold"}),
	}})
	w.saw(operations.EventUnknown) // the response is lost
	_, err = w.gw.Client().Subscriptions.Update(t.Context(), sub.ID, gateway.SubscriptionUpdateParams{Metadata: gateway.Some(map[string]any{"tier": "iron"})})
	require.NoError(t, err)
	e := w.reaches("update", operations.Ambiguous)
	assert.Contains(t, e.Ambiguity, "someone else updated the subscription")
	require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: operations.SendAgain, By: "Rui"}))
	w.reaches("update", operations.Done)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	nameless, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"))
	require.NoError(t, err)
	client, err := nameless.With(gateway.WithAccount("shop"))
	require.NoError(t, err)
	for message, config := range map[string]operations.Config{
		"Client is required":               {},
		"database.Create or":               {Client: client, Location: database.Location{Schema: 2}},
		"KeyLifetime must not be negative": {Client: client, KeyLifetime: -1},
		"Workers must not be negative":     {Client: client, Workers: -1},
		`gateway.WithAccount("shop")`:      {Client: nameless},
		"at least twice SendTimeout":       {Client: client, SendTimeout: time.Minute, SettleAfter: time.Minute},
	} {
		_, err := operations.New(database.Postgres(nil), config)
		require.ErrorContains(t, err, message)
	}
	_, err = operations.New(database.SQLite(nil), operations.Config{Client: client, Location: database.Location{InSchema: "shop"}})
	require.ErrorContains(t, err, "Config.Location.InSchema is only for PostgreSQL")
	_, err = operations.New[*sql.Tx](nil, operations.Config{Client: client})
	require.ErrorContains(t, err, "the driver is nil")
}

// An older release must not send an operation without the members that it does
// not know.
func TestAnOperationOfANewerReleaseIsNotSent(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	e := w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})[0]
	_, err := w.db.ExecContext(t.Context(), `UPDATE gateway_operations SET params = json_set(params, '$.destination', 'wallet') WHERE id = ?`, e.ID)
	require.NoError(t, err)
	w.start(w.outbox)
	w.saw(operations.EventUnhandled)
	assert.Zero(t, w.gw.Requests.Count("transactions.refund"))
	var destination string
	require.NoError(t, w.db.QueryRowContext(t.Context(), `SELECT params->>'destination' FROM gateway_operations`).Scan(&destination))
	assert.Equal(t, "wallet", destination)
}

// A backup from before the refund was sent is restored. The same key is sent
// again, so a gateway that honors it applies the refund once.
func TestARestoredOperationIsSentWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, func(c *operations.Config) { c.KeyLifetime = time.Hour }, mockserver.WithDialect(mockserver.Live))
	charge := w.paid(1000)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	_, err := w.db.ExecContext(t.Context(), `CREATE TABLE backup AS SELECT id, params FROM gateway_operations`)
	require.NoError(t, err)
	w.start(w.outbox)
	w.reaches("refund", operations.Done)
	for _, statement := range []string{
		`DELETE FROM results`,
		`UPDATE gateway_operations AS o SET state = 'waiting', params = b.params, digest = NULL, progress = '{}', refunded = NULL, due_at = 0
			FROM backup b WHERE b.id = o.id`,
	} {
		_, err := w.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	w.reaches("refund", operations.Done)
	value, _ := w.result("refund")
	assert.Equal(t, "300", value)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	assert.Equal(t, 2, w.gw.Requests.Count("transactions.refund"))
}

// A person can't report another merchant's payout as ours by mistake.
func TestAResolutionIsComparedWithTheOperation(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, func(c *operations.Config) { c.MaxSends = 2 })
	theirs, err := w.gw.Client().Transfers.Create(t.Context(), gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "mallory@example.com", Amount: 900, ExternalRef: "payout-2",
	})
	require.NoError(t, err)
	require.NoError(t, w.gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
	w.start(w.outbox)
	w.add(payout("payout-1", 900))
	e := w.reaches("payout-1", operations.Ambiguous)
	assert.Contains(t, e.Ambiguity, "it was sent 2 times")

	resolution := operations.Resolution{Decision: operations.Applied, ResourceID: theirs.ID, By: "Rui"}
	require.ErrorIs(t, w.outbox.Resolve(t.Context(), e.ID, resolution), operations.ErrMismatch)
	resolution.Override = "the supplier changed its key"
	require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, resolution))
	e = w.reaches("payout-1", operations.Done)
	var texts []string
	for _, note := range e.History {
		texts = append(texts, note.Text)
	}
	assert.Contains(t, strings.Join(texts, "\n"), "the supplier changed its key")
}
