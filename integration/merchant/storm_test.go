package merchant_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// The processes of a shop charge, refund and close orders, and are killed. Buyers pay,
// also twice. Callbacks fail and panic, responses and webhooks are lost, doubled and late,
// and a support person refunds in the gateway's dashboard. In the end the shop's records
// agree with the gateway's, and each callback took effect once, in order.
//
//	ORDERS=2000 integration/run -run TestAShopThatIsKilled -v ./merchant
func TestAShopThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			s := newShopStorm(t, k, "", storm.Number(t, "ORDERS", 40))
			s.run()
			f := s.drain(10 * time.Minute)
			s.print()
			assert.Empty(t, s.stuck)
			assert.Empty(t, f.wrong)
			assert.Empty(t, f.open)
			assert.Positive(t, s.kills)
			assert.Positive(t, s.refunded)
		})
	}
}

// The storm finds defects: without the lock of the order, with effects outside the
// callback's transaction, or with callbacks in any order.
func TestTheStormFindsDefects(t *testing.T) {
	t.Parallel()
	for _, d := range []defect{noOrderLock, outside, anyOrder} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			s := newShopStorm(t, postgres, d, 32)
			s.spec.Failing = 0.5
			s.run()
			f := s.drain(10 * time.Second)
			t.Log(f.wrong, f.open)
			assert.NotEmpty(t, slices.Concat(f.wrong, f.open, s.stuck))
		})
	}
}

// shopStorm is a shop with buyers and a support person.
type shopStorm struct {
	*world

	spec   processSpec
	orders int
	fleet  *storm.Fleet
	client *gateway.Client // without faults
	http   *http.Client

	mu        sync.Mutex
	closed    map[string]bool  // orders that were closed before they were paid
	unclosed  map[string]bool  // orders that no one closed
	bySupport map[string]int64 // cents refunded by hand, by order
	stuck     []string         // what was waited for in vain

	kills, payments, again, refunded, calls, requests int
}

func newShopStorm(t *testing.T, k kind, d defect, orders int) *shopStorm {
	t.Helper()
	s := &shopStorm{
		world:  newWorld(t, k, mockserver.WithRealtime(1), mockserver.WithMemoryLimit(4<<30), mockserver.WithWebhookRetries(time.Second, 2*time.Second, 4*time.Second)),
		orders: orders, http: &http.Client{Timeout: 30 * time.Second}, closed: make(map[string]bool), unclosed: make(map[string]bool), bySupport: make(map[string]int64),
	}
	id := `id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY`
	if k.dialect == database.DialectSQLite {
		id = `id INTEGER PRIMARY KEY AUTOINCREMENT`
	}
	s.exec(`CREATE TABLE called (` + id + `, subject text NOT NULL, callback text NOT NULL, record text NOT NULL)`)
	address, err := s.gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	s.client, err = gateway.New(address, gateway.BearerToken(s.gw.Key()), gateway.WithAccount("shop"))
	require.NoError(t, err)
	s.cfg.Accounts[0].Client = s.client
	s.m, err = s.openOn(s.db, s.cfg) // to read
	require.NoError(t, err)
	s.spec = processSpec{Kind: k.name, Database: s.name, Gateway: address, Key: s.gw.Key(), Secret: s.gw.Secret().Reveal(), Death: 0.01, Failing: 0.2, Defect: d}
	s.gw.Webhooks.Send(http.HandlerFunc(s.forward))
	return s
}

// forward passes a webhook to a process, as a load balancer does.
func (s *shopStorm) forward(w http.ResponseWriter, r *http.Request) {
	status := s.send(r.Context(), "/webhooks", r.Header, r.Body)
	w.WriteHeader(status)
}

func (s *shopStorm) send(ctx context.Context, path string, header http.Header, body io.Reader) (status int) {
	s.mu.Lock()
	fleet := s.fleet
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addr, err := fleet.Addr(ctx)
	if err != nil {
		return http.StatusBadGateway
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, body)
	if err != nil {
		return http.StatusBadGateway
	}
	req.Header = header.Clone()
	resp, err := s.http.Do(req)
	if err != nil {
		return http.StatusBadGateway
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (s *shopStorm) start(processes int) {
	fleet := storm.StartFleet(s.T, processes, s.spec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet = fleet
}

func (s *shopStorm) stop() {
	s.fleet.Stop()
	s.kills += s.fleet.Kills()
}

func (s *shopStorm) addFaults() {
	for _, op := range []string{"transactions.create", "transactions.refund"} {
		for _, f := range []mockserver.Fault{
			mockserver.LoseResponse(), mockserver.ResetBefore(), mockserver.Status(500), mockserver.Status(502).Applied().NoBody(),
			mockserver.HTMLPage().Applied(), mockserver.Status(429), mockserver.Status(404).Applied().NoBody(),
		} {
			require.NoError(s, s.gw.Faults.Add(f.On(op).Probability(0.02)))
		}
	}
	require.NoError(s, s.gw.Faults.Add(
		mockserver.StaleRead().On("transactions.get").Probability(0.05), mockserver.Status(500).On("transactions.get").Probability(0.03),
		mockserver.Status(403).On("transactions.get").Probability(0.02), mockserver.Status(404).On("transactions.get").Probability(0.02),
		mockserver.Shape("zero-paid-amount").On("transactions.get").Probability(0.05),
		mockserver.DropWebhook().Probability(0.1), mockserver.DuplicateWebhook().Probability(0.2),
		mockserver.DelayWebhook(2*time.Second).Probability(0.1), mockserver.CorruptSignature().Probability(0.05),
	))
}

func (s *shopStorm) run() {
	s.addFaults()
	s.start(3)
	var next sync.Mutex
	n := 0
	var buyers sync.WaitGroup
	for range 6 {
		buyers.Go(func() {
			for {
				next.Lock()
				i := n
				n++
				next.Unlock()
				if i >= s.orders {
					return
				}
				if i%4 == 3 {
					s.fleet.Kill()
				}
				s.buy(i)
			}
		})
	}
	buyers.Wait()
	s.stop()
}

// post sends a request to a process until one accepts it, as a buyer who reloads the page.
func (s *shopStorm) post(path string, form url.Values) (status int) {
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	for range 100 {
		if status = s.send(s.Context(), path, header, strings.NewReader(form.Encode())); status == http.StatusOK || status == http.StatusConflict {
			return status
		}
		time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond)
	}
	if s.spec.Defect != "" { // a finding, like that in until
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stuck = append(s.stuck, path)
		return status
	}
	s.Errorf("%s %v: no process accepts it, the last status was %d", path, form, status)
	return status
}

func (s *shopStorm) refund(p merchant.RefundParams) {
	b, err := json.Marshal(p)
	require.NoError(s, err)
	s.post("/refund", url.Values{"params": {string(b)}})
}

// until waits until a condition holds, which it asks rarely: the machine is busy.
func (s *shopStorm) until(what string, holds func() bool) {
	patience := 5 * time.Minute
	if s.spec.Defect != "" { // to wait for ever is a finding too
		patience = 15 * time.Second
	}
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stuck = append(s.stuck, what)
			return
		}
		s.pass()
	}
}

// transaction waits until a charge was made, and returns its transaction.
func (s *shopStorm) transaction(order string, attempt int) (id string) {
	want := fmt.Sprintf("shop-%s-%d", order, attempt)
	s.until("charge "+want+" is made", func() bool {
		for _, made := range s.strings(`SELECT id, COALESCE(transaction_id, '') FROM gateway_charges WHERE id = '` + want + `'`)[want] {
			id = made
		}
		return id != ""
	})
	return id
}

// list returns the gateway's transactions.
func (s *shopStorm) list() (list []gateway.Transaction) {
	for tx, err := range s.client.Transactions.All(s.Context(), gateway.TransactionListParams{}, unharmed) {
		require.NoError(s, err)
		list = append(list, *tx)
	}
	return list
}

// unharmed requests have a harmless fault, which overrides the others.
var unharmed = gateway.Header("X-Mock-Fault", mockserver.ExtraField().String())

func (s *shopStorm) buy(i int) {
	order := s.order(strconv.Itoa(i))
	form := url.Values{"order": {order}, "amount": {strconv.Itoa(1000 + i)}}
	later := maps.Clone(form)
	later.Set("later", "1")
	byCard := maps.Clone(form)
	byCard.Set("method", "card")
	kind := i % 8
	if kind != 3 && kind != 4 && kind != 6 && kind != 7 {
		s.mark(s.unclosed, order)
	}
	if kind%2 == 1 {
		s.post("/charge", later)
	}
	s.post("/charge", form)
	pay := func(attempt int) {
		if err := s.gw.Transactions.Pay(s.transaction(order, attempt)); err != nil {
			var refused *mockserver.ControlError // a card that was charged at once
			assert.ErrorAs(s, err, &refused)
		}
	}
	switch kind {
	case 0, 2: // reloads the page, and pays
		s.post("/charge", form)
		pay(1)
		if kind == 2 {
			s.paid(order)
			s.refund(merchant.RefundParams{ID: "full-" + order, Order: order, Full: true})
		}
	case 1: // pays twice
		s.transaction(order, 1)
		s.post("/charge", byCard)
		pay(2)
		pay(1)
	case 3: // pays an order that was closed
		s.transaction(order, 1)
		s.post("/close", form)
		s.mark(s.closed, order)
		pay(1)
	case 4, 6: // pays while the order is closed, or never
		s.transaction(order, 1)
		var both sync.WaitGroup
		both.Go(func() { s.post("/close", form) })
		if kind == 4 {
			pay(1)
		}
		both.Wait()
	case 5: // refunds, as the support person does
		pay(1)
		s.paid(order)
		var both sync.WaitGroup
		both.Go(func() { s.support(order) })
		s.refund(merchant.RefundParams{ID: "part-" + order, Order: order, UpTo: 300})
		s.refund(merchant.RefundParams{ID: "more-" + order, Order: order, Amount: 100})
		s.refund(merchant.RefundParams{ID: "part-" + order, Order: order, UpTo: 300})
		both.Wait()
	case 7: // closes an order whose charge may not be sent yet
		s.post("/close", form)
	}
}

// paid waits until the shop knows that an order was paid.
func (s *shopStorm) paid(order string) {
	s.until("order "+order+" is paid", func() bool {
		o, err := s.m.Order(s.Context(), order)
		return assert.NoError(s, err) && o.Paid > 0
	})
}

// support refunds in the gateway's dashboard.
func (s *shopStorm) support(order string) {
	const cents = 101
	if _, err := s.client.Transactions.Refund(s.Context(), s.transaction(order, 1), gateway.RefundParams{Amount: cents}, unharmed, gateway.MaxAttempts(1)); assert.NoError(s, err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bySupport[order] += cents
	}
}

func (s *shopStorm) mark(set map[string]bool, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set[order] = true
}

// pass lets time pass for what waits for its next attempt. The order in which charges are
// compared stays: of hundreds that are due, the last one would else never be.
func (s *shopStorm) pass() {
	for _, statement := range []string{
		`UPDATE gateway_checks SET check_at = check_at / 1000 WHERE check_at > 100000000000`,
		`UPDATE gateway_facts SET due_at = 1 WHERE delivered_at IS NULL AND due_at > 1`,
		`UPDATE gateway_webhook_events SET due = 1 WHERE state = 1 AND due > 1`,
		`UPDATE gateway_operations SET due_at = 1 WHERE state IN ('waiting', 'decided') AND due_at > 1`,
	} {
		_, err := s.db.ExecContext(s.Context(), statement)
		assert.True(s, err == nil || dbms.IsConflict(err), err)
	}
}

// drain finishes what is left, without kills and faults, and returns what is wrong and
// what is still open then.
func (s *shopStorm) drain(patience time.Duration) *findings {
	s.gw.Faults.Clear()
	s.spec.Death, s.spec.Failing = 0, 0
	s.exec(`UPDATE gateway_webhook_events SET lease = 1 WHERE state = 2`) // those of the dead
	s.start(2)
	defer s.stop()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		s.pass()
		f := s.audit()
		if len(f.wrong) > 0 || len(f.open) == 0 || time.Now().After(deadline) {
			return f
		}
	}
}

func (s *shopStorm) print() {
	fmt.Printf("%s: %d orders, %d kills, %d payments, %d of them again, %d refunds, %d callbacks, %d requests\n",
		s.Name(), s.orders, s.kills, s.payments, s.again, s.refunded, s.calls, s.requests)
}

// findings are what an audit found.
type findings struct {
	wrong []string // can't be repaired
	open  []string // may come right with time
}

func (f *findings) wrongIf(is bool, format string, args ...any) {
	if is {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}

func (f *findings) openIf(is bool, format string, args ...any) {
	if is {
		f.open = append(f.open, fmt.Sprintf(format, args...))
	}
}

// audit compares the shop's records with the gateway's.
func (s *shopStorm) audit() *findings {
	f := &findings{}
	s.payments, s.again, s.refunded = 0, 0, 0
	byOrder := make(map[string][]*gateway.Transaction)
	for _, summary := range s.list() {
		tx, err := s.client.Transactions.Get(s.Context(), summary.ID, unharmed)
		require.NoError(s, err)
		order := strings.Split(tx.ExternalRef, "-")[1]
		byOrder[order] = append(byOrder[order], tx)
	}
	called := s.strings(`SELECT subject, callback || ' ' || record FROM called WHERE callback <> 'goods' ORDER BY id`)
	facts := s.strings(`SELECT subject, callback || ' ' || record FROM gateway_facts WHERE callback <> '' AND stream = '' AND delivered_at IS NOT NULL ORDER BY seq`)
	told := s.strings(`SELECT subject, record FROM called WHERE callback = 'goods' ORDER BY id`)
	for i := range s.orders {
		order := strconv.Itoa(i)
		s.auditOrder(f, order, byOrder[order])
		s.auditGoods(f, order, told["order/"+order])
		got, want := called["order/"+order], facts["order/"+order]
		// A callback may commit between the two queries.
		f.wrongIf(!slices.Equal(want, got[:min(len(want), len(got))]) && len(got) >= len(want), "order %s: called %v, but the facts are %v", order, got, want)
		f.openIf(!slices.Equal(want, got), "order %s: called %v, and the facts are %v", order, got, want)
	}
	s.calls = 0
	for _, list := range called {
		s.calls += len(list)
	}
	s.requests = s.gw.Requests.Count("")
	for what, query := range map[string]string{
		"operations": `SELECT COUNT(*) FROM gateway_operations WHERE state NOT IN ('done', 'canceled', 'ambiguous')`,
		"callbacks":  `SELECT COUNT(*) FROM gateway_facts WHERE delivered_at IS NULL`,
		"events":     `SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`,
		"charges":    `SELECT COUNT(*) FROM gateway_charges WHERE state IN ('new', 'unknown')`,
		"refunds":    `SELECT COUNT(*) FROM gateway_refunds WHERE state IN ('new', 'unknown', 'accepted')`,
	} {
		n := s.number(query)
		f.openIf(n > 0, "%d %s wait", n, what)
	}
	return f
}

func (s *shopStorm) auditOrder(f *findings, order string, made []*gateway.Transaction) {
	o, err := s.m.Order(s.Context(), order)
	require.NoError(s, err)
	net := s.number(`SELECT COALESCE(SUM(amount), 0) FROM gateway_facts WHERE subject = ?`, "order/"+order)
	f.openIf(o.Net() != int64(net), "order %s: the sum is %d, and its facts are %d", order, o.Net(), net)
	var paid, refunded int64
	inFull := false
	known := make(map[string]*merchant.Charge)
	for _, c := range o.Charges {
		known[c.ID] = c
		f.wrongIf(c.State == merchant.Ambiguous, "charge %s is ambiguous", c.ID)
	}
	seen := make(map[string]bool)
	for _, tx := range made {
		c := known[tx.ExternalRef]
		f.wrongIf(seen[tx.ExternalRef], "charge %s was made twice", tx.ExternalRef)
		seen[tx.ExternalRef] = true
		if c == nil || c.State == merchant.Withdrawn {
			f.wrongIf(true, "charge %s was made, but is withdrawn or unknown", tx.ExternalRef)
			continue
		}
		f.openIf(!strings.EqualFold(c.TransactionID, tx.ID), "charge %s has no transaction", c.ID)
		f.openIf(c.Paid != tx.PaidAmount || c.Refunded != tx.RefundedAmount, "charge %s: %d paid, %d refunded; the gateway has %d and %d",
			c.ID, c.Paid, c.Refunded, tx.PaidAmount, tx.RefundedAmount)
		paid, refunded = paid+tx.PaidAmount, refunded+tx.RefundedAmount
		inFull = inFull || tx.PaidAmount >= c.Requested
		if tx.PaidAmount > 0 {
			s.payments++
		}
	}
	for id, c := range known {
		f.openIf(c.TransactionID != "" && !seen[id], "the gateway does not know charge %s", id)
	}
	f.openIf(o.Paid != paid || o.Refunded != refunded, "order %s: %d paid, %d refunded; the gateway has %d and %d", order, o.Paid, o.Refunded, paid, refunded)
	s.auditShipping(f, o, inFull)
	s.auditRefunds(f, o, refunded)
}

func (s *shopStorm) auditShipping(f *findings, o *merchant.Order, inFull bool) {
	again := s.number(`SELECT COUNT(*) FROM called WHERE callback = 'paid_again' AND subject = ?`, "order/"+o.ID)
	ships := s.number(`SELECT COUNT(*) FROM called WHERE callback = 'paid' AND subject = ?`, "order/"+o.ID)
	payments := 0
	for _, c := range o.Charges {
		if c.Paid > 0 {
			payments++
		}
	}
	s.again += again
	f.wrongIf(ships > 1, "order %s was shipped %d times", o.ID, ships)
	f.wrongIf(ships > 0 && !inFull, "order %s was shipped, but not paid", o.ID)
	f.wrongIf(ships > 0 && s.closed[o.ID], "order %s was shipped, but closed before it was paid", o.ID)
	f.openIf(ships == 0 && inFull && s.unclosed[o.ID], "order %s was paid, but not shipped", o.ID)
	f.openIf(ships+again != payments, "order %s was paid %d times: shipped %d, again %d", o.ID, payments, ships, again)
}

// auditGoods checks that the shop was told to ship, not to ship, to ship …, and at last what is
// true: it may give back as much as it likes, and loses no dispute here.
func (s *shopStorm) auditGoods(f *findings, order string, told []string) {
	o, err := s.m.Order(s.Context(), order)
	require.NoError(s, err)
	for i, state := range told {
		f.wrongIf((state == string(merchant.Paid)) != (i%2 == 0), "order %s: the shop was told %v of its goods", order, told)
	}
	owed := o.Settled && o.Left() > 0
	closed := slices.Contains(s.strings(`SELECT subject, kind FROM gateway_problems`)["order/"+order], string(merchant.ProblemClosed))
	f.openIf(owed && !closed && len(told)%2 == 0, "order %s: %d are left, and the shop was told %v", order, o.Left(), told)
	f.openIf(!owed && len(told)%2 == 1, "order %s: %d are left, settled: %t, and the shop was told %v", order, o.Left(), o.Settled, told)
	f.wrongIf(closed && !o.Closed, "order %s has a problem as if it was closed", order)
}

// auditRefunds checks that what went back is what the shop and the support person
// refunded.
func (s *shopStorm) auditRefunds(f *findings, o *merchant.Order, refunded int64) {
	support := s.bySupport[o.ID]
	var done, largest int64
	for _, r := range o.Refunds {
		switch r.State {
		case merchant.Done:
			done += r.Amount
			if r.Amount > 0 {
				s.refunded++
			}
		case merchant.Ambiguous:
			f.wrongIf(support == 0, "refund %s is ambiguous", r.ID)
			largest += 300
		default:
		}
	}
	var states []string
	for _, r := range o.Refunds {
		states = append(states, fmt.Sprintf("%s of %s is %s (%d) %s", r.ID, r.Charge, r.State, r.Amount, r.Reason))
	}
	f.wrongIf(done+support+largest < refunded && !s.unfinished(o), "order %s: %d went back, %d by the shop and %d by hand: %v", o.ID, refunded, done, support, states)
	f.openIf(done+support > refunded || done+support+largest < refunded, "order %s: %d went back, %d by the shop and %d by hand", o.ID, refunded, done, support)
	kinds := s.strings(`SELECT subject, kind FROM gateway_problems WHERE kind <> 'closed'`)
	f.wrongIf(len(kinds["order/"+o.ID]) > 0 && largest == 0, "order %s has problems: %v", o.ID, kinds["order/"+o.ID])
}

func (*shopStorm) unfinished(o *merchant.Order) bool {
	return slices.ContainsFunc(o.Refunds, func(r *merchant.Refund) bool {
		return r.State == merchant.New || r.State == merchant.Unknown || r.State == merchant.Accepted
	})
}

// strings returns the second column of a query by the first one.
func (s *shopStorm) strings(query string) map[string][]string {
	rows, err := s.db.QueryContext(s.Context(), query)
	require.NoError(s, err)
	defer func() { require.NoError(s, rows.Close()) }()
	all := make(map[string][]string)
	for rows.Next() {
		var key, value string
		require.NoError(s, rows.Scan(&key, &value))
		all[key] = append(all[key], value)
	}
	require.NoError(s, rows.Err())
	return all
}

func (s *shopStorm) number(query string, args ...any) (n int) {
	err := s.db.QueryRowContext(s.Context(), s.sql(query), args...).Scan(&n)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(s, err)
	}
	return n
}
