package mockserver

// Checkout simulates the buyers of checkout links: those of one account or, as
// a field of [Server], of every account. A link is identified by its slug, the
// end of its URL. A method that the state of the link or session does not allow
// changes nothing and returns a [ControlError].
type Checkout struct{ scope scope }

// Begin simulates a buyer who requests the Pix code or submits the card: it
// creates a pending transaction for the link's newest ready session. The
// transaction is listed like any other, and [Transactions] acts on it.
func (c Checkout) Begin(slug string) error {
	return c.scope.do("checkout/begin", slug, 0)
}

// Pay simulates a buyer who pays: it completes the link's newest session that
// is ready (buyer and payment method are set) or whose payment has started.
func (c Checkout) Pay(slug string) error {
	return c.scope.do("checkout/pay", slug, 0)
}

// Expire expires an active link, and every session of it that is waiting for
// its buyer.
func (c Checkout) Expire(slug string) error {
	return c.scope.do("checkout/expire", slug, 0)
}

// Deactivate deactivates an active link, as a merchant can in the gateway's
// dashboard.
func (c Checkout) Deactivate(slug string) error {
	return c.scope.do("checkout/deactivate", slug, 0)
}
