package merchant_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// linked makes the shop sell by link: its callback records the sale.
func (w *world) linked() *world {
	for i := range w.cfg.Accounts {
		w.cfg.Accounts[i].Links = true
	}
	orders := w.on.Paid
	w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
		if c.Origin != merchant.FromLink {
			return orders(ctx, tx, c)
		}
		return w.called(ctx, tx, "sold "+c.Link, c.ID, c.Buyer.Email, c.Paid)
	}
	w.on.Refunded = func(ctx context.Context, tx *txn, r *merchant.Refund) error {
		return w.called(ctx, tx, "refunded", r.Charge, r.ID, r.Amount)
	}
	return w
}

// onlyLinked is linked without subscriptions: no sale waits until the gateway no longer lags.
func (w *world) onlyLinked() *world {
	for i := range w.cfg.Accounts {
		w.cfg.Accounts[i].NoSubscriptions = true
	}
	return w.linked()
}

// mug describes a link.
func mug(id string, price int64) merchant.LinkParams {
	p := merchant.LinkParams{ID: id}
	p.Products = []gateway.CheckoutProduct{{ExternalID: "MUG", Name: "Mug", Price: price, Quantity: 2}}
	return p
}

func (w *world) link(p merchant.LinkParams) *merchant.Link {
	w.Helper()
	link, err := w.m.Link(w.Context(), p)
	require.NoError(w, err)
	return link
}

// buy buys by a link of the default account, and returns the ID of the transaction.
func (w *world) buy(l *merchant.Link) string { return w.buyAt(w.gw.Key(), l) }

func (w *world) buyAt(key string, l *merchant.Link) string {
	w.Helper()
	account := w.gw.Account(key)
	client, slug := account.Client(), (&gateway.CheckoutLink{URL: l.URL}).Slug()
	session, err := client.CheckoutSessions.Open(w.Context(), slug)
	require.NoError(w, err)
	_, err = client.CheckoutSessions.Update(w.Context(), slug, session.SessionToken, gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{Name: "Ana Souza", Email: "ana@example.com"}, PaymentMethod: gateway.Pix,
	})
	require.NoError(w, err)
	require.NoError(w, account.Checkout.Pay(slug))
	page, err := client.Transactions.List(w.Context(), gateway.TransactionListParams{Limit: 1})
	require.NoError(w, err)
	require.Len(w, page.Items, 1)
	return page.Items[0].ID
}

// booked returns how many charges and facts there are.
func (w *world) booked() (n int) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT (SELECT COUNT(*) FROM gateway_charges) + (SELECT COUNT(*) FROM gateway_facts)`).Scan(&n))
	return n
}

func TestASaleByLink(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		link := w.link(mug("mug-2", 1500))
		assert.NotEmpty(w, link.URL)
		assert.Equal(w, "shop", link.Account)
		assert.Equal(w, link, w.link(mug("mug-2", 1500)), "the same ID and params return the same link")
		_, err := w.m.Link(w.Context(), mug("mug-2", 1600))
		require.ErrorIs(w, err, merchant.ErrReused)

		id := w.buy(link)
		w.reaches(id, "sold mug-2 ana@example.com 3000")
		w.balance("link/" + id)
		second := w.buy(link)
		w.reaches(second, "sold mug-2 ana@example.com 3000")

		r, err := w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Charge: id, UpTo: 1000})
		require.NoError(w, err)
		assert.Equal(w, id, r.Charge)
		w.reaches(id, "sold mug-2 ana@example.com 3000", "refunded return-1 1000")
		w.tx(func(tx *txn) error {
			_, err := w.m.RefundTx(w.Context(), tx, merchant.RefundParams{ID: "return-2", Charge: id, Full: true})
			return err
		})
		w.reaches(id, "sold mug-2 ana@example.com 3000", "refunded return-1 1000", "refunded return-2 2000")
		w.balance("link/" + id)
		require.NoError(w, w.m.Refresh(w.Context(), second))
		problems, err := w.m.Problems(w.Context())
		require.NoError(w, err)
		assert.Empty(w, problems)
	})
}

// The callback of a sale may refund it at once.
func TestASaleByLinkIsRefundedByItsCallback(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked()
		w.on.Paid = func(ctx context.Context, tx *txn, c *merchant.Charge) error {
			_, err := w.m.RefundTx(ctx, tx, merchant.RefundParams{ID: "back-" + c.ID, Charge: c.ID, Full: true})
			return err
		}
		w.open().start()
		id := w.buy(w.link(mug("mug-2", 1500)))
		w.reaches(id, "refunded back-"+id+" 3000")
		w.balance("link/" + id)
	})
}

// Without the setting, or without a link that sells the same, a transaction without a
// reference belongs to another system.
func TestWhatOtherSystemsSellIsIgnored(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		w.link(mug("mug-2", 1500))
		other, err := w.gw.Client().CheckoutLinks.Create(w.Context(), gateway.CheckoutLinkParams{
			Products: []gateway.CheckoutProduct{{ExternalID: "CUP", Name: "Cup", Price: 1500, Quantity: 2}},
		})
		require.NoError(w, err)
		w.buy(&merchant.Link{URL: other.URL})
		foreign := pix("", 3000).TransactionParams
		foreign.ExternalRef, foreign.Products = "erp-1", []gateway.Product{{Name: "Mug", Price: 1500, Quantity: 2}}
		paid, err := w.gw.Client().Transactions.Create(w.Context(), foreign)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(paid.ID))
		w.handled()
		assert.Zero(w, w.booked())
	})
}

func TestSalesAreIgnoredWithoutTheSetting(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open().start()
		w.buy(w.link(mug("mug-2", 1500)))
		w.handled()
		assert.Zero(w, w.booked())
	})
}

// Two links sell the same: the sale is booked, and its link is not guessed.
func TestTheLinkOfASaleIsNotGuessed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		link := w.link(mug("summer", 1500))
		w.link(mug("winter", 1500))
		w.reaches(w.buy(link), "sold  ana@example.com 3000")
	})
}

// A link that repeats a product's external id with another price changes what earlier
// links sell.
func TestALaterLinkChangesThePriceOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		early := w.link(mug("mug-2", 1500))
		before := w.buy(early)
		more := mug("mugs-3", 1200)
		more.Products[0].Quantity = 3
		late := w.link(more)
		w.reaches(before, "sold mug-2 ana@example.com 3000")
		w.reaches(w.buy(early), "sold mug-2 ana@example.com 2400")
		w.reaches(w.buy(late), "sold mugs-3 ana@example.com 3600")
	})
}

// A link may have an amount instead of products.
func TestASaleByALinkWithAnAmount(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		titled, plain := merchant.LinkParams{ID: "gift"}, merchant.LinkParams{ID: "donation"}
		titled.Amount, titled.Title, plain.Amount = 5000, "Gift", 700
		first, second := w.link(titled), w.link(plain)
		w.reaches(w.buy(first), "sold gift ana@example.com 5000")
		w.reaches(w.buy(second), "sold donation ana@example.com 700")
	})
}

// A subscription sells the same product to the same buyer: its charges have neither a
// reference, nor anything else that distinguishes them from a sale.
func TestAChargeOfASubscriptionIsNoSale(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.linked().open().start()
		offer := merchant.LinkParams{ID: "club"}
		offer.Products = []gateway.CheckoutProduct{{ExternalID: "CLUB", Name: "Club", Price: 2990}}
		link := w.link(offer)
		client := w.gw.Client()
		customer, err := client.Customers.Create(w.Context(), gateway.CustomerParams{Name: "Ana Souza", Email: "ana@example.com"})
		require.NoError(w, err)
		subscription, err := client.Subscriptions.Create(w.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 2990, Interval: gateway.IntervalMonth, Token: "pgct_test_visa",
			Products: []gateway.Product{{Name: "Club", Price: 2990}},
		})
		require.NoError(w, err)
		require.Equal(w, gateway.SubscriptionActive, subscription.Status)
		w.handled()
		assert.Zero(w, w.booked())
		// The buyer also pays by the link. It is a sale once the gateway's reads can't lag.
		id := w.buy(link)
		w.reaches(id, "sold club ana@example.com 2990")
		w.exec(`UPDATE gateway_accounts SET sweep_at = 0`)
		w.swept()
		var charges int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_charges`).Scan(&charges))
		assert.Equal(w, 1, charges)
	})
}

// swept waits until a search for sales has begun and the next one is due.
func (w *world) swept() {
	w.Helper()
	for range 2 {
		w.exec(`UPDATE gateway_accounts SET sweep_at = 0`)
		w.eventually("the sales are searched", func() bool {
			var at int64
			require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COALESCE(sweep_at, 0) FROM gateway_accounts WHERE name = 'shop'`).Scan(&at))
			return at > 0
		})
	}
}

// A sale of a buyer who can't be told from that of a subscription is a problem.
func TestASaleThatCannotBeToldFromASubscription(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.through(anonymous{w.gw.Transport()})
		w.linked().open().start()
		client := w.gw.Client()
		customer, err := client.Customers.Create(w.Context(), gateway.CustomerParams{Name: "Bia", Email: "bia@example.com"})
		require.NoError(w, err)
		_, err = client.Subscriptions.Create(w.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 100, Interval: gateway.IntervalMonth, Token: "pgct_test_visa",
		})
		require.NoError(w, err)
		id := w.buy(w.link(mug("mug-2", 1500)))
		w.eventually("the problem is there", func() bool {
			problems, err := w.m.Problems(w.Context())
			require.NoError(w, err)
			return len(problems) == 1 && problems[0].Kind == "unmatched" && problems[0].Record == id
		})
		var charges int
		require.NoError(w, w.db.QueryRowContext(w.Context(), `SELECT COUNT(*) FROM gateway_charges`).Scan(&charges))
		assert.Zero(w, charges)
	})
}

// anonymous hides the buyers' e-mail addresses.
type anonymous struct{ base http.RoundTripper }

func (a anonymous) RoundTrip(req *http.Request) (*http.Response, error) {
	return replaced(a.base, req, "/v2/transactions/", `"email":"ana@example.com"`, `"email":null`)
}

// No webhook of a sale arrives: the search finds it, once.
func TestASaleIsFoundWithoutAWebhook(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked()
		w.cfg.CompareEvery = 100 * time.Millisecond
		w.open()
		w.gw.Webhooks.Hold()
		id := w.buy(w.link(mug("mug-2", 1500)))
		w.start()
		w.reaches(id, "sold mug-2 ana@example.com 3000")
		require.NoError(w, w.gw.Webhooks.Release())
		w.handled()
		w.reaches(id, "sold mug-2 ana@example.com 3000")
	})
}

// The response to the create is lost, and the call is repeated: there is one link that
// anyone knows.
func TestALinkWhoseResponseIsLost(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.onlyLinked().open().start()
		require.NoError(w, w.gw.Faults.Add(mockserver.LoseResponse().On("checkout_links.create").Times(1)))
		_, err := w.m.Link(w.Context(), mug("mug-2", 1500))
		require.ErrorIs(w, err, gateway.ErrOutcomeUnknown)
		_, err = w.m.Link(w.Context(), mug("mug-2", 1600))
		require.ErrorIs(w, err, merchant.ErrReused, "the ID belongs to the first call")
		link := w.link(mug("mug-2", 1500))
		assert.Equal(w, link, w.link(mug("mug-2", 1500)))
		w.reaches(w.buy(link), "sold mug-2 ana@example.com 3000")
	})
}

// A link that the gateway rejects is not stored.
func TestALinkIsRejected(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		_, err := w.m.Link(w.Context(), merchant.LinkParams{ID: " x"})
		require.ErrorIs(w, err, gateway.ErrValidation)
		_, err = w.m.Link(w.Context(), merchant.LinkParams{ID: "x"})
		require.ErrorIs(w, err, gateway.ErrValidation, "neither an amount nor products")
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(http.StatusUnprocessableEntity).On("checkout_links.create").Times(1)))
		_, err = w.m.Link(w.Context(), mug("x", 1500))
		require.ErrorIs(w, err, gateway.ErrValidation)
		assert.NotEmpty(w, w.link(mug("x", 1600)).URL, "the ID is not used up")
	})
}

// Calls at the same time return the same link.
func TestLinksAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		urls := make(chan string)
		for range 6 {
			go func() {
				link, err := w.m.Link(w.Context(), mug("mug-2", 1500))
				if assert.NoError(w, err) {
					urls <- link.URL
					return
				}
				urls <- ""
			}()
		}
		first := <-urls
		for range 5 {
			assert.Equal(w, first, <-urls)
		}
	})
}

// Two accounts sell the same by link: each sale belongs to its own account and link.
func TestLinksOfTwoAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Accounts = append(w.cfg.Accounts, w.account("other", "sk_test_other", w.gw.Secret()))
		w.onlyLinked().open().start()
		_, err := w.m.Link(w.Context(), mug("a", 1500))
		require.ErrorIs(w, err, merchant.ErrAccount)
		first, second := mug("a", 1500), mug("b", 1500)
		first.Account, second.Account = "shop", "other"
		a, b := w.link(first), w.link(second)
		second.ID = "a"
		_, err = w.m.Link(w.Context(), second)
		require.ErrorIs(w, err, merchant.ErrReused)
		w.reaches(w.buyAt("sk_test_other", b), "sold b ana@example.com 3000")
		w.reaches(w.buy(a), "sold a ana@example.com 3000")
	})
}
