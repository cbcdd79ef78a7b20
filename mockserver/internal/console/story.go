package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/control"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// The story of a resource: what happened, why, and whether the merchant's server knows.

// headline is the state of a resource in one line.
type headline struct {
	Name  string // what people call the resource
	Money string // "BRL 94.70 of 154.70 left"
	Told  told
}

// told says whether the merchant's server got the latest webhook.
type told struct {
	Text string // "" if there is none
	Link string // to the delivery
	Good bool
	Bad  bool
}

// episode is an entry of a timeline: a step of the resource with the request that caused
// it and the webhooks that reported it, or one of them alone, or a timer.
type episode struct {
	At       time.Time
	Kind     string // "state", "request", "webhook" or "timer"
	Text     string // what happened: "Paid BRL 154.70"
	Link     string // of Text
	From, To string // the states before and after
	Cause    string // what caused a step, if it was no request of the journal
	Requests []call
	Webhooks []sent
	Bad      bool

	order uint64 // among episodes of the same time
}

// call is a request in a timeline.
type call struct {
	Text, Detail, Link string

	Bad bool
}

// sent is a webhook in a timeline, with its attempts.
type sent struct {
	Kind, To, State, Link string

	Next     time.Time // of the next attempt; zero for none
	Attempts []attempt
	Bad      bool
}

type attempt struct {
	At   time.Time
	Text string
	Bad  bool
}

// subject is the resource of a timeline.
type subject struct {
	id        string
	create    string            // the path that creates it
	reference string            // "" if it has none
	parts     map[string]string // ids of other resources whose steps belong to it, and how the timeline calls them
	path      string            // of the pages of the parts
	currency  string
	state     string
	created   time.Time
	paid      time.Time
	updated   time.Time
	future    []*episode
}

const shownEpisodes = 100

// story returns the timeline of a resource, oldest first, and whether the merchant's
// server was told.
func (rq *request) story(of subject) ([]*episode, told) {
	ids := []string{of.id}
	for id := range of.parts {
		ids = append(ids, id)
	}
	var steps []store.Step
	rq.core.Store.Account(rq.key).View(func(d *store.Data) { steps = d.History(ids...) })
	requests, _ := rq.core.Journal.Mentioning(rq.key, shownEpisodes, of.id, of.create, of.reference)
	slices.Reverse(requests)
	deliveries, _ := rq.core.Sender.Latest(rq.key, shownEpisodes, func(d *deliver.Delivery) bool { return slices.Contains(ids, d.Resource) })
	byEvent := map[string][]deliver.Delivery{}
	for _, d := range slices.Backward(deliveries) {
		byEvent[d.EventID] = append(byEvent[d.EventID], d)
	}
	var list []*episode
	caused := map[uint64]bool{}
	for _, s := range steps {
		e := rq.episode(of, s, byEvent)
		for _, r := range requests {
			if s.Cause.RequestID != "" && r.ResponseHeader.Get("X-Request-Id") == s.Cause.RequestID && r.ID > s.Requests {
				if !caused[r.ID] { // once, for the first of its steps
					e.Requests = []call{rq.callOf(of, r)}
				}
				e.Cause, caused[r.ID] = "", true
				break
			}
		}
		list = append(list, e)
	}
	list = append(list, of.forgotten(steps)...)
	for _, r := range requests {
		if !caused[r.ID] {
			c := rq.callOf(of, r)
			list = append(list, &episode{At: r.At, Kind: "request", Requests: []call{c}, Bad: c.Bad, order: 2 * r.ID})
		}
	}
	for _, d := range slices.Backward(deliveries) {
		if rest := byEvent[d.EventID]; len(rest) > 0 { // no step has it
			e := &episode{At: d.Created, Kind: "webhook", order: ^uint64(0)}
			for _, d := range rest {
				e.add(rq.sent(d))
			}
			delete(byEvent, d.EventID)
			list = append(list, e)
		}
	}
	list = append(list, of.future...)
	list = slices.DeleteFunc(list, func(e *episode) bool { return e.At.IsZero() })
	slices.SortStableFunc(list, func(a, b *episode) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.order, b.order))
	})
	list = list[max(0, len(list)-shownEpisodes):]
	if silent(of.id, steps) {
		return list, told{Text: "no webhook reports this state"}
	}
	return list, rq.told(of.id, deliveries)
}

// silent reports whether a resource has come to its state without a webhook, such as a Pix
// that expires.
func silent(id string, steps []store.Step) bool {
	for _, s := range slices.Backward(steps) {
		if s.ID == id {
			return s.From != "" && s.From != s.To && len(s.Events) == 0
		}
	}
	return false
}

// episode returns the entry of a step, and takes its webhooks from byEvent.
func (rq *request) episode(of subject, s store.Step, byEvent map[string][]deliver.Delivery) *episode {
	e := &episode{At: s.At, Kind: "state", From: s.From, To: s.To, Cause: causeOf(s.Cause.Text), Bad: tone(s.To) == "bad", order: 2*s.Requests + 1}
	for _, event := range s.Events {
		for _, d := range byEvent[event] {
			e.add(rq.sent(d))
		}
		delete(byEvent, event)
	}
	e.Text = happened(s, of.currency)
	if e.Text == "" {
		e.Text = "Changed"
		if len(e.Webhooks) > 0 { // "subscription.renewed"
			_, what, _ := strings.Cut(e.Webhooks[0].Kind, ".")
			e.Text = sentence(what)
		}
	}
	if part, found := of.parts[s.ID]; found {
		e.Text, e.Link = part+": "+strings.ToLower(e.Text[:1])+e.Text[1:], rq.to(of.path, s.ID)
		if of.path == "" {
			e.Link = ""
		}
	}
	if e.From == e.To {
		e.From, e.To = "", ""
	}
	return e
}

// forgotten are the steps that the history doesn't have: it keeps the latest ones of an
// account.
func (of subject) forgotten(steps []store.Step) (list []*episode) {
	var created, paid bool
	last := ""
	for _, s := range steps {
		if s.ID != of.id {
			continue
		}
		created = created || s.From == ""
		paid = paid || s.Amount > 0 && tone(s.To) == "good"
		last = s.To
	}
	if !created {
		list = append(list, &episode{At: of.created, Kind: "state", Text: "Created"})
	}
	if !paid && !of.paid.IsZero() {
		list = append(list, &episode{At: of.paid, Kind: "state", Text: "Paid"})
	}
	if last != of.state && of.state != "" && !of.updated.Equal(of.created) {
		list = append(list, &episode{At: of.updated, Kind: "state", Text: "Became " + human(of.state), To: of.state, order: ^uint64(0)})
	}
	return list
}

// happened says what a step of a resource was, "" if its states don't tell.
func happened(s store.Step, currency string) string {
	amount := ""
	if s.Amount > 0 {
		amount = " " + gateway.FormatAmount(s.Amount, gateway.Currency(currency))
	}
	var text string
	switch gateway.TransactionStatus(s.To) {
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		text = "Paid"
	case gateway.TransactionRefunded, gateway.TransactionPartiallyRefunded:
		text = "Refunded"
	case gateway.TransactionChargedback:
		text = "Charged back"
	default:
		text = sentence(s.To)
	}
	switch {
	case s.From == "" && (s.Amount > 0 || tone(s.To) != "open"):
		return "Created and " + strings.ToLower(text[:1]) + text[1:] + amount
	case s.From == "":
		return "Created"
	case s.From == s.To && amount == "":
		return ""
	}
	return text + amount
}

// sentence writes a name such as "partially_refunded" as the beginning of a sentence.
func sentence(name string) string {
	text := human(name)
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// human writes a name of the interface as words: "partially refunded".
func human(name string) string { return strings.NewReplacer("_", " ", ".", " ").Replace(name) }

// causeOf says what caused a step.
func causeOf(text string) string {
	kind, what, _ := strings.Cut(text, " ")
	switch kind {
	case "control":
		if ctl := control.Named(what); ctl != nil {
			return "“" + ctl.Label + "”, in the console or by " + what + " of the control plane"
		}
		return what + " of the control plane"
	case "timer":
		return "the clock: " + what
	case "request":
		return "a request: " + what
	case "checkout":
		return "the buyer, on the " + text
	default:
		return ""
	}
}

func (e *episode) add(s sent) {
	e.Webhooks = append(e.Webhooks, s)
	e.Bad = e.Bad || s.Bad
}

// callOf describes a request that names the resource, whose id in the path is omitted.
func (rq *request) callOf(of subject, e journal.Entry) call {
	status := fmt.Sprint(e.Status)
	if e.Status == 0 {
		status = "no response"
	}
	return call{
		Text: e.Method + " " + strings.ReplaceAll(e.Path, of.id, "…") + " → " + status, Detail: cmp.Or(e.Fault, codeOf(e), e.Operation),
		Link: rq.to("requests", fmt.Sprint(e.ID)), Bad: e.Status >= http.StatusBadRequest || e.Status == 0,
	}
}

// sent describes a delivery and its attempts.
func (rq *request) sent(d deliver.Delivery) sent {
	s := sent{
		Kind: d.Kind, To: cmp.Or(d.URL, d.Endpoint), State: string(d.State), Link: rq.to("webhooks", d.ID), Bad: d.State == deliver.Failed,
	}
	if d.State == deliver.Pending {
		s.Next = d.Next
	}
	for _, a := range d.Attempts {
		text := fmt.Sprintf("%d in %d ms", a.Status, a.Duration.Milliseconds())
		if a.Status == 0 {
			text = a.Error
		}
		if a.Fault != "" {
			text += ", fault " + a.Fault
		}
		s.Attempts = append(s.Attempts, attempt{At: a.At, Text: text, Bad: !a.OK()})
	}
	return s
}

// told says what became of the latest webhook about a resource. The deliveries are those
// of its timeline, newest first.
func (rq *request) told(id string, deliveries []deliver.Delivery) told {
	var latest []deliver.Delivery
	for _, d := range deliveries {
		if d.Resource == id && (len(latest) == 0 || latest[0].EventID == d.EventID) {
			latest = append(latest, d)
		}
	}
	if len(latest) == 0 {
		return told{}
	}
	slices.SortStableFunc(latest, func(a, b deliver.Delivery) int { return urgency(b) - urgency(a) })
	d := latest[0]
	t := told{Link: rq.to("webhooks", d.ID)}
	switch d.State {
	case deliver.Delivered:
		t.Text, t.Good = "your server was told ✓", true
	case deliver.Failed:
		t.Text, t.Bad = "your server was not told ✗: "+d.Kind+" failed", true
	case deliver.Held:
		t.Text = "your server was not told yet: " + d.Kind + " is held"
	case deliver.Dropped:
		t.Text, t.Bad = "your server was not told ✗: a fault dropped "+d.Kind, true
	case deliver.NoEndpoint:
		t.Text = "your server was not told: there is no endpoint for " + d.Kind
	default:
		t.Text = "your server is being told"
		if len(d.Attempts) > 0 {
			t.Text, t.Bad = "your server has not accepted "+d.Kind+" ✗, next attempt "+relative(rq.core.Clock.Now(), d.Next), true
		}
	}
	return t
}

// urgency sorts the deliveries of an event: the headline shows the worst.
func urgency(d deliver.Delivery) int {
	return slices.Index([]deliver.State{deliver.Delivered, deliver.NoEndpoint, deliver.Held, deliver.Pending, deliver.Dropped, deliver.Failed}, d.State)
}

// relative says how far a time is from now: "2 days ago", "in 3 h".
func relative(now, at time.Time) string {
	d := at.Sub(now).Round(time.Second)
	n := d.Abs()
	var text string
	switch {
	case n < time.Second:
		return "now"
	case n < time.Minute:
		text = fmt.Sprintf("%d s", n/time.Second)
	case n < time.Hour:
		text = fmt.Sprintf("%d min", n/time.Minute)
	case n < 48*time.Hour:
		text = fmt.Sprintf("%d h", n/time.Hour)
	default:
		text = fmt.Sprintf("%d days", n/(24*time.Hour))
	}
	if d > 0 {
		return "in " + text
	}
	return text + " ago"
}
