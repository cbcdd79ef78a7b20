package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// listing is a list of resources. It is read through the interface, with its
// filters, rules and pages.
type listing struct {
	section   string
	title     string
	path      string   // of the interface
	operation string   // whose parameters are the filters
	columns   []string // heads of the table
	first     []string // filters that are always shown; the others are collapsed
	row       func(*request, map[string]any) row
}

type listData struct {
	Filters, More []field
	Filtered      bool
	Columns       []string
	Rows          []row
	Total         int
	Next, Prev    string
	Error         string
	Create        string  // the operation in the reference that creates one
	Sample        *action // creates one
}

type row struct {
	Link  string
	Cells []cell
}

// cell is one value of a table. Its kind defines how it is shown.
type cell struct {
	Text string
	Kind string // "", "id", "state", "money", "time"
}

// listPage returns the page of a list.
func listPage(l listing) func(*request) (*view, error) {
	return func(rq *request) (*view, error) {
		data, err := rq.list(l)
		if err != nil {
			return nil, err
		}
		return &view{Title: l.title, Section: "/" + l.section, Template: "list", Data: data}, nil
	}
}

func (rq *request) list(l listing) (*listData, error) {
	q := rq.r.URL.Query()
	q.Del("note")
	sent := url.Values{}
	for name, values := range q {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
		if len(values) > 0 {
			sent.Set(name, strings.Join(values, ","))
		}
	}
	data := &listData{Columns: l.columns, Create: strings.Replace(l.operation, "_list", "_create", 1), Sample: sampleOf(l.section)}
	data.Filters, data.More = rq.filters(l, sent)
	for name := range sent {
		data.Filtered = data.Filtered || !slices.Contains([]string{"cursor", "direction", "page", "limit"}, name)
	}
	status, text, err := rq.roundTrip(rq.document, http.MethodGet, l.path+"?"+sent.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		data.Error = detailOf(text)
		return data, nil
	}
	var page listed
	if err := json.Unmarshal(text, &page); err != nil {
		return nil, err
	}
	items, err := page.items(data)
	if err != nil {
		return nil, err
	}
	data.pages(rq, sent, page)
	for _, item := range items {
		data.Rows = append(data.Rows, l.row(rq, item))
	}
	return data, nil
}

// listed is a list of the interface, by cursor or by page number.
type listed struct {
	Data     json.RawMessage `json:"data"`
	Metadata *numbers        `json:"metadata"`
	byCursor cursors
}

type numbers struct {
	Page  int `json:"page"`
	Limit int `json:"limit"`
	Total int `json:"total"`
}

type cursors struct {
	Data       []map[string]any `json:"data"`
	Total      int              `json:"total"`
	NextCursor string           `json:"next_cursor"`
	PrevCursor string           `json:"prev_cursor"`
}

func (l *listed) items(data *listData) (items []map[string]any, err error) {
	if l.Metadata != nil {
		data.Total = l.Metadata.Total
		return items, json.Unmarshal(l.Data, &items)
	}
	err = json.Unmarshal(l.Data, &l.byCursor)
	data.Total = l.byCursor.Total
	return l.byCursor.Data, err
}

// pages sets the links to the previous and next page.
func (data *listData) pages(rq *request, sent url.Values, l listed) {
	link := func(set ...string) string {
		q := maps.Clone(sent)
		q.Del("cursor")
		q.Del("direction")
		for i := 0; i < len(set); i += 2 {
			q.Set(set[i], set[i+1])
		}
		return rq.r.URL.EscapedPath() + "?" + q.Encode()
	}
	if m := l.Metadata; m != nil {
		if m.Page > 1 {
			data.Prev = link("page", strconv.Itoa(m.Page-1))
		}
		if m.Page*m.Limit < m.Total {
			data.Next = link("page", strconv.Itoa(m.Page+1))
		}
		return
	}
	if c := l.byCursor.NextCursor; c != "" {
		data.Next = link("cursor", c)
	}
	if c := l.byCursor.PrevCursor; c != "" {
		data.Prev = link("cursor", c, "direction", "prev")
	}
}

// filters returns the fields of a list's filters, as the interface describes them.
func (rq *request) filters(l listing, sent url.Values) (first, more []field) {
	for _, p := range rq.docs.parameters(l.operation) {
		if slices.Contains([]string{"cursor", "direction", "page"}, p.Name) {
			continue
		}
		f := field{Name: p.Name, Label: labelOf(p.Name), Value: sent.Get(p.Name), Type: "text"}
		if slices.Contains([]string{"dateFrom", "dateTo", "created_after", "created_before"}, p.Name) && !strings.Contains(f.Value, "T") {
			f.Type = "date"
		}
		if len(p.Values) > 0 {
			f.Type, f.Options = "select", append([]string{""}, p.Values...)
		}
		if slices.Contains(l.first, p.Name) {
			first = append(first, f)
		} else {
			more = append(more, f)
		}
	}
	slices.SortStableFunc(first, func(a, b field) int { return slices.Index(l.first, a.Name) - slices.Index(l.first, b.Name) })
	return first, more
}

// labelOf returns the label of a filter.
func labelOf(name string) string {
	switch name {
	case "status":
		return "State"
	case "paymentMethods":
		return "Method"
	case "email", "customer_email":
		return "E-mail"
	case "dateFrom", "created_after":
		return "Created from"
	case "dateTo", "created_before":
		return "Created until"
	case "deliveryStatus":
		return "Delivery"
	case "documentNumber", "document_number":
		return "Document"
	case "external_ref":
		return "Reference"
	case "ip_address":
		return "IP address"
	case "limit":
		return "Per page"
	case "search":
		return "Name, e-mail or document"
	default:
		return sentence(name)
	}
}

// columnKind returns the kind of a column's cells.
func columnKind(rows []row, column int) string {
	if len(rows) == 0 {
		return ""
	}
	return rows[0].Cells[column].Kind
}

// The values of an item of the interface's JSON.

func str(item map[string]any, path ...string) string {
	var v any = item
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, _ := v.(string)
	return s
}

func money(item map[string]any, amount, currency string) string {
	n, _ := item[amount].(float64)
	return gateway.FormatAmount(int64(n), gateway.Currency(currency))
}

func moment(item map[string]any, name string) cell {
	return cell{Text: str(item, name), Kind: "time"}
}

// query encodes one parameter of a URL.
func query(name, value string) string { return url.Values{name: {value}}.Encode() }

// stamp formats a time as the interface does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
