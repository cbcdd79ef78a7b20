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
			op: "transactions.create", method: "POST", path: "/v2/transactions", status: 201, livePlain: coded,
			do: withBody(rules.Transaction, a.createTransaction),
		},
		{
			op: "transactions.list", method: "GET", path: "/v2/transactions", status: 200, list: true,
			do: withQuery(rules.TransactionList, a.listTransactions),
		},
		{
			op: "transactions.get", method: "GET", path: "/v2/transactions/{id}", status: 200,
			do: plainly(a.getTransaction),
		},
		{
			op: "transactions.set_sandbox_status", method: "PUT", path: "/v2/transactions/{id}", status: 200, livePlain: coded,
			sandboxOnly: true,
			do:          withBody(rules.SandboxStatus, a.setTransactionStatus),
		},
		{
			op: "transactions.refund", method: "PUT", path: "/v2/transactions/{id}/refund", status: 200,
			do: withOptionalBody(rules.Refund, a.refundTransaction),
		},
		{
			op: "transactions.update_delivery", method: "PUT", path: "/v2/transactions/{id}/delivery", status: 200,
			liveJSON: true,
			do:       withBody(rules.Delivery, a.updateDelivery),
		},
	}
}
