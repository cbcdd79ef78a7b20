package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Faults, snapshots, accounts and assumptions.

type faultsData struct {
	Faults  []faultRow
	Presets []action
	Add     action
	Clear   []action
	Keys    []action
	Kinds   []string
}

type faultRow struct {
	faults.Report

	Left   string
	Remove action
}

func (rq *request) faultsPage() (*view, error) {
	add := "POST " + admin.Prefix + "/faults"
	preset := func(label, hint, fault string, more ...field) action {
		return action{Call: add, Label: label, Hint: hint, Fields: append([]field{{Name: asText + "fault", Type: "hidden", Value: fault}}, more...)}
	}
	once := field{Name: asNumber + "times", Type: "hidden", Value: "1"}
	twice := field{Name: asNumber + "times", Type: "hidden", Value: "2"}
	data := &faultsData{
		Presets: []action{
			preset("Lose a response", "The next change is executed, then the connection breaks.", "lose-response", once),
			preset("503 twice", "The next two requests get 503 and Retry-After.", "status=503; retry-after=1", twice),
			preset("429 once", "The next request is rate limited.", "status=429; retry-after=1", once),
			preset("Reset the connection", "The next request is not executed.", "reset-before", once),
			preset("Delay by 2 s", "Every response takes two seconds longer.", "latency=2s"),
			preset("Truncate a response", "The next response ends in the middle.", "truncate", once),
			preset("HTML from a proxy", "The next response is HTML.", "html-page", once),
			preset("Reads lag", "Reads and lists show the state of two minutes ago, for ten minutes.", "lag=2m",
				field{Name: asText + "for", Type: "hidden", Value: "10m"}),
			preset("Unknown states", "Every status has an unknown value.", "unknown-enum"),
			preset("One in two fails", "Half of the requests get 500.", "status=500", field{Name: asNumber + "probability", Type: "hidden", Value: "0.5"}),
		},
		Add: action{Call: add, Label: "Add fault", Fields: []field{
			{Name: asText + "fault", Label: "Fault", Type: "text", Required: true, Placeholder: "status=503; retry-after=2"},
			{Name: asText + "on", Label: "Operation, path or event kind; empty for all", Type: "text", Placeholder: "transactions.create"},
			{Name: asNumber + "times", Label: "Times", Type: "number", Min: "1", Placeholder: "any"},
			{Name: asNumber + "nth", Label: "Only the nth", Type: "number", Min: "1", Placeholder: "each"},
			{Name: asNumber + "probability", Label: "Probability", Type: "text", Placeholder: "0 to 1"},
			{Name: asText + "for", Label: "Ends after, on the virtual clock", Type: "text", Placeholder: "10m"},
		}},
		Clear: []action{
			{Call: "DELETE " + admin.Prefix + "/faults", Label: "Remove request faults", Danger: true},
			{Call: "DELETE " + admin.Prefix + "/deliveries/faults", Label: "Remove webhook faults", Danger: true},
		},
		Keys: []action{
			{Call: "POST " + admin.Prefix + "/key/revoke", Label: "Revoke the API key", Hint: "Every call gets 401; webhooks go on.", Danger: true},
			{Call: "POST " + admin.Prefix + "/key/restore", Label: "Restore the API key"},
			{Call: "POST " + admin.Prefix + "/key/replace", Label: "Add a key", Fields: []field{
				{Name: asText + "key", Label: "New key of the same account", Type: "text", Required: true, Placeholder: "sk_test_new"},
			}},
		},
		Kinds: faults.Names(),
	}
	for _, r := range rq.core.Faults.Reports(rq.key) {
		data.Faults = append(data.Faults, faultRow{r, left(r, rq.core.Clock.Now()), action{
			Call: "DELETE " + admin.Prefix + "/faults/{id}", IDs: []string{r.ID}, Label: "Remove",
		}})
	}
	return &view{Title: "Faults", Section: "/faults", Template: "faults", Data: data}, nil
}

// left returns how often a fault can still occur.
func left(r faults.Report, now time.Time) string {
	switch {
	case !r.Until.IsZero() && !now.Before(r.Until), r.Fault.Never, r.Fault.Nth > 0 && r.Seen >= r.Fault.Nth:
		return "0"
	case r.Fault.Nth > 0:
		return "1"
	case r.Fault.Times > 0:
		return strconv.Itoa(r.Fault.Times - r.Fired)
	default:
		return "any number"
	}
}

type snapshotsData struct {
	Snapshots []snapshotRow
	Take      action
	Upload    action
	Seed      action
	Error     string
}

type snapshotRow struct {
	ID      string   `json:"id"`
	At      string   `json:"at"`
	Bytes   int      `json:"bytes"`
	Actions []action `json:"-"`
}

func (rq *request) snapshots() (*view, error) {
	data := &snapshotsData{Upload: action{
		Call: "PUT " + admin.Prefix + "/snapshot", Label: "Load the snapshot", Danger: true, Upload: true,
		Hint:   "Replaces the state of the whole server.",
		Fields: []field{{Name: "body", Label: "Snapshot file", Type: "file", Required: true}},
	}, Seed: action{
		Call: "POST " + admin.Prefix + "/seed", Label: "Load the seed file", Upload: true,
		Hint:   "If an entry is invalid, nothing is created.",
		Fields: []field{{Name: "body", Label: "Seed file", Type: "file", Required: true}},
	}, Take: action{
		Call: "POST " + admin.Prefix + "/snapshots", Label: "Take a snapshot", Hint: "The whole server, including its clock.",
	}}
	status, text, err := rq.roundTrip(rq.plane, http.MethodGet, admin.Prefix+"/snapshots", nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		data.Error = detailOf(text)
	}
	var list struct {
		Data []snapshotRow `json:"data"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, s := range list.Data {
		s.Actions = []action{
			{Call: "POST " + admin.Prefix + "/snapshots/{id}/restore", IDs: []string{s.ID}, Label: "Restore", Danger: true, Hint: "What happened since is lost."},
			{Call: "DELETE " + admin.Prefix + "/snapshots/{id}", IDs: []string{s.ID}, Label: "Delete"},
		}
		data.Snapshots = append(data.Snapshots, s)
	}
	return &view{Title: "Snapshots", Section: "/snapshots", Template: "snapshots", Data: data}, nil
}

type accountsData struct {
	Accounts []accountRow
	Actions  []action // on this account
	Server   []action // on all of them
}

type accountRow struct {
	Name, Event  string
	Path         string
	Current      bool
	Balance      int64
	Transactions int
}

// accountsShown bounds the page; a test suite may open thousands.
const accountsShown = 500

func (rq *request) accounts() (*view, error) {
	data := &accountsData{
		Actions: []action{{
			Call: "POST " + admin.Prefix + "/reset", Label: "Reset this account", Danger: true,
			Hint: "Clears resources, endpoints, deliveries, faults and requests.",
		}},
		Server: []action{
			{Call: "POST " + admin.Prefix + "/down", Label: "Begin an outage", Danger: true, Hint: "Every client's connection is reset."},
			{Call: "POST " + admin.Prefix + "/up", Label: "End the outage"},
		},
	}
	for _, key := range rq.core.Store.Accounts() {
		r := accountRow{Name: masked(key), Event: rq.core.Events.Name(key), Path: rq.accountPath(key), Current: key == rq.key}
		rq.core.Store.Account(key).View(func(d *store.Data) { r.Balance, r.Transactions = d.Balance, d.Transactions.Len() })
		if data.Accounts = append(data.Accounts, r); len(data.Accounts) == accountsShown {
			break
		}
	}
	return &view{Title: "Accounts", Section: "/accounts", Template: "accounts", Data: data}, nil
}

// assumptionGroup is a part of docs/assumptions.md.
type assumptionGroup struct {
	Title string
	List  []docs.Assumption
}

func (*request) assumptions() (*view, error) {
	var groups []assumptionGroup
	for _, a := range docs.Assumptions() {
		if len(groups) == 0 || groups[len(groups)-1].Title != a.Section {
			groups = append(groups, assumptionGroup{Title: a.Section})
		}
		g := &groups[len(groups)-1]
		g.List = append(g.List, a)
	}
	return &view{Title: "Assumptions", Section: "/assumptions", Template: "assumptions", Data: groups}, nil
}

// The API reference.

type referenceData struct {
	Interface []operationGroup
	Control   []operationGroup
}

type operationGroup struct {
	Title      string
	Operations []*operation
}

func (rq *request) reference() (*view, error) {
	return &view{Title: "API reference", Section: "/reference", Template: "reference", Data: referenceData{
		grouped(rq.docs.operations), grouped(rq.docs.control),
	}}, nil
}

func grouped(list []*operation) (groups []operationGroup) {
	at := map[string]int{}
	for _, o := range list {
		i, found := at[o.Tag]
		if !found {
			i = len(groups)
			at[o.Tag] = i
			groups = append(groups, operationGroup{Title: o.Tag})
		}
		groups[i].Operations = append(groups[i].Operations, o)
	}
	return groups
}

type operationData struct {
	*operation

	Send action
	Mine string // the example in the form
}

func (rq *request) operation() (*view, error) {
	for _, list := range [][]*operation{rq.docs.operations, rq.docs.control} {
		for _, o := range list {
			if o.ID == rq.args[0] {
				return &view{
					Title: o.Method + " " + o.Path, Section: "/reference", Template: "operation", Data: rq.operationData(o),
				}, nil
			}
		}
	}
	return nil, notFound()
}

// sectionOf returns the kind of the resource in a path: "transactions" for
// /v2/transactions/{id}/refund and for /__mock/transactions/{id}/pay.
func sectionOf(path string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	section, _, _ := strings.Cut(rest, "/")
	return section
}

func (rq *request) operationData(o *operation) *operationData {
	q := rq.r.URL.Query()
	data := &operationData{operation: o, Mine: q.Get("example")}
	data.Send = action{Call: o.Method + " " + o.Path, Label: "Send"}
	if strings.Contains(o.Path, "{") {
		_, name, _ := strings.Cut(o.Path, "{")
		name, _, _ = strings.Cut(name, "}")
		data.Send.Fields = append(data.Send.Fields, field{Name: "id", Label: name, Type: "text", Required: true, Value: cmp.Or(q.Get("id"), rq.latest(sectionOf(o.Path)))})
	}
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		f := field{Name: inQuery + p.Name, Label: p.Name, Type: "text"}
		if len(p.Values) > 0 {
			f.Type, f.Options = "select", append([]string{""}, p.Values...)
		}
		data.Send.Fields = append(data.Send.Fields, f)
	}
	if o.HasBody {
		body := field{Name: "body", Label: "Body", Type: "textarea"}
		for _, e := range o.Examples {
			if body.Value == "" || e.Name == data.Mine {
				body.Value, data.Mine = e.Body, e.Name
			}
		}
		body.Value = rq.repeatable(body.Value)
		data.Send.Fields = append(data.Send.Fields, body)
	}
	data.Send.Fields = append(data.Send.Fields, field{Name: "show", Type: "hidden", Value: "yes"})
	return data
}
