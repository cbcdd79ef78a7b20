package console

import (
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
	"github.com/gateway-go/gateway/pix"
)

// resourceData is the data of a resource's page.
type resourceData struct {
	Kind     string // "Transaction"
	ID       string
	State    string
	Headline headline
	Facts    []fact
	Diagram  *diagram
	Actions  []action // actions of payers, banks and issuers
	Requests []action // actions of the merchant, through the interface
	Code     *code
	Lists    []table
	Timeline []*episode
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
	Open        bool         // it can still be paid
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

// shownOccurrences bounds the lists on the page of a resource.
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
		{"this server", rq.own, true},
		{"document dialect", rq.document, rq.core.Dialect == spec.DocumentDialect},
		{"live dialect", rq.live, rq.core.Dialect == spec.LiveDialect},
	} {
		if dialect.handler == nil {
			continue
		}
		_, text, err := rq.roundTrip(dialect.handler, http.MethodGet, path, nil)
		if err != nil {
			continue
		}
		list = append(list, document{dialect.title, indented(rq.core.Journal.Masked(text)), dialect.own})
	}
	if rq.core.Dialect == spec.LiveDialect {
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
	if drawn, err := pix.Draw(text); err == nil {
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
