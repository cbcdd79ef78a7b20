package merchant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// The tests here are about charges that are compared by lists of them: no webhook arrives.

// lists is a gateway whose requests are counted and whose lists can be changed.
type lists struct {
	w *world

	mu    sync.Mutex
	pages [][]string // the IDs that each list by IDs asked for
	reads []string   // the transactions that were read one by one

	disputes atomic.Int64 // lists by states

	// change returns what a list by IDs shows instead of its items; nil changes nothing.
	change func(items []map[string]any) []map[string]any
	status int                                        // of the response to a list, unless 0
	read   func(r *http.Request, body map[string]any) // changes what a read shows
	query  func(r *http.Request)                      // changes what a list asks for
	before func(r *http.Request) error                // runs before a list
}

// unheard opens the shop without webhooks, through a gateway whose requests are counted.
func (w *world) unheard() *lists {
	w.Helper()
	l := &lists{w: w}
	w.patient().through(l)
	var err error
	w.m, err = w.openOn(w.db, w.cfg)
	require.NoError(w, err)
	return l
}

func (l *lists) RoundTrip(r *http.Request) (*http.Response, error) {
	id, one := strings.CutPrefix(r.URL.Path, "/v2/transactions/")
	switch {
	case r.Method != http.MethodGet:
	case one:
		l.mu.Lock()
		l.reads = append(l.reads, id)
		l.mu.Unlock()
		return l.shown(r, func(body map[string]any) {
			if l.read != nil {
				l.read(r, body["data"].(map[string]any))
			}
		})
	case r.URL.Path == "/v2/transactions" && r.URL.Query().Has("id"):
		return l.list(r)
	case r.URL.Path == "/v2/transactions":
		l.disputes.Add(1)
	}
	return l.w.gw.Transport().RoundTrip(r)
}

func (l *lists) list(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.pages = append(l.pages, strings.Split(r.URL.Query().Get("id"), ","))
	l.mu.Unlock()
	if l.before != nil {
		if err := l.before(r); err != nil {
			return nil, err
		}
	}
	if l.status != 0 {
		body := `{"title": "no", "status": ` + fmt.Sprint(l.status) + `}`
		return &http.Response{
			StatusCode: l.status, Body: io.NopCloser(strings.NewReader(body)), Request: r,
			Header: http.Header{"Content-Type": {"application/problem+json"}},
		}, nil
	}
	if l.query != nil {
		r = r.Clone(r.Context())
		l.query(r)
	}
	return l.shown(r, func(body map[string]any) {
		if l.change == nil {
			return
		}
		at, is := body, body["data"]
		if inner, nested := is.(map[string]any); nested {
			at, is = inner, inner["data"]
		}
		var items []map[string]any
		for _, item := range is.([]any) {
			items = append(items, item.(map[string]any))
		}
		at["data"] = l.change(items)
	})
}

// shown changes a response.
func (l *lists) shown(r *http.Request, change func(body map[string]any)) (*http.Response, error) {
	res, err := l.w.gw.Transport().RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	body := make(map[string]any)
	if err = errors.Join(err, json.Unmarshal(text, &body)); err != nil {
		return nil, err
	}
	change(body)
	if text, err = json.Marshal(body); err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	res.Header.Del("Content-Length")
	return res, nil
}

// forget forgets what was asked for.
func (l *lists) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages, l.reads = nil, nil
	l.disputes.Store(0)
}

// asked returns how many lists by IDs there were, and the transactions that were read.
func (l *lists) asked() (pages int, reads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pages), slices.Sorted(slices.Values(l.reads))
}

// listed returns the IDs that lists asked for.
func (l *lists) listed() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(slices.Concat(l.pages...)))
}

// passes lets a time pass for the database: each time in it is that much earlier.
func (w *world) passes(d time.Duration) {
	w.Helper()
	ms := d.Milliseconds()
	w.exec(`UPDATE gateway_checks SET check_at = check_at - ?, lease_until = lease_until - ?`, ms, ms)
	w.exec(`UPDATE gateway_accounts SET walk_at = walk_at - ?, disputes_at = disputes_at - ?, singly_until = singly_until - ?`, ms, ms, ms)
	w.exec(`UPDATE gateway_charges SET created_at = created_at - ?`, ms)
}

// compares runs the shop until no comparison and no list is due.
func (w *world) compares() {
	w.Helper()
	stop := w.start()
	defer stop()
	w.eventually("nothing is due any more", func() bool {
		// The lists first: they make comparisons due. Their leases have ended.
		ended := time.Now().Add(6 * time.Minute).UnixMilli()
		return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_accounts WHERE name = 'shop'
			AND (COALESCE(walk_at, 0) <= %[1]d AND COALESCE(singly_until, 0) <= %[1]d OR COALESCE(disputes_at, 0) <= %[1]d)`, ended)) == 0 &&
			w.pending() == 0
	})
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	require.NoError(w, w.m.Idle(ctx))
}

// pending returns how many comparisons are due or running.
func (w *world) pending() int {
	w.Helper()
	return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_checks WHERE check_at <= %d OR lease_until IS NOT NULL`, time.Now().UnixMilli()))
}

// searched waits until the search for disputes has ended.
func (w *world) searched() {
	w.Helper()
	w.eventually("a search for disputes", func() bool {
		return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_accounts WHERE disputes_at > %d`, time.Now().Add(6*time.Minute).UnixMilli())) == 1
	})
}

// paidBy charges an order by Pix or card, and books its payment.
func (w *world) paidBy(p merchant.ChargeParams) *merchant.Charge {
	w.Helper()
	w.order(p.Order)
	c := w.charge(p)
	require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
	w.refresh(c.ID)
	return w.state(p.Order).Charges[0]
}

// goesBack refunds a transaction as someone does on the gateway's own pages.
func (w *world) goesBack(c *merchant.Charge, amount int64) {
	w.Helper()
	require.NoError(w, w.gw.Clock.Advance(time.Minute))
	_, err := w.gw.Client().Transactions.Refund(w.Context(), c.TransactionID, gateway.RefundParams{Amount: amount})
	require.NoError(w, err)
}

// dialects runs a test on both databases, with both shapes of lists.
func dialects(t *testing.T, test func(w *world)) {
	t.Helper()
	for name, d := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.live = d == mockserver.Live
				test(w)
			}, mockserver.WithDialect(d))
		})
	}
}

const dayLong = 24 * time.Hour

// What someone does elsewhere is booked within CompareEvery, by one read of what has changed;
// the others cost a share of a page.
func TestAWalkFindsWhatNoWebhookSaid(t *testing.T) {
	t.Parallel()
	dialects(t, func(w *world) {
		l := w.unheard()
		var all []*merchant.Charge
		for i := range 12 {
			all = append(all, w.paidBy(pix(fmt.Sprint("W", i), 1000)))
		}
		l.forget()
		for _, step := range []struct {
			order  int
			amount int64
			left   int64
		}{{3, 1000, 0}, {5, 200, 800}, {5, 300, 500}, {7, 400, 600}, {5, 500, 0}} {
			c := all[step.order]
			w.goesBack(c, step.amount)
			w.passes(dayLong)
			w.compares()
			assert.Equal(w, step.left, w.state(fmt.Sprint("W", step.order)).Left(), "%v", step)
			pages, reads := l.asked()
			assert.Equal(w, 1, pages)
			assert.Equal(w, []string{c.TransactionID}, reads)
			l.forget()
		}
		assert.Empty(w, w.health().Accounts[0].ReadSingly)
	})
}

// Nothing new costs a page for each hundred charges, and three statements.
func TestUnchangedChargesCostAPageForEachHundred(t *testing.T) {
	t.Parallel()
	dialects(t, func(w *world) {
		l := w.unheard()
		const n = 1000
		w.paidCopies(w.paidBy(pix("U", 1000)), n-1)
		w.passes(dayLong)
		statements := atomic.Int64{}
		_, db := w.tapped(func(statement string) string {
			isLook := strings.Contains(statement, "json_to_recordset") // of an idle process
			if strings.Contains(statement, "gateway_checks SET") && !isLook || strings.Contains(statement, "FROM gateway_charges") {
				statements.Add(1)
			}
			return statement
		})
		idle := w.db
		w.db = db
		var err error
		w.m, err = w.openOn(db, w.cfg)
		require.NoError(w, err)
		l.forget()
		statements.Store(0)
		w.db = idle
		w.compares()
		pages, reads := l.asked()
		assert.Equal(w, n/100, pages)
		assert.Empty(w, reads)
		assert.LessOrEqual(w, l.disputes.Load(), int64(2))
		w.Logf("%d charges: %d pages, %d disputes, %d statements", n, pages, l.disputes.Load(), statements.Load())
		assert.Less(w, statements.Load(), int64(3*n/100+10), "three of each page")
		assert.Equal(w, n, w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_checks WHERE lane = 2 AND check_at > %d`, time.Now().Add(23*time.Hour).UnixMilli())))
	})
}

// paidCopies adds paid charges like another one to the gateway and to the books.
func (w *world) paidCopies(c *merchant.Charge, n int) (ids []string) {
	w.Helper()
	var record string
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT record FROM gateway_charges WHERE id = ?`), c.ID).Scan(&record))
	was, err := w.gw.Client().Transactions.Get(w.Context(), c.TransactionID)
	require.NoError(w, err)
	client := w.gw.Client()
	tx, err := w.db.BeginTx(w.Context(), nil)
	require.NoError(w, err)
	for i := range n {
		p := pix("", was.Amount)
		p.ExternalRef = fmt.Sprint("shop-copy-", i)
		made, err := client.Transactions.Create(w.Context(), p.TransactionParams)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(made.ID))
		if made, err = client.Transactions.Get(w.Context(), made.ID); err != nil {
			require.NoError(w, err)
		}
		text := strings.NewReplacer(was.ID, made.ID, was.UpdatedAt.UTC().Format(time.RFC3339Nano), made.UpdatedAt.UTC().Format(time.RFC3339Nano)).Replace(record)
		require.NotEqual(w, record, text)
		_, err = tx.ExecContext(w.Context(), w.sql(`INSERT INTO gateway_charges (id, account, book, subject, attempt, ref, transaction_id, state, created_at, record, buyer)
			SELECT ?, account, book, subject || ?, attempt, ?, ?, state, created_at, ?, buyer FROM gateway_charges WHERE id = ?`),
			p.ExternalRef, fmt.Sprint(i), p.ExternalRef, made.ID, text, c.ID)
		require.NoError(w, err)
		_, err = tx.ExecContext(w.Context(), w.sql(`INSERT INTO gateway_checks (kind, id, account, lane, check_at)
			SELECT kind, ?, account, lane, check_at FROM gateway_checks WHERE id = ?`), p.ExternalRef, c.ID)
		require.NoError(w, err)
		ids = append(ids, made.ID)
	}
	require.NoError(w, tx.Commit())
	return ids
}

// Whatever a list does wrong costs reads: what has changed is booked within CompareEvery.
func TestAListThatIsWrongCostsReads(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		set    func(l *lists, changed string)
		singly string // why charges are read one by one afterwards
	}{
		"fails":             {func(l *lists, _ string) { l.status = 500 }, ""},
		"is limited":        {func(l *lists, _ string) { l.status = 429 }, ""},
		"is rejected":       {func(l *lists, _ string) { l.status = 422 }, "rejected"},
		"is forbidden":      {func(l *lists, _ string) { l.status = 403 }, "rejected"},
		"lacks the changed": {func(l *lists, changed string) { l.change = without(changed) }, ""},
		"lacks one": {func(l *lists, _ string) {
			l.change = func(items []map[string]any) []map[string]any { return items[1:] }
		}, ""},
		"is empty": {func(l *lists, _ string) {
			l.change = func([]map[string]any) []map[string]any { return []map[string]any{} }
		}, "most of what it shows otherwise"},
		"repeats": {func(l *lists, _ string) {
			l.change = func(items []map[string]any) []map[string]any { return append(items, items...) }
		}, ""},
		"ignores the IDs": {func(l *lists, _ string) {
			l.query = func(r *http.Request) {
				q := r.URL.Query()
				q.Del("id")
				r.URL.RawQuery = q.Encode()
			}
		}, "not asked for"},
		"has no times": {func(l *lists, _ string) {
			l.change = func(items []map[string]any) []map[string]any {
				for _, item := range items {
					delete(item, "updated_at")
				}
				return items
			}
		}, "no updated_at"},
		"has other times": {func(l *lists, _ string) {
			l.change = func(items []map[string]any) []map[string]any {
				for _, item := range items {
					item["updated_at"] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
				}
				return items
			}
		}, "most of what it shows otherwise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				l := w.unheard()
				for i := range 6 {
					w.paidBy(pix(fmt.Sprint("L", i), 1000))
				}
				_, err := w.gw.Client().Transactions.Create(w.Context(), pix("", 500).TransactionParams) // another system's
				require.NoError(w, err)
				c := w.state("L4").Charges[0]
				w.goesBack(c, 1000)
				wrong.set(l, c.TransactionID)
				l.forget()
				w.passes(dayLong)
				w.compares()
				assert.Zero(w, w.state("L4").Left())
				for _, i := range []int{0, 1, 2, 3, 5} {
					assert.Equal(w, int64(1000), w.state(fmt.Sprint("L", i)).Left())
				}
				_, reads := l.asked()
				assert.LessOrEqual(w, len(reads), 6, "nothing is read twice")
				assert.Contains(w, reads, c.TransactionID)
				singly := w.health().Accounts[0].ReadSingly
				if wrong.singly == "" {
					assert.Empty(w, singly)
				} else {
					assert.Contains(w, singly, wrong.singly)
				}
				assert.Empty(w, w.problems(), "a list proves nothing")
			}, mockserver.WithDialect(mockserver.Live))
		})
	}
}

// without returns the items of a list without a transaction.
func without(id string) func(items []map[string]any) []map[string]any {
	return func(items []map[string]any) []map[string]any {
		return slices.DeleteFunc(items, func(item map[string]any) bool { return item["id"] == id })
	}
}

// A dispute, its end and a chargeback are booked by the next search, a quarter of an hour later
// at most, without a walk.
func TestDisputesAreFoundWithinAQuarterOfAnHour(t *testing.T) {
	t.Parallel()
	dialects(t, func(w *world) {
		l := w.unheard()
		won, lost := w.paidBy(pix("D1", 1000)), w.paidBy(pix("D2", 1000))
		back, open := w.paidBy(card("D3", 1000)), w.paidBy(pix("D4", 1000))
		w.compares()
		l.forget()
		for _, step := range []struct {
			what  string
			do    func() error
			c     *merchant.Charge
			taken int64
		}{
			{"a chargeback", func() error { return w.gw.Transactions.Chargeback(back.TransactionID) }, back, 1000},
			{"a dispute", func() error { return w.gw.Transactions.OpenDispute(won.TransactionID) }, won, 1000},
			{"another one", func() error { return w.gw.Transactions.OpenDispute(lost.TransactionID) }, lost, 1000},
			{"a dispute that is won", func() error { return w.gw.Transactions.WinDispute(won.TransactionID) }, won, 0},
			{"one that is lost", func() error { return w.gw.Transactions.LoseDispute(lost.TransactionID) }, lost, 1000},
		} {
			require.NoError(w, w.gw.Clock.Advance(time.Minute))
			if !w.live && step.c != back {
				continue // it has no states for a dispute
			}
			require.NoError(w, step.do(), step.what)
			w.passes(15 * time.Minute)
			w.compares()
			assert.Equal(w, step.taken, w.state(step.c.Order).Disputed, step.what)
			pages, reads := l.asked()
			assert.Zero(w, pages, step.what)
			assert.Equal(w, []string{step.c.TransactionID}, reads, step.what)
			l.forget()
		}
		w.passes(15 * time.Minute)
		w.compares()
		_, reads := l.asked()
		assert.Empty(w, reads, "what is booked is not read again")
		assert.Equal(w, int64(1+1), l.disputes.Load(), "one request, after that of a new process")
		assert.Equal(w, int64(1000), w.state(open.Order).Left())
	})
}

// What a list of disputes says and no reading confirms is read a few times, and books nothing.
func TestADisputeThatNoReadingConfirmsIsNotBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		c := w.paidBy(pix("N1", 1000))
		require.NoError(w, w.gw.Transactions.OpenDispute(c.TransactionID))
		l.read = func(_ *http.Request, data map[string]any) { data["status"] = "paid" }
		l.forget()
		w.start()
		for i := range 8 {
			w.searched()
			w.eventually("it is read", func() bool { return w.pending() == 0 })
			_, reads := l.asked()
			assert.Len(w, reads, min(i+1, 4))
			w.passes(15 * time.Minute)
		}
		assert.Zero(w, w.state("N1").Disputed)
	}, mockserver.WithDialect(mockserver.Live))
}

// A gateway that does not know a state as a value of the filter is asked for the others.
func TestStatesThatTheGatewayCanNotListAreLeftOut(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		w.through(roundTripper(func(r *http.Request) (*http.Response, error) {
			if states := r.URL.Query().Get("status"); strings.Contains(states, "pre_chargedback") {
				l.disputes.Add(1)
				return &http.Response{
					StatusCode: http.StatusUnprocessableEntity, Request: r, Header: http.Header{"Content-Type": {"application/problem+json"}},
					Body: io.NopCloser(strings.NewReader(`{"title": "Validation Error", "status": 422, "errors": [{"field": "status", "message": "invalid"}]}`)),
				}, nil
			}
			return l.RoundTrip(r)
		}))
		var err error
		w.m, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		one, other := w.paidBy(pix("S1", 1000)), w.paidBy(card("S2", 1000))
		require.NoError(w, w.gw.Transactions.OpenDispute(one.TransactionID))
		require.NoError(w, w.gw.Transactions.Chargeback(other.TransactionID))
		w.compares()
		assert.Equal(w, int64(1000), w.state("S1").Disputed)
		assert.Equal(w, int64(1000), w.state("S2").Disputed)
	}, mockserver.WithDialect(mockserver.Live))
}

// Many old chargebacks cost two requests a search, and are all listed once a day or when there
// is a new one, however old its payment is.
func TestManyChargebacksAreNotListedEachTime(t *testing.T) {
	t.Parallel()
	dialects(t, func(w *world) {
		l := w.unheard()
		c := w.paidBy(card("M1", 1000))
		require.NoError(w, w.gw.Clock.Advance(time.Minute))
		client := w.gw.Client()
		for i := range 250 {
			p := card(fmt.Sprint("other", i), 1000) // another system's
			p.Token += "_paid"
			tx, err := client.Transactions.Create(w.Context(), p.TransactionParams)
			require.NoError(w, err)
			w.becomes(tx.ID, gateway.TransactionPaid)
			w.becomes(tx.ID, gateway.TransactionChargedback)
		}
		w.start()
		var lists int64
		search := func(n int64, what string) {
			lists += n
			w.passes(15 * time.Minute)
			w.searched()
			assert.Equal(w, lists, l.disputes.Load(), what)
		}
		lists = 1 + 1 + 1 + 1 + 3 // also those of the first search
		w.searched()
		assert.Equal(w, lists, l.disputes.Load())
		search(3, "the page, those that are open, and the newest chargebacks")
		search(3, "the same again")
		require.NoError(w, w.gw.Transactions.Chargeback(c.TransactionID))
		search(3+3, "all of them")
		w.reaches("M1", "paid shop-M1-1 1000", "disputed shop-M1-1 1000")
		search(3, "the same again")
	})
}

// A process that dies in the middle of a walk holds a page until its lease has ended.
func TestAWalkContinuesAfterADeath(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		c := w.paidBy(pix("C", 1000))
		w.paidCopies(c, 149)
		w.passes(dayLong)
		w.exec(`UPDATE gateway_checks SET lease_until = ? WHERE id IN (SELECT id FROM gateway_checks ORDER BY id LIMIT 100)`, time.Now().Add(5*time.Minute).UnixMilli())
		l.forget()
		stop := w.start()
		left := func() int {
			return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_checks WHERE check_at <= %d`, time.Now().UnixMilli()))
		}
		w.eventually("the others are compared", func() bool { return left() == 100 })
		stop()
		w.passes(3 * time.Hour)
		w.compares()
		assert.Zero(w, left())
		pages, reads := l.asked()
		assert.LessOrEqual(w, pages, 3)
		assert.Empty(w, reads)
	})
}

// Of a process that is stopped in the middle of a walk, another one continues it at once.
func TestAWalkThatIsStoppedIsContinued(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		w.paidCopies(w.paidBy(pix("C", 1000)), 249)
		w.passes(dayLong)
		l.forget()
		second := make(chan struct{})
		l.before = func(r *http.Request) error {
			if pages, _ := l.asked(); pages != 2 {
				return nil
			}
			close(second)
			<-r.Context().Done()
			return r.Context().Err()
		}
		stop := w.start()
		<-second
		stop()
		assert.Equal(w, 150, w.count(`SELECT COUNT(*) FROM gateway_checks WHERE lease_until IS NULL AND check_at <= `+fmt.Sprint(time.Now().UnixMilli())))
		w.compares()
		pages, reads := l.asked()
		assert.LessOrEqual(w, pages, 2+2)
		assert.Empty(w, reads)
	})
}

// Several processes list each charge once.
func TestProcessesShareAWalk(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		w.paidCopies(w.paidBy(pix("P", 1000)), 399)
		w.passes(dayLong) // all are due: no process reads them meanwhile
		first := w.m
		second, err := w.openOn(w.connect(), w.cfg)
		require.NoError(w, err)
		l.forget() // Open has read a transaction
		w.m = second
		stop := w.start()
		w.m = first
		w.compares()
		stop()
		ids := l.listed()
		assert.Equal(w, 400, len(ids))                 //nolint:testifylint // they are too many to print
		assert.Equal(w, 400, len(slices.Compact(ids))) //nolint:testifylint // see above
		_, reads := l.asked()
		assert.Zero(w, len(reads)) //nolint:testifylint // see above
	})
}

// Where updated_at does not move, the charges are read one by one, and Health says so.
func TestAnUpdatedAtThatDoesNotMoveIsFound(t *testing.T) {
	t.Parallel()
	dialects(t, func(w *world) {
		l := w.unheard()
		require.NoError(w, w.gw.Faults.Add(mockserver.Shape("stopped-updates")))
		for i := range 5 {
			w.order(fmt.Sprint("T", i))
			c := w.charge(pix(fmt.Sprint("T", i), 1000))
			require.NoError(w, w.gw.Clock.Advance(20*time.Minute))
			require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
			w.refresh(c.ID)
		}
		c := w.state("T2").Charges[0]
		for _, left := range []int64{700, 400} {
			w.goesBack(c, 300)
			w.passes(dayLong)
			w.compares()
			assert.Equal(w, left, w.state("T2").Left())
			assert.Contains(w, w.health().Accounts[0].ReadSingly, "before its payment")
		}
		pages, _ := l.asked()
		assert.Equal(w, 1, pages, "the lists are not asked for again")
		w.passes(31 * dayLong)
		w.compares()
		pages, _ = l.asked()
		assert.Equal(w, 2, pages, "they are after 30 days")
	})
}

// A second refund of a part that moves no updated_at is found by the reading that follows each
// charge once in 30 days, and then the charges are read one by one.
func TestAChangeThatMovesNoTimeIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		for i := range 3 {
			w.paidBy(pix(fmt.Sprint("V", i), 1000))
		}
		c := w.state("V1").Charges[0]
		w.goesBack(c, 300)
		w.passes(dayLong)
		w.compares()
		require.Equal(w, int64(700), w.state("V1").Left())
		was, err := w.gw.Client().Transactions.Get(w.Context(), c.TransactionID)
		require.NoError(w, err)
		stays := func(data map[string]any) {
			if data["id"] == c.TransactionID {
				data["updated_at"] = was.UpdatedAt.UTC().Format(time.RFC3339Nano)
			}
		}
		l.read = func(_ *http.Request, data map[string]any) { stays(data) }
		l.change = func(items []map[string]any) []map[string]any {
			for _, item := range items {
				stays(item)
			}
			return items
		}
		w.goesBack(c, 300)
		w.passes(dayLong)
		w.compares()
		require.Equal(w, int64(700), w.state("V1").Left(), "nothing shows it")
		days := 2
		for ; days <= 31 && w.state("V1").Left() == 700; days++ {
			w.passes(dayLong)
			w.compares()
		}
		assert.Equal(w, int64(400), w.state("V1").Left())
		assert.LessOrEqual(w, days, 31)
		assert.Contains(w, w.health().Accounts[0].ReadSingly, "did not move with a change")
		w.goesBack(c, 300)
		w.passes(dayLong)
		w.compares()
		assert.Equal(w, int64(100), w.state("V1").Left(), "within a day again")
	}, mockserver.WithDialect(mockserver.Live))
}

// While the gateway is down, a walk sends no more than the gate's probes. Afterwards what is due is
// listed, and nothing was wrong with the list.
func TestAWalkWaitsForTheGateway(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		const n = 250
		w.paidCopies(w.paidBy(pix("G", 1000)), n-1)
		o := &outage{next: l, vain: make(map[string]int)}
		w.through(o)
		log := &lockedBuffer{}
		w.cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		var err error
		w.m, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		w.passes(dayLong)
		l.forget()
		o.set(status(503))
		_, err = w.m.Charge(w.Context(), pix(w.order("H"), 1000))
		require.NoError(w, err)
		w.down("shop", 503)
		stop := w.start()
		w.eventually("some probes", func() bool { return o.wasted() >= 5 })
		lists := o.of("transactions.list")
		assert.Equal(w, n+1, w.count(`SELECT COUNT(*) FROM gateway_checks`))
		o.set(nil)
		w.openAgain()
		w.eventually("all are compared", func() bool {
			return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_checks WHERE lane = 2 AND check_at > %d`, time.Now().Add(23*time.Hour).UnixMilli())) == n
		})
		stop()
		assert.LessOrEqual(w, lists, 5)
		pages, reads := l.asked()
		assert.GreaterOrEqual(w, pages, n/100)
		assert.LessOrEqual(w, pages, n/100+3)
		assert.LessOrEqual(w, len(reads), 3, "the charge of H, and a probe")
		assert.Empty(w, w.health().Accounts[0].ReadSingly)
		assert.NotContains(w, log.String(), "come first: it is sent later")
		assert.NotContains(w, log.String(), "it is sent when the gateway works again")
	})
}

// It is also found if another reading shows it first: while the lists fail, what is due is read.
func TestAChangeThatMovesNoTimeIsFoundByAnyReading(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		c := w.paidBy(pix("V1", 1000))
		w.goesBack(c, 300)
		w.passes(dayLong)
		w.compares()
		require.Equal(w, int64(700), w.state("V1").Left())
		was, err := w.gw.Client().Transactions.Get(w.Context(), c.TransactionID)
		require.NoError(w, err)
		l.read = func(_ *http.Request, data map[string]any) {
			data["updated_at"] = was.UpdatedAt.UTC().Format(time.RFC3339Nano)
		}
		w.goesBack(c, 300)
		w.exec(`UPDATE gateway_accounts SET walk_at = ?`, time.Now().Add(time.Hour).UnixMilli())
		w.exec(`UPDATE gateway_checks SET check_at = ?`, time.Now().UnixMilli())
		w.start()
		w.eventually("the refund is booked", func() bool { return w.state("V1").Left() == 400 })
		w.eventually("the lists are doubted", func() bool {
			return strings.Contains(w.health().Accounts[0].ReadSingly, "did not move with a change")
		})
	}, mockserver.WithDialect(mockserver.Live))
}

// With NoLists, each charge is read every CompareEvery, and nothing is listed.
func TestNoListsReadsEachCharge(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Accounts[0].NoLists = true
		l := w.unheard()
		for i := range 3 {
			w.paidBy(pix(fmt.Sprint("N", i), 1000))
		}
		c := w.state("N1").Charges[0]
		w.goesBack(c, 300)
		w.passes(dayLong)
		l.forget()
		stop := w.start()
		w.eventually("the refund is booked", func() bool { return w.state("N1").Left() == 700 })
		w.eventually("all are read", func() bool { _, reads := l.asked(); return len(reads) == 3 })
		stop()
		pages, _ := l.asked()
		assert.Zero(w, pages)
		assert.Zero(w, l.disputes.Load())
	})
}

// Another release has no walks: it reads what is due, and both find a change once.
func TestAWalkClaimsWhatIsDueSoonBeforeItIsRead(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		l := w.unheard()
		for i := range 3 {
			w.paidBy(pix(fmt.Sprint("B", i), 1000))
		}
		w.passes(dayLong - time.Hour)
		l.forget()
		w.compares()
		pages, reads := l.asked()
		assert.Equal(w, 1, pages)
		assert.Empty(w, reads)
		wait, planned := w.comparedIn("gateway_charges", "shop-B1-1")
		assert.True(w, planned)
		assert.Greater(w, wait, 23*time.Hour, "compared, so the next comparison is a day later")
	})
}

// Charges that can't be read are not read again and again by the walk that has found them.
func TestAWalkEndsIfChargesCanNotBeRead(t *testing.T) {
	t.Parallel()
	for code, most := range map[int]int{http.StatusConflict: 100, http.StatusServiceUnavailable: 10} { // the gate is closed by 503
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			walkEnds(t, code, most)
		})
	}
}

func walkEnds(t *testing.T, code, most int) {
	t.Helper()
	each(t, func(w *world) {
		l := w.unheard()
		w.paidCopies(w.paidBy(pix("E", 1000)), 149)
		l.change = func([]map[string]any) []map[string]any { return []map[string]any{} }
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(code).On("transactions.get")))
		w.passes(dayLong - time.Hour) // no read is due
		l.forget()
		stop := w.start()
		w.eventually("the walk has ended", func() bool {
			return w.count(fmt.Sprintf(`SELECT COUNT(*) FROM gateway_accounts WHERE walk_at > %d`, time.Now().Add(10*time.Minute).UnixMilli())) == 1
		})
		stop()
		pages, reads := l.asked()
		assert.Equal(w, 1, pages)
		assert.LessOrEqual(w, len(reads), most)
		assert.Empty(w, w.health().Accounts[0].ReadSingly)
	})
}
