package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// homeData is the data of the home page.
type homeData struct {
	Balance    int64
	Groups     []group
	Timers     []clock.Timer
	Advance    []action
	Chart      chart
	Empty      bool    // nothing has happened yet
	Sample     *action // creates a payment
	Requests   []journal.Entry
	Deliveries []deliver.Delivery
}

// group counts the resources of a kind by state.
type group struct {
	Title, Path string
	Total       int
	Counts      []count
}

type count struct {
	State string
	N     int
}

const (
	shownTimers  = 8
	soughtTimers = 500 // how many timers are searched for an account's next ones
	shownLatest  = 12
	shownDays    = 30
)

func (rq *request) home() (*view, error) {
	data := homeData{Advance: rq.advances(), Sample: sampleOf("transactions")}
	rq.core.Store.Account(rq.key).View(func(d *store.Data) {
		data.Balance = d.Balance
		data.Chart = newChart(d.Days, rq.core.Clock.Now())
		data.Groups = []group{
			newGroup("Transactions", "transactions", d.Transactions.Len(), d.Transactions.Counts(store.TransactionStatus)),
			newGroup("Subscriptions", "subscriptions", d.Subscriptions.Len(), d.Subscriptions.Counts(store.SubscriptionStatus)),
			newGroup("Transfers", "transfers", d.Transfers.Len(), d.Transfers.Counts(store.TransferStatus)),
			newGroup("Customers", "customers", d.Customers.Len(), nil),
			newGroup("Checkout links", "links", d.Links.Len(), nil),
		}
	})
	for _, t := range rq.core.Clock.Upcoming(soughtTimers) {
		if t.Account == rq.key && len(data.Timers) < shownTimers {
			data.Timers = append(data.Timers, t)
		}
	}
	data.Requests, _ = rq.core.Journal.Latest(rq.key, shownLatest, nil)
	data.Empty = len(data.Requests) == 0 && !slices.ContainsFunc(data.Groups, func(g group) bool { return g.Total > 0 })
	data.Deliveries, _ = rq.core.Sender.Latest(rq.key, shownLatest, nil)
	return &view{Title: "Home", Template: "home", Data: data}, nil
}

func newGroup(title, path string, total int, counts map[string]int) group {
	g := group{Title: title, Path: path, Total: total}
	for _, state := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		g.Counts = append(g.Counts, count{state, counts[state]})
	}
	return g
}

// advances are the buttons that move the clock.
func (rq *request) advances() []action {
	const call = "POST " + admin.Prefix + "/clock/advance"
	by := func(label, duration string) action {
		return action{Call: call, Label: label, Fields: []field{{Name: asText + "by", Type: "hidden", Value: duration}}}
	}
	now := rq.core.Clock.Now()
	return []action{
		{Call: call, Label: "Next timer", Fields: []field{{Name: asTrue + "next", Type: "hidden", Value: "true"}}},
		by("+1 hour", "1h"), by("+1 day", "1d"),
		{Call: call, Label: "+1 month", Fields: []field{{Name: asText + "to", Type: "hidden", Value: now.AddDate(0, 1, 0).Format(time.RFC3339Nano)}}},
		{Call: call, Label: "Advance", Fields: []field{{
			Name: asTime + "to", Label: "To (UTC)", Type: "datetime-local", Required: true, Value: now.Format("2006-01-02T15:04"), Min: now.Format("2006-01-02T15:04"),
		}}},
	}
}
