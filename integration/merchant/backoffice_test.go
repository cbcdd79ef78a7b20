package merchant_test

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/merchant/backoffice"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// mount is where the pages are.
const mount = "/admin/payments/"

// markup is an ID and a reason that would change a page, or the address of one.
const markup = `<b>"'&/?#%41</b>`

// office is a browser of the pages.
type office struct {
	*world

	pages http.Handler
	seen  map[string]string // the bodies of the pages that were read, by URL
}

// office returns the pages for a person, who may decide if there is a name.
func (w *world) office(who string) *office {
	w.Helper()
	cfg := backoffice.Config{Logger: quiet}
	if who != "" {
		cfg.Actor = func(*http.Request) (string, bool) { return who, true }
	}
	page, err := backoffice.New(w.m, cfg)
	require.NoError(w, err)
	mux := http.NewServeMux()
	mux.Handle(mount, page)
	return &office{world: w, pages: mux, seen: make(map[string]string)}
}

// do sends a request and checks what is true for every response.
func (o *office) do(r *http.Request) *httptest.ResponseRecorder {
	o.Helper()
	out := httptest.NewRecorder()
	o.pages.ServeHTTP(out, r.WithContext(o.Context()))
	is := out.Header()
	assert.Equal(o, "no-store", is.Get("Cache-Control"))
	assert.Equal(o, "DENY", is.Get("X-Frame-Options"))
	assert.Equal(o, "nosniff", is.Get("X-Content-Type-Options"))
	assert.Equal(o, "same-origin", is.Get("Referrer-Policy"))
	policy := is.Get("Content-Security-Policy")
	for _, rule := range []string{"default-src 'none'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
		assert.Contains(o, policy, rule)
	}
	assert.NotContains(o, policy, "unsafe")
	assert.NotContains(o, policy, "script")
	body := out.Body.String()
	for _, active := range []string{"<script", "<b>\"", "javascript:", " style=", " onclick", "<iframe", "<object", "ZgotmplZ"} {
		if strings.Contains(body, active) {
			o.Errorf("%s has %s", r.URL, active)
		}
	}
	for _, secret := range []string{
		"Ana", "Souza", "ana@example.com", "52998224725", "529.982.247-25", "11987654321", "supplier@example.com", "pgct_ok", "pgct_test", o.gw.Key(), o.gw.Secret().Reveal(), "br.gov.bcb.pix",
	} {
		if strings.Contains(body, secret) {
			o.Errorf("%s has %s", r.URL, secret)
		}
	}
	return out
}

// get reads a page, whose path is relative to the mount.
func (o *office) get(path string) *httptest.ResponseRecorder {
	o.Helper()
	out := o.do(httptest.NewRequest(http.MethodGet, "http://shop.test"+mount+path, nil))
	o.seen[path] = out.Body.String()
	return out
}

// shows reads a page and returns what a person reads.
func (o *office) shows(path string) string {
	o.Helper()
	out := o.get(path)
	require.Equal(o, http.StatusOK, out.Code, "%s: %s", path, out.Body)
	return read(out)
}

// read returns the text of a page.
func read(out *httptest.ResponseRecorder) string {
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(out.Body.String(), " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// form returns the request of a form, as a browser sends it from the page.
func form(path string, values url.Values) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://shop.test"+mount+path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://shop.test")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// decision fills in the form of a problem's page.
func (o *office) decision(p *merchant.Problem, d merchant.Decision, why string) url.Values {
	o.Helper()
	page := o.get("problem?id=" + url.QueryEscape(p.ID))
	require.Equal(o, http.StatusOK, page.Code, page.Body)
	values := url.Values{"decision": {string(d)}, "why": {why}}
	for _, found := range hidden.FindAllStringSubmatch(page.Body.String(), -1) {
		values.Set(found[1], html.UnescapeString(found[2]))
	}
	require.Equal(o, p.ID, values.Get("id"))
	return values
}

// follow reads the page to which a response leads.
func (o *office) follow(from string, out *httptest.ResponseRecorder) string {
	o.Helper()
	require.Equal(o, http.StatusSeeOther, out.Code, read(out))
	base, err := url.Parse(mount + from)
	require.NoError(o, err)
	to, err := base.Parse(out.Header().Get("Location"))
	require.NoError(o, err)
	require.True(o, strings.HasPrefix(to.String(), mount), to)
	return o.shows(strings.TrimPrefix(to.String(), mount))
}

var href = regexp.MustCompile(`href="([^"]*)"`)

// crawl reads every page that can be reached from the overview.
func (o *office) crawl(more ...string) {
	o.Helper()
	queue := append([]string{""}, more...)
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if _, known := o.seen[path]; known {
			continue
		}
		out := o.get(path)
		if out.Code == http.StatusSeeOther { // a search with one result
			queue = append(queue, out.Header().Get("Location"))
			continue
		}
		if !assert.Equal(o, http.StatusOK, out.Code, "%s: %s", path, read(out)) || strings.HasPrefix(path, "export") {
			continue
		}
		base, err := url.Parse("http://shop.test" + mount + path)
		require.NoError(o, err)
		for _, found := range href.FindAllStringSubmatch(out.Body.String(), -1) {
			link := html.UnescapeString(found[1])
			if strings.HasPrefix(link, "data:,") || strings.HasPrefix(link, "#") {
				continue
			}
			to, err := base.Parse(link)
			require.NoError(o, err, link)
			rest, ok := strings.CutPrefix(to.String(), "http://shop.test"+mount)
			require.True(o, ok, "%s leads to %s", path, to)
			if month := to.Query().Get("month"); month == "" || month == time.Now().UTC().Format("2006-01") {
				queue = append(queue, rest)
			}
		}
	}
}

// letter makes an event that can't be handled, as after half a day.
func (w *world) letter(ref string) *merchant.Problem {
	w.Helper()
	p := pix("", 100)
	p.ExternalRef = ref
	tx, err := w.gw.Client().Transactions.Create(w.Context(), p.TransactionParams)
	require.NoError(w, err)
	require.NoError(w, w.gw.Transactions.Pay(tx.ID))
	w.eventually("the event is given up", func() bool {
		w.exec(`UPDATE gateway_webhook_events SET state = 4, token = '' WHERE kind = 'transaction.paid' AND reason <> '' AND attempts > 0 AND token = '' AND resource = ?`, "transaction/"+tx.ID)
		return slices.ContainsFunc(w.problems(), func(p *merchant.Problem) bool { return strings.Contains(p.Text, tx.ID) })
	})
	for _, p := range w.problems() {
		if strings.Contains(p.Text, tx.ID) {
			return p
		}
	}
	return nil
}

// busy is a shop in which everything has happened.
func busy(w *world) {
	w.Helper()
	w.cfg.Accounts = append(w.cfg.Accounts, w.account("other", "sk_test_other", w.gw.Secret()))
	zone, err := time.LoadLocation("America/Sao_Paulo")
	require.NoError(w, err)
	w.cfg.Accounts[0].Zone = zone
	w.patient().linked().members().open().start()

	pay := func(p merchant.ChargeParams) *merchant.Charge {
		p.Account = "shop"
		return w.paysWith(p)
	}
	paid := pay(pix("PAID-1", 12345678))
	_, err = w.m.Refund(w.Context(), merchant.RefundParams{ID: "return-1", Charge: paid.ID, UpTo: 50005, Reason: "broken"})
	require.NoError(w, err)
	visa := card("DISPUTED-1", 5000)
	visa.Token = "pgct_test_visa"
	disputed := pay(visa)
	require.NoError(w, w.gw.Transactions.Chargeback(disputed.TransactionID))
	w.eventually("the dispute is booked", func() bool { return w.state("DISPUTED-1").Disputed == 5000 })
	pay(pix(markup, 700))
	require.NoError(w, w.m.Adjust(w.Context(), merchant.AdjustParams{ID: "k1", Account: "shop", Order: markup, Amount: -12, By: "Rui " + markup, Why: markup}))
	payout := bill("seller-1", "PAID-1", 5000)
	payout.Account = "shop"
	w.settle(w.sent(payout).TransferID)
	alone := bill("bill-1", "", 700)
	alone.Account = "shop"
	w.sent(alone)

	link := mug("mug-1", 1500)
	link.Account = "shop"
	sale := w.buy(w.link(link))
	w.eventually("the sale is booked", func() bool {
		hits, err := w.m.Find(w.Context(), sale)
		require.NoError(w, err)
		return len(hits) > 0
	})
	member := w.member("M1", "pgct_ok_1")
	member.Account = "shop"
	w.subscribe(member)
	w.eventually("the first period is paid", func() bool { return w.subscription("M1").Order.Paid == 2990 })

	ambiguous := pix(w.order("AMBIGUOUS-1"), 400)
	ambiguous.Account = "other"
	c := w.charge(ambiguous)
	w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = ?`, c.ID)
	w.letter("shop-lost-1")
	w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES ('x', 'shop', 'shop', ?, ?, ?, ?, ?)`,
		"order/"+markup, "shop-"+markup+"-1", string(merchant.ProblemUnknownState), markup, time.Now().UnixMilli())
	now := time.Now().UnixMilli()
	for n := range 101 {
		w.exec(`INSERT INTO gateway_unknown (account, family, id, ref, kind, event, events, first_at, last_at) VALUES ('shop', 'transaction', ?, ?, ?, '', 2, ?, ?)`,
			fmt.Sprintf("foreign-%03d", n), markup+" of ana@example.com", markup, now, now)
	}
	w.exec(`UPDATE gateway_facts SET delivered_at = NULL, attempts = 5, error = ?, due_at = created_at + 3600000 WHERE callback = 'disputed'`, markup+" of ana@example.com, token pgct_ok_1")
}

func TestThePagesOfABusyShop(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		busy(w)
		links, err := w.m.Find(w.Context(), "M1")
		require.NoError(w, err)
		require.Len(w, links, 1)
		for _, who := range []string{"", "Rui"} {
			o := w.office(who)
			o.crawl("find?q=PAID-1", "find?q="+url.QueryEscape(markup), "find?q=nothing", "find?q=", "subscription?id=M1", "payout?id=bill-1",
				"order?id=PAID-1", "order?id=DISPUTED-1", "refund?id=return-1", "charge?id=shop-PAID-1-1", "dead-letters?account=shop", "problems?account=other")
			for _, page := range []string{"order?book=shop&id=AMBIGUOUS-1", "order?book=shop&id=" + url.QueryEscape(markup), "problems", "dead-letters", "month", "unknown"} {
				assert.Contains(w, o.seen, page, "a link leads there")
			}
			forms := 0
			for path, body := range o.seen {
				if strings.Contains(body, `method="post"`) {
					forms++
					assert.NotEmpty(w, who, path)
				}
			}
			assert.Equal(w, who != "", forms > 0)
		}

		o := w.office("Rui")
		text := o.shows("order?id=PAID-1")
		for _, want := range []string{
			"Order PAID-1 paid in full", "Paid BRL 123,456.78", "Refunded BRL 500.05", "Left of the payments BRL 122,956.73", "Paid out BRL 5", "return-1 done", "seller-1 shop",
			"request transactions.create stored", "fact refunded BRL −500.05", " -03",
		} {
			assert.Contains(w, text, want)
		}
		assert.Contains(w, o.shows("order?id=DISPUTED-1"), "Disputed BRL 50.00")
		assert.Contains(w, o.shows("order?id=DISPUTED-1"), "disputed has failed 5 times: "+markup+" of ***")
		assert.Contains(w, o.shows("subscription?id=M1"), "Charged every period BRL 29.90")
		assert.Contains(w, o.shows("payout?id=bill-1"), "Requested From the balance")
		assert.Contains(w, o.shows("order?id=AMBIGUOUS-1"), "ambiguous")
		text = o.shows("")
		for _, want := range []string{"4 problems need a person", "Have failed 1", "callback", "ambiguous", "unknown state", "dead letter"} {
			assert.Contains(w, text, want)
		}
		assert.Contains(w, o.shows("unknown?account=shop"), "In no record: shop")
		next := regexp.MustCompile(`href="(unknown[^"]*after=[^"]*)">Older`).FindStringSubmatch(o.seen["unknown?account=shop"])
		require.Len(w, next, 2)
		assert.Contains(w, o.shows(html.UnescapeString(next[1])), "foreign-100")
		assert.NotContains(w, o.shows(html.UnescapeString(next[1])), "foreign-099")
		assert.Contains(w, o.shows("unknown?account=other"), "Every event of other belongs to a record.")
		assert.Contains(w, o.shows("order?id="+url.QueryEscape(markup)), "adjust: "+markup+" by Rui "+markup)

		for path, status := range map[string]int{
			"order?id=none": 404, "order": 404, "charge?id=PAID-1": 404, "problem?id=none": 404, "problem?id=event/gone/1": 404, "problem?id=operation/shop/x": 404, "none": 404, "order/": 200,
			"month?account=none": 404, "month?month=2026-13": 422, "month?month=" + url.QueryEscape(markup): 422, "export?format=xls&account=shop": 422, "dead-letters?account=none": 404,
			"problems?page=99999999999999999999&kind=" + url.QueryEscape(markup): 200, "dead-letters?account=shop&after=x": 422, "unknown?account=none": 404, "unknown?account=shop&after=x": 422, "style.css": 200,
		} {
			assert.Equal(w, status, o.get(path).Code, path)
		}
		out := o.do(httptest.NewRequest(http.MethodDelete, "http://shop.test"+mount+"problem", nil))
		assert.Equal(w, []any{405, "GET, HEAD, POST"}, []any{out.Code, out.Header().Get("Allow")})
	})
}

// count returns the result of a query for a number.
func (w *world) count(query string) (n int) {
	w.Helper()
	require.NoError(w, w.db.QueryRowContext(w.Context(), query).Scan(&n))
	return n
}

// underpaid makes a problem with an order.
func (w *world) underpaid(order string) *merchant.Problem {
	w.Helper()
	cheap := w.charge(pix(w.order(order), 100))
	w.charge(pix(order, 150))
	require.NoError(w, w.gw.Transactions.Pay(cheap.TransactionID))
	return w.problem()
}

func TestThePagesAreReadOnlyByDefault(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		p := w.underpaid("U1")
		values := w.office("Rui").decision(p, merchant.Accept, "agreed on the phone")
		letter := url.Values{"id": {p.ID}, "decision": {"retry"}, "why": {"fixed"}}
		pages := map[string]http.Handler{"no actor": w.office("").pages}
		for name, actor := range map[string]func(*http.Request) (string, bool){
			"not allowed": func(*http.Request) (string, bool) { return "Rui", false }, "no name": func(*http.Request) (string, bool) { return "", true },
		} {
			page, err := backoffice.New(w.m, backoffice.Config{Actor: actor, Logger: quiet})
			require.NoError(w, err)
			pages[name] = http.StripPrefix("/admin/payments", page)
		}
		for name, handler := range pages {
			o := &office{world: w, pages: handler, seen: make(map[string]string)}
			for path, form_ := range map[string]url.Values{
				"problem": values, "problem?" + values.Encode(): values, "dead-letters": letter, "month": {}, "": values, "order?id=U1": values, "problems": values, "export": values, "find": {"q": {"U1"}}, "style.css": {}, "none": values,
			} {
				out := o.do(form(path, form_))
				assert.Equal(w, http.StatusForbidden, out.Code, "%s: %s", name, path)
			}
			for _, path := range []string{"problem?" + values.Encode(), "problem?id=" + url.QueryEscape(p.ID) + "&decision=accept&why=why"} {
				assert.Equal(w, http.StatusOK, o.get(path).Code, "a GET only shows the problem")
			}
			assert.NotContains(w, o.seen["problem?"+values.Encode()], `method="post"`)
			assert.Contains(w, o.shows("problem?id="+url.QueryEscape(p.ID)), "You may look, but not decide. The decisions that fit: accept :")
		}
		o := w.office("Rui")
		for name, header := range map[string]http.Header{
			"cross-site": {"Sec-Fetch-Site": {"cross-site"}}, "same-site": {"Sec-Fetch-Site": {"same-site"}}, "origin": {"Origin": {"http://evil.test"}}, "null": {"Origin": {"null"}}, "silent": {},
		} {
			r := form("problem", values)
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
			maps.Copy(r.Header, header)
			assert.Equal(w, http.StatusForbidden, o.do(r).Code, name)
		}
		assert.Equal(w, []string{p.ID}, w.ids())
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_notes`))
		assert.False(w, w.state("U1").Settled)

		assert.Contains(w, o.follow("problem", o.do(form("problem", values))), "The decision “accept” was stored.")
		assert.True(w, w.state("U1").Settled)
	})
}

// end decides about a problem on its page, after forms that are wrong.
func (o *office) end(p *merchant.Problem, d merchant.Decision, resource string) {
	o.Helper()
	for _, want := range []string{string(p.Kind), p.Text} {
		assert.Contains(o, o.shows("problem?id="+url.QueryEscape(p.ID)), strings.ReplaceAll(want, "_", " "))
	}
	assert.Contains(o, o.shows("problems?kind="+string(p.Kind)), "1 to 1 of 1")
	values := o.decision(p, d, " ")
	if resource != "" {
		values.Set("resource", " "+resource+" ")
	}
	out := o.do(form("problem", values))
	assert.Equal(o, http.StatusUnprocessableEntity, out.Code)
	assert.Contains(o, read(out), "Why is required")
	values.Set("why", "looked at "+markup)
	for _, not := range []string{"", "guess", map[bool]string{true: "retry", false: "accept"}[d == merchant.Accept]} {
		wrong := url.Values{"id": {p.ID}, "seen": values["seen"], "why": {"why"}, "decision": {not}}
		assert.Equal(o, http.StatusUnprocessableEntity, o.do(form("problem", wrong)).Code, not)
	}
	text := o.follow("problem", o.do(form("problem", values)))
	assert.Contains(o, text, "The decision “"+strings.ReplaceAll(string(d), "_", " ")+"” was stored.")
	if p.Order != "" {
		assert.Contains(o, text, ": "+string(d))
		assert.Contains(o, text, "looked at "+markup+" by Rui "+markup)
	}

	if p.Kind == merchant.ProblemCallback { // it is open until it succeeds
		return
	}
	out = o.do(form("problem", values)) // a second click
	assert.Equal(o, http.StatusConflict, out.Code)
	assert.Contains(o, read(out), "This problem is not open any more")
	assert.Contains(o, read(out), "Your decision changed nothing.")
	assert.Equal(o, http.StatusNotFound, o.get("problem?id="+url.QueryEscape(p.ID)).Code)
}

// Each kind of problem is ended by its own page, and the story says by whom and why.
func TestEachProblemCanBeEndedFromThePage(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().members().open()
		order := w.order("P1")
		c := w.charge(pix(order, 100))
		o := w.office("Rui " + markup)
		for _, kind := range []merchant.ProblemKind{
			merchant.ProblemPaidAgain, merchant.ProblemUnknownState, merchant.ProblemUnmatched, merchant.ProblemContested, merchant.ProblemContradiction,
			merchant.ProblemLower, merchant.ProblemCurrency, merchant.ProblemReversed, merchant.ProblemRefundRejected, merchant.ProblemCancelRejected,
		} {
			w.exec(`INSERT INTO gateway_problems (key, account, book, subject, record, kind, text, since) VALUES (?, 'shop', 'shop', ?, ?, ?, 'text', ?)`,
				"shop:"+string(kind), "order/"+order, c.ID, string(kind), time.Now().UnixMilli())
			o.end(w.problem(), merchant.Dismiss, "")
		}
		stop := w.start()
		o.end(w.underpaid("U1"), merchant.Accept, "")
		w.eventually("the order is paid", func() bool { return w.ships("U1") == 1 })
		o.end(w.letter("shop-lost-1"), merchant.Dismiss, "")
		stop()
		w.exec(`UPDATE gateway_operations SET state = 'dead' WHERE key = ?`, c.ID)
		o.end(w.problem(), merchant.Retry, "")

		again := w.charge(pix(w.order("K1"), 300))
		require.NoError(w, w.gw.Transactions.Pay(again.TransactionID))
		require.NoError(w, w.m.Refresh(w.Context(), again.ID)) // without Run, no webhook arrives
		w.exec(`UPDATE gateway_facts SET attempts = 5, error = 'no row', due_at = created_at + 3600000 WHERE delivered_at IS NULL AND stream = ''`)
		o.end(w.problem(), merchant.Retry, "")
	})
}

func TestAmbiguousRequestsAreDecidedOnThePage(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.SendTimeout, w.cfg.SettleAfter = 2*time.Second, 4*time.Second
		w.open()
		w.gw.Webhooks.Hold()
		o := w.office("Rui " + markup)
		for i, d := range []merchant.Decision{merchant.Applied, merchant.SendAgain, merchant.Abandon} {
			fault := mockserver.LoseResponse()
			if d != merchant.Applied {
				fault = mockserver.Status(503)
			}
			require.NoError(w, w.gw.Faults.Add(fault.On("transactions.create").Times(1)))
			c := w.charge(pix(w.order("A"+strconv.Itoa(i)), 100))
			require.Equal(w, merchant.Unknown, c.State)
			w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = ?`, c.ID) // as after too many pages of the list
			resource := ""
			if d == merchant.Applied {
				made := w.made(c.ID)
				require.Len(w, made, 1)
				resource = made[0].ID
				values := o.decision(w.problem(), d, "why")
				for _, wrong := range []string{"", "00000000-0000-4000-8000-000000000000", "x/../" + markup} {
					values.Set("resource", wrong)
					out := o.do(form("problem", values))
					assert.Equal(w, http.StatusUnprocessableEntity, out.Code, read(out))
					assert.Contains(w, read(out), "Decide", "the form is shown again")
				}
			}
			o.end(w.problem(), d, resource)
		}
	})
}

// The operation of a problem is decided about, and becomes a problem again, while a page is
// open.
func TestAnOldPageDecidesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open()
		c := w.charge(pix(w.order("O1"), 100))
		w.exec(`UPDATE gateway_operations SET state = 'ambiguous' WHERE key = ?`, c.ID)
		o, p := w.office("Rui"), w.problem()
		old := o.decision(p, merchant.SendAgain, "not in the dashboard")
		require.NoError(w, w.m.Resolve(w.Context(), p.ID, by(merchant.SendAgain)))
		out := o.do(form("problem", old))
		assert.Equal(w, http.StatusConflict, out.Code)
		assert.Contains(w, read(out), "The story of order O1 says who decided and why")
		w.exec(`UPDATE gateway_operations SET state = 'ambiguous', updated_at = updated_at + 1 WHERE key = ?`, c.ID)
		require.Equal(w, p.ID, w.problem().ID)
		out = o.do(form("problem", old))
		assert.Equal(w, http.StatusConflict, out.Code)
		assert.Contains(w, read(out), "The problem has changed since you opened the page")
		assert.Contains(w, out.Body.String(), "not in the dashboard", "what was written is kept")
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_notes`))
	})
}

// copies copies the only dead letter.
func (w *world) copies(n int) {
	w.Helper()
	rows, err := w.db.QueryContext(w.Context(), `SELECT * FROM gateway_webhook_events WHERE 1 = 0`)
	require.NoError(w, err)
	columns, err := rows.Columns()
	require.NoError(w, err)
	require.NoError(w, rows.Close())
	require.NoError(w, rows.Err())
	columns = slices.DeleteFunc(columns, func(name string) bool { return name == "seq" || name == "key" })
	list := strings.Join(columns, ", ")
	for i := range n {
		w.exec(`INSERT INTO gateway_webhook_events (key, ` + list + `) SELECT key || '-` + strconv.Itoa(i) + `', ` + list + ` FROM gateway_webhook_events
			WHERE state = 4 AND kind = 'transaction.paid' ORDER BY seq LIMIT 1`)
	}
}

func TestDeadLettersAreReplayedTogether(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		first := w.letter("shop-lost-1")
		const copies = 60
		w.copies(copies)
		o := w.office("Rui")
		text := o.shows("dead-letters")
		assert.Contains(w, text, "transaction.paid")
		assert.Contains(w, text, "there is no record with the reference shop-lost-1")
		page := o.seen["dead-letters"]
		assert.Equal(w, 50, strings.Count(page, `type="checkbox"`))
		next := regexp.MustCompile(`href="(dead-letters\?[^"]*)">Newer`).FindStringSubmatch(page)
		require.Len(w, next, 2)
		o.shows(html.UnescapeString(next[1]))
		assert.Equal(w, copies+1-50, strings.Count(o.seen[html.UnescapeString(next[1])], `type="checkbox"`))
		list, err := w.m.DeadLetters(w.Context(), "", webhook.DeadLetterQuery{})
		require.NoError(w, err)
		require.Len(w, list, copies+1)
		for _, l := range list {
			p, err := w.m.Problem(w.Context(), l.Problem.ID)
			require.NoError(w, err)
			assert.Equal(w, p, l.Problem)
		}

		values := url.Values{"account": {"shop"}, "decision": {"dismiss"}, "why": {"a test"}}
		assert.Contains(w, read(o.do(form("dead-letters", values))), "Choose at least one event.")
		values["id"] = []string{first.ID, list[1].Problem.ID}
		values.Set("why", "")
		assert.Contains(w, read(o.do(form("dead-letters", values))), "Why is required")
		values.Set("why", "a test")
		values.Set("decision", "accept")
		assert.Contains(w, read(o.do(form("dead-letters", values))), "Choose one of the decisions.")
		values.Set("decision", "dismiss")
		assert.Contains(w, o.follow("dead-letters", o.do(form("dead-letters", values))), "2 decisions “dismiss” were stored.")
		assert.Len(w, w.problems(), copies-1)
		values["id"] = []string{first.ID, list[2].Problem.ID}
		out := o.do(form("dead-letters", values))
		assert.Equal(w, http.StatusConflict, out.Code)
		assert.Contains(w, read(out), "Of the events that you chose, 1 were not dead letters any more")
		assert.Len(w, w.problems(), copies-2)
		assert.Equal(w, 3, w.count(`SELECT COUNT(*) FROM gateway_notes WHERE why = 'a test' AND decided_by = 'Rui'`))
		values["id"] = make([]string, 51)
		assert.Contains(w, read(o.do(form("dead-letters", values))), "Choose at most 50 events.")
	})
}

func TestTheMonthOnThePage(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.patient().open().start()
		w.sold("D1", 123456)
		o := w.office("Rui")
		this := time.Now().UTC().Format("2006-01")
		text := o.shows("month")
		assert.Contains(w, text, "Statement in BRL Opening BRL 0.00 Paid BRL 1,234.56")
		assert.NotContains(w, text, "Comparison")
		for _, format := range []merchant.Format{merchant.CSV, merchant.Hledger} {
			var want bytes.Buffer
			require.NoError(w, w.m.Export(w.Context(), &want, "shop", this, format))
			out := o.get("export?account=shop&month=" + this + "&format=" + string(format))
			assert.Equal(w, want.String(), out.Body.String())
			assert.Contains(w, out.Header().Get("Content-Disposition"), `attachment; filename="shop-`+this)
		}
		empty := o.get("export?account=shop&month=2001-01&format=hledger")
		assert.Equal(w, []any{200, ""}, []any{empty.Code, empty.Body.String()})
		assert.NotEmpty(w, empty.Header().Get("Content-Disposition"))

		values := url.Values{"account": {"shop"}, "month": {this}}
		assert.Contains(w, read(o.do(form("month", values))), "The gateway's list agrees with the entries.")
		w.exec(`UPDATE gateway_orders SET paid = paid + 1 WHERE subject = 'order/D1'`)
		text = read(o.do(form("month", values)))
		assert.Contains(w, text, "order D1")
		w.exec(`UPDATE gateway_orders SET paid = paid - 1 WHERE subject = 'order/D1'`)
		assert.Equal(w, http.StatusUnprocessableEntity, o.do(form("month", url.Values{"month": {"x"}})).Code)
		require.NoError(w, w.gw.Faults.Add(mockserver.Status(503).On("transactions.list")))
		assert.Equal(w, http.StatusBadGateway, o.do(form("month", values)).Code)
	})
}

// What the pages read one by one is what the lists have.
func TestProblemsAndRecordsOneByOne(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		busy(w)
		list := w.problems()
		require.Len(w, list, 4)
		for _, want := range list {
			got, err := w.m.Problem(w.Context(), want.ID)
			require.NoError(w, err)
			assert.Equal(w, want, got)
			if want.Order == "" {
				continue
			}
			r, err := w.m.Record(w.Context(), "", "order", want.Order)
			require.NoError(w, err)
			assert.Contains(w, r.Problems, want)
			story, err := w.m.Story(w.Context(), want.Order)
			require.NoError(w, err)
			assert.Equal(w, story, r.Story)
		}
		for _, id := range []string{"", "problem/", "problem/0", "callback/1", "callback/x", "event/shop/none", "operation/shop/0", "operation/shop/x", "1", "operation/shop/-9223372036854775808"} {
			_, err := w.m.Problem(w.Context(), id)
			require.ErrorIs(w, err, merchant.ErrNotFound, id)
		}
		for _, id := range []string{"event/gone/none", "operation/gone/1"} {
			_, err := w.m.Problem(w.Context(), id)
			require.ErrorIs(w, err, merchant.ErrAccount, id)
		}
		for _, id := range []string{"PAID-1", "M1", "bill-1", "return-1", "shop-PAID-1-1"} {
			hits, err := w.m.Find(w.Context(), id)
			require.NoError(w, err)
			require.Len(w, hits, 1)
			r, err := w.m.Record(w.Context(), hits[0].Book, hits[0].Kind, hits[0].Record)
			require.NoError(w, err)
			assert.Equal(w, hits[0].Order, r.Order.ID)
			assert.NotEmpty(w, r.Story, id)
			assert.Equal(w, id == "M1", r.Subscription != nil)
		}
		r, err := w.m.Record(w.Context(), "", "subscription", "M1")
		require.NoError(w, err)
		assert.Len(w, r.Order.Charges, 1)
		for _, not := range [][2]string{{"order", "none"}, {"charge", "PAID-1"}, {"transaction", "x"}, {"", ""}, {"order", ""}} {
			_, err := w.m.Record(w.Context(), "", not[0], not[1])
			require.ErrorIs(w, err, merchant.ErrNotFound, not)
		}
		assert.Equal(w, []string{"other", "shop"}, w.m.Accounts())
		_, err = w.m.Zone("none")
		require.ErrorIs(w, err, merchant.ErrAccount)
		_, err = w.m.DeadLetters(w.Context(), "none", webhook.DeadLetterQuery{})
		require.ErrorIs(w, err, merchant.ErrAccount)
	})
}
