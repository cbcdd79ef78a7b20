// Package merchant keeps the merchant's side of the gateway in the merchant's own
// database, PostgreSQL or SQLite: charges, refunds, payouts, subscriptions, sales by
// checkout link and the money of each order. A record is stored in your transaction, its
// request survives crashes and is applied at most once, its state is what the gateway last
// showed, and one callback for each business fact commits exactly once.
//
//	m, err := merchant.Open(ctx, database.Postgres(db), merchant.Config{
//		Accounts:      []merchant.Account{{Name: "shop", Client: client, Keys: keys}},
//		SecondPayment: merchant.RefundSecondPayment,
//	}, merchant.Callbacks[*sql.Tx]{Goods: goods, Access: access})
//	if err != nil {
//		return err
//	}
//	go m.Run(ctx) // look at its error
//	mux.Handle("POST /webhooks/gateway", m.Webhook("shop"))
//
// Then charge an order, and show what the buyer needs to pay:
//
//	charge, err := m.Charge(ctx, merchant.ChargeParams{Order: "A17", TransactionParams: params})
//
// With contrib/pgx, transactions and callbacks are those of pgx: merchant.Callbacks[pgx.Tx].
//
// # How it works
//
// The record comes before the request: a charge, refund or payout is stored together with the
// operation that sends it (package operations), so no webhook arrives before its record.
//
// Books are made of readings, never of intentions. The response to a create, a webhook
// and a comparison each cause a reading of the resource, and one function books the
// difference from what is booked. Late, repeated and reordered webhooks are harmless.
//
// A fact, such as "the goods are owed", is a row that is stored once. A second transaction
// calls your callback and marks the fact as delivered. An error in your callback delays
// the callback, not the books. Ship by [Goods] and let members in by [Access] alone: the other
// callbacks are for mails and accounts.
//
// Not to know an outcome is a state, [Unknown], and not an error: an error means that
// nothing was stored, unless it is [ErrMaybeStored].
//
// # Support and books
//
// [Merchant.Find] and [Merchant.Story] say what happened to an order. [Merchant.Problems]
// lists what needs a person, whose decision [Merchant.Resolve] carries out.
// [Merchant.Month] is the statement of an account, [Merchant.CheckMonth] compares it with
// the gateway, and [Merchant.Export] writes its entries.
//
// # Personal data
//
// [Merchant.EraseBuyer] and [Merchant.Erase] erase what is stored of a buyer, and [Keep] says for how
// long it is kept. The books stay.
package merchant
