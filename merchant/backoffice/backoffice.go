// Package backoffice is the operations page of package merchant: what waits and what
// fails, any order with its money and its story, the problems with the decisions that fit
// them, the webhook events that could not be handled, and the statement of a month.
//
//	page, err := backoffice.New(m, backoffice.Config{Actor: actor})
//	if err != nil {
//		return err
//	}
//	mux.Handle("/admin/payments/", requireLogin(page))
//
// The pages have no login of their own: mount them behind yours, at any path that ends with
// a slash, with or without [http.StripPrefix]. Your pages can link to /order?id=, /charge?id=,
// /refund?id=, /payout?id=, /subscription?id= and /find?q= below that path.
//
// A page changes nothing unless [Config.Actor] allows it. It works without JavaScript and
// loads nothing from elsewhere. It shows no buyer, no card, no document and no Pix key; what
// the gateway or a callback wrote is masked.
package backoffice

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/masking"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
)

// Config configures the pages. The zero value shows everything and changes nothing.
type Config struct {
	// Actor returns who has sent a request, and whether that person may decide about
	// problems. The name is stored for good as [merchant.Resolution.By], and is shown in the
	// story of the order. Without a name nothing is allowed. If Actor is nil, the pages are
	// read-only.
	Actor func(r *http.Request) (who string, allowed bool)

	// Title is the heading of the pages; default "Payments".
	Title string

	Logger *slog.Logger // default slog.Default
}

// Reports is what the pages need to show the books. [merchant.Reports] implements it, on a read
// replica for example, and so does every [Merchant].
type Reports interface {
	Accounts() []string
	Zone(account string) (*time.Location, error)
	Health(ctx context.Context) (merchant.Health, error)

	Find(ctx context.Context, id string) ([]merchant.Hit, error)
	Record(ctx context.Context, book, kind, id string) (*merchant.Record, error)

	Problems(ctx context.Context) ([]*merchant.Problem, error)
	Problem(ctx context.Context, id string) (*merchant.Problem, error)
	DeadLetters(ctx context.Context, account string, q webhook.DeadLetterQuery) ([]merchant.DeadLetter, error)
	Unknown(ctx context.Context, q merchant.UnknownQuery) ([]merchant.UnknownResource, error)

	Month(ctx context.Context, account, month string) (*merchant.Statement, error)
	Export(ctx context.Context, w io.Writer, account, month string, format merchant.Format) error
}

// Merchant is what the pages need to carry out decisions too. [merchant.Merchant] implements it,
// whatever the type of its transactions.
type Merchant interface {
	Reports

	Resolve(ctx context.Context, problem string, r merchant.Resolution) error
	CheckMonth(ctx context.Context, account, month string) (*merchant.Statement, []merchant.Difference, error)
}

// New returns the pages of m. If it is no [Merchant], they are read-only, whatever Config.Actor
// allows.
func New(m Reports, cfg Config) (http.Handler, error) {
	if m == nil {
		return nil, errors.New("backoffice: the merchant is nil")
	}
	cfg.Title = cmp.Or(cfg.Title, "Payments")
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	o := &office{m: m, cfg: cfg, origin: http.NewCrossOriginProtection()}
	o.decides, _ = m.(Merchant)
	var err error
	o.pages, err = load(m.Zone)
	return o, err
}

// office serves the pages.
type office struct {
	m       Reports
	decides Merchant // nil if the pages are read-only
	cfg     Config
	origin  *http.CrossOriginProtection
	pages   map[string]*template.Template

	checking sync.Mutex // held while a month is compared with the gateway
}

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed style.css
var styleSheet []byte

// view is what the layout of a page shows.
type view struct {
	Site    string
	Title   string
	Section string // the link that is marked as current
	Who     string
	Allowed bool
	Query   string
	Note    string // what was just done
	Data    any

	template string
	status   int // default 200
}

// visit is a request of a page.
type visit struct {
	*office

	w        http.ResponseWriter
	r        *http.Request
	readable bool // the form and the query
	who      string
	allowed  bool
}

// page shows something; a nil view means that it has written the response itself.
type page func(*visit) (*view, error)

// Every page is one level below the path of the overview. So its links are relative, and
// the last element of the path says which page it is, wherever the pages are mounted.
func routes(name string) (get, post page) {
	switch name {
	case "":
		return (*visit).overview, nil
	case "find":
		return (*visit).find, nil
	case "order", "charge", "refund", "payout", "subscription":
		return func(v *visit) (*view, error) { return v.record(name) }, nil
	case "problems":
		return (*visit).problems, nil
	case "problem":
		return (*visit).problem, (*visit).decide
	case "dead-letters":
		return (*visit).deadLetters, (*visit).decideLetters
	case "unknown":
		return (*visit).unknown, nil
	case "month":
		return (*visit).month, (*visit).checkMonth
	case "export":
		return (*visit).export, nil
	}
	return nil, nil
}

// maxForm is the size of a form in bytes.
const maxForm = 64 << 10

// ServeHTTP implements [http.Handler].
func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	v := &visit{office: o, w: w, r: r}
	if o.cfg.Actor != nil {
		v.who, v.allowed = o.cfg.Actor(r)
		v.allowed = v.allowed && o.decides != nil && strings.TrimSpace(v.who) != ""
	}
	// Otherwise FormValue would read the file of a multipart form, whatever the method, and
	// write it to the disk.
	v.readable = r.ParseForm() == nil
	v.serve() //nolint:contextcheck // the visit has the request
}

func (v *visit) serve() {
	name := v.r.URL.Path[strings.LastIndexByte(v.r.URL.Path, '/')+1:]
	reads := v.r.Method == http.MethodGet || v.r.Method == http.MethodHead
	if name == "style.css" && reads {
		v.w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = v.w.Write(styleSheet)
		return
	}
	get, post := routes(name)
	switch {
	case v.r.Method == http.MethodPost && !v.allowed:
		v.show(v.refuse(http.StatusForbidden, "You may look, but not decide. Nothing was changed."), nil)
	case get == nil:
		v.show(v.refuse(http.StatusNotFound, "There is no such page."), nil)
	case reads:
		v.show(get(v))
	case v.r.Method == http.MethodPost && post != nil:
		v.show(v.act(post))
	default:
		v.w.Header().Set("Allow", "GET, HEAD")
		if post != nil {
			v.w.Header().Set("Allow", "GET, HEAD, POST")
		}
		v.show(v.refuse(http.StatusMethodNotAllowed, "This page does not support the method of the request. Nothing was changed."), nil)
	}
}

// header sets the headers of every response. Nothing may be loaded from elsewhere, run, or
// be shown in another page's frame.
func header(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, a form would not name its origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// act checks where a form comes from, and carries it out.
func (v *visit) act(do page) (*view, error) {
	if !v.fromHere() {
		return v.refuse(http.StatusForbidden, "The form did not come from this page, so nothing was changed. A proxy in front must pass on the headers Host, Origin and Sec-Fetch-Site."), nil
	}
	if !v.readable {
		return v.refuse(http.StatusBadRequest, "The form could not be read, or is too long. Nothing was changed."), nil
	}
	return do(v)
}

// fromHere reports whether a form was sent by a page of this site. Every browser names at
// least one of the two headers.
func (v *visit) fromHere() bool {
	named := v.r.Header.Get("Sec-Fetch-Site") != "" || v.r.Header.Get("Origin") != ""
	return named && v.origin.Check(v.r) == nil
}

// refusal is a page that only says why there is no other.
type refusal struct{ Status, Text, Link, Label string }

func (v *visit) refuse(status int, text string) *view {
	return &view{template: "refusal", status: status, Title: http.StatusText(status), Data: refusal{Text: text}}
}

// show writes a page.
func (v *visit) show(is *view, err error) {
	if err != nil {
		is = v.failed(err)
	}
	if is == nil {
		return
	}
	is.Site, is.Who, is.Allowed = v.cfg.Title, v.who, v.allowed
	is.status = cmp.Or(is.status, http.StatusOK)
	var out bytes.Buffer
	if err := v.pages[is.template].ExecuteTemplate(&out, "layout", is); err != nil {
		v.log(err)
		http.Error(v.w, "The page could not be made.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(is.status)
	_, _ = v.w.Write(out.Bytes())
}

// failed returns the page for an error.
func (v *visit) failed(err error) *view {
	var invalid *gateway.ValidationError
	switch {
	case errors.Is(err, merchant.ErrNotFound):
		return v.refuse(http.StatusNotFound, "There is no such record.")
	case errors.Is(err, merchant.ErrAccount):
		return v.refuse(http.StatusNotFound, "It belongs to an account that this process does not have, or there are several accounts and none was named.")
	case errors.As(err, &invalid):
		return v.refuse(http.StatusUnprocessableEntity, sentence(invalid))
	case errors.Is(err, context.Canceled) && v.r.Context().Err() != nil:
		return nil // the browser does not wait any more
	}
	v.log(err)
	return v.refuse(http.StatusInternalServerError, "The page could not be made. The reason is in the log.")
}

func (v *visit) log(err error) {
	v.cfg.Logger.LogAttrs(v.r.Context(), slog.LevelError, "backoffice: a page failed", slog.String("path", v.r.URL.Path), slog.String("error", masking.Text(err.Error())))
}

// redirect leads to another page. The location is relative, as all links are.
func (v *visit) redirect(to string) (*view, error) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil, nil //nolint:nilnil // the response is written
}
