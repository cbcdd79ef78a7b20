package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Subscriptions, transfers, customers and checkout links.

func subscriptionList() listing {
	return listing{
		section: "subscriptions", title: "Subscriptions", path: "/v2/subscriptions", operation: "subscriptions_list",
		columns: []string{"Created", "State", "Amount", "Every", "Method", "Period ends", "Customer", "Id"},
		first:   []string{"status", "customer_email", "created_after", "created_before"},
		row: func(rq *request, s map[string]any) row {
			count, _ := s["intervalCount"].(float64)
			return row{rq.to("subscriptions", str(s, "id")), []cell{
				moment(s, "createdAt"),
				{str(s, "status"), "state"},
				{money(s, "amount", str(s, "currency")), "money"},
				{strconv.Itoa(int(count)) + " " + str(s, "interval"), ""},
				{str(s, "paymentMethod"), ""},
				moment(s, "currentPeriodEnd"),
				{str(s, "customerEmail"), "text"},
				{str(s, "id"), "id"},
			}}
		},
	}
}

func transferList() listing {
	return listing{
		section: "transfers", title: "Transfers", path: "/v2/transfers", operation: "transfers_list",
		columns: []string{"Created", "State", "Amount", "Key type", "Reference", "Id"},
		first:   []string{"status"},
		row: func(rq *request, t map[string]any) row {
			return row{rq.to("transfers", str(t, "id")), []cell{
				moment(t, "created_at"),
				{str(t, "status"), "state"},
				{money(t, "amount", string(gateway.BRL)), "money"},
				{str(t, "pix_key_type"), ""},
				{str(t, "external_ref"), "text"},
				{str(t, "id"), "id"},
			}}
		},
	}
}

func customerList() listing {
	return listing{
		section: "customers", title: "Customers", path: "/v2/customers", operation: "customers_list",
		columns: []string{"Name", "E-mail", "State", "Reference", "Id"},
		first:   []string{"search", "email", "external_ref"},
		row: func(rq *request, c map[string]any) row {
			return row{rq.to("customers", str(c, "id")), []cell{
				{str(c, "name"), "text"},
				{str(c, "email"), "text"},
				{str(c, "status"), "state"},
				{str(c, "externalRef"), "text"},
				{str(c, "id"), "id"},
			}}
		},
	}
}

func (rq *request) subscription() (*view, error) {
	id := rq.args[0]
	var s *engine.Subscription
	var charges []*engine.Transaction
	paid := 0
	rq.core.Store.Account(rq.key).View(func(d *store.Data) {
		if s = d.Subscriptions.Get(id); s == nil {
			return
		}
		paid = paidPeriods(d, s)
		for _, charge := range s.ChargeIDs[max(0, len(s.ChargeIDs)-shownOccurrences):] {
			if t := d.Transactions.Get(charge); t != nil {
				charges = append(charges, t)
			}
		}
	})
	if s == nil {
		return nil, notFound()
	}
	path := "/v2/subscriptions/" + url.PathEscape(id)
	drawn := newDiagram("Subscriptions", s.Status)
	data := &resourceData{
		Kind: "Subscription", ID: id, State: s.Status, Facts: rq.subscriptionFacts(s, paid), Diagram: &drawn,
		Actions: rq.controls("subscriptions", id), JSON: rq.documents(path), Curl: rq.curl(http.MethodGet, path, ""),
		Headline: headline{Name: subscriberOf(s), Money: rq.planOf(s)},
	}
	story := subject{
		id: id, create: "/v2/subscriptions", reference: s.IdempotencyKey, parts: map[string]string{}, path: "transactions", currency: s.Currency, state: s.Status, created: s.CreatedAt, updated: s.UpdatedAt,
	}
	for _, c := range charges {
		story.parts[c.ID] = "Charge"
	}
	if next, what := nextCharge(s); next.After(rq.core.Clock.Now()) {
		story.future = []*episode{{At: next, Kind: "timer", Text: what}}
	}
	data.Timeline, data.Headline.Told = rq.story(story)
	if s.Authorizing() {
		if data.Code = picture("Authorization code", s.Authorization.QRCode); data.Code != nil {
			data.Code.Open = true
		}
	}
	if len(charges) > 0 {
		data.Lists = append(data.Lists, rq.charges(charges))
	}
	if allowed(rq, (*store.Account).Subscription, id, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.CancelSubscription(env, s, "")
	}) {
		data.Requests = append(data.Requests, action{
			Call: "POST /v2/subscriptions/{id}/cancel", IDs: []string{id}, Label: "Cancel", Danger: true,
		})
	}
	if allowed(rq, (*store.Account).Subscription, id, func(env engine.Env, s *engine.Subscription) (engine.Change, *engine.Refusal) {
		return engine.UpdateSubscription(env, s, engine.SubscriptionPatch{})
	}) {
		data.Requests = append(data.Requests, action{
			Call: "PATCH /v2/subscriptions/{id}", IDs: []string{id}, Label: "Change the policy",
			Fields: []field{{
				Name: asText + "failure_policy", Label: "If a charge fails", Type: "select", Value: s.FailurePolicy,
				Options: []string{string(gateway.RetryThenCancel), string(gateway.ImmediateCancel)},
			}},
		})
	}
	return &view{Title: "Subscription " + id, Section: "/subscriptions", Template: "resource", Data: data}, nil
}

func (rq *request) charges(list []*engine.Transaction) table {
	t := table{Title: "Charges", Columns: []string{"Created", "State", "Amount", "Id"}}
	for i := len(list) - 1; i >= 0; i-- {
		c := list[i]
		t.Rows = append(t.Rows, row{rq.to("transactions", c.ID), []cell{
			{stamp(c.CreatedAt), "time"},
			{c.Status, "state"},
			{gateway.FormatAmount(c.Amount, gateway.Currency(c.Currency)), "money"},
			{c.ID, "id"},
		}})
	}
	return t
}

// subscriberOf is what people call a subscription.
func subscriberOf(s *engine.Subscription) string {
	if s.Customer != nil {
		return cmp.Or(s.Customer.Name, s.Customer.Email, short(s.ID))
	}
	return short(s.ID)
}

// planOf says what a subscription costs and when it is charged next.
func (rq *request) planOf(s *engine.Subscription) string {
	every := s.Interval
	if s.IntervalCount > 1 {
		every = strconv.Itoa(s.IntervalCount) + " " + s.Interval + "s"
	}
	text := gateway.FormatAmount(s.Amount, gateway.Currency(s.Currency)) + " every " + every
	if at, what := nextCharge(s); !at.IsZero() {
		text += " · " + strings.ToLower(what[:1]) + what[1:] + " on " + at.UTC().Format(time.DateOnly) + ", " + relative(rq.core.Clock.Now(), at)
	}
	return text
}

// nextCharge returns when something happens to a subscription by itself, and what; the
// zero time if nothing does.
func nextCharge(s *engine.Subscription) (time.Time, string) {
	switch gateway.SubscriptionStatus(s.Status) {
	case gateway.SubscriptionPastDue:
		return s.NextRetryAt, "Next attempt to charge"
	case gateway.SubscriptionTrialing:
		return s.TrialEnd, "First charge"
	case gateway.SubscriptionActive:
		return s.CurrentPeriodEnd, "Next charge"
	case gateway.SubscriptionIncomplete:
		if s.Authorizing() {
			return s.Authorization.ExpirationDate, "Authorization expires"
		}
	default: // see below
	}
	if s.CancelAtPeriodEnd && s.CanceledAt.IsZero() {
		return s.CurrentPeriodEnd, "Ends"
	}
	return time.Time{}, ""
}

// paidPeriods counts the charges of periods that were paid; the validation of a trial's
// card is none.
func paidPeriods(d *store.Data, s *engine.Subscription) (n int) {
	for i, id := range s.ChargeIDs {
		validation := i == 0 && !s.TrialEnd.IsZero() && s.Card != nil
		if t := d.Transactions.Get(id); t != nil && !t.PaidAt.IsZero() && !validation {
			n++
		}
	}
	return n
}

func (rq *request) subscriptionFacts(s *engine.Subscription, paid int) []fact {
	list := []fact{
		{Label: "Amount", Cell: cell{gateway.FormatAmount(s.Amount, gateway.Currency(s.Currency)), "money"}},
		{Label: "Every", Cell: cell{strconv.Itoa(s.IntervalCount) + " " + s.Interval, ""}},
		{Label: "Method", Cell: cell{s.PaymentMethod, ""}},
		{Label: "Periods paid", Cell: cell{strconv.Itoa(paid), ""}},
		timeFact("Period began", s.CurrentPeriodStart), timeFact("Period ends", s.CurrentPeriodEnd),
		timeFact("Trial ends", s.TrialEnd),
		{Label: "If a charge fails", Cell: cell{s.FailurePolicy, ""}},
		timeFact("Canceled", s.CanceledAt),
		{Label: "Reason", Cell: cell{s.CancellationReason, "text"}},
		timeFact("Created", s.CreatedAt),
	}
	if at, what := nextCharge(s); !at.IsZero() {
		list = append(list[:3:3], append([]fact{timeFact(what, at)}, list[3:]...)...)
	}
	if s.FailNext > 0 {
		list = append(list, fact{Label: "Charges that will fail", Cell: cell{strconv.Itoa(s.FailNext), ""}})
	}
	if s.DebitCanceled {
		list = append(list, fact{Label: "Next debit", Cell: cell{"canceled by the payer", "text"}})
	}
	if s.Authorization != nil {
		list = append(list, fact{Label: "Authorization", Cell: cell{s.Authorization.Status, "state"}})
	}
	if c := s.Customer; c != nil {
		list = append(list, fact{Label: "Customer", Cell: cell{c.Email, "text"}, Link: rq.to("customers", c.ID)})
	}
	for _, p := range s.Products {
		list = append(list, productFact(p, s.Currency))
	}
	return facts(list...)
}

func productFact(p engine.Product, currency string) fact {
	price := gateway.FormatAmount(p.Price, gateway.Currency(currency))
	return fact{Label: "Product", Cell: cell{strconv.Itoa(p.Quantity) + " × " + p.Name + ", " + price, "text"}}
}

func (rq *request) transfer() (*view, error) {
	id := rq.args[0]
	var t *engine.Transfer
	rq.core.Store.Account(rq.key).View(func(d *store.Data) { t = d.Transfers.Get(id) })
	if t == nil {
		return nil, notFound()
	}
	path := "/v2/transfers/" + url.PathEscape(id)
	drawn := newDiagram("Transfers", t.Status)
	amount := func(label string, n int64) fact {
		return fact{Label: label, Cell: cell{gateway.FormatAmount(n, gateway.BRL), "money"}}
	}
	data := &resourceData{
		Kind: "Transfer", ID: id, State: t.Status, Diagram: &drawn,
		Facts: facts(
			amount("Amount", t.Amount), amount("Fee", t.Fee), amount("Reaches the receiver", t.NetAmount()),
			fact{Label: "Pix key type", Cell: cell{t.PixKeyType, ""}},
			fact{Label: "Description", Cell: cell{t.Description, "text"}},
			fact{Label: "Reference", Cell: cell{t.ExternalRef, "text"}},
			fact{Label: "notify_url", Cell: cell{t.NotifyURL, "text"}},
			timeFact("Created", t.CreatedAt), timeFact("Processed", t.ProcessedAt), timeFact("Transferred", t.TransferredAt),
		),
		Actions: rq.controls("transfers", id), JSON: rq.documents(path), Curl: rq.curl(http.MethodGet, path, ""),
		Headline: headline{
			Name:  cmp.Or(t.ExternalRef, short(id)),
			Money: gateway.FormatAmount(t.Amount, gateway.BRL) + ", of which " + gateway.FormatAmount(t.NetAmount(), gateway.BRL) + " reaches the receiver",
		},
	}
	data.Timeline, data.Headline.Told = rq.story(subject{
		id: id, create: "/v2/transfers", reference: t.ExternalRef, currency: string(gateway.BRL), state: t.Status, created: t.CreatedAt, paid: t.TransferredAt, updated: t.UpdatedAt,
	})
	if allowed(rq, (*store.Account).Transfer, id, engine.CancelTransfer) {
		data.Requests = append(data.Requests, action{
			Call: "POST /v2/transfers/{id}/cancel", IDs: []string{id}, Label: "Cancel", Danger: true,
			Fields: []field{{Name: asText + "reason", Label: "Reason", Type: "text"}},
		})
	}
	return &view{Title: "Transfer " + id, Section: "/transfers", Template: "resource", Data: data}, nil
}

func (rq *request) customer() (*view, error) {
	id := rq.args[0]
	var c *engine.Customer
	rq.core.Store.Account(rq.key).View(func(d *store.Data) { c = d.Customers.Get(id) })
	if c == nil {
		return nil, notFound()
	}
	path := "/v2/customers/" + url.PathEscape(id)
	data := &resourceData{
		Kind: "Customer", ID: id, State: c.Status,
		Facts: facts(
			fact{Label: "Name", Cell: cell{c.Name, "text"}},
			fact{Label: "E-mail", Cell: cell{c.Email, "text"}},
			fact{Label: "Phone", Cell: cell{c.Phone, ""}},
			fact{Label: "Reference", Cell: cell{c.ExternalRef, "text"}},
			timeFact("Created", c.CreatedAt), timeFact("Updated", c.UpdatedAt),
			fact{Label: "Transactions", Cell: cell{"of this e-mail address", ""}, Link: rq.to("transactions") + "?" + query("email", c.Email)},
			fact{Label: "Subscriptions", Cell: cell{"of this e-mail address", ""}, Link: rq.to("subscriptions") + "?" + query("customer_email", c.Email)},
		),
		JSON: rq.documents(path), Curl: rq.curl(http.MethodGet, path, ""),
		Headline: headline{Name: cmp.Or(c.Name, short(id)), Money: c.Email},
	}
	data.Timeline, data.Headline.Told = rq.story(subject{id: id, create: "/v2/customers", reference: c.ExternalRef, state: c.Status, created: c.CreatedAt, updated: c.UpdatedAt})
	return &view{Title: "Customer " + id, Section: "/customers", Template: "resource", Data: data}, nil
}

// links lists the checkout links, for which the interface has no list.
func (rq *request) links() (*view, error) {
	q := rq.r.URL.Query()
	data := &listData{Columns: []string{"Created", "State", "Title", "Amount", "Used", "Slug"}, Create: "checkout_links_create", Sample: sampleOf("links")}
	var err error
	rq.core.Store.Account(rq.key).View(func(d *store.Data) {
		var page store.Page[engine.Link]
		page, err = d.Links.Page(store.Query[engine.Link]{Limit: linksShown, Cursor: q.Get("cursor"), Prev: q.Get("direction") == "prev"})
		data.Total = page.Total
		data.pages(rq, url.Values{}, listed{byCursor: cursors{NextCursor: page.Next, PrevCursor: page.Prev}})
		for _, l := range page.Rows {
			data.Rows = append(data.Rows, row{rq.to("links", l.Slug), []cell{
				{stamp(l.CreatedAt), "time"},
				{l.Status, "state"},
				{l.Title, "text"},
				{gateway.FormatAmount(l.Total(d.Catalog()), gateway.Currency(l.Currency)), "money"},
				{usesOf(l), ""},
				{l.Slug, "id"},
			}})
		}
	})
	if err != nil {
		data.Error = "This list has no such page."
	}
	return &view{Title: "Checkout links", Section: "/links", Template: "list", Data: data}, nil
}

const linksShown = 20

// timesOf ends a sentence about the uses of a link.
func timesOf(l *engine.Link) string {
	if l.MaxUses == 0 && l.UsedCount == 1 {
		return " time"
	}
	return " times"
}

func usesOf(l *engine.Link) string {
	if l.MaxUses == 0 {
		return strconv.Itoa(l.UsedCount)
	}
	return strconv.Itoa(l.UsedCount) + " of " + strconv.Itoa(l.MaxUses)
}

func (rq *request) link() (*view, error) {
	slug := rq.args[0]
	var data *resourceData
	story := subject{id: slug, parts: map[string]string{}}
	rq.core.Store.Account(rq.key).View(func(d *store.Data) {
		l := d.Links.Get(slug)
		if l == nil {
			return
		}
		data = rq.linkData(d, l)
		story.state, story.created, story.updated = l.Status, l.CreatedAt, l.UpdatedAt
		sessions := d.SessionsOf(l)
		for _, s := range sessions[:min(len(sessions), shownOccurrences)] {
			story.parts[s.ID] = "Session " + short(s.ID)
		}
	})
	if data == nil {
		return nil, notFound()
	}
	data.Actions = rq.controls("checkout", slug)
	data.Timeline, _ = rq.story(story)
	return &view{Title: "Checkout link " + slug, Section: "/links", Template: "resource", Data: data}, nil
}

func (rq *request) linkData(d *store.Data, l *engine.Link) *resourceData {
	drawn := newDiagram("Checkout links and sessions", l.Status, "active", "exhausted", "link_expired", "inactive")
	data := &resourceData{Kind: "Checkout link", ID: l.Slug, State: l.Status, Diagram: &drawn, Facts: facts(
		fact{Label: "Hosted page", Cell: cell{"/pay/" + l.Slug, ""}, Link: "/pay/" + url.PathEscape(l.Slug)},
		fact{Label: "Title", Cell: cell{l.Title, "text"}},
		fact{Label: "Description", Cell: cell{l.Description, "text"}},
		fact{Label: "Amount", Cell: cell{gateway.FormatAmount(l.Total(d.Catalog()), gateway.Currency(l.Currency)), "money"}},
		fact{Label: "Used", Cell: cell{usesOf(l), ""}},
		fact{Label: "Methods", Cell: cell{strings.Join(l.PaymentMethods, ", "), ""}},
		fact{Label: "success_url", Cell: cell{l.SuccessURL, "text"}},
		fact{Label: "cancel_url", Cell: cell{l.CancelURL, "text"}},
		timeFact("Expires", l.ExpiresAt), timeFact("Created", l.CreatedAt),
	)}
	data.Headline = headline{
		Name:  cmp.Or(l.Title, l.Slug),
		Money: gateway.FormatAmount(l.Total(d.Catalog()), gateway.Currency(l.Currency)) + ", used " + usesOf(l) + timesOf(l),
	}
	sessions := table{Title: "Sessions", Columns: []string{"Created", "State", "Buyer", "Method", "Expires", "Transaction"}}
	list := d.SessionsOf(l)
	for _, s := range list[:min(len(list), shownOccurrences)] {
		r := row{Cells: []cell{
			{stamp(s.CreatedAt), "time"},
			{s.Status, "state"},
			{emailOf(s.Buyer), "text"},
			{s.Method, ""},
			{stamp(s.ExpiresAt), "time"},
			{s.TransactionID, "id"},
		}}
		if s.TransactionID != "" {
			r.Link = rq.to("transactions", s.TransactionID)
		}
		sessions.Rows = append(sessions.Rows, r)
	}
	if len(sessions.Rows) > 0 {
		data.Lists = append(data.Lists, sessions)
	}
	return data
}

func emailOf(b *engine.Buyer) string {
	if b == nil {
		return ""
	}
	return b.Email
}

// allowed reports whether a resource's state allows a transition.
func allowed[R any](
	rq *request, run func(*store.Account, string, store.Transition[R]) (*R, *engine.Refusal), id string, do store.Transition[R],
) bool {
	_, refusal := run(rq.core.Store.Account(rq.key).DryRun(), id, do)
	return refusal == nil
}
