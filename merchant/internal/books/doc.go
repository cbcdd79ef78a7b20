// Package books decides what the merchant's records and books say after the
// gateway's API returned a resource. It has no database, no network and no clock:
// the caller loads the records under the lock of their order, calls one function,
// and stores what it returns in the same transaction.
//
// # Readings
//
// Books are made of readings, never of intentions. A [Reading] is a resource as the
// gateway's API returned it, whichever source asked for it: the response to a create,
// a webhook that was read back, a comparison, a person. [ApplyTransaction],
// [ApplyTransfer] and [ApplySubscription] take one each. What the merchant asked for,
// and what became of the request, changes states ([ApplyOperation], [ApplyRefund],
// [ApplyPayoutOperation], [ApplySubscriptionOperation]), but no sum.
//
// # Facts
//
// A [Fact] is one row that is never changed or deleted. A fact with an amount is an
// entry: the sums of an order equal those of its entries, in the order's currency. A
// fact with a callback is reported to the merchant once. Each fact has a key that is
// unique among all facts, so a fact that two processes make is stored once.
//
//	paid/<transaction>/<total>            +, when the total that was paid rises
//	fee/<transaction>                     −, once
//	refunded/<transaction>/<total>        −, when the total that went back rises
//	disputed/<transaction>/<n>/<total>    − or +, the n-th change of what is disputed
//	paid_out/<payout>/<n>                 −, a payout exists; +, it was returned
//	adjusted/<note>                       + or −, a correction by a person
//	settled/<order>                       the order is paid in full, for the first time
//	paid_again/<transaction>/<total>/<n>  a payment that the order did not need, after n changes
//	                                      of what is disputed; no n if there were none
//	goods/<order>/<n>                     the goods are owed, or not any more: the n-th change
//	unpaid/<charge>                       a charge ended without payment
//	refund/<refund>                       the transaction shows a refund of the merchant's
//	refund_rejected/<refund>              a refund will not be made
//	returned/<transaction>/<total>        someone else refunded, up to this total
//	payout/<payout>/<state>/<n>           a payout ended, after n entries
//	period/<transaction>                  a charge of a subscription was paid
//	payment_failed/<transaction>          a charge of a subscription was not paid
//	charged_back/<transaction>            a charge of a subscription was charged back
//	past_due/<subscription>/<period end>  and ended/<subscription>
//	access/<subscription>/<n>             what the member may use: the n-th change
//
// # Order of readings
//
// Readings may arrive late, twice and in any order, because several sources read the
// same resource. What was paid and what went back only grows, so the largest report is
// booked. The state is that of the newest reading: by the gateway's updated_at. Two equal
// times say nothing, because a gateway may count seconds or have a clock that has stopped,
// and neither does a missing one. Then the reading that shows more paid or refunded is
// newer, and of a transaction or subscription that ended and one that did not, the one
// that ended. Otherwise it is the one that was made later: its At, when its request was
// sent, is after ReadAt. One that was sent earlier or at once, and is still in flight
// then, is older. Of two different ends of a transfer neither is newer.
//
// So every order of the readings of a possible history ends in the same books. Some marks
// depend on the order, because they say what was reported: Charge.Late, the charge that
// settled the order (the first one that was applied), how often a dispute or a problem was
// reported, and whether a payment was reported as not needed before it was charged back.
//
// An older reading is [Stale] and changes no state. A reading that reports less than
// what is booked never takes anything out of the books. If it is not older and such
// readings continue for a day, the result has a [Problem].
//
// # Problems
//
// A [Problem] is raised once as long as it holds; the record remembers it. When it does not
// hold any more, [Result].Over says so, and the caller closes it: what a person should do
// must fit what is true. It may have been closed by a person before, which changes nothing
// here. If it holds again it is raised again, with a key that has a count. What ends them:
//
//	ambiguous            the outcome is known, it is sent again, or a reading shows the resource
//	underpaid            the rest is paid, a person accepts it, all went back or is withheld,
//	                     or the order needs no more money (the caller calls [Unneeded])
//	overpaid             the excess went back or is withheld, or the order needs none of it
//	paid_again           the charge was refunded in full or is withheld
//	in_protest           the dispute is not contested any more
//	closed               the goods are not owed any more
//	lower                a reading agrees again, or shows the refund
//	unknown_state and contradiction
//	                     a reading that was made later is understood and can be true
//
// The others say what happened, and are closed by a person. Money that the order does not
// need is [PaidAgain], a fact: at its payment and each time that a dispute is won which
// withheld it. What was paid in part while the order needed it is PaidAgain when another
// charge settles the order; after a dispute that was open then, if it is won.
//
// # Goods
//
// Paid, refunded and disputed say what happened to money. Whether to send the goods is one
// fact, made by [Goods] each time that this changes: they are owed if the order was settled,
// money is left, and what is left covers the price, which is fixed at the settlement.
//
//   - What the merchant refunds of the charge that settled the order is a decision: a part of
//     it keeps the goods, and all of it ends them, unless other money pays. What was paid
//     beyond the price ([Order.Excess]) goes back first.
//   - What is disputed must be replaced by other money, until the dispute is won.
//   - Money of another charge counts as long as it is there.
//
// Facts are delivered late: what counts is Order.Owed then, and what the shop heard last.
//
// # Access
//
// A subscription that is active has not paid for its current period, if the newest charge is
// pending or none is listed yet. So what a member may use ([MemberAccess]) follows from the
// charges: each remembers when the period ends that it has paid (Charge.PeriodEnd), and the
// latest one of which money is left counts, or the trial.
//
// The gateway does not say which period a charge is for. A reading shows the current period
// and all charges, so it is derived:
//
//   - Charges are attempts for one period until one is paid. The next one is for the next
//     period, since a paid period is not charged again.
//   - The newest period that was paid is the current one if its first attempt was made after
//     the middle of the period before, which lets a gateway announce a debit. Without a trial
//     the first period begins when it is paid.
//   - A period that was paid earlier ended when the first attempt for the next one was made,
//     at the latest when the current one began. This matters if such a charge is first seen
//     together with later ones. Otherwise it was seen in its own period.
//   - Of the ends that readings show for a charge the latest counts, so the order of readings
//     does not matter.
//
// # Absence
//
// That the gateway does not show something is no proof: lists and reads lag, a firewall
// returns 403 or 404. [Absence] decides what it means, from who said it, how old the thing
// is and how long a gateway may lag.
//
// # Statuses
//
// [ApplyTransaction] knows what a status means from one table (status.go), which tests
// compare with the statuses of the interface and with package webhook. A status that
// is not in the table changes nothing but raises a Problem. So does a reading that
// contradicts itself, such as a refused transaction with a paid amount.
//
// # Amounts
//
// Amounts are in cents, and the sums of an order are in its currency. That is the currency
// of the first charge that was asked for: the caller sets Order.Currency, if it is "", when
// it adds a charge. If it is still "" at the first entry, that one sets it: a payment to
// the currency that its charge asked for, a payout to BRL. So a payout that comes before
// any charge makes the order BRL, and charges in another currency are foreign from then on.
// An entry in another currency than the order's is a fact like any other, but is in no sum,
// and each such entry raises an [IsForeign] problem.
//
// What the buyer paid is paid_amount. If that is 0 in a paid
// transaction, it is base_price or amount, as [gateway.Transaction.Charged] says, and
// Charge.Assumed is set. Only Paid ≥ Requested in the same currency decides whether a
// charge is paid in full: the amount of a transaction may include interest, or be what
// the gateway settles. Requested is what the order wants of the charge now, and Asked what
// its request asked for: what the buyer is asked to pay beyond Asked is interest, and what
// was paid beyond Requested and the interest is too much ([Charge.Excess]).
package books
