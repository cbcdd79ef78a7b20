package operations_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

func TestARefundIsMadeOnceWhateverHappensToTheRequest(t *testing.T) {
	t.Parallel()
	faults := map[string]mockserver.Fault{
		"the response is lost":                       mockserver.LoseResponse(),
		"the response is cut":                        mockserver.Truncate(),
		"the response is empty":                      mockserver.EmptyBody(),
		"the response is not JSON":                   mockserver.BadJSON(),
		"the gateway fails after applying it":        mockserver.Status(500).Applied(),
		"the gateway hangs after applying it":        mockserver.HangUntilTimeout().Applied(),
		"the gateway fails before applying it":       mockserver.Status(500),
		"the proxy fails":                            mockserver.HTMLPage(),
		"the gateway hangs":                          mockserver.HangUntilTimeout(),
		"the connection is reset before the request": mockserver.ResetBefore(),
		"too many requests":                          mockserver.Status(429),
		"the key is rejected for a while":            mockserver.Status(401),
		"too many requests, after applying it":       mockserver.Status(429).Applied(),
		"the key is rejected after applying it":      mockserver.Status(401).Applied(),
		"access is denied after applying it":         mockserver.Status(403).Applied(),
		"a proxy does not find it after applying it": mockserver.Status(404).Applied().NoBody(),
		"a proxy closes it after applying it":        mockserver.Status(499).Applied().NoBody(),
		"states are unknown":                         mockserver.UnknownEnum(),
		"fields are unknown":                         mockserver.ExtraField(),
	}
	// All are in one outbox, because each waits for SettleAfter.
	w := open(t, onSQLite, func(c *operations.Config) { c.SendTimeout, c.SettleAfter = time.Second, 2*time.Second })
	var mu sync.Mutex
	injected := make(map[string]string) // faults of the next refund, by charge
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		if op, _ := gateway.OperationFromContext(req.Context()); op.Name == "transactions.refund" {
			charge := strings.Split(req.URL.Path, "/")[3]
			mu.Lock()
			if fault := injected[charge]; fault != "" {
				req.Header.Set("X-Mock-Fault", fault)
				delete(injected, charge)
			}
			mu.Unlock()
		}
		return w.gw.Transport().RoundTrip(req)
	}))
	refunds := make(map[string]operations.Refund)
	for name, fault := range faults {
		for form, refund := range map[string]operations.Refund{"amount": {Amount: 300}, "target": {UpTo: 300}, "full": {Full: true}} {
			refund.Key, refund.TransactionID = name+", "+form, w.paid(1000).ID
			injected[refund.TransactionID], refunds[refund.Key] = fault.String(), refund
			w.add(refund)
		}
	}
	w.start(w.outbox)
	for key, refund := range refunds {
		w.reaches(key, operations.Done)
		value, rejection := w.result(key)
		want := int64(300)
		if refund.Full {
			want = 1000
		}
		assert.Empty(t, rejection, key)
		assert.Equal(t, fmt.Sprint(want), value, key)
		assert.Equal(t, want, w.refunded(refund.TransactionID), key)
	}
	assert.Empty(t, injected)
	assert.Greater(t, w.gw.Requests.Count("transactions.refund"), len(refunds), "those that were not applied are sent again")
}

// refundByHand makes an operator refund a charge right after the outbox's first request,
// before the outbox learns its outcome.
func (w *world) refundByHand(charge *gateway.Transaction, amount int64) {
	w.Helper()
	var refunded atomic.Bool
	w.through(roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := w.gw.Transport().RoundTrip(req)
		if op, _ := gateway.OperationFromContext(req.Context()); op.Name == "transactions.refund" && refunded.CompareAndSwap(false, true) {
			_, err := w.client().Transactions.Refund(context.WithoutCancel(req.Context()), charge.ID, gateway.RefundParams{Amount: amount})
			assert.NoError(w, err)
		}
		return resp, err
	}))
}

// ambiguous returns a merchant whose refund of 300 cents, applied or not, got no
// response, while an operator refunded 450 by hand.
func ambiguous(t *testing.T, applied bool) (*world, *gateway.Transaction) {
	t.Helper()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	w.refundByHand(charge, 450)
	fault := mockserver.ResetBefore()
	if applied {
		fault = mockserver.LoseResponse()
	}
	require.NoError(t, w.gw.Faults.Add(fault.On("transactions.refund").Times(1)))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	return w, charge
}

func TestAnAmbiguousRefundWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied %t", applied), func(t *testing.T) {
			t.Parallel()
			w, charge := ambiguous(t, applied)
			e := w.reaches("refund", operations.Ambiguous)
			assert.Contains(t, e.Ambiguity, "refunded_amount was 0 before this refund of 300 was sent")
			assert.Equal(t, 1, e.Sends, "it is not sent again")
			require.NoError(t, w.rejection("refund"))

			// Later operations on the same transaction wait.
			w.add(operations.Refund{Key: "later", TransactionID: charge.ID, Amount: 1})
			before := w.refunded(charge.ID)
			require.ErrorIs(t, w.outbox.Retry(t.Context(), e.ID), operations.ErrState)
			require.ErrorContains(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: operations.Applied}), "By")
			decision := operations.SendAgain
			if applied {
				decision = operations.Applied
			}
			require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: decision, By: "Rui: looked at the dashboard"}))
			w.reaches("refund", operations.Done)
			value, _ := w.result("refund")
			assert.Equal(t, "300", value)
			assert.Equal(t, int64(750), before+map[bool]int64{true: 0, false: 300}[applied])
			w.reaches("later", operations.Done)
			assert.Equal(t, int64(751), w.refunded(charge.ID))
		})
	}
}

func TestAnAbandonedOperationIsReportedToItsHandler(t *testing.T) {
	t.Parallel()
	w, _ := ambiguous(t, true)
	e := w.reaches("refund", operations.Ambiguous)
	require.NoError(t, w.outbox.Resolve(t.Context(), e.ID, operations.Resolution{Decision: operations.Abandoned, By: "Rui"}))
	w.reaches("refund", operations.Done)
	require.ErrorIs(t, w.rejection("refund"), operations.ErrAbandoned)
}

// A manual refund smaller than ours proves that ours was not applied:
// refunded_amount never decreases.
func TestASmallerRefundByHandIsNotAmbiguous(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	w.refundByHand(charge, 100)
	require.NoError(t, w.gw.Faults.Add(mockserver.ResetBefore().On("transactions.refund").Times(1)))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Done)
	assert.Equal(t, int64(400), w.refunded(charge.ID))
}

// A replica that lags behind must not make the outbox refund twice.
func TestOneStaleReadDoesNotRefundTwice(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(
		mockserver.LoseResponse().On("transactions.refund").Times(1),
		mockserver.StaleRead().On("transactions.get").Nth(2), // the first is the read before the refund
	))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	w.reaches("refund", operations.Done)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
	assert.Equal(t, 1, w.gw.Requests.Count("transactions.refund"))
}

// The state before a refund must not come from a replica that lacks the
// previous refund.
func TestARefundIsNotComparedWithAnOutdatedState(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	w.start(w.outbox)
	w.add(operations.Refund{Key: "first", TransactionID: charge.ID, Amount: 300})
	w.reaches("first", operations.Done)
	require.NoError(t, w.gw.Faults.Add(mockserver.StaleRead().On("transactions.get").Times(2)))
	w.add(operations.RefundUpTo("second", charge.ID, 500))
	w.reaches("second", operations.Done)
	assert.Equal(t, int64(500), w.refunded(charge.ID))
}

func TestWithIdempotencyKeysALostRefundNeedsNoComparison(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, func(c *operations.Config) { c.KeyLifetime = time.Hour }, mockserver.WithDialect(mockserver.Live))
	charge := w.paid(1000)
	w.refundByHand(charge, 450)
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	e := w.reaches("refund", operations.Done)
	assert.GreaterOrEqual(t, e.Sends, 2) // more if a request takes longer than SendTimeout
	assert.Equal(t, int64(750), w.refunded(charge.ID))
	keys := make(map[string]bool)
	for _, r := range w.gw.Requests.Find("transactions.refund") {
		if key := r.Header.Get("Idempotency-Key"); key != "" {
			keys[key] = true
		}
	}
	assert.Len(t, keys, 1, "every repeat has the key of the first request")
}

// Once the gateway may have forgotten the key, the outcome is read.
func TestAKeyThatIsTooOldIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, func(c *operations.Config) { c.KeyLifetime = c.SendTimeout + time.Millisecond }, mockserver.WithDialect(mockserver.Live))
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	e := w.reaches("refund", operations.Done)
	assert.Equal(t, 1, e.Sends)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
}

func TestACreateIsSentAgainWithItsReference(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockserver.Fault{
		"lost": mockserver.LoseResponse(), "cut": mockserver.Truncate(), "500": mockserver.Status(500).Applied(), "never arrived": mockserver.ResetBefore(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, onSQLite, nil)
			client := w.gw.Client()
			customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
			require.NoError(t, err)
			for _, op := range []string{"transactions.create", "transfers.create", "customers.create", "subscriptions.create"} {
				require.NoError(t, w.gw.Faults.Add(fault.On(op).Times(1)))
			}
			w.start(w.outbox)
			w.add(
				operations.CreateTransaction(order("order-1", 500)),
				payout("payout-1", 900),
				operations.CreateCustomer{Name: "Rui", Email: "rui@example.com", ExternalRef: "member-1"},
				operations.CreateSubscription{CustomerID: customer.ID, Amount: 990, Token: "pgct_ok", Interval: gateway.IntervalMonth, IdempotencyKey: "club-1"},
			)
			for _, key := range []string{"order-1", "payout-1", "member-1", "club-1"} {
				e := w.reaches(key, operations.Done)
				assert.GreaterOrEqual(t, e.Sends, 2, key) // more if a request takes longer than SendTimeout
				_, rejection := w.result(key)
				assert.Empty(t, rejection, key)
			}
			customers, err := client.Customers.List(t.Context(), gateway.CustomerListParams{})
			require.NoError(t, err)
			assert.Equal(t, 2, customers.Total)
		})
	}
}

// Another program already sent an order with this reference, bypassing the
// outbox.
func TestACreateWhoseReferenceExistsReturnsTheExistingResource(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	first, err := w.gw.Client().Transactions.Create(t.Context(), order("order-1", 500))
	require.NoError(t, err)
	_, err = w.gw.Client().Transactions.Create(t.Context(), order("order-2", 501))
	require.NoError(t, err)
	member, err := w.gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", ExternalRef: "member-1"})
	require.NoError(t, err)
	w.start(w.outbox)
	w.add(
		operations.CreateTransaction(order("order-1", 500)), operations.CreateTransaction(order("order-2", 500)),
		operations.CreateCustomer{Name: "Ana Souza", Email: "Ana@example.com", ExternalRef: "member-1"},
	)
	for key, id := range map[string]string{"order-1": first.ID, "member-1": member.ID} {
		w.reaches(key, operations.Done)
		value, _ := w.result(key)
		assert.Equal(t, id, value)
	}
	w.reaches("order-2", operations.Done)
	require.ErrorIs(t, w.rejection("order-2"), gateway.ErrDuplicate, "it has another amount")
	require.ErrorIs(t, w.rejection("order-2"), gateway.ErrConflict)

	_, err = w.gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", ExternalRef: "member-2"})
	require.NoError(t, err)
	w.add(operations.CreateCustomer{Name: "Ana", Email: "rui@example.com", ExternalRef: "member-2"})
	w.reaches("member-2", operations.Done)
	require.ErrorIs(t, w.rejection("member-2"), gateway.ErrDuplicate, "it has another e-mail address")
}

// After a lost response a rejection of the repeat may refer to the first
// request.
func TestARejectedRepeatIsNotTheOutcome(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	require.NoError(t, w.gw.Faults.Add(
		mockserver.LoseResponse().On("transactions.create").Times(1),
		mockserver.Status(422).On("transactions.create").Times(3),
		mockserver.ResetBefore().On("transfers.create").Times(1),
		mockserver.Status(422).On("transfers.create").Times(3),
		mockserver.LoseResponse().On("customers.create").Times(1),
		mockserver.Status(422).On("customers.create").Times(3),
	))
	w.start(w.outbox)
	w.add(
		operations.CreateTransaction(order("order-1", 500)),
		payout("payout-1", 900),
		operations.CreateCustomer{Name: "Ana", Email: "ana@example.com", ExternalRef: "member-1"},
	)
	for _, key := range []string{"order-1", "member-1"} {
		w.reaches(key, operations.Done)
		value, rejection := w.result(key)
		assert.NotEmpty(t, value, "the first request was applied")
		assert.Empty(t, rejection)
	}
	w.reaches("payout-1", operations.Done)
	require.ErrorIs(t, w.rejection("payout-1"), gateway.ErrValidation, "neither request was applied")
	assert.Equal(t, 4, w.gw.Requests.Count("transfers.create"))
}

func TestAFinalRejectionGoesToTheHandler(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	pending, err := w.gw.Client().Transactions.Create(t.Context(), order("", 100))
	require.NoError(t, err)
	w.start(w.outbox)
	w.add(
		operations.Refund{Key: "too much", TransactionID: charge.ID, Amount: 1001},
		operations.Refund{Key: "not paid", TransactionID: pending.ID, Full: true},
		operations.Refund{Key: "unknown", TransactionID: "00000000-0000-7000-8000-000000000000", Full: true},
	)
	for key, kind := range map[string]error{"too much": gateway.ErrValidation, "not paid": gateway.ErrConflict, "unknown": gateway.ErrNotFound} {
		w.reaches(key, operations.Done)
		_, rejection := w.result(key)
		assert.NotEmpty(t, rejection)
		require.ErrorIs(t, w.rejection(key), kind)
		var r *operations.RejectedError
		require.ErrorAs(t, w.rejection(key), &r)
		assert.NotZero(t, r.StatusCode)
	}
	assert.Equal(t, int64(0), w.refunded(charge.ID))
}

// A handler that fails runs again with the same outcome; the gateway is not
// called again.
func TestAHandlerThatFailsRunsAgain(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, func(c *operations.Config) { c.HandlerAttempts = 3 })
	charge := w.paid(1000)
	var runs atomic.Int32
	healthy := make(chan struct{})
	w.outbox.handle(func(*operations.Entry, error) error {
		select {
		case <-healthy:
			return nil
		default:
		}
		if runs.Add(1)%2 == 0 {
			panic("a bug")
		}
		return errors.New("the ledger is closed")
	})
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300})
	e := w.reaches("refund", operations.Dead)
	assert.Equal(t, int32(3), runs.Load())
	assert.Contains(t, e.LastError, "the ledger is closed")
	close(healthy)
	require.NoError(t, w.outbox.Retry(t.Context(), e.ID))
	w.reaches("refund", operations.Done)
	value, _ := w.result("refund")
	assert.Equal(t, "300", value)
	assert.Equal(t, 1, w.gw.Requests.Count("transactions.refund"))
}

func TestRetriesContinueThroughAnOutage(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	w.gw.Down()
	w.start(w.outbox)
	w.add(operations.Refund{Key: "refund", TransactionID: charge.ID, Amount: 300}, operations.CreateTransaction(order("order-1", 500)))
	w.saw(operations.EventRetry)
	w.gw.Up()
	w.reaches("refund", operations.Done)
	w.reaches("order-1", operations.Done)
	assert.Equal(t, int64(300), w.refunded(charge.ID))
}

// The transaction that inserted the first refund is committed last: by then the
// second one is in flight. They must not wait for each other.
func TestOperationsThatAreCommittedOutOfOrderDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, func(c *operations.Config) { c.SettleAfter = 2 * time.Second })
		charge := w.paid(1000)
		require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
		w.start(w.outbox)
		inserted, commit := make(chan struct{}), make(chan struct{})
		slow := make(chan error, 1)
		go func() {
			_, err := w.outbox.insert(t.Context(), []operations.Operation{operations.Refund{Key: "first", TransactionID: charge.ID, Amount: 100}}, func() error {
				close(inserted)
				<-commit
				return nil
			})
			slow <- err
		}()
		<-inserted
		w.add(operations.Refund{Key: "second", TransactionID: charge.ID, Amount: 200})
		w.reaches("second", operations.Sent)
		close(commit)
		require.NoError(t, <-slow)
		w.reaches("second", operations.Done)
		w.reaches("first", operations.Done)
		assert.Equal(t, int64(300), w.refunded(charge.ID))
	}, onRiver, onPostgres) // SQLite has one writer at a time
}

// garbler adds to each response a field whose value contains an invalid byte,
// as from a gateway that stores Latin-1, and a character that jsonb rejects.
type garbler struct{ next http.RoundTripper }

func (g garbler) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	body = bytes.ReplaceAll(body, []byte(`"traceable":`), []byte("\"nickname\":\"\xe9\\u0000\",\"traceable\":"))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, err
}

func TestAnInvalidCharacterInAResponseDoesNotHideACharge(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e engine) {
		t.Helper()
		w := open(t, e, nil)
		w.through(garbler{w.gw.Transport()})
		var failed atomic.Bool
		w.outbox.handle(func(*operations.Entry, error) error {
			if failed.CompareAndSwap(false, true) {
				return errors.New("the result must be stored for a second run")
			}
			return nil
		})
		w.start(w.outbox)
		w.add(operations.CreateTransaction(order("order-1", 500)))
		w.reaches("order-1", operations.Done)
		value, _ := w.result("order-1")
		assert.NotEmpty(t, value)
		assert.Equal(t, 1, w.gw.Requests.Count("transactions.create"))
	})
}

// The read before a full refund is older than the payment, and the response is lost: the
// refund moved everything all the same.
func TestAFullRefundAfterAStaleReadReportsWhatItMoved(t *testing.T) {
	t.Parallel()
	w := open(t, onSQLite, nil)
	charge := w.paid(1000)
	require.NoError(t, w.gw.Faults.Add(mockserver.StaleRead().On("transactions.get").Times(1)))
	require.NoError(t, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
	w.start(w.outbox)
	w.add(operations.Refund{Key: "full", TransactionID: charge.ID, Full: true})
	w.reaches("full", operations.Done)
	moved, rejection := w.result("full")
	assert.Empty(t, rejection)
	assert.Equal(t, "1000", moved)
}
