package control

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

var table = []Control{ //nolint:gochecknoglobals // never changes
	transaction("transactions/pay", "Pay", "The payer pays.", engine.Pay),
	transaction("transactions/challenge/pass", "Pass 3-D Secure", "The payer passes the challenge.", engine.PassChallenge),
	dangerous(transaction("transactions/challenge/fail", "Fail 3-D Secure", "The payer fails the challenge.", engine.FailChallenge)),
	transaction("transactions/expire", "Expire", "It expires now.", engine.Expire),
	dangerous(transaction("transactions/refuse", "Refuse", "The issuer refuses the card.", engine.Refuse)),
	dangerous(transaction("transactions/cancel", "Cancel", "It is canceled.", engine.Cancel)),
	dangerous(transaction("transactions/chargeback", "Charge back", "The payer's bank takes the payment back.", engine.Chargeback)),
	dangerous(transaction("transactions/dispute/open", "Open dispute", "The payer's bank asks for the money back (MED).", engine.OpenDispute)),
	transaction("transactions/dispute/contest", "Contest dispute", "The merchant contests the dispute.", engine.ContestDispute),
	transaction("transactions/dispute/win", "Win dispute", "The dispute is decided for the merchant.", engine.WinDispute),
	dangerous(transaction("transactions/dispute/lose", "Lose dispute", "The dispute is decided for the payer.", engine.LoseDispute)),
	{
		Name: "transactions/settle-for", Label: "Settle for another amount", Hint: "The gateway reports this as the amount; 0 undoes it.",
		Number: Number{Member: "amount", Label: "Amount in the smallest unit"},
		run: func(a *store.Account, id string, cents int64) *engine.Refusal {
			_, refusal := a.Transaction(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
				return engine.SettleFor(env, t, cents)
			})
			return refusal
		},
	},

	transfer("transfers/analyse", "Analyse", "The transfer goes to a risk check.", engine.AnalyseTransfer),
	transfer("transfers/process", "Process", "The bank accepts the transfer.", engine.ProcessTransfer),
	transfer("transfers/settle", "Settle", "The money reaches its receiver.", engine.SettleTransfer),
	dangerous(transfer("transfers/fail", "Fail", "The bank rejects the transfer.", engine.FailTransfer)),

	subscription("subscriptions/authorize", "Authorize", "The payer authorizes the Pix Automatico.", engine.AuthorizeSubscription),
	dangerous(subscription("subscriptions/cancel-debit", "Cancel next debit", "The payer cancels the next debit of the Pix Automatico.", engine.CancelDebit)),
	{
		Name: "subscriptions/fail-next", Label: "Fail next charges", Hint: "The next charges fail; 0 undoes it.",
		Number: Number{Member: "count", Label: "Charges", Default: 1},
		run: func(a *store.Account, id string, count int64) *engine.Refusal {
			_, refusal := a.Subscription(id, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
				return engine.FailNextCharges(env, s, int(max(count, 0)))
			})
			return refusal
		},
	},
	dangerous(subscription("subscriptions/reject", "Reject", "The payer rejects the Pix Automatico.", engine.RejectSubscription)),
	dangerous(subscription("subscriptions/revoke", "Revoke", "The payer revokes the Pix Automatico.", engine.RevokeSubscription)),

	link("checkout/begin", "Begin payment", "The buyer asks for the Pix code or sends the card.", begin),
	link("checkout/pay", "Pay", "The buyer pays.", pay),
	dangerous(link("checkout/expire", "Expire", "The link expires now.", expire)),
	dangerous(link("checkout/deactivate", "Deactivate", "The merchant takes the link off sale.", deactivate)),
}

// dangerous marks a control that can't be undone.
func dangerous(c Control) Control {
	c.Danger = true
	return c
}

func transaction(name, label, hint string, do store.Transition[engine.Transaction]) Control {
	return Control{Name: name, Label: label, Hint: hint, run: func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Transaction(id, do)
		return refusal
	}}
}

func transfer(name, label, hint string, do store.Transition[engine.Transfer]) Control {
	return Control{Name: name, Label: label, Hint: hint, run: func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Transfer(id, do)
		return refusal
	}}
}

func subscription(name, label, hint string, do store.Transition[engine.Subscription]) Control {
	return Control{Name: name, Label: label, Hint: hint, run: func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Subscription(id, do)
		return refusal
	}}
}

func link(name, label, hint string, do func(*store.Data, *engine.Link) (engine.Change, *engine.Refusal)) Control {
	return Control{Name: name, Label: label, Hint: hint, run: func(a *store.Account, slug string, _ int64) *engine.Refusal {
		_, refusal := a.Link(slug, do)
		return refusal
	}}
}

func expire(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
	return engine.ExpireLink(d.Env, l, d.SessionsOf(l))
}

func deactivate(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
	return engine.DeactivateLink(d.Env, l, d.SessionsOf(l))
}

// begin starts the payment of the link's newest ready session.
func begin(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
	for _, s := range d.SessionsOf(l) {
		if engine.Ready(s) {
			return engine.StartPayment(d.Env, l, s, d.Catalog(), engine.Payment{})
		}
	}
	return engine.Change{}, notReady()
}

// pay completes the link's newest session that is ready or whose payment has started.
func pay(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
	for _, s := range d.SessionsOf(l) {
		if engine.Ready(s) || engine.Processing(s) {
			c, refusal := engine.PayCheckout(d.Env, l, s, d.Transactions.Get(s.TransactionID), d.Catalog())
			return d.Exhaust(c), refusal
		}
	}
	return engine.Change{}, notReady()
}

func notReady() *engine.Refusal {
	return engine.NewRefusal(engine.CodeInvalidState,
		"No session of this checkout link is ready: open one with GET /v2/checkout/{slug} and set the buyer's name and e-mail and the "+
			"payment method with PATCH /v2/checkout/{slug}/session, or pay on the link's page.")
}
