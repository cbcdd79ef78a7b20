// Package console serves the mock gateway's web pages. They show what happened
// and why, and have a button for every action of the control plane.
//
// It changes nothing itself: a form becomes an in-memory call of the control
// plane or request to the interface, so curl can do everything that a page can
// do. Pages work without JavaScript; the script reloads the page's content
// when something happens. Nothing runs, and no template is parsed, until a
// page is requested.
//
// To add a page: a line in routes, a function that returns its template's data,
// and the template in pages/.
package console

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// Prefix is the prefix of the pages' paths. The home page is also at /.
const Prefix = admin.Prefix + "/console"

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	core   *core.Core
	origin *http.CrossOriginProtection

	// plane is the control plane, and gateway the interface as clients reach it,
	// with journal and faults.
	plane   http.Handler
	gateway http.Handler
	// document and live are the interface in each dialect, for reads that are
	// internal, and own in the server's, if that is neither.
	document http.Handler
	live     http.Handler
	own      http.Handler

	parse sync.Once // of what follows
	pages map[string]*template.Template
	token tokens
	docs  reference
	err   error

	mu    sync.Mutex
	notes notes
}

// New returns the console. It acts through the control plane and through gateway, the
// interface with its journal and faults.
func New(c *core.Core, plane, gateway http.Handler) *Console {
	console := &Console{
		core: c, origin: http.NewCrossOriginProtection(), plane: plane, gateway: gateway,
		document: reader(c, spec.DocumentDialect), live: reader(c, spec.LiveDialect),
	}
	if c.Dialect != spec.DocumentDialect && c.Dialect != spec.LiveDialect {
		console.own = reader(c, c.Dialect)
	}
	return console
}

// reader returns the interface in a dialect for internal reads: it generates
// its own request ids, so that viewing a page changes nothing. It is created on
// first use.
func reader(c *core.Core, dialect spec.Dialect) http.Handler {
	api := sync.OnceValue(func() http.Handler { return c.Interface(dialect, ids.New()) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { api().ServeHTTP(w, r) })
}

// Serves reports whether a request is for a page: one of the console's own paths,
// or a browser's for / or the beginning of the control plane.
func Serves(r *http.Request) bool {
	path := r.URL.Path
	if path == Prefix || strings.HasPrefix(path, Prefix+"/") {
		return true
	}
	home := path == "/" || path == admin.Prefix || path == admin.Prefix+"/"
	return home && (r.Method == http.MethodGet || r.Method == http.MethodHead) && wantsHTML(r)
}

// wantsHTML reports whether a client prefers a page, as browsers do.
func wantsHTML(r *http.Request) bool {
	for accepted := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, _ := strings.Cut(accepted, ";"); strings.TrimSpace(kind) == "text/html" {
			return true
		}
	}
	return false
}

//go:embed pages/*.html
var pageFiles embed.FS

var (
	//go:embed static/style.css
	styleSheet []byte
	//go:embed static/script.js
	script []byte
)

// request is one request of a page.
type request struct {
	*Console

	w    http.ResponseWriter
	r    *http.Request
	key  string // of the account that is shown
	base string // of the paths of the pages that show this account
	args []string

	// position is the id of the latest event before the page's data was read, "" for
	// a page without data.
	position string
}

// route is a page; elements of the path in braces are arguments.
type route struct {
	path string
	page func(*request) (*view, error)
}

func routes() []route {
	return []route{
		{"", (*request).home},
		{"find", (*request).find},
		{"transactions", listPage(transactionList())},
		{"transactions/{id}", (*request).transaction},
		{"subscriptions", listPage(subscriptionList())},
		{"subscriptions/{id}", (*request).subscription},
		{"transfers", listPage(transferList())},
		{"transfers/{id}", (*request).transfer},
		{"customers", listPage(customerList())},
		{"customers/{id}", (*request).customer},
		{"links", (*request).links},
		{"links/{slug}", (*request).link},
		{"webhooks", (*request).webhooks},
		{"webhooks/{id}", (*request).delivery},
		{"doctor", (*request).doctor},
		{"requests", (*request).requests},
		{"requests/{id}", (*request).request},
		{"faults", (*request).faultsPage},
		{"snapshots", (*request).snapshots},
		{"accounts", (*request).accounts},
		{"assumptions", (*request).assumptions},
		{"reference", (*request).reference},
		{"reference/{id}", (*request).operation},
	}
}

// pageError is the reason why a page can't be shown.
type pageError struct {
	status int
	detail string
}

// Error implements error.
func (e pageError) Error() string { return e.detail }

// notFound is the error for a resource that the account doesn't have.
func notFound() error {
	return pageError{http.StatusNotFound, "There is no such resource. It may belong to another account, or have been deleted by a reset."}
}

// redirect is returned by a page that redirects to another one.
type redirect struct{ to string }

// Error implements error.
func (r redirect) Error() string { return "see " + r.to }

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header(w)
	c.parse.Do(c.load)
	if c.err != nil {
		http.Error(w, c.err.Error(), http.StatusInternalServerError)
		return
	}
	rq := &request{Console: c, w: w, r: r}
	rest := rq.account(strings.Trim(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, admin.Prefix), "/console"), "/"))
	switch {
	case rest == "do":
		rq.act()
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		rq.fail(http.StatusMethodNotAllowed, "Pages support GET and HEAD only.")
	case rest == "style.css":
		respond.WriteText(w, http.StatusOK, "text/css; charset=utf-8", styleSheet)
	case rest == "script.js":
		respond.WriteText(w, http.StatusOK, "text/javascript; charset=utf-8", script)
	default:
		rq.show(rest)
	}
}

// header sets the headers of every response. Nothing may be loaded from
// elsewhere, run inline, or be shown in another page's frame.
func header(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "+
		"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "same-origin") // a form must name its origin
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
}

// show writes the page at a path.
func (rq *request) show(path string) {
	for _, rt := range routes() {
		args, matches := faults.PathArguments(rt.path, path)
		if !matches {
			continue
		}
		rq.args = args
		rq.position = rq.core.Events.Position() // before the page reads its data
		v, err := rt.page(rq)
		var to redirect
		var failed pageError
		switch {
		case errors.As(err, &to):
			http.Redirect(rq.w, rq.r, to.to, http.StatusSeeOther)
		case errors.As(err, &failed):
			rq.fail(failed.status, failed.detail)
		case err != nil:
			rq.fail(http.StatusInternalServerError, err.Error())
		default:
			rq.render(http.StatusOK, v)
		}
		return
	}
	rq.fail(http.StatusNotFound, "The console has no such page.")
}

// view is the data of the templates.
type view struct {
	Title    string
	Section  string // of the navigation
	Template string
	Data     any

	*frame
}

// frame is the data around the content of every page.
type frame struct {
	Base        string
	Events      string // the address of this account's event stream, beginning where the page's data ends
	Token       string
	Back        string // the path of this page
	Account     string
	Now         time.Time
	Environment string
	Dialect     string
	Note        *note
	Elsewhere   *elsewhere
	Sections    []section
}

type section struct {
	Path, Title string
	Current     bool
}

// noSection is for pages that are not in the navigation.
const noSection = "-"

func sections() []section {
	return []section{
		{Path: "", Title: "Home"},
		{Path: "/transactions", Title: "Transactions"},
		{Path: "/subscriptions", Title: "Subscriptions"},
		{Path: "/transfers", Title: "Transfers"},
		{Path: "/customers", Title: "Customers"},
		{Path: "/links", Title: "Checkout links"},
		{Path: "/webhooks", Title: "Webhooks"},
		{Path: "/doctor", Title: "Signature doctor"},
		{Path: "/requests", Title: "Requests"},
		{Path: "/faults", Title: "Faults"},
		{Path: "/snapshots", Title: "Snapshots"},
		{Path: "/accounts", Title: "Accounts"},
		{Path: "/reference", Title: "API reference"},
		{Path: "/assumptions", Title: "Assumptions"},
	}
}

func (rq *request) frame(section string) *frame {
	f := &frame{
		Base: rq.base, Events: admin.Prefix + "/events?" + query("account", rq.core.Events.Name(rq.key)) + "&" + query("after", rq.position), Token: rq.token.issue(), Back: rq.r.URL.RequestURI(),
		Account: masked(rq.key), Now: rq.core.Clock.Now(), Environment: rq.core.Environment(), Dialect: "document",
		Note: rq.findNote(), Sections: sections(),
	}
	switch rq.core.Dialect {
	case spec.DocumentDialect:
	case spec.LiveDialect:
		f.Dialect = "live"
	default:
		f.Dialect = "mixed"
	}
	if section != noSection {
		f.Elsewhere = rq.elsewhere(section == "")
	}
	if rq.r.Method == http.MethodPost { // the page can't be reloaded
		f.Back, f.Events = rq.back(), ""
	}
	for i := range f.Sections {
		f.Sections[i].Current = f.Sections[i].Path == section
	}
	return f
}

// render writes a page.
func (rq *request) render(status int, v *view) {
	v.frame = rq.frame(v.Section)
	var b bytes.Buffer
	if err := rq.pages[v.Template].ExecuteTemplate(&b, "layout", v); err != nil {
		http.Error(rq.w, err.Error(), http.StatusInternalServerError)
		return
	}
	rq.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	rq.w.WriteHeader(status)
	_, _ = rq.w.Write(b.Bytes()) // fails only if the client has gone
}

// fail writes an error page.
func (rq *request) fail(status int, detail string) {
	rq.render(status, &view{Title: http.StatusText(status), Section: noSection, Template: "result", Data: result{Status: status, Detail: detail}})
}

// load parses the templates and generates the secret of the forms.
func (c *Console) load() {
	c.token = newTokens()
	c.docs = readReference(c.core.Dialect.Nearest() == spec.LiveDialect)
	layout, err := template.New("").Funcs(functions()).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html")
	if err != nil {
		c.err = err
		return
	}
	c.pages = map[string]*template.Template{}
	files, err := pageFiles.ReadDir("pages")
	if err != nil {
		c.err = err
		return
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		page, err := layout.Clone()
		if err == nil {
			page, err = page.ParseFS(pageFiles, "pages/"+file.Name())
		}
		if err != nil {
			c.err = err
			return
		}
		c.pages[name] = page
	}
}

// to returns the path of a page that shows the same account.
func (rq *request) to(elements ...string) string {
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(append([]string{rq.base}, elements...), "/")
}
