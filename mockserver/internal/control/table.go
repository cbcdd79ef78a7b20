package control

import (
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

var table = []Control{ //nolint:gochecknoglobals // never changes
	{
		Name: "transactions/pay", Label: "Pay", Hint: "The payer pays.",
		run: transaction(engine.Pay),
	},
	{
		Name: "transactions/challenge/pass", Label: "Pass 3-D Secure", Hint: "The payer passes the challenge.",
		run: transaction(engine.PassChallenge),
	},
	{
		Name: "transactions/challenge/fail", Label: "Fail 3-D Secure", Hint: "The payer fails the challenge.", Danger: true,
		run: transaction(engine.FailChallenge),
	},
	{
		Name: "transactions/expire", Label: "Expire", Hint: "It expires now.",
		run: transaction(engine.Expire),
	},
	{
		Name: "transactions/refuse", Label: "Refuse", Hint: "The issuer refuses the card.", Danger: true,
		run: transaction(engine.Refuse),
	},
	{
		Name: "transactions/cancel", Label: "Cancel", Hint: "It is canceled.", Danger: true,
		run: transaction(engine.Cancel),
	},
	{
		Name: "transactions/chargeback", Label: "Charge back", Hint: "The payer's bank takes the payment back.", Danger: true,
		run: transaction(engine.Chargeback),
	},
	{
		Name: "transactions/dispute/open", Label: "Open dispute", Hint: "The payer's bank asks for the money back (MED).", Danger: true,
		run: transaction(engine.OpenDispute),
	},
	{
		Name: "transactions/dispute/contest", Label: "Contest dispute", Hint: "The merchant contests the dispute.",
		run: transaction(engine.ContestDispute),
	},
	{
		Name: "transactions/dispute/win", Label: "Win dispute", Hint: "The dispute is decided for the merchant.",
		run: transaction(engine.WinDispute),
	},
	{
		Name: "transactions/dispute/lose", Label: "Lose dispute", Hint: "The dispute is decided for the payer.", Danger: true,
		run: transaction(engine.LoseDispute),
	},
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

	{
		Name: "transfers/analyse", Label: "Analyse", Hint: "The transfer goes to a risk check.",
		run: transfer(engine.AnalyseTransfer),
	},
	{
		Name: "transfers/process", Label: "Process", Hint: "The bank accepts the transfer.",
		run: transfer(engine.ProcessTransfer),
	},
	{
		Name: "transfers/settle", Label: "Settle", Hint: "The money reaches its receiver.",
		run: transfer(engine.SettleTransfer),
	},
	{
		Name: "transfers/fail", Label: "Fail", Hint: "The bank rejects the transfer.", Danger: true,
		run: transfer(engine.FailTransfer),
	},

	{
		Name: "subscriptions/authorize", Label: "Authorize", Hint: "The payer authorizes the Pix Automatico.",
		run: subscription(engine.AuthorizeSubscription),
	},
	{
		Name: "subscriptions/cancel-debit", Label: "Cancel next debit", Hint: "The payer cancels the next debit of the Pix Automatico.", Danger: true,
		run: subscription(engine.CancelDebit),
	},
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
	{
		Name: "subscriptions/reject", Label: "Reject", Hint: "The payer rejects the Pix Automatico.", Danger: true,
		run: subscription(engine.RejectSubscription),
	},
	{
		Name: "subscriptions/revoke", Label: "Revoke", Hint: "The payer revokes the Pix Automatico.", Danger: true,
		run: subscription(engine.RevokeSubscription),
	},

	{
		Name: "checkout/begin", Label: "Begin payment", Hint: "The buyer asks for the Pix code or sends the card.",
		run: link(begin),
	},
	{
		Name: "checkout/pay", Label: "Pay", Hint: "The buyer pays.",
		run: link(pay),
	},
	{
		Name: "checkout/expire", Label: "Expire", Hint: "The link expires now.", Danger: true,
		run: link(func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
			return engine.ExpireLink(d.Env, l, d.SessionsOf(l))
		}),
	},
	{
		Name: "checkout/deactivate", Label: "Deactivate", Hint: "The merchant takes the link off sale.", Danger: true,
		run: link(func(d *store.Data, l *engine.Link) (engine.Change, *engine.Refusal) {
			return engine.DeactivateLink(d.Env, l, d.SessionsOf(l))
		}),
	},
}

type runner = func(a *store.Account, id string, number int64) *engine.Refusal

func transaction(do store.Transition[engine.Transaction]) runner {
	return func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Transaction(id, do)
		return refusal
	}
}

func transfer(do store.Transition[engine.Transfer]) runner {
	return func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Transfer(id, do)
		return refusal
	}
}

func subscription(do store.Transition[engine.Subscription]) runner {
	return func(a *store.Account, id string, _ int64) *engine.Refusal {
		_, refusal := a.Subscription(id, do)
		return refusal
	}
}

func link(do func(*store.Data, *engine.Link) (engine.Change, *engine.Refusal)) runner {
	return func(a *store.Account, slug string, _ int64) *engine.Refusal {
		_, refusal := a.Link(slug, do)
		return refusal
	}
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
