package mockserver

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Checkout simulates the buyers of checkout links: those of one account or, as
// a field of [Server], of every account. A link is identified by its slug, the
// end of its URL. A method that the state of the link or session does not allow
// changes nothing and returns a [ControlError].
type Checkout struct{ scope scope }

// Begin simulates a buyer who requests the Pix code or submits the card: it
// creates a pending transaction for the link's newest ready session. The
// transaction is listed like any other, and [Transactions] acts on it.
func (c Checkout) Begin(slug string) error {
	return c.do("checkout/begin", slug, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		for _, s := range d.SessionsOf(l) {
			if engine.Ready(s) {
				return engine.StartPayment(d.Env, l, s, d.Catalog(), engine.Payment{})
			}
		}
		return engine.Change{}, notReady()
	})
}

// Pay simulates a buyer who pays: it completes the link's newest session that
// is ready (buyer and payment method are set) or whose payment has started.
func (c Checkout) Pay(slug string) error {
	return c.do("checkout/pay", slug, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		for _, s := range d.SessionsOf(l) {
			if engine.Ready(s) || engine.Processing(s) {
				c, refusal := engine.PayCheckout(d.Env, l, s, d.Transactions.Get(s.TransactionID), d.Catalog())
				return d.Exhaust(c), refusal
			}
		}
		return engine.Change{}, notReady()
	})
}

func notReady() *engine.Refusal {
	return engine.NewRefusal(engine.CodeInvalidState,
		"No session of this checkout link is ready: open one with GET /v2/checkout/{slug} and set the buyer's name and e-mail and the "+
			"payment method with PATCH /v2/checkout/{slug}/session, or pay on the link's page.")
}

// Expire expires an active link, and every session of it that is waiting for
// its buyer.
func (c Checkout) Expire(slug string) error {
	return c.do("checkout/expire", slug, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		return engine.ExpireLink(d.Env, l, d.SessionsOf(l))
	})
}

// Deactivate deactivates an active link, as a merchant can in the gateway's
// dashboard.
func (c Checkout) Deactivate(slug string) error {
	return c.do("checkout/deactivate", slug, func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
		return engine.DeactivateLink(d.Env, l, d.SessionsOf(l))
	})
}

func (c Checkout) do(
	control, slug string, transition func(*store.Data, *engine.Link) (engine.Change, *engine.Refusal),
) error {
	a := c.scope.with(control, func(d *store.Data) bool { return d.Links.Get(slug) != nil })
	_, refusal := a.Link(slug, transition)
	return controlError(refusal)
}
