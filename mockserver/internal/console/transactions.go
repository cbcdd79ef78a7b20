package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func transactionList() listing {
	return listing{
		section: "transactions", title: "Transactions", path: "/v2/transactions", operation: "transactions_list",
		columns: []string{"Created", "State", "Amount", "Method", "Reference", "Buyer", "Id"},
		first:   []string{"status", "paymentMethods", "email", "id", "dateFrom", "dateTo"},
		row: func(rq *request, t map[string]any) row {
			return row{rq.to("transactions", str(t, "id")), []cell{
				moment(t, "created_at"),
				{str(t, "status"), "state"},
				{money(t, "amount", str(t, "currency")), "money"},
				{str(t, "method"), ""},
				{str(t, "external_ref"), "text"},
				{str(t, "buyer", "email"), "text"},
				{str(t, "id"), "id"},
			}}
		},
	}
}

func (rq *request) transaction() (*view, error) {
	id := rq.args[0]
	var t *engine.Transaction
	rq.cfg.Store.Account(rq.key).View(func(d *store.Data) { t = d.Transactions.Get(id) })
	if t == nil {
		return nil, notFound()
	}
	path := "/v2/transactions/" + url.PathEscape(id)
	state := t.Status
	if state == string(gateway.TransactionThreeDSRequired) {
		state = string(gateway.TransactionPending) // the live dialect's name for a pending one with a challenge
	}
	drawn := newDiagram("Transactions", state)
	data := &resourceData{
		Kind: "Transaction", ID: id, State: t.Status, Facts: rq.transactionFacts(t), Diagram: &drawn,
		Actions: rq.controls("transactions", id), Requests: rq.transactionRequests(t),
		Code: cmp.Or(picture("Pix code", t.QRCode()), barcode(t.Voucher)), JSON: rq.documents(path), Curl: rq.curl("GET", path, ""),
		Timeline: rq.timeline(id, []*occurrence{{At: t.CreatedAt, Kind: "state", Text: "created"}},
			[]*occurrence{{At: t.UpdatedAt, Kind: "state", Text: "became " + t.Status}, rq.deadline(t)}),
	}
	return &view{Title: "Transaction " + id, Section: "/transactions", Template: "resource", Data: data}, nil
}

// deadline is when a waiting transaction expires.
func (*request) deadline(t *engine.Transaction) *occurrence {
	if t.Status != string(gateway.TransactionPending) && t.Status != string(gateway.TransactionThreeDSRequired) {
		return &occurrence{}
	}
	switch {
	case t.NextAction != nil:
		return &occurrence{At: t.NextAction.ExpiresAt, Kind: "timer", Text: "the 3-D Secure challenge expires"}
	case t.Pix != nil:
		return &occurrence{At: t.Pix.ExpirationDate, Kind: "timer", Text: "the Pix expires"}
	case t.Voucher != nil:
		return &occurrence{At: t.Voucher.ExpirationDate, Kind: "timer", Text: "the voucher expires"}
	default:
		return &occurrence{}
	}
}

func (rq *request) transactionFacts(t *engine.Transaction) []fact {
	amount := func(label string, n int64) fact {
		return fact{Label: label, Cell: cell{gateway.FormatAmount(n, gateway.Currency(t.Currency)), "money"}}
	}
	list := []fact{
		amount("Amount", t.Amount), amount("Paid", t.PaidAmount), amount("Refunded", t.RefundedAmount), amount("Fee", t.FeeAmount),
		{Label: "Method", Cell: cell{t.Method, ""}},
		{Label: "Reference", Cell: cell{t.ExternalRef, "text"}},
		{Label: "Buyer", Cell: cell{t.Buyer.Name, "text"}},
		{Label: "E-mail", Cell: cell{t.Buyer.Email, "text"}},
		{Label: "Installments", Cell: cell{strconv.Itoa(t.Installments), ""}},
		{Label: "notify_url", Cell: cell{t.NotifyURL, "text"}},
		timeFact("Created", t.CreatedAt), timeFact("Paid at", t.PaidAt), timeFact("Updated", t.UpdatedAt),
	}
	if t.Card != nil {
		list = append(list, fact{Label: "Card", Cell: cell{"···· " + t.Card.Last4, ""}})
	}
	for _, i := range t.Informations {
		list = append(list, fact{Label: i.Key, Cell: cell{i.Value, "text"}})
	}
	if t.SubscriptionID != "" {
		list = append(list, fact{Label: "Subscription", Cell: cell{t.SubscriptionID, "id"}, Link: rq.to("subscriptions", t.SubscriptionID)})
	}
	for _, p := range t.Products {
		list = append(list, productFact(p, t.Currency))
	}
	return facts(list...)
}

// transactionRequests are the merchant's requests that the state allows.
func (rq *request) transactionRequests(t *engine.Transaction) (list []action) {
	may := func(do store.Transition[engine.Transaction]) bool {
		return allowed(rq, (*store.Account).Transaction, t.ID, do)
	}
	const refund = "PUT /v2/transactions/{id}/refund"
	reason := field{Name: "s.reason", Label: "Reason", Type: "text"}
	if may(func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, t, engine.RefundRequest{})
	}) {
		list = append(list, action{Call: refund, IDs: []string{t.ID}, Label: "Refund the rest", Fields: []field{reason}, Danger: true})
	}
	if t.PaidAmount-t.RefundedAmount > 1 && may(func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.Refund(env, t, engine.RefundRequest{Amount: 1})
	}) {
		list = append(list, action{Call: refund, IDs: []string{t.ID}, Label: "Refund a part", Danger: true, Fields: []field{
			{Name: "n.amount", Label: "Amount in the smallest unit", Type: "number", Min: "1", Required: true}, reason,
		}})
	}
	if rq.cfg.Sandbox {
		status := spec.Describe(spec.Transactions.SetSandboxStatus.Rule, spec.Variant{Dialect: rq.cfg.Dialect}).Member("status")
		list = append(list, action{
			Call: "PUT /v2/transactions/{id}", IDs: []string{t.ID}, Label: "Set the state",
			Hint:   "The sandbox can set any state, with its webhook.",
			Fields: []field{{Name: "s.status", Label: "State", Type: "select", Options: status.Enum, Value: t.Status}},
		})
	}
	if t.Legacy != nil {
		list = append(list, action{
			Call: "POST " + admin.Prefix + "/legacy/payments/{id}/status", IDs: []string{t.ID}, Label: "Set the v1 state",
			Fields: []field{{Name: "s.status", Label: "State", Type: "select", Options: slices.Collect(spec.LegacyStatuses.All()), Value: t.LegacyStatus()}},
		})
	}
	return list
}
