package merchant_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// problems returns the open problems.
func (w *world) problems() []*merchant.Problem {
	w.Helper()
	list, err := w.m.Problems(w.Context())
	require.NoError(w, err)
	return list
}

// patient lets requests take long, for tests in which none is lost.
func (w *world) patient() *world {
	w.cfg.SendTimeout, w.cfg.SettleAfter = 0, 0
	return w
}

// problem waits for the only problem.
func (w *world) problem() *merchant.Problem {
	w.Helper()
	w.eventually("there is a problem", func() bool { return len(w.problems()) > 0 })
	list := w.problems()
	require.Len(w, list, 1)
	return list[0]
}

func by(d merchant.Decision) merchant.Resolution {
	return merchant.Resolution{Decision: d, By: "Rui", Why: "looked at the dashboard"}
}

// resolve decides about a problem, after every decision that does not fit was rejected.
func (w *world) resolve(p *merchant.Problem, r merchant.Resolution, fitting ...merchant.Decision) {
	w.Helper()
	fits := make(map[merchant.Decision]bool)
	for _, d := range append(fitting, r.Decision) {
		fits[d] = true
	}
	for _, d := range []merchant.Decision{merchant.Applied, merchant.SendAgain, merchant.Abandon, merchant.Accept, merchant.Retry, merchant.Dismiss, "guess"} {
		if fits[d] {
			continue
		}
		err := w.m.Resolve(w.Context(), p.ID, by(d))
		require.ErrorIs(w, err, merchant.ErrState, d)
		for fit := range fits {
			require.ErrorContains(w, err, string(fit))
		}
		assert.Contains(w, w.ids(), p.ID)
	}
	for _, missing := range []merchant.Resolution{{Decision: r.Decision, By: "Rui", Why: " "}, {Decision: r.Decision, Why: "why"}} {
		require.ErrorIs(w, w.m.Resolve(w.Context(), p.ID, missing), gateway.ErrValidation)
	}
	require.NoError(w, w.m.Resolve(w.Context(), p.ID, r))
}

// ids returns the IDs of the open problems.
func (w *world) ids() (ids []string) {
	w.Helper()
	for _, p := range w.problems() {
		ids = append(ids, p.ID)
	}
	return ids
}

// ends waits until a problem is not listed any more.
func (w *world) ends(p *merchant.Problem) {
	w.Helper()
	w.eventually("the problem ends", func() bool { return !slices.Contains(w.ids(), p.ID) })
	require.ErrorIs(w, w.m.Resolve(w.Context(), p.ID, by(merchant.Dismiss)), merchant.ErrNotFound)
}

// story returns the texts of an order's steps.
func (w *world) story(order string) (texts []string) {
	w.Helper()
	steps, err := w.m.Story(w.Context(), order)
	require.NoError(w, err)
	for i := range steps {
		s := &steps[i]
		if i > 0 {
			assert.False(w, s.At.Before(steps[i-1].At), "the oldest first")
		}
		text := fmt.Sprintf("%s %s %s", s.Kind, s.Record, s.Text)
		if s.Amount != 0 {
			text += fmt.Sprintf(" %d %s", s.Amount, s.Currency)
		}
		if s.By != "" {
			text += " by " + s.By
		}
		texts = append(texts, text)
	}
	for _, secret := range []string{"Ana", "ana@example.com", "52998224725", w.gw.Key()} {
		assert.NotContains(w, fmt.Sprint(steps), secret)
	}
	return texts
}

func TestFindKnowsEveryIdentifier(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("A17")
		w.charge(pix(w.order("a17"), 100))
		c := w.charge(pix(order, 5000))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.reaches(order, "paid shop-A17-1 5000")
		c = w.state(order).Charges[0]
		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Order: order, UpTo: 2000})
		require.NoError(w, err)

		charge := merchant.Hit{Kind: "charge", Book: "shop", Account: "shop", Record: c.ID, Order: order}
		as := func(as string) []merchant.Hit {
			charge.As = as
			return []merchant.Hit{charge}
		}
		for id, want := range map[string][]merchant.Hit{
			order:                               {{As: "order", Kind: "order", Book: "shop", Record: order, Order: order}},
			c.ID:                                as("charge"),
			strings.ToUpper(c.TransactionID):    as("transaction"),
			c.TransactionID:                     as("transaction"),
			strings.ToLower(c.EndToEndID):       as("end_to_end"),
			c.EndToEndID:                        as("end_to_end"),
			r.ID:                                {{As: "refund", Kind: "refund", Book: "shop", Account: "shop", Record: r.ID, Order: order}},
			strings.ToLower(c.ID):               {{As: "charge", Kind: "charge", Book: "shop", Account: "shop", Record: "shop-a17-1", Order: "a17"}},
			"RETURN-1":                          nil, // yours are compared exactly
			"":                                  nil,
			"' OR 1=1 --":                       nil,
			"order/A17":                         nil,
			"00000000-0000-0000-0000-000000000": nil,
		} {
			got, err := w.m.Find(w.Context(), id)
			require.NoError(w, err)
			assert.Equal(w, want, got, id)
		}
	})
}

func TestTheStoryOfAnOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		order := w.order("S1")
		w.fails("paid", 1)
		w.start()
		c := w.charge(pix(order, 300))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.reaches(order, "paid shop-S1-1 300")
		_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Charge: c.ID, UpTo: 100})
		require.NoError(w, err)
		w.reaches(order, "paid shop-S1-1 300", "refunded r1 100")
		story := w.story(order)
		fee := w.state(order).Fee
		want := []string{
			"request shop-S1-1 transactions.create stored",
			"request shop-S1-1 transactions.create: sending",
			"request shop-S1-1 transactions.create: done",
			"fact shop-S1-1 paid 300 BRL",
			"fact shop-S1-1 settled",
			"callback shop-S1-1 paid delivered after 1 failures",
			"fact shop-S1-1 goods of 3.00",
			"callback shop-S1-1 goods waits for a process that has this callback",
			"request r1 transactions.refund stored",
			"request r1 transactions.refund: sending",
			"request r1 transactions.refund: done",
			"fact shop-S1-1 refunded -100 BRL",
			"fact r1 refund of 1.00",
			"callback r1 refunded delivered",
		}
		if fee != 0 {
			want = append(want, fmt.Sprintf("fact shop-S1-1 fee %d BRL", -fee))
		}
		assert.ElementsMatch(w, want, story)
		unknown, err := w.m.Story(w.Context(), "none")
		require.NoError(w, err)
		assert.Empty(w, unknown)
	})
}

// A refund of an amount is in doubt, and someone else refunds too.
func TestAnAmbiguousRefundWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, decision := range []merchant.Decision{merchant.Applied, merchant.SendAgain, merchant.Abandon} {
		t.Run(string(decision), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.cfg.SendTimeout, w.cfg.SettleAfter = 2*time.Second, 4*time.Second
				w.reports().open()
				order := w.order("R1")
				stop := w.start()
				c := w.charge(pix(order, 1000))
				require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
				w.reaches(order, "paid shop-R1-1 1000")
				stop()
				require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("transactions.refund").Times(1)))
				r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "r1", Order: order, Amount: 300})
				require.NoError(w, err)
				require.Equal(w, merchant.Unknown, r.State)
				_, err = w.gw.Client().Transactions.Refund(w.Context(), c.TransactionID, gateway.RefundParams{Amount: 50, Reason: "by hand"})
				require.NoError(w, err)
				w.open().start()
				p := w.problem()
				assert.Equal(w, merchant.ProblemAmbiguous, p.Kind)
				assert.Equal(w, []string{"r1", order, "shop"}, []string{p.Record, p.Order, p.Account})

				// The books notice it later, and it is still one problem.
				require.NoError(w, w.m.Refresh(w.Context(), c.ID))
				w.eventually("the callback reports it", func() bool { return len(w.reportedProblems()) == 1 })
				assert.Equal(w, []string{p.ID}, w.reportedProblems())
				assert.Equal(w, []string{p.ID}, w.ids())
				w.resolve(p, by(decision), merchant.Applied, merchant.SendAgain, merchant.Abandon)
				w.ends(p)

				// The lost response was that of a refund that was applied.
				refunded := map[merchant.Decision]int64{merchant.Applied: 350, merchant.SendAgain: 650, merchant.Abandon: 350}[decision]
				state := map[merchant.Decision]merchant.State{merchant.Applied: merchant.Done, merchant.SendAgain: merchant.Done, merchant.Abandon: merchant.Rejected}[decision]
				w.eventually("the refund is "+string(state), func() bool {
					o := w.state(order)
					return o.Refunds[0].State == state && o.Refunded == refunded
				})
				assert.Contains(w, w.story(order), "decision r1 ambiguous: "+string(decision)+": looked at the dashboard by Rui")
				assert.Empty(w, w.problems())
			})
		})
	}
}

func TestAnAmbiguousChargeWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for _, decision := range []merchant.Decision{merchant.Applied, merchant.SendAgain, merchant.Abandon} {
		t.Run(string(decision), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.cfg.SendTimeout, w.cfg.SettleAfter = 2*time.Second, 4*time.Second
				w.open()
				order := w.order("C9")
				w.gw.Webhooks.Hold()
				fault := mockserver.LoseResponse()
				if decision != merchant.Applied {
					fault = mockserver.Status(503)
				}
				require.NoError(w, w.gw.Faults.Add(fault.On("transactions.create").Times(1)))
				c := w.charge(pix(order, 400))
				require.Equal(w, merchant.Unknown, c.State)
				w.exec(`UPDATE gateway_operations SET state = 'ambiguous'`) // as after too many pages of the list
				p := w.problem()
				assert.Equal(w, merchant.ProblemAmbiguous, p.Kind)
				assert.Equal(w, []string{c.ID, order}, []string{p.Record, p.Order})
				w.start()
				r := by(decision)
				if decision == merchant.Applied {
					require.ErrorIs(w, w.m.Resolve(w.Context(), p.ID, r), gateway.ErrValidation, "a create needs the resource")
					list, err := gateway.Collect(w.gw.Client().Transactions.All(w.Context(), gateway.TransactionListParams{}), 10)
					require.NoError(w, err)
					require.Len(w, list, 1)
					r.ResourceID = "00000000-0000-4000-8000-000000000000"
					require.Error(w, w.m.Resolve(w.Context(), p.ID, r))
					assert.Equal(w, []string{p.ID}, w.ids(), "a decision that failed ends no problem")
					r.ResourceID = list[0].ID
				}
				w.resolve(p, r, merchant.Applied, merchant.SendAgain, merchant.Abandon)
				w.ends(p)
				want := merchant.Pending
				if decision == merchant.Abandon {
					want = merchant.Failed
				}
				w.eventually("the charge is "+string(want), func() bool { return w.state(order).Charges[0].State == want })
			})
		})
	}
}

func TestAnOutcomeThatCouldNotBeStoredIsRetried(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		order := w.order("O1")
		c := w.charge(pix(order, 400))
		require.Equal(w, merchant.Pending, c.State)
		w.exec(`UPDATE gateway_operations SET state = 'dead'`)
		p := w.problem()
		assert.Equal(w, merchant.ProblemOutcome, p.Kind)
		assert.Equal(w, []string{c.ID, order}, []string{p.Record, p.Order})
		w.start()
		w.resolve(p, by(merchant.Retry))
		w.ends(p)
		assert.Contains(w, w.story(order), "decision "+c.ID+" outcome: retry: looked at the dashboard by Rui")
	})
}

func TestACallbackThatFailsOftenIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		order := w.order("K1")
		c := w.charge(pix(order, 300))
		require.NoError(w, w.gw.Transactions.Pay(c.TransactionID))
		w.eventually("the payment is booked", func() bool { return w.state(order).Paid == 300 })
		for attempts := range 6 { // as its failures would, in a minute
			w.exec(`UPDATE gateway_facts SET attempts = ?, error = 'no row of ana@example.com', due_at = created_at + 3600000 WHERE delivered_at IS NULL AND stream = ''`, attempts)
			assert.Len(w, w.problems(), attempts/5)
		}
		p := w.problem()
		assert.Equal(w, merchant.ProblemCallback, p.Kind)
		assert.Equal(w, []string{c.ID, order, "shop"}, []string{p.Record, p.Order, p.Account})
		assert.NotContains(w, p.Text, "ana@example.com")
		assert.Contains(w, strings.Join(w.story(order), "\n"), "paid has failed 5 times: no row of")
		w.start()
		assert.Empty(w, w.calls(order))
		w.resolve(p, by(merchant.Retry))
		w.reaches(order, "paid shop-K1-1 300")
		w.ends(p)
	})
}

// An event of a transaction with the account's prefix has no record.
func TestADeadLetterIsAProblem(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		p := pix("", 100)
		p.ExternalRef = "shop-lost-1"
		tx, err := w.gw.Client().Transactions.Create(w.Context(), p.TransactionParams)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(tx.ID))
		dead := func() {
			w.eventually("the event fails", func() bool { // and is given up, as after half a day
				n, err := w.db.ExecContext(w.Context(), `UPDATE gateway_webhook_events SET state = 4, token = '' WHERE kind = 'transaction.paid' AND reason <> '' AND attempts > 0 AND token = ''`)
				require.NoError(w, err)
				rows, err := n.RowsAffected()
				require.NoError(w, err)
				return rows == 1
			})
		}
		dead()
		problem := w.problem()
		assert.Equal(w, merchant.ProblemEvent, problem.Kind)
		assert.Equal(w, "shop", problem.Account)
		assert.Contains(w, problem.Text, "there is no record with the reference shop-lost-1")
		w.resolve(problem, by(merchant.Retry), merchant.Dismiss)
		w.ends(problem)
		dead()
		w.resolve(w.problem(), by(merchant.Dismiss), merchant.Retry)
		w.ends(problem)
		var notes int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_notes WHERE kind = 'dead_letter' AND error = ''`).Scan(&notes))
		assert.Equal(w, 2, notes)
	})
}

func TestAnUnderpaidChargeIsAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("U1")
		cheap := w.charge(pix(order, 100))
		w.charge(pix(order, 150))
		require.NoError(w, w.gw.Transactions.Pay(cheap.TransactionID))
		p := w.problem()
		assert.Equal(w, merchant.ProblemUnderpaid, p.Kind)
		w.resolve(p, by(merchant.Accept), merchant.Dismiss)
		w.ends(p)
		w.eventually("the order is paid", func() bool { return w.ships(order) == 1 })
		o := w.state(order)
		assert.True(w, o.Settled)
		assert.Equal(w, merchant.Paid, o.Current().State)
		assert.Contains(w, w.story(order), "decision "+cheap.ID+" underpaid: accept: looked at the dashboard by Rui")
	})
}

// Two persons decide at the same time: one decision counts.
func TestOneOfTwoDecisionsCounts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("T1")
		cheap := w.charge(pix(order, 100))
		w.charge(pix(order, 150))
		require.NoError(w, w.gw.Transactions.Pay(cheap.TransactionID))
		p := w.problem()
		results := make(chan error, 2)
		for range 2 {
			go func() { results <- w.m.Resolve(w.Context(), p.ID, by(merchant.Accept)) }()
		}
		first, second := <-results, <-results
		if first != nil {
			first, second = second, first
		}
		require.NoError(w, first)
		require.ErrorIs(w, second, merchant.ErrNotFound)
		var notes int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_notes`).Scan(&notes))
		assert.Equal(w, 1, notes)
	})
}

// The kinds without a decision of their own.
func TestOtherProblemsAreDismissed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		order := w.order("P1")
		c := w.charge(pix(order, 100))
		for i, kind := range []merchant.ProblemKind{
			merchant.ProblemPaidAgain, merchant.ProblemUnknownState, merchant.ProblemUnmatched, merchant.ProblemContested, merchant.ProblemContradiction,
			merchant.ProblemLower, merchant.ProblemCurrency, merchant.ProblemReversed,
		} {
			w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES (?, 'shop', 'shop', ?, ?, ?, 'text', ?)`,
				fmt.Sprint("shop:", i), "order/"+order, c.ID, string(kind), time.Now().UnixMilli())
			p := w.problem()
			assert.Equal(w, kind, p.Kind)
			w.resolve(p, by(merchant.Dismiss))
			w.ends(p)
			assert.Contains(w, w.story(order), fmt.Sprintf("decision %s %s: dismiss: looked at the dashboard by Rui", c.ID, kind))
		}
		for _, id := range []string{"", "problem/", "problem/0", "callback/1", "event/shop/none", "operation/shop/1", "operation/shop/x", "1"} {
			require.ErrorIs(w, w.m.Resolve(w.Context(), id, by(merchant.Dismiss)), merchant.ErrNotFound, id)
		}
		for _, id := range []string{"event/other/none", "operation/other/1"} {
			require.ErrorIs(w, w.m.Resolve(w.Context(), id, by(merchant.Dismiss)), merchant.ErrAccount, id)
		}
	})
}

// reportedProblems returns the IDs of problems that the callback got.
func (w *world) reportedProblems() (ids []string) {
	w.Helper()
	rows, err := w.db.QueryContext(w.Context(), `SELECT id FROM reported`)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	for rows.Next() {
		var id string
		require.NoError(w, rows.Scan(&id))
		ids = append(ids, id)
	}
	require.NoError(w, rows.Err())
	return ids
}

// reports stores the IDs of the problems that the callback gets.
func (w *world) reports() *world {
	w.exec(`CREATE TABLE reported (id text NOT NULL)`)
	w.on.Problem = func(ctx context.Context, tx *txn, p *merchant.Problem) error {
		return merchant.One(tx.ExecContext(ctx, w.sql(`INSERT INTO reported (id) VALUES (?)`), p.ID))
	}
	return w
}
