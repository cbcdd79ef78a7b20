package hosted

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/respond"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// visit is one request from a buyer, with the resources that it concerns.
type visit struct {
	pages *Pages
	w     http.ResponseWriter
	r     *http.Request
	words words

	key     string // of the link's account
	link    *engine.Link
	items   []item
	total   int64
	session *engine.Session     // of the cookie; nil if there is none
	payment *engine.Transaction // pending or completed
	last    *engine.Transaction // of the session's latest attempt
}

// find looks up a link. Slugs are unique across accounts.
func (v *visit) find(slug string) bool {
	v.key = v.pages.core.LinkOwner(slug)
	if v.key == "" {
		return false
	}
	v.load(slug, v.token())
	return v.link != nil
}

// token returns the session token of the buyer's cookie.
func (v *visit) token() string {
	c, err := v.r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// load reads the link and the session with a token.
func (v *visit) load(slug, token string) {
	v.account().View(func(d *store.Data) {
		v.session = nil
		if l := d.Links.Get(slug); l != nil { // nil if the account was just reset
			v.look(d, l, token)
		}
	})
}

// account returns the link's account. A fault that loses responses is notified
// of its changes.
func (v *visit) account() *store.Account { return v.causing("checkout page") }

// causing is account for changes with a cause.
func (v *visit) causing(cause string) *store.Account {
	a, c := v.pages.core.Store.Account(v.key), store.Cause{Text: cause}
	if w, ok := v.w.(faults.ChangeNoter); ok {
		observed := a.Observed(c, w.NoteChange)
		return &observed
	}
	return a.CausedBy(c)
}

func (v *visit) look(d *store.Data, l *engine.Link, token string) {
	v.link, v.items, v.total = l, itemsOf(l, d.Catalog()), l.Total(d.Catalog())
	v.session, v.payment, v.last = nil, nil, nil
	s := d.Sessions.ByRef(token)
	if s == nil || s.Slug != l.Slug {
		return
	}
	v.session, v.payment = s, d.Transactions.Get(s.TransactionID)
	if n := len(s.Attempts); n > 0 {
		v.last = d.Transactions.Get(s.Attempts[n-1].TransactionID)
	}
}

// began reports whether the session has a payment, which is shown even if the
// link has ended.
func (v *visit) began() bool {
	return v.session != nil && v.payment != nil && (engine.Processing(v.session) || engine.Completed(v.session))
}

// show serves the page for the session's current state.
func (v *visit) show() {
	notice := ""
	if q := v.r.URL.Query().Get("notice"); q == noticeStale || q == noticeLate {
		notice = q
	}
	if v.began() {
		v.render(http.StatusOK, v.pageOfPayment(notice))
		return
	}
	before := v.session
	if !v.open() {
		return
	}
	if before != nil && before.ID != v.session.ID && v.last == nil {
		notice = noticeExpired
	}
	in := valuesOf(v.session)
	if v.r.URL.Query().Has("fill") {
		maps.Copy(in, testBuyer())
	}
	v.render(http.StatusOK, v.pageOfForm(notice, in, nil))
}

// open resumes the buyer's session or opens a new one. If it can't, it shows the
// buyer why and returns false.
func (v *visit) open() bool {
	a := v.call(http.MethodGet, "", nil)
	switch a.status {
	case http.StatusOK:
	case http.StatusGone:
		v.render(http.StatusGone, &page{State: "gone", Reason: v.link.Status})
		return false
	default:
		v.fail(a.status, a.problem.Detail)
		return false
	}
	if a.data.SessionToken != v.token() {
		v.remember(a.data.SessionToken)
	}
	v.load(v.link.Slug, a.data.SessionToken)
	if v.session == nil { // the account was reset meanwhile
		v.render(http.StatusNotFound, &page{State: "missing"})
		return false
	}
	return true
}

// response is the response to a call of the interface.
type response struct {
	status  int
	data    struct{ SessionToken string }
	problem respond.Problem
}

// call makes a request to the interface on behalf of the link's account, with
// the session's token.
func (v *visit) call(method, path string, body any) response {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // strings and numbers always encode
	}
	target := "/v2/checkout/" + url.PathEscape(v.link.Slug) + path
	r, err := http.NewRequestWithContext(v.r.Context(), method, target, bytes.NewReader(text))
	if err != nil {
		return response{status: http.StatusInternalServerError, problem: respond.Problem{Detail: err.Error()}}
	}
	r.Header.Set("Content-Type", respond.JSON)
	token := v.token()
	if v.session != nil {
		token = v.session.Token
	}
	if token != "" {
		r.Header.Set(httpapi.SessionHeader, token)
	}
	w := &recorder{outer: v.w, header: http.Header{}}
	v.pages.core.API.ServeAs(v.key, w, r)
	return w.response()
}

// recorder records a response of the interface.
type recorder struct {
	outer  http.ResponseWriter
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// NoteChange implements faults.ChangeNoter.
func (w *recorder) NoteChange() {
	if outer, ok := w.outer.(faults.ChangeNoter); ok {
		outer.NoteChange()
	}
}

func (w *recorder) response() response {
	a := response{status: w.status}
	var err error
	if w.status < http.StatusBadRequest {
		var body struct {
			Data struct {
				SessionToken string `json:"session_token"`
			} `json:"data"`
		}
		err = json.Unmarshal(w.body.Bytes(), &body)
		a.data.SessionToken = body.Data.SessionToken
	} else {
		err = json.Unmarshal(w.body.Bytes(), &a.problem)
	}
	if err != nil {
		return response{status: http.StatusInternalServerError, problem: respond.Problem{Detail: err.Error()}}
	}
	return a
}

// status returns the data for the page's script: the page's current version, and
// the time left to pay.
func (v *visit) status() {
	respond.Write(v.w, http.StatusOK, respond.JSON, struct {
		Version string `json:"version"`
		Left    string `json:"left"`
	}{v.version(), v.left()})
}

// version changes whenever the content of the page does. Input in the form is
// not part of it.
func (v *visit) version() string {
	switch {
	case v.began():
		return v.payment.ID + " " + v.payment.Status
	case !engine.Active(v.link):
		return v.link.Status
	default:
		return "form"
	}
}

// left returns the time left to pay, or "" if no payment is pending.
func (v *visit) left() string {
	if !v.began() || !engine.Processing(v.session) {
		return ""
	}
	until, ok := engine.Deadline(v.payment)
	if !ok {
		return ""
	}
	return countdown(until.Sub(v.pages.core.Clock.Now()))
}

// The notices above a page.
const (
	noticeStale   = "stale"   // the form belonged to another session
	noticeLate    = "late"    // the payment's status has changed since
	noticeExpired = "expired" // a new session was opened for the buyer
)

// maxForm is the maximum size of a form in bytes.
const maxForm = 64 << 10

// submit handles the page's forms. On success the response is a redirect to the
// page, so that a reload does not submit the form again.
func (v *visit) submit() {
	if err := v.pages.origin.Check(v.r); err != nil {
		v.fail(http.StatusForbidden, "A page from another origin can't submit this form.")
		return
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	var long *http.MaxBytesError
	if err := v.r.ParseForm(); errors.As(err, &long) {
		v.fail(http.StatusRequestEntityTooLarge, "The form is longer than 64 KiB.")
		return
	} else if err != nil {
		v.fail(http.StatusBadRequest, "The form could not be read.")
		return
	}
	if v.session == nil || !sameToken(v.r.PostForm.Get("form"), formToken(v.session.Token)) {
		v.redirect(noticeStale)
		return
	}
	switch do := v.r.PostForm.Get("do"); {
	case do == "submit":
		v.pay(read(v.r.PostForm))
	case do == "again" && v.began() && !engine.Processing(v.session):
		v.remember("")
		v.redirect("")
	default:
		v.move(do)
	}
}

// redirect redirects the buyer to the page.
func (v *visit) redirect(notice string) {
	target := httpapi.PagePath + url.PathEscape(v.link.Slug)
	if notice != "" {
		target += "?notice=" + notice
	}
	v.w.Header().Set("Location", target)
	v.w.WriteHeader(http.StatusSeeOther)
}

// fail shows an error that the buyer can't fix.
func (v *visit) fail(status int, detail string) {
	v.render(status, &page{State: "failed", Reason: detail})
}

// countdown formats a duration as 14:59 or 23:59:59, preceded by days if it is
// longer than one.
func countdown(d time.Duration) string {
	seconds := max(0, int64(d/time.Second))
	hours, days := seconds/3600, int64(0)
	if hours > 24 {
		days, hours = hours/24, hours%24
	}
	text := fmt.Sprintf("%02d:%02d", seconds/60%60, seconds%60)
	switch {
	case days > 0:
		return fmt.Sprintf("%dd %02d:%s", days, hours, text)
	case hours > 0:
		return fmt.Sprintf("%02d:%s", hours, text)
	default:
		return text
	}
}
