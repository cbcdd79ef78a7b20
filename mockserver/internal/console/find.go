package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// findData is what a search has found, if it is not exactly one thing.
type findData struct {
	Query string
	Hits  []hit
	Other []otherHits // in other accounts; only if this one has none
}

// hit is one thing that a search has found.
type hit struct{ Kind, Name, State, Link string }

type otherHits struct {
	Account, Link string
	N             int
}

const (
	maxHits  = 50
	maxOther = 20
	// minSuffix is the minimum length of the end of an id that finds it; lists show the
	// last 12 characters.
	minSuffix = 8
)

// find opens what people search for: by an id, also a shortened one or that of an event, a
// request or a Pix payment, by a reference, a name or an e-mail address, in any case.
func (rq *request) find() (*view, error) {
	q := strings.TrimSpace(rq.r.URL.Query().Get("q"))
	if q == "" {
		return nil, redirect{rq.base}
	}
	data := findData{Query: q, Hits: rq.hits(rq.key, q)}
	if len(data.Hits) == 1 {
		return nil, redirect{data.Hits[0].Link}
	}
	if len(data.Hits) == 0 {
		for _, key := range rq.core.Store.Accounts() {
			if key == rq.key || len(data.Other) == maxOther {
				continue
			}
			if n := len(rq.hits(key, q)); n > 0 {
				data.Other = append(data.Other, otherHits{masked(key), rq.accountPath(key) + "/find?" + query("q", q), n})
			}
		}
	}
	if len(data.Hits)+len(data.Other) == 0 {
		return nil, pageError{http.StatusNotFound, "No account has anything with “" + q + "”. You can search for an id, also a shortened one, " +
			"for a reference, a name or an e-mail address, and for the id of an event, a request or a Pix payment (end-to-end id)."}
	}
	return &view{Title: "Find", Section: noSection, Template: "find", Data: data}, nil
}

// hits returns what an account has for a search: what q names exactly or, if that is
// nothing, what has it as a part of its name.
func (rq *request) hits(key, q string) (list []hit) {
	s := search{console: rq.Console, base: rq.accountPath(key), q: q, lower: strings.ToLower(q), suffix: suffixOf(q)}
	rq.core.Store.Account(key).View(func(d *store.Data) {
		if strings.Contains(q, "@") {
			list = s.byEmail(d)
		}
		if len(list) == 0 {
			list = s.resources(d, s.names)
		}
	})
	if len(list) == 0 {
		list = s.records(key)
	}
	if len(list) == 0 {
		rq.core.Store.Account(key).View(func(d *store.Data) { list = s.resources(d, s.partOf) })
	}
	return list[:min(len(list), maxHits)]
}

// suffixOf returns the end of an id that q is, "" if it is too short for one.
func suffixOf(q string) string {
	end := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(q, "…"), "..."))
	if len(end) < minSuffix || strings.ContainsAny(end, " @") {
		return ""
	}
	return end
}

// search is a search in one account.
type search struct {
	console *Console
	base    string // of the account's pages
	q       string
	lower   string
	suffix  string
}

// names reports whether q is one of the ids of a resource, the end of the first one, or
// its reference.
func (s *search) names(_ string, ids ...string) bool {
	for _, id := range ids {
		if id != "" && strings.EqualFold(id, s.q) {
			return true
		}
	}
	return s.suffix != "" && len(ids) > 0 && strings.HasSuffix(strings.ToLower(ids[0]), s.suffix)
}

// partOf reports whether q is a part of a resource's name or reference.
func (s *search) partOf(name string, ids ...string) bool {
	if strings.Contains(strings.ToLower(name), s.lower) {
		return true
	}
	return len(ids) > 1 && strings.Contains(strings.ToLower(ids[1]), s.lower)
}

// resources returns the resources that match. The arguments of is are a resource's name,
// its id, its reference and its other ids. It reads every resource of the account.
func (s *search) resources(d *store.Data, is func(name string, ids ...string) bool) (list []hit) {
	to := func(kind, id string) string { return s.base + "/" + kind + "/" + id }
	list = append(list, matching(&d.Transactions, func(t *engine.Transaction) bool {
		e2e := ""
		if t.Pix != nil {
			e2e = t.Pix.EndToEndID
		}
		return is(t.Buyer.Name, t.ID, t.ExternalRef, e2e)
	}, func(t *engine.Transaction) hit {
		return hit{"Transaction", cmp.Or(t.ExternalRef, t.Buyer.Name, short(t.ID)), t.Status, to("transactions", t.ID)}
	})...)
	list = append(list, matching(&d.Subscriptions, func(t *engine.Subscription) bool {
		return is(subscriberOf(t), t.ID, t.IdempotencyKey)
	}, func(t *engine.Subscription) hit {
		return hit{"Subscription", subscriberOf(t), t.Status, to("subscriptions", t.ID)}
	})...)
	list = append(list, matching(&d.Transfers, func(t *engine.Transfer) bool { return is("", t.ID, t.ExternalRef) }, func(t *engine.Transfer) hit {
		return hit{"Transfer", cmp.Or(t.ExternalRef, short(t.ID)), t.Status, to("transfers", t.ID)}
	})...)
	list = append(list, matching(&d.Customers, func(c *engine.Customer) bool { return is(c.Name, c.ID, c.ExternalRef) }, func(c *engine.Customer) hit {
		return hit{"Customer", cmp.Or(c.Name, short(c.ID)), c.Status, to("customers", c.ID)}
	})...)
	list = append(list, matching(&d.Links, func(l *engine.Link) bool { return is(l.Title, l.Slug) }, func(l *engine.Link) hit {
		return hit{"Checkout link", cmp.Or(l.Title, l.Slug), l.Status, to("links", l.Slug)}
	})...)
	return append(list, matching(&d.Sessions, func(v *engine.Session) bool { return is("", v.ID) }, func(v *engine.Session) hit {
		link := to("links", v.Slug)
		if v.TransactionID != "" {
			link = to("transactions", v.TransactionID)
		}
		return hit{"Checkout session", short(v.ID), v.Status, link}
	})...)
}

// matching returns the latest resources of a table that match.
func matching[R any](t *store.Table[R], is func(*R) bool, show func(*R) hit) (list []hit) {
	page, err := t.Page(store.Query[R]{Limit: maxHits, Match: is})
	if err != nil {
		return nil
	}
	for _, r := range page.Rows {
		list = append(list, show(r))
	}
	return list
}

// records returns the webhooks and requests with an id.
func (s *search) records(key string) (list []hit) {
	deliveries, _ := s.console.core.Sender.Latest(key, maxHits, func(d *deliver.Delivery) bool {
		return strings.EqualFold(d.ID, s.q) || strings.EqualFold(d.EventID, s.q)
	})
	for _, d := range deliveries {
		list = append(list, hit{"Webhook", d.Kind, string(d.State), s.base + "/webhooks/" + d.ID})
	}
	for _, e := range s.console.core.Journal.WithRequestID(key, maxHits, s.q) {
		list = append(list, hit{"Request", e.Method + " " + e.Path, fmt.Sprint(e.Status), s.base + "/requests/" + fmt.Sprint(e.ID)})
	}
	return list
}

// byEmail returns the list of the resources with an e-mail address.
func (s *search) byEmail(d *store.Data) []hit {
	switch {
	case found(&d.Transactions, store.TransactionEmail, s.lower):
		return []hit{{"Transactions", s.q, "", s.base + "/transactions?" + query("email", s.lower)}}
	case found(&d.Customers, store.CustomerEmail, s.lower):
		return []hit{{"Customers", s.q, "", s.base + "/customers?" + query("email", s.lower)}}
	case found(&d.Subscriptions, store.SubscriptionEmail, s.lower):
		return []hit{{"Subscriptions", s.q, "", s.base + "/subscriptions?" + query("customer_email", s.lower)}}
	}
	return nil
}

// found reports whether a table has a resource with a value.
func found[R any](t *store.Table[R], posting store.Posting[R], value string) bool {
	q := store.Query[R]{Limit: 1}
	q.Is(posting, value)
	page, err := t.Page(q)
	return err == nil && len(page.Rows) > 0
}

// elsewhere leads to the other accounts that have resources.
type elsewhere struct {
	Empty bool // this account has none
	N     int
	Link  string
}

// elsewhere returns nil if no other account has resources, or this one has and the page is
// not its home.
func (rq *request) elsewhere(home bool) *elsewhere {
	active := func(key string) (has bool) {
		rq.core.Store.Account(key).View(func(d *store.Data) {
			has = d.Transactions.Len()+d.Customers.Len()+d.Transfers.Len()+d.Subscriptions.Len()+d.Links.Len() > 0
		})
		return has
	}
	empty := !active(rq.key)
	if !empty && !home {
		return nil
	}
	keys := slices.DeleteFunc(rq.core.Store.Accounts(), func(key string) bool { return key == rq.key || !active(key) })
	switch len(keys) {
	case 0:
		return nil
	case 1:
		return &elsewhere{empty, 1, rq.accountPath(keys[0])}
	default:
		return &elsewhere{empty, len(keys), rq.to("accounts")}
	}
}
