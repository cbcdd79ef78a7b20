package merchant_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// companies opens the accounts of two companies, acme with two of them and globex with one.
func (w *world) companies() *world {
	w.Helper()
	w.cfg.Accounts = nil
	for _, is := range []struct{ name, book string }{{"shop", "acme"}, {"branch", "acme"}, {"globex", ""}} {
		key := "sk_test_" + is.name
		if is.name == "shop" {
			key = w.gw.Key()
		}
		a := w.account(is.name, key, w.gw.Secret())
		a.Book = is.book
		w.cfg.Accounts = append(w.cfg.Accounts, a)
	}
	w.cfg.SecondPayment = merchant.RefundSecondPayment
	w.open()
	w.rotate(map[string]gateway.Secret{"shop": w.gw.Secret(), "branch": w.gw.Secret(), "globex": w.gw.Secret()})
	return w
}

// told records what the callback Goods says.
func (w *world) told() *[]merchant.Goods {
	var mu sync.Mutex
	list := new([]merchant.Goods)
	w.on.Goods = func(ctx context.Context, tx *txn, g *merchant.Goods) error {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, *g)
		return w.called(ctx, tx, "goods "+string(g.State), g.Book+"/"+g.Order, g.Order, g.Left)
	}
	return list
}

// Company globex has an order "1" too. It neither gets acme's charge, which was paid, nor has
// its own payment given back as a second one.
func TestTwoCompaniesHaveOneNumber(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.order("1")
		w.told()
		w.companies().start()
		first := w.charge(on("shop", pix("1", 700)))
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.eventually("acme ships", func() bool { return len(w.calls("acme/1")) == 1 })
		second := w.charge(on("globex", pix("1", 900)))
		assert.NotEqual(w, first.ID, second.ID)
		assert.Equal(w, merchant.Pending, second.State, "globex's buyer has not paid")
		assert.Equal(w, []string{"acme", "globex"}, []string{first.Book, second.Book})
		acme, globex := w.m.Book("acme"), w.m.Book("globex")
		o, err := globex.Order(w.Context(), "1")
		require.NoError(w, err)
		assert.Zero(w, o.Paid)
		assert.Empty(w, w.calls("globex/1"), "nothing is shipped unpaid")
		require.NoError(w, w.gw.Account("sk_test_globex").Transactions.Pay(second.TransactionID))
		w.eventually("globex ships", func() bool { return len(w.calls("globex/1")) == 1 })
		assert.Equal(w, []string{"goods paid 1 700"}, w.calls("acme/1"))
		assert.Equal(w, []string{"goods paid 1 900"}, w.calls("globex/1"))
		for book, want := range map[*merchant.Merchant[*txn]]int64{acme: 700, globex: 900} {
			o, err := book.Order(w.Context(), "1")
			require.NoError(w, err)
			assert.Equal(w, []any{want, int64(0), true}, []any{o.Paid, o.Refunded, o.Settled})
			require.Len(w, o.Charges, 1)
		}
		// Each gives back its own, with one ID of a return.
		for _, book := range []*merchant.Merchant[*txn]{acme, globex} {
			r, err := book.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Order: "1", UpTo: 100})
			require.NoError(w, err)
			assert.Equal(w, merchant.Done, r.State)
		}
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, 2, w.count(`SELECT COUNT(*) FROM gateway_refunds WHERE id = 'return-1'`))
	})
}

// Two accounts of one company charge one order: a second payment on the other account is given
// back.
func TestTwoAccountsOfOneCompanyShareAnOrder(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.order("1")
		w.told()
		w.companies().start()
		first := w.charge(on("shop", pix("1", 700)))
		second := w.charge(on("branch", pix("1", 700)))
		require.NotEqual(w, first.ID, second.ID)
		require.NoError(w, w.gw.Transactions.Pay(first.TransactionID))
		w.eventually("acme ships", func() bool { return len(w.calls("acme/1")) == 1 })
		require.NoError(w, w.gw.Account("sk_test_branch").Transactions.Pay(second.TransactionID))
		acme := w.m.Book("acme")
		w.eventually("the second payment is given back", func() bool {
			o, err := acme.Order(w.Context(), "1")
			require.NoError(w, err)
			return o.Refunded == 700
		})
		o, err := acme.Order(w.Context(), "1")
		require.NoError(w, err)
		assert.Equal(w, []int64{1400, 700, 0}, []int64{o.Paid, o.Left(), o.Excess()})
		assert.Len(w, o.Charges, 2)
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, []string{"goods paid 1 700"}, w.calls("acme/1"))
		other, err := w.m.Book("globex").Order(w.Context(), "1")
		require.NoError(w, err)
		assert.Empty(w, other.Charges)
	})
}

// IDs of refunds, payouts, subscriptions and links are of a company, and a call by ID says
// which.
func TestEveryIDIsOfACompany(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.order("1")
		w.companies().start()
		acme, globex := w.m.Book("acme"), w.m.Book("globex")
		for i, name := range []string{"shop", "globex"} {
			p := bill("B1", "", int64(500+i))
			p.Account = name
			_, err := w.m.Payout(w.Context(), p)
			require.NoError(w, err)
			s := merchant.SubscribeParams{ID: "M1", Account: name, Customer: gateway.CustomerParams{
				Name: "Ana", Email: "ana@example.com", Phone: "11987654321", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			}}
			s.Amount, s.Interval, s.Token = int64(2990+i), gateway.IntervalMonth, gateway.CardToken("pgct_ok_"+name)
			_, err = w.m.Subscribe(w.Context(), s)
			require.NoError(w, err)
			l := mug("mug", int64(1500+i))
			l.Account = name
			_, err = w.m.Link(w.Context(), l)
			require.NoError(w, err)
		}
		for i, book := range []*merchant.Merchant[*txn]{acme, globex} {
			p, err := book.PayoutByID(w.Context(), "B1")
			require.NoError(w, err)
			assert.Equal(w, int64(500+i), p.Requested)
			s, err := book.Subscription(w.Context(), "M1")
			require.NoError(w, err)
			assert.Equal(w, int64(2990+i), s.Amount)
			hits, err := book.Find(w.Context(), "B1")
			require.NoError(w, err)
			require.Len(w, hits, 1)
			is, err := w.m.Record(w.Context(), hits[0].Book, hits[0].Kind, hits[0].Record)
			require.NoError(w, err)
			assert.Equal(w, int64(500+i), is.Order.Payouts[0].Requested)
			require.NoError(w, w.m.Refresh(w.Context(), "M1"))
		}
		hits, err := w.m.Find(w.Context(), "M1")
		require.NoError(w, err)
		assert.Len(w, hits, 2, "both companies'")
		_, err = globex.CancelSubscription(w.Context(), "M1", "")
		require.NoError(w, err)
		s, err := acme.Subscription(w.Context(), "M1")
		require.NoError(w, err)
		assert.NotEqual(w, merchant.State(gateway.SubscriptionCanceled), s.State, "acme's member goes on")

		// Without a book none of these means one company.
		for name, call := range map[string]func() error{
			"Order":              func() error { _, err := w.m.Order(w.Context(), "1"); return err },
			"PayoutByID":         func() error { _, err := w.m.PayoutByID(w.Context(), "B1"); return err },
			"Subscription":       func() error { _, err := w.m.Subscription(w.Context(), "M1"); return err },
			"CancelSubscription": func() error { _, err := w.m.CancelSubscription(w.Context(), "M1", ""); return err },
			"Refund": func() error {
				_, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "1", Full: true})
				return err
			},
			"Record": func() error { _, err := w.m.Record(w.Context(), "", "payout", "B1"); return err },
			"Story":  func() error { _, err := w.m.Story(w.Context(), "1"); return err },
			"CloseTx": func() (err error) {
				w.tx(func(tx *txn) error { err = w.m.CloseOrderTx(w.Context(), tx, "1"); return nil })
				return err
			},
			"OrderTx": func() (err error) {
				w.tx(func(tx *txn) error { _, err = w.m.OrderTx(w.Context(), tx, "1"); return nil })
				return err
			},
			"no such":   func() error { _, err := w.m.Book("acem").Order(w.Context(), "1"); return err },
			"not acmes": func() error { _, err := acme.Charge(w.Context(), on("globex", pix("2", 100))); return err },
		} {
			require.ErrorIs(w, call(), merchant.ErrAccount, name)
		}
		assert.Equal(w, []string{"branch", "shop"}, acme.Accounts())
		assert.Equal(w, []string{"branch", "globex", "shop"}, w.m.Accounts())
	}, mockserver.WithOpeningBalance(100_000))
}

// An account is never moved to another company. What a company has can be read, and its other
// account refunded, when an account was removed from the configuration.
func TestReadingNeedsNoClient(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.order("1")
		stop := w.companies().start()
		old := w.charge(on("branch", pix("1", 700)))
		require.NoError(w, w.gw.Account("sk_test_branch").Transactions.Pay(old.TransactionID))
		gone := w.charge(on("globex", pix("1", 900)))
		w.eventually("paid", func() bool {
			o, err := w.m.Book("acme").Order(w.Context(), "1")
			require.NoError(w, err)
			return o.Settled
		})
		require.NoError(w, w.m.Idle(w.Context()))
		stop()
		accounts := w.cfg.Accounts
		w.cfg.Accounts[1].Book = "globex"
		_, err := w.openOn(w.db, w.cfg)
		require.ErrorIs(w, err, merchant.ErrAccount)
		require.ErrorContains(w, err, "branch are in the book acme")

		w.cfg.Accounts = accounts[:1] // only shop of acme
		w.m, err = w.openOn(w.db, w.cfg)
		require.NoError(w, err)
		o, err := w.m.Order(w.Context(), "1") // of the one book
		require.NoError(w, err)
		require.Len(w, o.Charges, 1)
		assert.Equal(w, []any{"branch", merchant.Paid}, []any{o.Charges[0].Account, o.Charges[0].State})
		r, err := w.m.Record(w.Context(), "", "order", "1")
		require.NoError(w, err)
		assert.NotEmpty(w, r.Story)
		closed, err := w.m.Book("globex").Order(w.Context(), "1")
		require.NoError(w, err)
		require.Len(w, closed.Charges, 1)
		assert.Equal(w, gone.ID, closed.Charges[0].ID)
		_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "R1", Order: "1", Full: true})
		require.ErrorIs(w, err, merchant.ErrAccount, "only its client can send it")
		paid, err := w.m.Charge(w.Context(), pix("1", 700))
		require.NoError(w, err)
		assert.Equal(w, old.ID, paid.ID, "it was paid on the account that was removed")
	})
}

// Orders of two companies with one number at once: neither waits for the other, nor mixes.
func TestTwoCompaniesAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.told()
		w.companies().start()
		var all sync.WaitGroup
		for i := range 5 {
			w.order(strconv.Itoa(i))
			for _, name := range []string{"shop", "globex"} {
				all.Go(func() {
					c, err := w.m.Charge(w.Context(), on(name, pix(strconv.Itoa(i), 700)))
					if assert.NoError(w, err) {
						assert.NoError(w, w.gw.Account(keyOf(w, merchant.Account{Name: name})).Transactions.Pay(c.TransactionID))
					}
				})
			}
		}
		all.Wait()
		for i := range 5 {
			for _, book := range []string{"acme", "globex"} {
				w.eventually("it is shipped", func() bool { return len(w.calls(book+"/"+strconv.Itoa(i))) == 1 })
			}
		}
		require.NoError(w, w.m.Idle(w.Context()))
		assert.Equal(w, 10, w.count(`SELECT COUNT(*) FROM gateway_orders WHERE paid = 700 AND refunded = 0 AND owed = 1 AND told = 1`))
	})
}
