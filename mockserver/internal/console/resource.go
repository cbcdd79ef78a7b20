package console

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/gateway-go/gateway/internal/qr"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// resourceData is the data of a resource's page.
type resourceData struct {
	Kind     string // "Transaction"
	ID       string
	State    string
	Facts    []fact
	Diagram  *diagram
	Actions  []action // actions of payers, banks and issuers
	Requests []action // actions of the merchant, through the interface
	Code     *code
	Lists    []table
	Timeline []*occurrence
	JSON     []document
	Curl     string
}

type fact struct {
	Label string
	Cell  cell
	Link  string
}

// code is the code with which a payer pays.
type code struct {
	Title, Text string
	Picture     template.URL // a data URL; "" is none
	Wide        bool         // a bar code, and not a QR code
}

// document is the resource as the interface returns it in a dialect.
type document struct {
	Title, Text string
	Own         bool // the server's own dialect
}

// table is a list on the page of a resource.
type table struct {
	Title   string
	Columns []string
	Rows    []row
}

// occurrence is an entry of a timeline.
type occurrence struct {
	At     time.Time
	Kind   string // "request", "webhook", "attempt", "state", "timer"
	Text   string
	Detail string
	Link   string
	Bad    bool
}

const shownOccurrences = 100

// facts drops empty values.
func facts(list ...fact) []fact {
	return slices.DeleteFunc(list, func(f fact) bool { return f.Cell.Text == "" })
}

func timeFact(label string, t time.Time) fact {
	if t.IsZero() {
		return fact{Label: label}
	}
	return fact{Label: label, Cell: cell{stamp(t), "time"}}
}

// documents reads a resource in both dialects, and in the server's own, which comes
// first.
func (rq *request) documents(path string) (list []document) {
	for _, dialect := range [...]struct {
		title   string
		handler http.Handler
		own     bool
	}{
		{"this server", rq.cfg.Own, true},
		{"document dialect", rq.cfg.Document, rq.cfg.Dialect == spec.DocumentDialect},
		{"live dialect", rq.cfg.LiveAPI, rq.cfg.Dialect == spec.LiveDialect},
	} {
		if dialect.handler == nil {
			continue
		}
		_, text, err := rq.roundTrip(dialect.handler, http.MethodGet, path, nil)
		if err != nil {
			continue
		}
		list = append(list, document{dialect.title, indented(rq.cfg.Journal.Masked(text)), dialect.own})
	}
	if rq.cfg.Dialect == spec.LiveDialect {
		slices.Reverse(list)
	}
	return list
}

// picture draws a payment code.
func picture(title, text string) *code {
	if text == "" {
		return nil
	}
	c := &code{Title: title, Text: text}
	if drawn, err := qr.New(text); err == nil {
		if png, err := drawn.PNG(4); err == nil {
			c.Picture = template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(png)) //nolint:gosec // made here
		}
	}
	return c
}

// barcode draws a boleto's bar code over its digitable line.
func barcode(v *engine.Voucher) *code {
	if v == nil || v.Barcode == "" {
		return nil
	}
	drawn := base64.StdEncoding.EncodeToString([]byte(paymentcode.Bars(v.Barcode)))
	return &code{
		Title: "Boleto", Text: v.DigitableLine, Wide: true,
		Picture: template.URL("data:image/svg+xml;base64," + drawn), //nolint:gosec // made here, of digits
	}
}

// timeline lists what happened to a resource, the oldest first: requests that
// name it and webhooks with their attempts. Of entries with the same time,
// first comes before the others and last after them.
func (rq *request) timeline(id string, first, last []*occurrence) []*occurrence {
	list := first
	requests, _ := rq.cfg.Journal.Mentioning(rq.key, shownOccurrences, id)
	for _, e := range slices.Backward(requests) {
		list = append(list, &occurrence{
			At: e.At, Kind: "request", Text: fmt.Sprintf("%s %s → %d", e.Method, e.Path, e.Status),
			Detail: cmp.Or(e.Operation, e.Fault), Link: rq.to("requests", fmt.Sprint(e.ID)), Bad: e.Status >= http.StatusBadRequest || e.Status == 0,
		})
	}
	deliveries, _ := rq.cfg.Sender.Latest(rq.key, shownOccurrences, func(d *deliver.Delivery) bool { return d.Resource == id })
	for _, d := range slices.Backward(deliveries) {
		list = append(list, rq.webhook(d)...)
	}
	list = slices.DeleteFunc(append(list, last...), func(o *occurrence) bool { return o.At.IsZero() })
	slices.SortStableFunc(list, func(a, b *occurrence) int { return a.At.Compare(b.At) })
	return list[max(0, len(list)-shownOccurrences):]
}

// webhook lists a delivery and its attempts.
func (rq *request) webhook(d deliver.Delivery) []*occurrence {
	to := cmp.Or(d.URL, d.Endpoint, "no endpoint")
	list := []*occurrence{{
		At: d.Created, Kind: "webhook", Text: d.Kind + " → " + to, Detail: string(d.State),
		Link: rq.to("webhooks", d.ID), Bad: d.State == deliver.Failed,
	}}
	for _, a := range d.Attempts {
		text := fmt.Sprintf("attempt %d: %d in %d ms", a.Number, a.Status, a.Duration.Milliseconds())
		if a.Status == 0 {
			text = fmt.Sprintf("attempt %d: %s", a.Number, a.Error)
		}
		list = append(list, &occurrence{
			At: a.At, Kind: "attempt", Text: text, Detail: a.Fault, Link: rq.to("webhooks", d.ID), Bad: !a.OK(),
		})
	}
	if !d.Next.IsZero() && d.State == deliver.Pending {
		list = append(list, &occurrence{At: d.Next, Kind: "timer", Text: "next attempt of " + d.Kind, Link: rq.to("webhooks", d.ID)})
	}
	return list
}
