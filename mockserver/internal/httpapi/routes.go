package httpapi

import (
	"slices"

	"github.com/gateway-go/gateway/internal/rules"
)

// routes lists every operation, a group for each resource.
func (a *API) routes() []route {
	return slices.Concat(
		a.transactionRoutes(),
		a.customerRoutes(),
		a.transferRoutes(),
		a.subscriptionRoutes(),
		a.checkoutRoutes(),
		a.legacyRoutes(),
	)
}

func (a *API) transactionRoutes() []route {
	coded := []int{409}
	return []route{
		{
			Operation: rules.Transactions.Create, status: 201, livePlain: coded,
			do: withBody(a.createTransaction),
		},
		{
			Operation: rules.Transactions.List, status: 200, list: true,
			do: withQuery(a.listTransactions),
		},
		{
			Operation: rules.Transactions.Get, status: 200,
			do: plainly(a.getTransaction),
		},
		{
			Operation: rules.Transactions.SetSandboxStatus, status: 200, livePlain: coded,
			sandboxOnly: true,
			do:          withBody(a.setTransactionStatus),
		},
		{
			Operation: rules.Transactions.Refund, status: 200,
			do: withOptionalBody(a.refundTransaction),
		},
		{
			Operation: rules.Transactions.UpdateDelivery, status: 200,
			liveJSON: true,
			do:       withBody(a.updateDelivery),
		},
	}
}
