package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const playgroundFolder = "../../docs/playground"

// playground serves docs/playground as any static host does, with the package of the gateway in
// the folder WASM.
func playground(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("WASM")
	if folder == "" {
		t.Skip("WASM is not set: go run ./internal/release wasm FOLDER writes the folder, and integration/run sets it")
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(playgroundFolder)))
	mux.Handle("/mockgateway/", http.StripPrefix("/mockgateway/", http.FileServer(http.Dir(folder))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// pressLabel clicks a button by its label once it is enabled.
func (p *page) pressLabel(label string) {
	p.t.Helper()
	button := "[...document.querySelectorAll('button')].find((b) => b.innerText === " + quote(label) + ")"
	p.waitFor(button + "?.disabled === false")
	eval[bool](p, button+".click(), true")
}

// hooks waits until the page shows this many webhooks, and returns the first lines, oldest first.
func (p *page) hooks(n int) []string {
	p.t.Helper()
	const list = "[...document.querySelectorAll('#hooks li')].reverse().map((li) => li.querySelector('.what').innerText.split(/\\s*\\n\\s*/).join(' '))"
	p.waitFor(list + ".length >= " + strconv.Itoa(n))
	return eval[[]string](p, list)
}

// A reader walks through the page. Its gateway runs in the page: the only requests are for the
// page's own files.
func TestThePlaygroundNeedsNoServer(t *testing.T) {
	t.Parallel()
	p := open(t, playground(t), device{})
	p.visit("/")
	p.waitForText("The gateway runs")

	eval[bool](p, "document.getElementById('fail').click(), true")
	p.pressLabel("Create the charge")
	p.waitForText("The buyer pays it with the code in pix.")
	p.waitForText(`"external_ref": "order-1"`)
	p.waitForText(`"status": "pending"`)
	assert.Equal(t, []string{
		"transaction.created signature valid you respond 500", "transaction.pending signature valid you respond 500",
	}, p.hooks(2))
	eval[bool](p, "document.getElementById('fail').click(), true")

	p.pressLabel("Pay it")
	p.waitForText("The webhook transaction.paid has arrived")
	assert.Equal(t, "transaction.paid signature valid you respond 200", p.hooks(3)[2])

	p.pressLabel("Advance the clock")
	p.waitForText("It is now 20")
	assert.ElementsMatch(t, []string{
		"transaction.created signature valid you respond 200", "transaction.pending signature valid you respond 200",
	}, p.hooks(5)[3:], "the failed deliveries are retried on the clock")

	p.pressLabel("Refund 50.00")
	p.waitForText("104.70 of the payment is left.")
	p.hooks(6)

	p.pressLabel("Lose it")
	p.waitForText("The second attempt gets DUPLICATE_EXTERNAL_REF")
	p.waitForText("TypeError: fetch failed")
	p.waitFor("document.getElementById('all').disabled")
	assert.Equal(t, 5, p.count(".step.done"))

	p.fill("#own input[name=path]", "/v2/transactions?external_ref=order-2")
	p.pressLabel("Send")
	p.waitFor("document.getElementById('own-result').innerText.includes('order-2')")
	p.look("playground", true)
	assert.Empty(t, p.text("#problem"))
	assert.True(t, eval[bool](p, "typeof process === 'undefined' && typeof path === 'undefined'"), "libraries take this page for Node.js")
}

// The pages of the console work in the page: links, forms and the search.
func TestThePlaygroundShowsTheConsole(t *testing.T) {
	t.Parallel()
	p := open(t, playground(t), device{})
	p.visit("/")
	p.pressLabel("Run all steps")
	p.waitForText("The second attempt gets DUPLICATE_EXTERNAL_REF")
	p.pressLabel("Open the console")
	const frame = "document.getElementById('console').contentDocument"
	shows := func(text string) {
		p.waitFor(frame + "?.body?.innerText.includes(" + quote(text) + ")")
	}
	shows("order-1")
	shows("partially refunded")
	assert.NotEqual(t, "0px", eval[string](p, "getComputedStyle("+frame+".querySelector('header')).paddingTop"), "it has its styles")
	assert.Zero(t, eval[int](p, frame+".scripts.length"))

	// press clicks what an expression finds at the moment it appears, as a quick finger does.
	press := func(expression string) {
		eval[bool](p, "new Promise((done) => { (function look() { const found = "+expression+
			"; if (found) { found.click(); done(true); } else setTimeout(look); })(); })")
	}
	press(frame + "?.querySelector('nav a[href$=\"/transactions\"]')")
	shows("order-2")
	eval[bool](p, frame+".getElementById('q').value = 'order-2', true")
	press(frame + ".querySelector('.find button')")
	// Other pages have forms and the amount too: the button is on that of the transaction alone. It is
	// a form of the control plane: the buyer pays, and the page's webhook arrives.
	press("[...(" + frame + "?.querySelectorAll('form.act button') ?? [])].find((b) => b.innerText === 'Pay')")
	p.waitFor("document.querySelector('#hooks li')?.innerText.includes('transaction.paid')")
	p.waitFor("document.querySelector('#hooks li')?.innerText.includes('order-2')")
	shows("29.90")
	p.do(chromedp.EmulateViewport(1280, 900))
	p.shot("playground-console")
	assert.Empty(t, p.text("#problem"))
}

// Without the gateway's file the page says how to build it.
func TestThePlaygroundSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.FileServer(http.Dir(playgroundFolder)))
	t.Cleanup(server.Close)
	if _, err := os.Stat(filepath.Join(playgroundFolder, "mockgateway")); err == nil {
		mux := http.NewServeMux()
		mux.Handle("/mockgateway/", http.NotFoundHandler())
		mux.Handle("/", server.Config.Handler)
		server.Config.Handler = mux
	}
	p := open(t, server.URL, device{})
	p.visit("/")
	p.waitForText("The gateway did not start")
	assert.Contains(t, p.text("#problem"), "go run ./internal/release wasm docs/playground/mockgateway")
	for _, logged := range p.expectErrors() {
		assert.Contains(t, logged, "404")
	}
	require.Equal(t, "true", eval[string](p, "String(document.getElementById('all').disabled)"))
}

// The service worker of npm/wasm/README.md responds to the page's requests and serves the
// console.
func TestAServiceWorkerIsTheGateway(t *testing.T) {
	t.Parallel()
	base := playground(t)
	guide, err := os.ReadFile("../../npm/wasm/README.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(guide), "## In a service worker")
	_, worker, _ := strings.Cut(section, "```js\n")
	worker, _, found := strings.Cut(worker, "```")
	require.True(t, found)
	files, err := url.Parse(base)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/mockgateway/", httputil.NewSingleHostReverseProxy(files))
	mux.HandleFunc("GET /worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, worker)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>Shop</title><link rel="icon" href="data:,"><p>Shop`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	p := open(t, server.URL, device{})
	p.visit("/")
	eval[bool](p, "navigator.serviceWorker.register('/worker.js', {type: 'module'}).then(() => navigator.serviceWorker.ready).then(() => true)")
	p.visit("/") // the worker controls the next page
	p.waitFor("navigator.serviceWorker.controller")
	create := func(fault string) string {
		return eval[string](p, `fetch('/v2/transactions', {
			method: 'POST', headers: {authorization: 'Bearer sk_test_mock', 'content-type': 'application/json', 'x-mock-fault': '`+fault+`'},
			body: JSON.stringify({external_ref: 'order-1', amount: 1990, method: 'pix', products: [{name: 'Book', price: 1990}],
				buyer: {name: 'Ana', email: 'ana@example.com', document: {type: 'CPF', number: '52998224725'}}}),
		}).then((r) => String(r.status), (e) => e.name)`)
	}
	assert.Equal(t, "TypeError", create("lose-response"))
	assert.Equal(t, "409", create(""))
	for _, logged := range p.expectErrors() { // of the lost response and the 409
		assert.Contains(t, logged, "/v2/transactions")
	}
	p.visit("/__mock/console/transactions")
	p.waitForText("order-1")
	p.submit("main a[href*='/transactions/']")
	p.waitForText("Timeline")
	for _, logged := range p.expectErrors() { // there is no stream of events
		assert.Contains(t, logged, "/__mock/events")
	}
}
