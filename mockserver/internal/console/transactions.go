package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

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
	rq.core.Store.Account(rq.key).View(func(d *store.Data) { t = d.Transactions.Get(id) })
	if t == nil {
		return nil, notFound()
	}
	path := "/v2/transactions/" + url.PathEscape(id)
	state := t.Status
	if state == string(gateway.TransactionThreeDSRequired) || state == string(gateway.TransactionWaitingPayment) {
		state = string(gateway.TransactionPending) // live gateways' names for a pending one
	}
	drawn := newDiagram("Transactions", state)
	data := &resourceData{
		Kind: "Transaction", ID: id, State: t.Status, Facts: rq.transactionFacts(t), Diagram: &drawn,
		Actions: rq.controls("transactions", id), Requests: rq.transactionRequests(t),
		Code: cmp.Or(picture("Pix code", t.QRCode()), barcode(t.Voucher)), JSON: rq.documents(path), Curl: rq.curl("GET", path, ""),
		Headline: headline{Name: cmp.Or(t.ExternalRef, short(id)), Money: rq.moneyOf(t)},
	}
	if data.Code != nil {
		data.Code.Open = tone(t.Status) == "open"
	}
	data.Timeline, data.Headline.Told = rq.story(subject{
		id: id, create: "/v2/transactions", reference: t.ExternalRef, currency: t.Currency, state: t.Status, created: t.CreatedAt, paid: t.PaidAt, updated: t.UpdatedAt, future: []*episode{rq.deadline(t)},
	})
	return &view{Title: "Transaction " + id, Section: "/transactions", Template: "resource", Data: data}, nil
}

// moneyOf says in words where the money of a transaction is.
func (rq *request) moneyOf(t *engine.Transaction) string {
	amount := func(n int64) string { return gateway.FormatAmount(n, gateway.Currency(t.Currency)) }
	left := t.PaidAmount - t.RefundedAmount
	switch gateway.TransactionStatus(t.Status) {
	case gateway.TransactionPending, gateway.TransactionThreeDSRequired, gateway.TransactionWaitingPayment:
		text := amount(t.Amount) + " to be paid"
		if due := rq.deadline(t).At; !due.IsZero() {
			text += ", expires " + relative(rq.core.Clock.Now(), due)
		}
		return text
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		return amount(t.PaidAmount) + " paid"
	case gateway.TransactionPartiallyRefunded:
		_, whole, _ := strings.Cut(amount(t.PaidAmount), " ")
		return amount(left) + " of " + cmp.Or(whole, amount(t.PaidAmount)) + " left"
	case gateway.TransactionRefunded:
		return amount(t.RefundedAmount) + " refunded, nothing left"
	case gateway.TransactionChargedback:
		return amount(t.PaidAmount) + " charged back, nothing left"
	default: // see below
	}
	if t.PaidAt.IsZero() {
		return amount(t.Amount) + ", never paid"
	}
	return amount(left) + " in dispute"
}

// deadline is when a waiting transaction expires.
func (*request) deadline(t *engine.Transaction) *episode {
	switch gateway.TransactionStatus(t.Status) {
	case gateway.TransactionPending, gateway.TransactionThreeDSRequired, gateway.TransactionWaitingPayment:
	default:
		return &episode{}
	}
	switch {
	case t.NextAction != nil:
		return &episode{At: t.NextAction.ExpiresAt, Kind: "timer", Text: "The 3-D Secure challenge expires"}
	case t.Pix != nil:
		return &episode{At: t.Pix.ExpirationDate, Kind: "timer", Text: "The Pix expires"}
	case t.Voucher != nil:
		return &episode{At: t.Voucher.ExpirationDate, Kind: "timer", Text: "The voucher expires"}
	default:
		return &episode{}
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
		{Label: "notify_url", Cell: cell{t.NotifyURL, "text"}},
		timeFact("Created", t.CreatedAt), timeFact("Paid at", t.PaidAt), timeFact("Updated", t.UpdatedAt),
	}
	if t.SettledAmount != 0 {
		list = append(list, amount("Reported amount", t.SettledAmount))
	}
	if t.Installments > 0 {
		list = append(list, fact{Label: "Installments", Cell: cell{strconv.Itoa(t.Installments), ""}})
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
	refundable := func(amount int64) bool {
		return may(func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.Refund(env, t, engine.RefundRequest{Amount: amount})
		})
	}
	if refundable(0) {
		a := action{Call: refund, IDs: []string{t.ID}, Label: "Refund", Danger: true, Hint: "Gives the buyer the money back."}
		if left := t.PaidAmount - t.RefundedAmount; left > 1 && refundable(1) {
			a.Fields = append(a.Fields, field{
				Name: asNumber + "amount", Label: "Cents; empty for all that is left", Type: "number", Min: "1", Max: strconv.FormatInt(left, 10),
				Placeholder: strconv.FormatInt(left, 10),
			})
		}
		a.Fields = append(a.Fields, field{Name: asText + "reason", Label: "Reason", Type: "text"})
		list = append(list, a)
	}
	if !rq.core.Production {
		status := spec.Describe(spec.Transactions.SetSandboxStatus.Rule, spec.Variant{Dialect: rq.core.Dialect}).Member("status")
		list = append(list, action{
			Call: "PUT /v2/transactions/{id}", IDs: []string{t.ID}, Label: "Set the state",
			Hint:   "The sandbox can set any state, with its webhook.",
			Fields: []field{{Name: asText + "status", Label: "State", Type: "select", Options: status.Enum, Value: t.Status}},
		})
	}
	if t.Legacy != nil {
		list = append(list, action{
			Call: "POST " + admin.Prefix + "/legacy/payments/{id}/status", IDs: []string{t.ID}, Label: "Set the v1 state",
			Fields: []field{{Name: asText + "status", Label: "State", Type: "select", Options: slices.Collect(spec.LegacyStatuses.All()), Value: t.LegacyStatus()}},
		})
	}
	return list
}
