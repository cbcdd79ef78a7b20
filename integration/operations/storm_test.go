package operations_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

const (
	stormSendTimeout = time.Second
	stormProcesses   = 4
)

// Workers on one database carry out operations of every kind for two accounts, with
// the same keys: some workers serve both accounts, some only one. Meanwhile the mock
// gateway injects every fault, the workers are killed before the request, after
// it, after the response and before the commit, and an operator refunds by
// hand. The gateway's own books must show each operation once, and the
// handlers' table must agree with them.
func TestKilledWorkersNeverMoveMoneyTwice(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"document", "live"} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, e engine) {
				t.Helper()
				s := newStorm(t, e, dialect == "live", false)
				s.run()
				s.check()
				s.other.check()
			})
		})
	}
}

// The naive loop must move money twice under the same load: otherwise the faults
// are harmless and the test above proves nothing.
func TestANaiveLoopMovesMoneyTwice(t *testing.T) {
	t.Parallel()
	s := newStorm(t, onRiver, false, true)
	s.run()
	f := s.audit()
	t.Logf("naive loop: %s", f)
	assert.Positive(t, f.faults[doubled]+f.faults[lost]+f.faults[misreported], "the storm must harm a loop without an outbox, or it proves nothing")
}

// outboxStorm is a load with its expected result.
type outboxStorm struct {
	*testing.T

	gw     *mockserver.Server
	other  *outboxStorm    // the other account's; nil for it and for the naive loop
	name   string          // of the account
	client *gateway.Client // the test's own, without faults
	db     *connected
	outbox outbox
	spec   processSpec
	fleet  *fleet

	ops        []operations.Operation
	dropped    []operations.Operation // their transactions were rolled back
	handled    []string               // charges that an operator refunds by hand
	mu         sync.Mutex
	byHand     map[string][]time.Time // when the operator made the refunds that the gateway confirmed, by charge
	inserted   time.Duration
	took       time.Duration
	duplicates atomic.Int64
	locked     atomic.Int64 // transactions that inserted nothing, because the database was locked
}

func newStorm(t *testing.T, e engine, live, naive bool) *outboxStorm {
	t.Helper()
	s := &outboxStorm{T: t, byHand: make(map[string][]time.Time)}
	dialect := mockserver.Document
	if live {
		dialect, s.spec.KeyLifetime = mockserver.Live, time.Hour
	}
	var err error
	s.gw, err = mockserver.New(mockserver.WithStart(time.Now()), mockserver.WithRealtime(1), mockserver.WithDialect(dialect),
		mockserver.WithMemoryLimit(8<<30), mockserver.WithOpeningBalance(1<<40))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.gw.Close() })
	s.spec.Naive, s.spec.Engine, s.spec.Database = naive, e, e.create(t)
	e.migrate(t, s.spec.Database)
	s.db, err = e.open(t.Context(), s.spec.Database)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.db.close()) })
	s.spec.Gateway, err = s.gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	s.open(accountSpec{Name: "shop", Key: s.gw.Key()})
	if naive {
		_, err = s.db.pool.Exec(t.Context(), `CREATE TABLE todo (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int NOT NULL, state text NOT NULL DEFAULT 'new',
			attempts int NOT NULL DEFAULT 0, due timestamptz NOT NULL DEFAULT now(), kind text NOT NULL, key text NOT NULL, op jsonb NOT NULL)`)
		require.NoError(t, err)
		return s
	}
	s.other = &outboxStorm{T: t, gw: s.gw, db: s.db, spec: s.spec, byHand: make(map[string][]time.Time)}
	s.other.open(accountSpec{Name: "Shop.2", Key: "sk_test_other"})
	return s
}

// open opens the account's outbox for inserting. Its client has the address that
// the workers use, and no faults.
func (s *outboxStorm) open(account accountSpec) {
	s.name, s.spec.Accounts = account.Name, []accountSpec{account}
	var err error
	s.client, err = account.client(s.spec.Gateway, gateway.WithHTTPClient(&http.Client{Transport: s.gw.Transport()}))
	require.NoError(s, err)
	s.outbox, err = s.db.outbox(operations.Config{Client: s.client, Logger: quiet})
	require.NoError(s, err)
	require.NoError(s, s.outbox.Migrate(s.Context()))
}

// accounts returns the storms of all accounts.
func (s *outboxStorm) accounts() []*outboxStorm {
	if s.other == nil {
		return []*outboxStorm{s}
	}
	return []*outboxStorm{s, s.other}
}

// specs returns the worker processes: every third one serves both accounts, and the
// others one each.
func (s *outboxStorm) specs() []processSpec {
	specs := make([]processSpec, stormProcesses)
	for i := range specs {
		specs[i] = s.spec
		if s.other == nil {
			continue
		}
		switch both := append(slices.Clone(s.spec.Accounts), s.other.spec.Accounts...); i % 3 {
		case 0:
			specs[i].Accounts = both
		case 1:
			specs[i].Accounts = both[:1]
		case 2:
			specs[i].Accounts = both[1:]
		}
	}
	return specs
}

func (s *outboxStorm) run() {
	n := storm.Number(s.T, "OPERATIONS", 600)
	kills := storm.Number(s.T, "KILLS", max(12, min(n/20, 1000)))
	accounts, total := s.accounts(), 0
	for _, a := range accounts {
		a.prepare(n / len(accounts))
		total += len(a.ops)
	}
	s.gw.Requests.Clear()
	s.spec.Death = float64(kills) / (3 * float64(total))
	s.addFaults()
	s.fleet = startFleet(s.T, s.specs())
	began := time.Now()
	ctx, stopOperators := context.WithCancel(s.Context())
	var operators, inserts sync.WaitGroup
	for _, a := range accounts {
		operators.Go(func() { a.refundByHand(ctx) })
		inserts.Go(a.insert)
	}
	inserts.Wait()
	s.inserted = time.Since(began)
	fmt.Println(s.Name(), "inserted", total, "operations in", s.inserted)
	// Kill workers until there were enough kills and most operations are done.
	s.wait("most operations are done", func() bool {
		killed, _ := s.fleet.killed()
		left := s.left()
		if killed < kills && left < total/5 {
			s.fleet.killOne()
		}
		return left < total/20+1
	})
	for killed, _ := s.fleet.killed(); killed < kills; killed, _ = s.fleet.killed() {
		s.fleet.killOne()
		time.Sleep(100 * time.Millisecond)
	}
	stopOperators()
	operators.Wait()
	s.fleet.calm()
	s.wait("everything is done", func() bool { return s.left() == 0 })
	for _, a := range accounts {
		a.fleet, a.inserted, a.took = s.fleet, s.inserted, time.Since(began)
	}
	s.gw.Faults.Clear()
	s.fleet.stop()
}

func (s *outboxStorm) wait(what string, done func() bool) {
	s.Helper()
	require.Eventually(s, done, 3*time.Hour, 500*time.Millisecond, what)
}

// left returns how many operations are neither done nor waiting for a person.
func (s *outboxStorm) left() (n int) {
	query := `SELECT count(*) FROM gateway_operations WHERE state NOT IN ('done', 'ambiguous') AND NOT (state = 'waiting' AND EXISTS (
		SELECT 1 FROM gateway_operations e WHERE e.resource = gateway_operations.resource AND e.state = 'ambiguous'))`
	if s.spec.Naive {
		query = `SELECT count(*) FROM todo WHERE state = 'new'`
	}
	assert.NoError(s, s.db.db.QueryRowContext(s.Context(), query).Scan(&n))
	return n
}

// addFaults turns on every fault of the mock gateway.
func (s *outboxStorm) addFaults() {
	writes := []mockserver.Fault{
		mockserver.LoseResponse(), mockserver.Truncate(), mockserver.EmptyBody(), mockserver.BadJSON(), mockserver.ResetBefore(),
		mockserver.Status(500), mockserver.Status(500).Applied(), mockserver.Status(503).RetryAfter(time.Second), mockserver.Status(502).Applied().NoBody(),
		mockserver.HTMLPage(), mockserver.HTMLPage().Applied(), mockserver.HangUntilTimeout(), mockserver.HangUntilTimeout().Applied(),
		mockserver.Status(429), mockserver.Status(429).RetryAfter(time.Second), mockserver.Status(401), mockserver.Status(403),
		mockserver.Status(422).Code("TOKEN_ALREADY_USED"), mockserver.Status(409).CodedBody(), mockserver.UnknownEnum(), mockserver.ExtraField(),
		mockserver.Latency(300 * time.Millisecond),
		// Something in front of the gateway responds after the gateway applied it.
		mockserver.Status(429).Applied(), mockserver.Status(401).Applied(), mockserver.Status(403).Applied(),
		mockserver.Status(404).Applied().NoBody(), mockserver.Status(409).Applied().NoBody(), mockserver.Status(499).Applied().NoBody(),
	}
	for _, op := range []string{
		"transactions.create", "transactions.refund", "transfers.create", "transfers.cancel",
		"customers.create", "subscriptions.create", "subscriptions.update", "subscriptions.cancel",
	} {
		for _, f := range writes {
			require.NoError(s, s.gw.Faults.Add(f.On(op).Probability(0.008)))
		}
	}
	for _, op := range []string{"transactions.get", "transfers.get", "subscriptions.get", "transactions.list", "transfers.list", "customers.list", "subscriptions.list"} {
		for _, f := range []mockserver.Fault{
			mockserver.Status(500), mockserver.ResetBefore(), mockserver.BadJSON(), mockserver.Truncate(), mockserver.EmptyBody(),
			mockserver.HangUntilTimeout(), mockserver.Status(429), mockserver.UnknownEnum(), mockserver.ExtraField(), mockserver.Status(404),
			mockserver.Status(404).NoBody(),
		} {
			require.NoError(s, s.gw.Faults.Add(f.On(op).Probability(0.004)))
		}
	}
	for _, op := range []string{"transactions.get", "transfers.get", "subscriptions.get"} {
		require.NoError(s, s.gw.Faults.Add(mockserver.StaleRead().On(op).Probability(0.02)))
	}
}

// prepare creates n operations and the resources that they act on.
func (s *outboxStorm) prepare(n int) {
	customer := func() string {
		c, err := s.client.Customers.Create(s.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(s, err)
		return c.ID
	}
	for i := 0; len(s.ops) < n; i++ {
		id := strconv.Itoa(i)
		s.ops = append(s.ops,
			operations.CreateTransaction(order("order-"+id, int64(100+i%900))),
			operations.CreateTransaction(order("again-"+id, int64(100+i%900))),
			operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: int64(1000 + i%900), ExternalRef: "payout-" + id},
		)
		s.ops = append(s.ops, s.refunds(i, id)...)
		transfer, err := s.client.Transfers.Create(s.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "a@example.com", Amount: 1500})
		require.NoError(s, err)
		sub, err := s.client.Subscriptions.Create(s.Context(), gateway.SubscriptionParams{
			CustomerID: customer(), Amount: 4990, Token: gateway.CardToken("pgct_ok_" + id), Interval: gateway.IntervalMonth,
		})
		require.NoError(s, err)
		s.ops = append(s.ops,
			operations.CancelTransfer{Key: "stop-" + id, TransferID: transfer.ID},
			operations.CreateCustomer{Name: "Rui", Email: "rui@example.com", ExternalRef: "member-" + id},
			operations.CreateSubscription{
				CustomerID: customer(), Amount: 990, Token: gateway.CardToken("pgct_ok_new_" + id), Interval: gateway.IntervalMonth, IdempotencyKey: "club-" + id,
			},
			operations.UpdateSubscription{Key: "update-" + id, SubscriptionID: sub.ID, Params: gateway.SubscriptionUpdateParams{
				FailurePolicy: gateway.ImmediateCancel, Metadata: gateway.Some(map[string]any{"tier": "gold"}),
			}},
			operations.CancelSubscription{Key: "end-" + id, SubscriptionID: sub.ID},
		)
	}
	s.ops = s.ops[:n]
}

// refunds creates a paid charge of 1000 cents and returns the refunds of it.
func (s *outboxStorm) refunds(i int, id string) []operations.Operation {
	tx, err := s.client.Transactions.Create(s.Context(), order("", 1000))
	require.NoError(s, err)
	require.NoError(s, s.gw.Transactions.Pay(tx.ID))
	switch i % 4 {
	case 0: // an operator refunds this one too
		s.handled = append(s.handled, tx.ID)
		return []operations.Operation{
			operations.Refund{Key: "refund-" + id, TransactionID: tx.ID, Amount: 100},
			operations.Refund{Key: "refund-2-" + id, TransactionID: tx.ID, Amount: 200},
		}
	case 1:
		return []operations.Operation{
			operations.Refund{Key: "refund-" + id, TransactionID: tx.ID, Amount: 300},
			operations.Refund{Key: "rest-" + id, TransactionID: tx.ID, Full: true},
		}
	case 2:
		return []operations.Operation{
			operations.RefundUpTo("upto-"+id, tx.ID, 250),
			operations.RefundUpTo("upto-2-"+id, tx.ID, 400),
		}
	default:
		return []operations.Operation{
			operations.Refund{Key: "refund-" + id, TransactionID: tx.ID, Amount: 300},
			operations.Refund{Key: "refund-2-" + id, TransactionID: tx.ID, Amount: 300},
		}
	}
}

// insert inserts the operations from several goroutines: some transactions are
// rolled back, and some operations are inserted twice.
func (s *outboxStorm) insert() {
	if s.spec.Naive {
		s.insertNaive()
		return
	}
	batches := slices.Collect(slices.Chunk(s.ops, 20))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(batches)); i = next.Add(1) - 1 {
				s.insertBatch(int(i), batches[i])
			}
		})
	}
	wg.Wait()
}

var errRolledBack = errors.New("rolled back on purpose")

func (s *outboxStorm) insertBatch(i int, batch []operations.Operation) {
	times := 1
	if i%10 == 0 {
		times = 2
	}
	for range times {
		entries, err := s.insertAgain(batch, nil)
		if err != nil {
			s.Errorf("insert: %v", err)
		}
		for _, e := range entries {
			if e.Existing {
				s.duplicates.Add(1)
			}
		}
	}
	if i%10 != 1 {
		return
	}
	never := operations.CreateTransaction(order("never-"+strconv.Itoa(i), 777))
	_, err := s.insertAgain([]operations.Operation{never}, func() error { return errRolledBack })
	if !errors.Is(err, errRolledBack) {
		s.Errorf("the transaction must be rolled back: %v", err)
	}
	s.mu.Lock()
	s.dropped = append(s.dropped, never)
	s.mu.Unlock()
}

// insertAgain inserts operations. If another process has had SQLite's write lock for
// longer than the busy timeout, nothing was stored, and it does it again, as a
// merchant's customer would.
func (s *outboxStorm) insertAgain(batch []operations.Operation, then func() error) (entries []*operations.Entry, err error) {
	for range 20 {
		entries, err = s.outbox.insert(s.Context(), batch, then)
		if !dbms.IsConflict(err) {
			break
		}
		s.locked.Add(1)
	}
	return entries, err
}

const operatorRefund = 101 // cents; no sum of them equals a refund of the outbox

// refundByHand simulates an operator at the gateway's dashboard.
func (s *outboxStorm) refundByHand(ctx context.Context) {
	if len(s.handled) == 0 {
		return
	}
	for ctx.Err() == nil {
		id := s.handled[rand.IntN(len(s.handled))]
		began := time.Now()
		// The harmless fault of this request overrides the configured ones.
		_, err := s.client.Transactions.Refund(context.WithoutCancel(ctx), id, gateway.RefundParams{Amount: operatorRefund},
			gateway.Header("X-Mock-Fault", mockserver.ExtraField().String()), gateway.MaxAttempts(1))
		switch {
		case err == nil:
			s.byHand[id] = append(s.byHand[id], began)
		case !errors.Is(err, gateway.ErrValidation) && !errors.Is(err, gateway.ErrConflict):
			s.Errorf("the operator's refund: %v", err)
		}
		wait := time.NewTimer(40 * time.Millisecond)
		select {
		case <-ctx.Done():
			wait.Stop()
		case <-wait.C:
		}
	}
}
