package admin

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

func (p *Plane) storyRoutes() []Shape {
	return []Shape{
		{Method: http.MethodGet, Path: "resources", Out: []countView{}, do: p.resources},
		{Method: http.MethodGet, Path: "story", Out: storyView{}, Query: []string{"id"}, do: p.story},
	}
}

// countView counts the resources of one kind in one state.
type countView struct {
	Resource string `json:"resource"` // one of transaction, subscription, transfer, customer, checkout_link
	Status   string `json:"status"`
	Count    int    `json:"count"`
}

// resources counts the account's resources by kind and state.
func (p *Plane) resources(c *call) (any, error) {
	list := []countView{}
	add := func(kind string, counts map[string]int) {
		for status, n := range counts {
			if n > 0 {
				list = append(list, countView{kind, status, n})
			}
		}
	}
	p.core.Store.Account(c.key).View(func(d *store.Data) {
		add("transaction", d.Transactions.Counts(store.TransactionStatus))
		add("subscription", d.Subscriptions.Counts(store.SubscriptionStatus))
		add("transfer", d.Transfers.Counts(store.TransferStatus))
		add("customer", d.Customers.Counts(store.CustomerStatus))
		links := map[string]int{}
		for _, l := range d.Links.All(store.Query[engine.Link]{}) {
			links[l.Status]++
		}
		add("checkout_link", links)
	})
	slices.SortFunc(list, func(a, b countView) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Status, b.Status))
	})
	return list, nil
}

// maxStory is the maximum number of steps, of requests and of deliveries in a story: the
// latest ones.
const maxStory = 100

// storyView is what happened to a resource and to those that belong to it.
type storyView struct {
	Resource   string         `json:"resource"` // one of transaction, subscription, transfer, customer, checkout_link
	ID         string         `json:"id"`       // of a checkout_link, its slug
	Reference  string         `json:"reference"`
	Status     string         `json:"status"`
	Parts      []partView     `json:"parts"` // a subscription's charges; a link's sessions and their payments
	Steps      []stepView     `json:"steps"` // oldest first
	Requests   []requestView  `json:"requests"`
	Deliveries []DeliveryView `json:"deliveries"`
	Timers     []TimerView    `json:"timers"` // what happens next, if nothing else does
}

// partView is a resource that belongs to another one.
type partView struct {
	Resource string `json:"resource"`
	ID       string `json:"id"`
	Status   string `json:"status"`
}

// stepView is one change of a resource or of a part.
type stepView struct {
	At        respond.Stamp `json:"at"`
	ID        string        `json:"id"`
	From      string        `json:"from"` // "" if it was created
	To        string        `json:"to"`
	Amount    int64         `json:"amount"` // what was paid or refunded, in cents
	Cause     string        `json:"cause"`
	RequestID string        `json:"request_id,omitzero"`
	Events    []string      `json:"events"` // ids of the webhooks that reported it
}

// story returns what happened to a resource: id is its id, its reference or, of a
// checkout link, its slug.
func (p *Plane) story(c *call) (any, error) {
	id := c.r.URL.Query().Get("id")
	if id == "" {
		return nil, invalid("id must be the id of a resource, its reference, or the slug of a checkout link")
	}
	var v storyView
	var steps []store.Step
	p.core.Store.Account(c.key).View(func(d *store.Data) {
		if v = subjectOf(d, id); v.ID != "" {
			steps = d.History(v.ids()...)
		}
	})
	if v.ID == "" {
		return nil, &RefusedError{http.StatusNotFound, "NOT_FOUND", "no resource of this account has this id or reference"}
	}
	v.Steps = viewSteps(steps)
	ids := v.ids()
	requests, _ := p.core.Journal.Mentioning(c.key, maxStory, v.ID, "/v2/"+v.Resource+"s", v.Reference)
	slices.Reverse(requests)
	v.Requests = viewRequests(requests)
	deliveries, _ := p.core.Sender.Latest(c.key, maxStory, func(d *deliver.Delivery) bool { return slices.Contains(ids, d.Resource) })
	v.Deliveries = []DeliveryView{}
	for _, d := range slices.Backward(deliveries) {
		v.Deliveries = append(v.Deliveries, viewDelivery(d))
	}
	v.Timers = p.timersThat(c, func(id string) bool { return slices.Contains(ids, id) })
	return v, nil
}

func viewSteps(steps []store.Step) []stepView {
	list := []stepView{}
	for _, s := range steps[max(0, len(steps)-maxStory):] {
		list = append(list, stepView{
			At: respond.Stamp(s.At), ID: s.ID, From: s.From, To: s.To, Amount: s.Amount, Cause: s.Cause.Text,
			RequestID: s.Cause.RequestID, Events: append([]string{}, s.Events...),
		})
	}
	return list
}

// ids returns the ids of the resource and of its parts.
func (v *storyView) ids() []string {
	list := []string{v.ID}
	for _, part := range v.Parts {
		list = append(list, part.ID)
	}
	return list
}

// subjectOf returns the resource with an id, a reference or a slug; its ID is "" if there
// is none.
func subjectOf(d *store.Data, id string) storyView {
	if t := orRef(&d.Transactions, id); t != nil {
		return storyView{Resource: "transaction", ID: t.ID, Reference: t.ExternalRef, Status: t.Status, Parts: []partView{}}
	}
	if s := orRef(&d.Subscriptions, id); s != nil {
		v := storyView{Resource: "subscription", ID: s.ID, Reference: s.IdempotencyKey, Status: s.Status}
		v.Parts = charges(d, func(t *engine.Transaction) bool { return t.SubscriptionID == s.ID })
		return v
	}
	if t := orRef(&d.Transfers, id); t != nil {
		return storyView{Resource: "transfer", ID: t.ID, Reference: t.ExternalRef, Status: t.Status, Parts: []partView{}}
	}
	if cu := orRef(&d.Customers, id); cu != nil {
		return storyView{Resource: "customer", ID: cu.ID, Reference: cu.ExternalRef, Status: cu.Status, Parts: []partView{}}
	}
	l := d.Links.Get(id)
	if l == nil {
		return storyView{}
	}
	v := storyView{Resource: "checkout_link", ID: l.Slug, Status: l.Status}
	sessions := d.SessionsOf(l)
	v.Parts = charges(d, func(t *engine.Transaction) bool {
		return t.SessionID != "" && slices.ContainsFunc(sessions, func(s *engine.Session) bool { return s.ID == t.SessionID })
	})
	for _, s := range sessions {
		v.Parts = append(v.Parts, partView{"checkout_session", s.ID, s.Status})
	}
	return v
}

func orRef[R any](t *store.Table[R], id string) *R {
	if r := t.Get(id); r != nil {
		return r
	}
	return t.ByRef(id)
}

func charges(d *store.Data, match func(*engine.Transaction) bool) []partView {
	list := []partView{}
	for _, t := range d.Transactions.All(store.Query[engine.Transaction]{Match: match}) {
		list = append(list, partView{"transaction", t.ID, t.Status})
	}
	return list
}
