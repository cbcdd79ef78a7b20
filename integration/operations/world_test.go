package operations_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/operations"
)

// world is a merchant with its own database, outbox and gateway.
type world struct {
	*testing.T
	*connected

	gw     *mockserver.Server
	shop   accountSpec
	config operations.Config
	outbox outbox

	mu       sync.Mutex
	events   []operations.Observation
	rejected map[string]error // by key, as the handlers saw it
}

// open starts a merchant. change may alter the configuration of the outbox.
func open(t *testing.T, e engine, change func(*operations.Config), opts ...mockserver.Option) *world {
	t.Helper()
	return openOn(t, e, e.create(t), change, opts...)
}

// openOn is open with an empty database.
func openOn(t *testing.T, e engine, name string, change func(*operations.Config), opts ...mockserver.Option) *world {
	t.Helper()
	e.migrate(t, name)
	w := &world{T: t}
	var err error
	w.connected, err = e.open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.close()) })
	w.gw = mockserver.Run(t, append([]mockserver.Option{mockserver.WithStart(time.Now()), mockserver.WithOpeningBalance(1_000_000)}, opts...)...)
	w.shop = accountSpec{Name: "shop", Key: w.gw.Key()}
	w.config = operations.Config{
		Logger: quiet, SendTimeout: 500 * time.Millisecond, SettleAfter: time.Second, MaxBackoff: 50 * time.Millisecond, HandlerTimeout: 5 * time.Second,
		PollInterval: 100 * time.Millisecond,
	}
	if change != nil {
		change(&w.config)
	}
	w.ready()
	return w
}

// beside returns another merchant, with an account of its own at the same gateway, on
// the same database.
func (w *world) beside(account string) *world {
	w.Helper()
	other := &world{T: w.T, connected: w.connected, gw: w.gw, shop: accountSpec{Name: account, Key: "sk_test_" + account}, config: w.config}
	other.ready()
	return other
}

// ready creates the merchant's outbox.
func (w *world) ready() {
	w.Helper()
	w.rejected = make(map[string]error)
	w.config.Client = w.client()
	w.config.Observe = func(_ context.Context, o operations.Observation) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, o)
	}
	w.outbox = w.newOutbox()
}

// saw waits until an event was observed.
func (w *world) saw(event operations.Event) {
	w.Helper()
	require.Eventually(w, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.events, func(o operations.Observation) bool { return o.Event == event })
	}, time.Minute, 10*time.Millisecond, event)
}

// rejection returns the error that the handler of an operation got.
func (w *world) rejection(key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rejected[key]
}

// client returns a client of the merchant's account.
func (w *world) client(opts ...gateway.Option) *gateway.Client {
	return w.gw.Account(w.shop.Key).Client(append([]gateway.Option{gateway.WithAccount(w.shop.Name)}, opts...)...)
}

// through makes the outbox call the gateway through a transport.
func (w *world) through(transport http.RoundTripper) {
	w.Helper()
	w.config.Client = w.client(gateway.WithHTTPClient(&http.Client{Transport: transport}))
	w.outbox = w.newOutbox()
}

func (w *world) newOutbox() outbox {
	w.Helper()
	o, err := w.connected.outbox(w.config)
	require.NoError(w, err)
	require.NoError(w, o.Migrate(w.Context()))
	o.handle(func(entry *operations.Entry, err error) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.rejected[entry.Key] = err
		}
		return nil
	})
	return o
}

// start works on the operations; the returned function stops it.
func (w *world) start(outboxes ...outbox) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.work(ctx, outboxes...) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(w, <-ended)
	})
	w.Cleanup(stop)
	return stop
}

// add inserts operations in one transaction, and repeats it after a conflict, as a
// merchant must whose default isolation is serializable.
func (w *world) add(ops ...operations.Operation) []*operations.Entry {
	w.Helper()
	entries, err := w.outbox.insert(w.Context(), ops, nil)
	for try := 0; try < 20 && dbms.IsConflict(err); try++ {
		entries, err = w.outbox.insert(w.Context(), ops, nil)
	}
	require.NoError(w, err)
	return entries
}

// reaches waits until an operation is in a state.
func (w *world) reaches(key string, state operations.State) *operations.Entry {
	w.Helper()
	var list []*operations.Entry
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		list, err = w.outbox.List(w.Context(), operations.Query{Key: key})
		require.NoError(w, err)
		if len(list) == 1 && list[0].State == state {
			return list[0]
		}
	}
	require.Fail(w, "the operation must be "+string(state), "%s: %+v", key, list)
	return nil
}

// result returns the result that an operation's handler got; the handler must
// have committed exactly once.
func (w *world) result(key string) (value, rejection string) {
	w.Helper()
	var n int
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT COUNT(*), MAX(value), MAX(error) FROM results WHERE key = ? AND account = ?`),
		key, w.shop.Name).Scan(&n, &value, &rejection))
	require.Equal(w, 1, n, "the handler of %s must commit once", key)
	return value, rejection
}

// paid creates a paid transaction.
func (w *world) paid(amount int64) *gateway.Transaction {
	w.Helper()
	tx, err := w.client().Transactions.Create(w.Context(), order("", amount))
	require.NoError(w, err)
	require.NoError(w, w.gw.Transactions.Pay(tx.ID))
	return tx
}

// payouts returns the amounts of the account's payouts at the gateway, by reference.
func (w *world) payouts() map[string][]int64 {
	w.Helper()
	amounts := make(map[string][]int64)
	for t, err := range w.client().Transfers.All(w.Context(), gateway.TransferListParams{}) {
		require.NoError(w, err)
		amounts[t.ExternalRef] = append(amounts[t.ExternalRef], t.Amount)
	}
	return amounts
}

func payout(ref string, amount int64) operations.CreateTransfer {
	return operations.CreateTransfer{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: amount, ExternalRef: ref}
}

func order(ref string, amount int64) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: ref, Amount: amount, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: "CPF", Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Mug", Price: amount}},
	}
}

// refunded returns how much of a transaction the gateway refunded.
func (w *world) refunded(id string) int64 {
	w.Helper()
	tx, err := w.client().Transactions.Get(w.Context(), id)
	require.NoError(w, err)
	return tx.RefundedAmount
}

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
