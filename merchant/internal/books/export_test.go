package books

import "github.com/gateway-go/gateway"

// TransactionStatuses returns the statuses in the table of transactions.
func TransactionStatuses() (list []string) {
	for _, row := range transactionStages {
		list = append(list, string(row.status))
	}
	return list
}

// TransferStatuses returns the statuses in the table of transfers.
func TransferStatuses() (list []string) {
	for _, row := range transferRows {
		list = append(list, string(row.status))
	}
	return list
}

// SubscriptionStatuses returns the statuses of a subscription that are known.
func SubscriptionStatuses() (list []string) {
	for _, s := range subscriptionStatuses {
		list = append(list, string(s))
	}
	return list
}

// Stage returns the position of the status in the life of a transaction.
func Stage(s string) int { return int(stageOf(gateway.TransactionStatus(s))) }
