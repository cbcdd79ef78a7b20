package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// link creates a checkout link and returns its slug.
func (w *world) link(in engine.NewLink) string {
	w.tb.Helper()
	c, refusal := engine.CreateLink(w.env, in, engine.ExistingForLink{
		Links:    len(w.links.order),
		Products: len(w.products),
		Product: func(externalID string) *engine.CatalogProduct {
			for _, p := range w.products {
				if p.ExternalID == externalID {
					return p
				}
			}
			return nil
		},
	})
	w.do(c, refusal)
	return c.Links[0].Slug
}

func amountLink(amount int64) engine.NewLink {
	return engine.NewLink{Link: engine.Link{Amount: amount}}
}

func productLink(products ...engine.CatalogProduct) engine.NewLink {
	var in engine.NewLink
	for _, p := range products {
		in.Sold = append(in.Sold, engine.NewLinkItem{CatalogProduct: p, Quantity: 2})
	}
	return in
}

// visit opens or resumes a session and returns its id.
func (w *world) visit(slug, session string) string {
	w.tb.Helper()
	s := w.sessions.rows[session]
	c, refusal := engine.OpenSession(w.env, w.links.rows[slug], s)
	w.do(c, refusal)
	if len(c.Sessions) == 0 {
		return s.ID
	}
	return c.Sessions[0].ID
}

func (w *world) fill(session string, in engine.SessionUpdate) *engine.Refusal {
	w.tb.Helper()
	s := w.sessions.rows[session]
	c, refusal := engine.UpdateSession(w.env, w.links.rows[s.Slug], s, in)
	w.apply(c)
	return refusal
}

// ready opens a session and fills it in.
func (w *world) ready(slug, method string) string {
	w.tb.Helper()
	id := w.visit(slug, "")
	require.Nil(w.tb, w.fill(id, engine.SessionUpdate{Buyer: ana, Method: method}))
	require.Equal(w.tb, "ready", w.sessions.rows[id].Status)
	return id
}

func ana(b *engine.Buyer) { b.Name, b.Email = "Ana Souza", "ana@example.com" }

func (w *world) begin(session string) *engine.Refusal {
	w.tb.Helper()
	s := w.sessions.rows[session]
	c, refusal := engine.StartPayment(w.env, w.links.rows[s.Slug], s, w.catalog, engine.Payment{})
	w.apply(c)
	return refusal
}

func (w *world) buy(session string) *engine.Refusal {
	w.tb.Helper()
	s := w.sessions.rows[session]
	c, refusal := engine.PayCheckout(w.env, w.links.rows[s.Slug], s, w.transactions.rows[s.TransactionID], w.catalog)
	w.apply(c)
	return refusal
}

func TestLinkStates(t *testing.T) {
	t.Parallel()
	t.Run("active to exhausted when it is used up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		in := amountLink(4990)
		in.MaxUses = 2
		slug := w.link(in)
		require.Nil(t, w.buy(w.ready(slug, "pix")))
		assert.Equal(t, "active", w.links.rows[slug].Status)
		late := w.ready(slug, "pix")
		require.Nil(t, w.buy(w.ready(slug, "credit_card")))
		assert.Equal(t, "exhausted", w.links.rows[slug].Status)
		assert.Equal(t, 2, w.links.rows[slug].UsedCount)
		refusal := w.buy(late)
		require.NotNil(t, refusal, "a late buyer can't pay")
		assert.Equal(t, engine.CodeCheckoutGone, refusal.Code)
		assert.Len(t, w.transactions.order, 2)
	})
	t.Run("active to expired when its time is over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		in := amountLink(4990)
		in.ExpiresAt = start().Add(time.Hour)
		slug := w.link(in)
		w.advance(50 * time.Minute)
		open := w.visit(slug, "")
		assert.True(t, engine.ExpireLinkByTimer(w.env, w.links.rows[slug], nil).Empty(), "not before")
		w.advance(10 * time.Minute)
		assert.Equal(t, "expired", w.links.rows[slug].Status)
		assert.Equal(t, "expired", w.sessions.rows[open].Status)
	})
	t.Run("a payment that was started before the link was closed can be paid", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		in := amountLink(4990)
		in.MaxUses = 1
		slug := w.link(in)
		id := w.ready(slug, "pix")
		require.Nil(t, w.begin(id))
		w.advance(time.Minute)
		w.do(engine.DeactivateLink(w.env, w.links.rows[slug], w.sessions.all()))
		assert.Equal(t, w.env.Now, w.links.rows[slug].UpdatedAt)
		require.Nil(t, w.move(w.sessions.rows[id].TransactionID, engine.Pay))
		assert.Equal(t, "completed", w.sessions.rows[id].Status)
		assert.Equal(t, "inactive", w.links.rows[slug].Status, "used up, but closed before")
	})
	t.Run("active until it is deactivated", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug := w.link(amountLink(4990))
		w.advance(10 * 365 * 24 * time.Hour)
		assert.Equal(t, "active", w.links.rows[slug].Status)
	})
	t.Run("expires_at must be in the future", func(t *testing.T) {
		t.Parallel()
		in := amountLink(4990)
		in.ExpiresAt = start()
		_, refusal := engine.CreateLink(newWorld(t).env, in, engine.ExistingForLink{})
		require.NotNil(t, refusal)
		assert.Equal(t, "expires_at", refusal.Fields[0].Field)
		assert.Equal(t, spec.CodeInvalid, refusal.Fields[0].Code)
	})
	t.Run("active to expired or inactive by control, but not twice", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for status, end := range map[string]func(engine.Env, *engine.Link, []*engine.Session) (engine.Change, *engine.Refusal){
			"expired": engine.ExpireLink, "inactive": engine.DeactivateLink,
		} {
			slug := w.link(amountLink(4990))
			w.do(end(w.env, w.links.rows[slug], nil))
			assert.Equal(t, status, w.links.rows[slug].Status)
			_, refusal := end(w.env, w.links.rows[slug], nil)
			require.NotNil(t, refusal)
			assert.Equal(t, engine.CodeInvalidState, refusal.Code)
			_, refusal = engine.OpenSession(w.env, w.links.rows[slug], nil)
			require.NotNil(t, refusal)
			assert.Equal(t, engine.CodeCheckoutGone, refusal.Code)
		}
	})
}

func TestSessionStates(t *testing.T) {
	t.Parallel()
	t.Run("opened, resumed, opened again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug, other := w.link(amountLink(4990)), w.link(amountLink(1))
		first := w.visit(slug, "")
		s := w.sessions.rows[first]
		assert.Equal(t, "open", s.Status)
		assert.Equal(t, start().Add(30*time.Minute), s.ExpiresAt)
		assert.Regexp(t, "^cst_[A-Z0-9]{40}$", s.Token)
		assert.Equal(t, start(), s.CreatedAt)
		assert.Equal(t, start(), s.UpdatedAt)
		assert.Equal(t, first, w.visit(slug, first), "a live session resumes")
		assert.NotEqual(t, first, w.visit(other, first), "only for its own link")
		w.env.Now = s.ExpiresAt // its timer has not fired yet
		assert.NotEqual(t, first, w.visit(slug, first))
		refusal := w.fill(first, engine.SessionUpdate{Method: "pix"})
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeCheckoutGone, refusal.Code)
		w.advance(0)
		assert.Equal(t, "expired", w.sessions.rows[first].Status)
		second := w.visit(slug, first)
		assert.NotEqual(t, first, second)
		assert.NotEqual(t, s.Token, w.sessions.rows[second].Token)
	})
	t.Run("open to ready when buyer and method are complete", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.visit(w.link(amountLink(4990)), "")
		require.Nil(t, w.fill(id, engine.SessionUpdate{Method: "pix"}))
		assert.Equal(t, "open", w.sessions.rows[id].Status)
		refusal := w.begin(id)
		require.NotNil(t, refusal, "not ready")
		assert.Equal(t, "INVALID_STATE", refusal.Code)
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) { b.Name = "Ana" }}))
		assert.Equal(t, "open", w.sessions.rows[id].Status)
		w.advance(time.Minute)
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) { b.Email = "ana@example.com" }}))
		s := w.sessions.rows[id]
		assert.Equal(t, "ready", s.Status)
		assert.Equal(t, "Ana", s.Buyer.Name)
		assert.Equal(t, start(), s.MethodAt)
		assert.Equal(t, start().Add(time.Minute), s.UpdatedAt)
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) { b.Email = "" }}))
		assert.Equal(t, "open", w.sessions.rows[id].Status, "back to open")
	})
	t.Run("the method may come last", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.visit(w.link(amountLink(4990)), "")
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: ana}))
		assert.Equal(t, "open", w.sessions.rows[id].Status)
		require.Nil(t, w.fill(id, engine.SessionUpdate{Method: "pix"}))
		assert.Equal(t, "ready", w.sessions.rows[id].Status)
	})
	t.Run("a voucher needs an address", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.visit(w.link(amountLink(4990)), "")
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: ana, Method: "voucher"}))
		assert.Equal(t, "open", w.sessions.rows[id].Status)
		assert.Equal(t, []spec.Violation{{Field: "buyer.address.zipCode", Code: spec.CodeRequired, Message: "is required"}},
			engine.Missing(w.env, w.sessions.rows[id]))
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) { b.Address = &engine.Address{City: "São Paulo"} }}))
		assert.Equal(t, "open", w.sessions.rows[id].Status, "the zip code is missing")
		require.Nil(t, w.fill(id, engine.SessionUpdate{Buyer: func(b *engine.Buyer) {
			b.Address = &engine.Address{Street: "Rua das Flores", City: "São Paulo", ZipCode: "01001000", Country: "BR"}
		}}))
		assert.Equal(t, "ready", w.sessions.rows[id].Status)
		require.Nil(t, w.buy(id))

		w.env.Dialect = spec.DocumentDialect.With(spec.VoucherAddress)
		w.ready(w.link(amountLink(4990)), "voucher") // the live gateway asks for none
	})
	t.Run("a method that the link does not offer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		in := amountLink(4990)
		in.PaymentMethods = []string{"pix"}
		refusal := w.fill(w.visit(w.link(in), ""), engine.SessionUpdate{Method: "voucher"})
		require.NotNil(t, refusal)
		assert.Equal(t, "payment_method", refusal.Fields[0].Field)
	})
	t.Run("ready to processing to completed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug := w.link(amountLink(4990))
		id := w.ready(slug, "pix")
		require.Nil(t, w.begin(id))
		s := w.sessions.rows[id]
		assert.Equal(t, "processing", s.Status)
		assert.Equal(t, inOrder("transaction.created", "transaction.pending"), w.emitted())
		assert.Equal(t, id, w.visit(slug, id), "a session in processing is live")
		tx := w.transactions.rows[s.TransactionID]
		assert.Equal(t, int64(4990), tx.Amount)
		assert.Equal(t, "Ana Souza", tx.Buyer.Name)
		assert.Equal(t, "BRL", tx.Currency)
		assert.Equal(t, 1, tx.Installments)
		assert.Equal(t, []engine.Product{{Name: "Checkout", Price: 4990, Quantity: 1}}, tx.Products)
		w.advance(time.Hour)
		refusal := w.fill(id, engine.SessionUpdate{Method: "voucher"})
		require.NotNil(t, refusal, "too late to choose")
		assert.Equal(t, "INVALID_STATE", refusal.Code, "it has not expired: it waits for its payment")
		require.Nil(t, w.move(tx.ID, engine.Pay))
		assert.Equal(t, "completed", w.sessions.rows[id].Status)
		assert.Equal(t, 1, w.links.rows[slug].UsedCount)
		assert.NotEqual(t, id, w.visit(slug, id), "a completed session is over")
		require.NotNil(t, w.buy(id))
		require.Nil(t, w.move(tx.ID, setStatus("partially_refunded")))
		assert.Equal(t, 1, w.links.rows[slug].UsedCount, "it is one sale")
		require.Nil(t, w.move(tx.ID, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.Refund(env, t, engine.RefundRequest{})
		}))
		assert.Equal(t, "completed", w.sessions.rows[id].Status, "a refund does not undo the sale")
		assert.Equal(t, 1, w.links.rows[slug].UsedCount)
	})
	t.Run("buying pays the payment that was started", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "pix")
		require.Nil(t, w.begin(id))
		require.Nil(t, w.buy(id))
		assert.Equal(t, "completed", w.sessions.rows[id].Status)
		assert.Len(t, w.transactions.order, 1)
	})
	t.Run("processing to ready again", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(w *world, tx string){
			"refused":  func(w *world, tx string) { require.Nil(w.tb, w.move(tx, engine.Refuse)) },
			"canceled": func(w *world, tx string) { require.Nil(w.tb, w.move(tx, engine.Cancel)) },
		} {
			w := newWorld(t)
			id := w.ready(w.link(amountLink(4990)), "credit_card")
			require.Nil(t, w.begin(id))
			w.advance(2 * time.Hour)
			end(w, w.sessions.rows[id].TransactionID)
			s := w.sessions.rows[id]
			assert.Equal(t, "ready", s.Status, name)
			assert.Empty(t, s.TransactionID)
			assert.Equal(t, w.env.Now.Add(30*time.Minute), s.ExpiresAt, "with a new expiry")
			require.Nil(t, w.buy(id))
			assert.Equal(t, "completed", w.sessions.rows[id].Status)
			assert.Len(t, w.transactions.order, 2)
		}
	})
	t.Run("processing to ready again when the Pix expires", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "pix")
		require.Nil(t, w.begin(id))
		w.advance(24 * time.Hour)
		assert.Equal(t, "ready", w.sessions.rows[id].Status)
		w.advance(30 * time.Minute)
		assert.Equal(t, "expired", w.sessions.rows[id].Status)
	})
	t.Run("a session that is ready again expires at its new expiry", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "credit_card")
		require.Nil(t, w.begin(id))
		w.advance(20 * time.Minute)
		require.Nil(t, w.move(w.sessions.rows[id].TransactionID, engine.Refuse))
		w.advance(30*time.Minute - time.Millisecond)
		assert.Equal(t, "ready", w.sessions.rows[id].Status)
		w.advance(time.Millisecond)
		assert.Equal(t, "expired", w.sessions.rows[id].Status)
	})
	t.Run("an earlier attempt does not affect the pending one", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "credit_card")
		require.Nil(t, w.begin(id))
		first := w.sessions.rows[id].TransactionID
		require.Nil(t, w.move(first, engine.Refuse))
		expires := w.sessions.rows[id].ExpiresAt
		w.advance(time.Minute)
		require.Nil(t, w.move(first, setStatus("canceled")))
		assert.Equal(t, expires, w.sessions.rows[id].ExpiresAt, "nor does it affect a buyer who chooses again")
		require.Nil(t, w.begin(id))
		require.Nil(t, w.move(first, setStatus("refused")))
		assert.Equal(t, "processing", w.sessions.rows[id].Status)
	})
	t.Run("an earlier attempt that is paid after all completes the session", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "credit_card")
		require.Nil(t, w.begin(id))
		first := w.sessions.rows[id].TransactionID
		require.Nil(t, w.move(first, engine.Refuse))
		require.Nil(t, w.begin(id))
		require.NotEqual(t, first, w.sessions.rows[id].TransactionID)
		require.Nil(t, w.move(first, setStatus("paid")))
		assert.Equal(t, "completed", w.sessions.rows[id].Status)
		assert.Equal(t, first, w.sessions.rows[id].TransactionID)
	})
	t.Run("a payment that was started can't be paid once the link is used up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		in := amountLink(4990)
		in.MaxUses = 1
		slug := w.link(in)
		first, second := w.ready(slug, "pix"), w.ready(slug, "pix")
		require.Nil(t, w.begin(first))
		require.Nil(t, w.begin(second))
		require.Nil(t, w.buy(first))
		refusal := w.buy(second)
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
		assert.Equal(t, "pending", w.transactions.rows[w.sessions.rows[second].TransactionID].Status)
	})
	t.Run("a session that expired with its link stays expired when its payment is canceled", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug := w.link(amountLink(4990))
		id := w.ready(slug, "pix")
		require.Nil(t, w.begin(id))
		s := *w.sessions.rows[id]
		s.Status = "expired"
		canceled, refusal := engine.Cancel(w.env, w.transactions.rows[s.TransactionID])
		require.Nil(t, refusal)
		c, refusal := engine.FollowSession(w.env, w.links.rows[slug], &s, canceled.Transactions[0])
		require.Nil(t, refusal)
		assert.True(t, c.Empty())
	})
	t.Run("a link that is used up expires its other sessions", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug := w.link(amountLink(4990))
		open, ready, begun, challenged, unknown, bought, done := w.visit(slug, ""), w.ready(slug, "pix"), w.ready(slug, "pix"),
			w.ready(slug, "credit_card"), w.ready(slug, "pix"), w.ready(slug, "pix"), w.ready(slug, "pix")
		for _, id := range []string{begun, challenged, unknown, done} {
			require.Nil(t, w.begin(id))
		}
		require.Nil(t, w.buy(bought))
		require.Nil(t, w.move(w.sessions.rows[challenged].TransactionID, setStatus("three_ds_required")))
		transaction := func(id string) *engine.Transaction {
			if id == w.sessions.rows[unknown].TransactionID {
				return nil // no longer known
			}
			return w.transactions.rows[id]
		}
		w.emitted()
		w.apply(engine.CloseSessions(w.env, w.sessions.all(), []*engine.Session{{ID: done}}, transaction))
		for id, want := range map[string]string{
			open: "expired", ready: "expired", begun: "expired", challenged: "expired",
			unknown: "processing", bought: "completed", done: "processing",
		} {
			assert.Equal(t, want, w.sessions.rows[id].Status)
		}
		assert.Equal(t, inOrder("transaction.cancelled", "transaction.cancelled"), w.emitted())
	})
	t.Run("a challenge must be passed first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "credit_card")
		require.Nil(t, w.begin(id))
		tx := w.sessions.rows[id].TransactionID
		assert.Regexp(t, "^pgct_[A-Z0-9]{24}$", w.transactions.rows[tx].Card.Token)
		require.Nil(t, w.move(tx, setStatus("three_ds_required")))
		assert.Equal(t, "processing", w.sessions.rows[id].Status)
		refusal := w.buy(id)
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
	})
	t.Run("tokens", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		slug := w.link(amountLink(4990))
		_, refusal := engine.UpdateSession(w.env, w.links.rows[slug], nil, engine.SessionUpdate{})
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeSessionToken, refusal.Code)
		id := w.visit(slug, "")
		w.advance(time.Hour)
		refusal = w.fill(id, engine.SessionUpdate{Method: "pix"})
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeCheckoutGone, refusal.Code)
	})
}

func TestLinkProducts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mug := engine.CatalogProduct{ExternalID: "MUG-1", Name: "Mug", Price: 3990}
	first := w.link(productLink(mug, engine.CatalogProduct{Name: "Gift", Price: 0, Type: "digital"}))
	l := w.links.rows[first]
	assert.Equal(t, int64(7980), l.Total(w.catalog))
	assert.Equal(t, "physical", w.catalog(l.Items[0].ProductID).Type)
	assert.Equal(t, "BRL", l.CurrencyOf(w.catalog(l.Items[0].ProductID)))

	mug.Name, mug.Price = "Blue mug", 4990
	second := w.link(productLink(mug, engine.CatalogProduct{Name: "Gift", Price: 0}))
	assert.Len(t, w.products, 3, "the mug is updated, a product without an external id is new each time")
	assert.Equal(t, l.Items[0].ProductID, w.links.rows[second].Items[0].ProductID)
	assert.NotEqual(t, l.Items[0].ID, w.links.rows[second].Items[0].ID)
	assert.Equal(t, int64(9980), l.Total(w.catalog), "a link sells the product as it is now")

	assert.Equal(t, []engine.LinkItem{
		{ID: 101, ProductID: 1, Quantity: 2}, {ID: 102, ProductID: 2, Quantity: 2},
	}, l.Items)
	assert.Equal(t, int64(3), w.links.rows[second].Items[1].ProductID)
	assert.Equal(t, int64(1), l.ID)
	assert.Equal(t, int64(2), w.links.rows[second].ID)
	assert.Equal(t, start(), l.CreatedAt)
	assert.Equal(t, start(), l.UpdatedAt)

	nothing := w.ready(w.link(productLink(engine.CatalogProduct{Name: "Gift"})), "pix")
	require.NotNil(t, w.buy(nothing), "nothing to pay")
	tooMuch := w.ready(w.link(productLink(engine.CatalogProduct{Name: "Ship", Price: spec.MaxAmount})), "pix")
	require.NotNil(t, w.buy(tooMuch), "more than the maximum amount of a transaction")
	assert.Empty(t, w.transactions.order)

	twice := w.link(productLink(mug, mug))
	assert.Equal(t, w.links.rows[twice].Items[0].ProductID, w.links.rows[twice].Items[1].ProductID)
	pen := engine.CatalogProduct{ExternalID: "PEN-1", Name: "Pen", Price: 1}
	twice = w.link(productLink(pen, pen))
	assert.Equal(t, w.links.rows[twice].Items[0].ProductID, w.links.rows[twice].Items[1].ProductID, "new in the same request")
	single := productLink(pen)
	single.Sold[0].Quantity = 0
	assert.Equal(t, 1, w.links.rows[w.link(single)].Items[0].Quantity, "1 by default")

	id := w.ready(first, "pix")
	require.Nil(t, w.buy(id))
	tx := w.transactions.rows[w.sessions.rows[id].TransactionID]
	assert.Equal(t, int64(9980), tx.PaidAmount)
	assert.Equal(t, []engine.Product{
		{Name: "Blue mug", Price: 4990, Quantity: 2, Tangible: true, SKU: "MUG-1"},
		{Name: "Gift", Price: 0, Quantity: 2},
	}, tx.Products)
}

// A link can be paid if its total is an amount that a transaction may have.
func TestLinkTotals(t *testing.T) {
	t.Parallel()
	for total, payable := range map[int64]bool{0: false, spec.MinAmount: true, spec.MaxAmount: true, spec.MaxAmount + 1: false} {
		w := newWorld(t)
		in := engine.NewLink{Sold: []engine.NewLinkItem{{CatalogProduct: engine.CatalogProduct{Name: "Thing", Price: total}}}}
		in.Currency = "USD"
		id := w.ready(w.link(in), "pix")
		refusal := w.begin(id)
		assert.Equal(t, payable, refusal == nil, total)
		if payable {
			tx := w.transactions.rows[w.sessions.rows[id].TransactionID]
			assert.Equal(t, total, tx.Amount)
			assert.Equal(t, "USD", tx.Currency)
		} else {
			assert.Equal(t, "INVALID_STATE", refusal.Code)
		}
	}
}

// Whatever the prices are, a total is an integer that every JSON parser reads exactly.
func TestTheTotalOfALinkIsAtMostTheLargestSafeInteger(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		amount, price int64
		quantity      int
		want          int64
	}{
		{0, spec.MaxSafeAmount, 1, spec.MaxSafeAmount},
		{0, spec.MaxSafeAmount + 1, 1, spec.MaxSafeAmount},
		{5, spec.MaxSafeAmount - 5, 1, spec.MaxSafeAmount},
		{5, spec.MaxSafeAmount, 1, spec.MaxSafeAmount},
		{spec.MaxSafeAmount - 5, 1, 10, spec.MaxSafeAmount},
		{0, spec.MaxSafeAmount / 2, 2, spec.MaxSafeAmount - 1},
		{0, spec.MaxSafeAmount/2 + 1, 2, spec.MaxSafeAmount},
		{7, 0, math.MaxInt32, 7},
	} {
		l := engine.Link{Amount: tc.amount, Items: []engine.LinkItem{{ProductID: 1, Quantity: tc.quantity}}}
		total := l.Total(func(int64) *engine.CatalogProduct { return &engine.CatalogProduct{Price: tc.price} })
		assert.Equal(t, tc.want, total, "%+v", tc)
	}
}

// Each product that an earlier link sells in another currency is named, even if two of
// them have the same external id.
func TestEveryProductInAnotherCurrencyIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link(productLink(engine.CatalogProduct{ExternalID: "MUG-1", Name: "Mug", Price: 3990, Currency: "BRL"}))
	mug := engine.CatalogProduct{ExternalID: "MUG-1", Name: "Mug", Price: 990, Currency: "USD"}
	pen := engine.CatalogProduct{ExternalID: "PEN-1", Name: "Pen", Price: 990, Currency: "USD"}
	_, refusal := engine.CreateLink(w.env, productLink(mug, pen, mug), engine.ExistingForLink{
		Product: func(id string) *engine.CatalogProduct {
			if id == "MUG-1" {
				return w.products[1]
			}
			return nil
		},
	})
	require.NotNil(t, refusal)
	require.Len(t, refusal.Fields, 2)
	assert.Equal(t, "products[0].currency", refusal.Fields[0].Field)
	assert.Equal(t, "products[2].currency", refusal.Fields[1].Field)
	assert.Equal(t, spec.CodeInvalid, refusal.Fields[0].Code)
}

// The prefix of a link's public key depends on the environment.
func TestPublicKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Regexp(t, "^pk_test_[a-z0-9]{24}$", w.links.rows[w.link(amountLink(1))].PublicToken)
	w.env.Sandbox = false
	assert.Regexp(t, "^pk_live_[a-z0-9]{24}$", w.links.rows[w.link(amountLink(1))].PublicToken)
}

// A card that is charged or refused at once ends the attempt immediately.
func TestAnAttemptThatEndsImmediately(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]struct{ session, transaction, events string }{
		"pgct_paid":     {"completed", "paid", "transaction.created transaction.paid"},
		"pgct_captured": {"completed", "captured", "transaction.created transaction.paid"},
		"pgct_refused":  {"ready", "refused", "transaction.created"},
		"pgct_3ds":      {"processing", "pending", "transaction.created transaction.three_ds_required"},
		"pgct_ok":       {"processing", "pending", "transaction.created transaction.pending"},
	} {
		w := newWorld(t)
		id := w.ready(w.link(amountLink(4990)), "credit_card")
		pay := func() (engine.Change, *engine.Refusal) {
			s := w.sessions.rows[id]
			return engine.StartPayment(w.env, w.links.rows[s.Slug], s, w.catalog, engine.Payment{Key: "1", Token: token, Installments: 3})
		}
		c, refusal := pay()
		w.do(c, refusal)
		s := w.sessions.rows[id]
		assert.Equal(t, want.session, s.Status, token)
		tx := w.transactions.rows[s.Attempts[0].TransactionID]
		assert.Equal(t, want.transaction, tx.Status, token)
		assert.Equal(t, 3, tx.Installments)
		kinds := make([]string, len(c.Events))
		for i, e := range c.Events {
			kinds[i] = e.Kind
		}
		assert.Equal(t, want.events, strings.Join(kinds, " "), token)
		assert.Equal(t, tx.ID, s.PaymentWith("1"))
		assert.Empty(t, s.PaymentWith("2"))
		assert.Empty(t, s.PaymentWith(""))
		c, refusal = pay()
		require.Nil(t, refusal, "the same key again changes nothing")
		assert.True(t, c.Empty(), token)
	}
	w := newWorld(t)
	id := w.ready(w.link(amountLink(4990)), "credit_card")
	s := w.sessions.rows[id]
	_, refusal := engine.StartPayment(w.env, w.links.rows[s.Slug], s, w.catalog, engine.Payment{Token: "pgct_paid", TokenSpent: true})
	require.NotNil(t, refusal)
	assert.Equal(t, engine.CodeTokenUsed, refusal.Code)
}
