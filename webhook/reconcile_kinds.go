package webhook

import "github.com/gateway-go/gateway"

// happenedSince lists the kinds of what must have happened to the resource
// since the records were written, in order.
func happenedSince(open OpenResource, res *resource) []Kind {
	switch {
	case res.transaction != nil:
		return transactionSince(gateway.TransactionStatus(open.Status), res.transaction)
	case res.transfer != nil:
		return transferSince(gateway.TransferStatus(open.Status), res.transfer.Status)
	default:
		return subscriptionSince(open, res.subscription)
	}
}

func transactionSince(was gateway.TransactionStatus, tx *gateway.Transaction) []Kind {
	if tx.Status == was {
		return nil
	}
	var since []Kind
	paidBefore := was.Settled() || was == gateway.TransactionPartiallyRefunded
	if !paidBefore && paidVerdict(tx) == confirmed {
		since = append(since, TransactionPaid)
	}
	switch tx.Status {
	case gateway.TransactionPaid, gateway.TransactionCaptured, gateway.TransactionPending:
		return since
	case gateway.TransactionThreeDSRequired:
		return append(since, TransactionThreeDSRequired)
	case gateway.TransactionPartiallyRefunded, gateway.TransactionRefunded:
		return append(since, TransactionRefunded)
	case gateway.TransactionChargedback:
		return append(since, TransactionChargedback)
	case gateway.TransactionCanceled:
		return append(since, TransactionCancelled)
	case gateway.TransactionExpired:
		return append(since, TransactionExpired)
	case gateway.TransactionRefused:
		return append(since, TransactionRefused)
	default: // a state without a kind: tell it by its own name
		return append(since, Kind("transaction."+string(tx.Status)))
	}
}

func transferSince(was, is gateway.TransferStatus) []Kind {
	if was == is {
		return nil
	}
	switch is {
	case gateway.TransferInAnalysis:
		return []Kind{PayoutInAnalysis}
	case gateway.TransferProcessing:
		return []Kind{PayoutProcessing}
	case gateway.TransferPaid:
		return []Kind{PayoutTransferred}
	case gateway.TransferError:
		return []Kind{PayoutFailed}
	case gateway.TransferRejected:
		return []Kind{PayoutRejected}
	case gateway.TransferCancelled:
		return []Kind{PayoutCanceled}
	case gateway.TransferPending:
		return nil
	default:
		return []Kind{Kind("payout." + string(is))}
	}
}

func subscriptionSince(open OpenResource, sub *gateway.Subscription) []Kind {
	was := gateway.SubscriptionStatus(open.Status)
	var since []Kind
	begun := was != "" && was != gateway.SubscriptionIncomplete && was != gateway.SubscriptionTrialing
	if !begun && startedVerdict(sub) == confirmed {
		since = append(since, SubscriptionStarted)
	}
	recovered := was == gateway.SubscriptionPastDue && sub.Status == gateway.SubscriptionActive
	later := !open.PeriodEnd.IsZero() && sub.CurrentPeriodEnd.After(open.PeriodEnd)
	if (begun && (recovered || later)) && renewed(sub) {
		since = append(since, SubscriptionRenewed)
	}
	if sub.Status == was {
		return since
	}
	switch sub.Status {
	case gateway.SubscriptionPastDue:
		return append(since, SubscriptionPastDue)
	case gateway.SubscriptionCanceled:
		return append(since, SubscriptionCanceled)
	case gateway.SubscriptionTrialing, gateway.SubscriptionCancelScheduled:
		return append(since, SubscriptionUpdated)
	default:
		return since
	}
}
