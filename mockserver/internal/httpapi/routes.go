package httpapi

import (
	"slices"

	"github.com/gateway-go/gateway/internal/spec"
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
			Operation: spec.Transactions.Create, status: 201, livePlain: coded,
			do: withBody(a.createTransaction),
		},
		{
			Operation: spec.Transactions.List, status: 200, list: true,
			do: a.listTransactions,
		},
		{
			Operation: spec.Transactions.Get, status: 200,
			do: plainly(a.getTransaction),
		},
		{
			Operation: spec.Transactions.SetSandboxStatus, status: 200, livePlain: coded,
			sandboxOnly: true,
			do:          withBody(a.setTransactionStatus),
		},
		{
			Operation: spec.Transactions.Refund, status: 200,
			do: withOptionalBody(a.refundTransaction),
		},
		{
			Operation: spec.Transactions.UpdateDelivery, status: 200,
			liveJSON: true,
			do:       withBody(a.updateDelivery),
		},
	}
}
