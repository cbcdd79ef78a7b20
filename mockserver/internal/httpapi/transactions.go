package httpapi

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (a *API) createTransaction(rq *request, in *gateway.TransactionParams) (any, *engine.Refusal) {
	n := a.newTransaction(in)
	c, refusal := rq.account.Apply(func(d *store.Data) (engine.Change, *engine.Refusal) {
		return engine.CreateTransaction(d.Env, n, engine.Existing{
			Reference:  d.Transactions.ByRef(n.ExternalRef),
			Customer:   d.Customers.Get(n.BuyerID),
			TokenSpent: d.Spent(n.Token),
		})
	})
	if refusal != nil {
		return nil, refusal
	}
	return a.viewTransaction(c.Transactions[0]), nil
}

func (a *API) newTransaction(in *gateway.TransactionParams) engine.NewTransaction {
	installments := in.Installments
	if installments == 0 && !a.cfg.Dialect.Live(spec.MethodOptional) {
		installments = 1
	}
	n := engine.NewTransaction{
		Transaction: engine.Transaction{
			ExternalRef:  in.ExternalRef,
			Amount:       in.Amount,
			Currency:     string(cmp.Or(in.Currency, gateway.BRL)),
			Method:       string(cmp.Or(in.Method, gateway.Pix)),
			Buyer:        buyerFrom(in.Buyer),
			Installments: installments,
			Products:     productsFrom(in.Products),
			Metadata:     in.Metadata,
			Traceable:    in.Traceable,
			IPAddress:    in.IPAddress,
			NotifyURL:    in.NotifyURL,
		},
		Token:   string(in.Token),
		BuyerID: string(in.Buyer.ID),
	}
	if a.cfg.Dialect.Live(spec.Informations) {
		n.Informations = informationsFrom(in.Informations)
	}
	if n.BuyerID != "" { // name and e-mail are the customer's
		n.Buyer.Name, n.Buyer.Email = "", ""
	}
	return n
}

func (a *API) getTransaction(rq *request) (any, *engine.Refusal) {
	var t *engine.Transaction
	rq.view(func(d *store.Data) { t = read(rq, &d.Transactions) })
	if t == nil {
		return nil, engine.NotFound("transaction")
	}
	rq.w.Header().Set("ETag", etag(&t.Row))
	return a.viewTransaction(t), nil
}

// etag identifies one version of a resource.
func etag(r *engine.Row) string {
	return `"` + strconv.FormatUint(r.Seq, 36) + "-" + strconv.FormatUint(r.Rev, 36) + `"`
}

func (a *API) listTransactions(rq *request) (any, *problem) {
	if a.cfg.Dialect.Live(spec.ListedTransaction) {
		return transactionsAs(viewTransactionItem).byCursor(rq)
	}
	return transactionsAs(a.viewTransaction).byCursor(rq)
}

func transactionsAs[V any](view func(*engine.Transaction) V) listed[engine.Transaction, V] {
	return listed[engine.Transaction, V]{
		table: func(d *store.Data) *store.Table[engine.Transaction] { return &d.Transactions },
		query: transactionQuery,
		view:  view,
	}
}

func transactionQuery(_ *store.Data, q url.Values) store.Query[engine.Transaction] {
	query := cursorQuery[engine.Transaction](q)
	query.In(store.TransactionMethod, list(q, "paymentMethods")...)
	query.In(store.TransactionCurrency, list(q, "currency")...)
	query.In(store.TransactionStatus, list(q, "status")...)
	query.In(store.TransactionDelivery, list(q, "deliveryStatus")...)
	query.In(store.TransactionInstallments, integers(q, "installments")...)
	query.In(store.TransactionTraceable, list(q, "traceable")...)
	query.Is(store.TransactionEmail, strings.ToLower(q.Get("email")))
	query.Since = day(q.Get("dateFrom"), 0)
	query.Until = day(q.Get("dateTo"), 24*time.Hour-1)
	query.Match = transactionFilter(q)
	return query
}

// transactionFilter returns the predicate of the filters without an index, or
// nil if there are none.
func transactionFilter(q url.Values) func(*engine.Transaction) bool {
	ids, name := list(q, "id"), strings.ToLower(q.Get("name"))
	number, phone := q.Get("documentNumber"), q.Get("phone")
	products := list(q, "products")
	if len(ids) == 0 && name == "" && number == "" && phone == "" && len(products) == 0 {
		return nil
	}
	return func(t *engine.Transaction) bool {
		b := t.Buyer
		return (len(ids) == 0 || slices.Contains(ids, t.ID)) &&
			(name == "" || strings.Contains(strings.ToLower(b.Name), name)) &&
			(number == "" || b.Document != nil && b.Document.Number == number) &&
			(phone == "" || b.Phone == phone) &&
			(len(products) == 0 || slices.ContainsFunc(t.Products, func(p engine.Product) bool {
				return slices.Contains(products, p.Name)
			}))
	}
}

// refundBody is the body of a refund. Without an amount, the remaining balance
// is refunded.
type refundBody struct {
	Amount int64  `json:"amount"`
	Reason string `json:"reason"`
}

type refundView struct {
	Message   string `json:"message"`
	Refunded  int64  `json:"amount_refunded"`
	Remaining int64  `json:"remaining_balance"`
	Full      bool   `json:"is_full_refund"`
}

func (a *API) refundTransaction(rq *request, in *refundBody) (any, *engine.Refusal) {
	var before int64
	t, refusal := rq.account.Transaction(rq.param, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		before = t.RefundedAmount
		return engine.Refund(env, t, engine.RefundRequest{Amount: in.Amount, Reason: in.Reason})
	})
	if refusal != nil {
		return nil, refusal
	}
	left := t.PaidAmount - t.RefundedAmount
	return refundView{
		Message:   "The refund was made.",
		Refunded:  t.RefundedAmount - before,
		Remaining: left,
		Full:      left == 0,
	}, nil
}

type statusBody struct {
	Status string `json:"status"`
}

type statusView struct {
	Transaction statusTransaction `json:"transaction"`
}

type statusTransaction struct {
	ID          string  `json:"id"`
	Status      string  `json:"status"`
	Method      string  `json:"method"`
	Amount      int64   `json:"amount"`
	Currency    string  `json:"currency"`
	ExternalRef *string `json:"external_ref"`
}

func (a *API) setTransactionStatus(rq *request, in *statusBody) (any, *engine.Refusal) {
	t, refusal := rq.account.Transaction(rq.param, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		return engine.SetStatus(env, t, in.Status)
	})
	if refusal != nil {
		return nil, refusal
	}
	return statusView{statusTransaction{
		ID: t.ID, Status: t.Status, Method: t.Method, Amount: t.Reported(), Currency: t.Currency,
		ExternalRef: nullable(&t.ExternalRef),
	}}, nil
}

// deliveryBody is the body of a delivery update: an absent member is unchanged,
// null clears it.
type deliveryBody struct {
	Code    string              `json:"tracking_code"`
	Status  string              `json:"delivery_status"`
	URL     gateway.Opt[string] `json:"tracking_url"`
	Company gateway.Opt[string] `json:"tracking_company"`
}

type deliveryView struct {
	Status     string  `json:"status"`
	Code       string  `json:"code"`
	URL        *string `json:"url"`
	Company    *string `json:"company"`
	LastUpdate stamp   `json:"last_update"`
}

func (a *API) updateDelivery(rq *request, in *deliveryBody) (any, *engine.Refusal) {
	wanted := rq.r.Header.Get("If-Match")
	t, refusal := rq.account.Transaction(rq.param, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
		if !matches(wanted, etag(&t.Row)) {
			return engine.Change{}, engine.NewRefusal(engine.CodePreconditionFailed,
				"The transaction has changed since it was read with the ETag in If-Match.")
		}
		return engine.UpdateDelivery(env, t, engine.DeliveryUpdate{
			Code: in.Code, Status: in.Status, URL: textOf(in.URL), Company: textOf(in.Company),
		})
	})
	if refusal != nil {
		return nil, refusal
	}
	rq.w.Header().Set("ETag", etag(&t.Row))
	d := t.Delivery
	return deliveryView{
		Status: d.Status, Code: d.Code, URL: nullable(&d.URL), Company: nullable(&d.Company),
		LastUpdate: stamp(d.LastUpdate),
	}, nil
}

// textOf returns nil for an absent member and a pointer to "" for null.
func textOf(o gateway.Opt[string]) *string {
	if o.IsZero() {
		return nil
	}
	v, _ := o.Get()
	return &v
}

// matches reports whether an If-Match header is empty or names tag.
func matches(header, tag string) bool {
	if header == "" || header == "*" {
		return true
	}
	for one := range strings.SplitSeq(header, ",") {
		if strings.TrimSpace(one) == tag {
			return true
		}
	}
	return false
}
