package httpapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// The page that data.url of a checkout link leads to: what a buyer is asked to
// pay. It takes no payment; that is the test's part.

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText)) //nolint:gochecknoglobals // never changes

// html is data that is shown to people instead of put into the envelope.
type html []byte

type pageData struct {
	Title       string
	Description string
	Status      string // "" while the link is active
	Items       []pageItem
	Total       string
}

type pageItem struct {
	Name     string
	Quantity int
	Price    string
}

// showLink finds the link in any account: a buyer has no credentials.
func (a *API) showLink(rq *request) (any, *problem) {
	for _, key := range a.cfg.Store.Accounts() {
		var data *pageData
		a.cfg.Store.Account(key).View(func(d *store.Data) {
			if l := d.Links.Get(rq.param); l != nil {
				data = pageOf(l, d.Catalog())
			}
		})
		if data != nil {
			return rq.render(data)
		}
	}
	rq.status = http.StatusNotFound
	return rq.render(&pageData{Title: "No such checkout", Status: "unknown"})
}

func pageOf(l *engine.Link, products engine.Catalog) *pageData {
	data := &pageData{Title: l.Title, Description: l.Description, Total: gateway.FormatAmount(l.Total(products), gateway.Currency(l.Currency))}
	if data.Title == "" {
		data.Title = "Checkout"
	}
	if l.Status != "active" {
		data.Status = l.Status
	}
	for _, item := range l.Items {
		p := products(item.ProductID)
		data.Items = append(data.Items, pageItem{p.Name, item.Quantity, gateway.FormatAmount(p.Price, gateway.Currency(l.CurrencyOf(p)))})
	}
	return data
}

func (rq *request) render(data *pageData) (any, *problem) {
	if data.Status != "" && rq.status == http.StatusOK {
		rq.status = http.StatusGone
	}
	var b bytes.Buffer
	if err := page.Execute(&b, data); err != nil {
		return nil, &problem{status: http.StatusInternalServerError, code: "PAGE_FAILED", detail: "The page could not be written."}
	}
	return html(b.Bytes()), nil
}

func (rq *request) writePage(b html) {
	h := rq.w.Header()
	h.Set("X-Request-Id", rq.id)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	rq.w.WriteHeader(rq.status)
	_, _ = rq.w.Write(b) // the buyer is gone: nobody to tell
}
