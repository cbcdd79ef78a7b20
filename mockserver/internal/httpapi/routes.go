package httpapi

import (
	"slices"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
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
			do: withBody(a.createTransaction), data: transactionView{}, refusals: []string{
				engine.CodeDuplicateReference, engine.CodeNotFound, engine.CodeTokenUsed, engine.CodeTokenExpired,
			},
		},
		{
			Operation: spec.Transactions.List, status: 200,
			do: a.listTransactions, data: transactionView{}, live: transactionItem{},
		},
		{
			Operation: spec.Transactions.Get, status: 200,
			do: plainly(a.getTransaction), data: transactionView{}, refusals: []string{engine.CodeNotFound},
		},
		{
			Operation: spec.Transactions.SetSandboxStatus, status: 200, livePlain: coded,
			sandboxOnly: true, do: withBody(a.setTransactionStatus), data: statusView{},
			refusals: []string{engine.CodeNotFound, engine.CodeForbidden, engine.CodeInvalidState},
		},
		{
			Operation: spec.Transactions.Refund, status: 200,
			do: withBody(a.refundTransaction), data: refundView{}, refusals: []string{engine.CodeNotFound, engine.CodeNotRefundable}, optional: true,
		},
		{
			Operation: spec.Transactions.UpdateDelivery, status: 200,
			liveJSON: true, do: withBody(a.updateDelivery), data: deliveryView{},
			refusals: []string{engine.CodeNotFound, engine.CodeDeliveryState, engine.CodePreconditionFailed},
		},
	}
}
