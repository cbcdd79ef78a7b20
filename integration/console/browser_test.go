// Package console_test drives the mock's web pages in a real browser. Run it
// with integration/with-chromium, which sets CHROMIUM to the browser's path.
// With SCREENSHOTS=<folder> the screenshots are kept there.
package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

// waitLimit is how long a test waits for a page to change.
const waitLimit = 2 * time.Minute

// chromium is the browser that all tests share; each page has its own profile.
var chromium context.Context //nolint:gochecknoglobals // one process for the package

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	path := os.Getenv("CHROMIUM")
	if path == "" {
		return m.Run() // every test reports what is missing
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // the sandbox doesn't work as root, and only pages of this machine are opened
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-gpu", true), // there is none, and emulating it is slow
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)...)
	defer stop()
	var cancel context.CancelFunc
	chromium, cancel = chromedp.NewContext(allocator) //nolint:fatcontext // once for the package
	defer cancel()
	if err := chromedp.Do(chromium); err != nil {
		fmt.Fprintf(os.Stderr, "%s does not start: %v\n", path, err)
		return 1
	}
	return m.Run()
}

// serve starts a gateway on a socket and returns its address.
func serve(t *testing.T, opts ...mockserver.Option) (*mockserver.Server, string) {
	t.Helper()
	gw := mockserver.Run(t, append([]mockserver.Option{mockserver.WithSeed(1)}, opts...)...)
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	return gw, base
}

// page is a browser window with its own profile. The test fails if the
// page logs an error to the console or requests anything from another host.
type page struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // chromedp keeps the window in it
	base string

	contrasts []string // that have been checked

	mu     sync.Mutex
	errors []string        // logged to the browser's console
	hosts  map[string]bool // that received a request
}

// device is the screen and the settings with which a page is viewed.
type device struct {
	width    int64  // CSS pixels; 0 is 1280
	dark     bool   // prefers a dark page
	noScript bool   // JavaScript is switched off
	language string // Accept-Language; "" is en-US
}

// open opens a window on base.
func open(t *testing.T, base string, d device) *page {
	t.Helper()
	if chromium == nil {
		t.Skip("CHROMIUM is not set: integration/with-chromium installs a browser and sets it")
	}
	window, closeWindow := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(closeWindow)
	return show(window, t, base, d)
}

// tab opens another tab of the same profile: it has the same cookies.
func (p *page) tab(d device) *page {
	p.t.Helper()
	window, closeWindow := chromedp.NewContext(p.ctx)
	p.t.Cleanup(closeWindow)
	return show(window, p.t, p.base, d)
}

func show(window context.Context, t *testing.T, base string, d device) *page {
	t.Helper()
	ctx, cancel := context.WithTimeout(window, 4*waitLimit)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, base: base, hosts: map[string]bool{}, contrasts: []string{}}
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	if d.width == 0 {
		d.width = 1280
	}
	if d.language == "" {
		d.language = "en-US"
	}
	none := cdp.Empty{}
	call(p, network.Enable, network.EnableParams{})
	call(p, runtime.Enable, none)
	call(p, log.Enable, none)
	p.theme(d.dark) //nolint:contextcheck // the page has it
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: d.noScript})
	call(p, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": d.language}})
	p.resize(d.width) //nolint:contextcheck // the page has it
	t.Cleanup(p.check)
	return p
}

// resize sets the width of the window.
func (p *page) resize(width int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, 900))
}

// theme switches between the light and the dark page.
func (p *page) theme(dark bool) {
	p.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// look examines a page that is open: it must not scroll sideways at any width, and must be
// accessible in both themes. The page is loaded once, and axe-core, which takes most of the
// time, checks once what does not depend on the theme. It leaves the window 1280 wide and
// light. With axe false only the widths are examined.
func (p *page) look(name string, axe bool) {
	p.t.Helper()
	p.resize(1280)
	p.fits()
	p.shot(name)
	if axe {
		p.accessible()
	}
	p.theme(true)
	p.shot(name + "-dark")
	if axe {
		p.report(p.contrast())
	}
	for _, width := range []int64{390, 320} {
		p.resize(width)
		p.fits()
		if width == 390 {
			p.shot(name + "-390-dark")
			p.theme(false)
		}
		p.shot(fmt.Sprintf("%s-%d", name, width))
	}
	p.resize(1280)
}

// listen records errors and requests.
func (p *page) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Host != "" {
			p.hosts[u.Host] = true
		}
	case *runtime.EventExceptionThrown:
		p.errors = append(p.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			said := []string{"console." + string(e.Type)}
			for _, arg := range e.Args {
				said = append(said, string(arg.Value)+arg.Description)
			}
			p.errors = append(p.errors, strings.Join(said, " "))
		}
	case *log.EventEntryAdded: // CSP violations and failed loads are here
		if e.Entry.Level == log.EntryLevelError {
			p.errors = append(p.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// expectErrors returns the errors so far and clears them, for tests in which a
// request must fail.
func (p *page) expectErrors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.errors
	p.errors = nil
	return list
}

func (p *page) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.Empty(p.t, p.errors, "errors in the browser's console")
	for host := range p.hosts {
		assert.Equal(p.t, strings.TrimPrefix(p.base, "http://"), host, "the page sent requests to another host")
	}
}

// do runs actions of chromedp.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	require.NoError(p.t, chromedp.Do(ctx, actions...))
}

// call runs a command of the browser's protocol.
func call[P, R any](p *page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	require.NoError(p.t, err)
	return result
}

// visit loads a path.
func (p *page) visit(path string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.base + path))
}

// eval returns the value of a JavaScript expression, even if the page's own
// scripts are switched off.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression[:min(len(expression), 200)])
	return v
}

// text returns the visible text of the first element that a CSS selector
// finds.
func (p *page) text(selector string) string {
	p.t.Helper()
	return eval[string](p, "document.querySelector("+quote(selector)+")?.innerText ?? ''")
}

// count returns how many elements a CSS selector finds.
func (p *page) count(selector string) int {
	p.t.Helper()
	return eval[int](p, "document.querySelectorAll("+quote(selector)+").length")
}

// waitFor returns when a JavaScript expression is true.
func (p *page) waitFor(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok && err == nil { // evaluation fails while the page is being replaced
			return
		}
		if ctx.Err() != nil {
			require.Failf(p.t, "timed out", "for %s; the page shows:\n%s", expression, p.shown())
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waitForText returns when the page shows a string.
func (p *page) waitForText(text string) {
	p.t.Helper()
	p.waitFor("document.body && document.body.innerText.includes(" + quote(text) + ")")
}

// shown is the text of the page, for failures.
func (p *page) shown() string {
	text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	return text
}

// submit clicks an element, such as a button, and returns when the page that
// follows has loaded.
func (p *page) submit(selector string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(p.t, err, "click on %s", selector)
}

// fill types a value into the field that a CSS selector finds.
func (p *page) fill(selector, value string) {
	p.t.Helper()
	p.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// shot saves a screenshot of the whole page as SCREENSHOTS/<name>.png.
func (p *page) shot(name string) {
	p.t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, waitLimit)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	require.NoError(p.t, err)
	require.NoError(p.t, os.MkdirAll(folder, 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644))
}

// fits fails the test if the page scrolls horizontally.
func (p *page) fits() {
	p.t.Helper()
	type size struct{ Scroll, Client int }
	got := eval[size](p, "({Scroll: document.documentElement.scrollWidth, Client: document.documentElement.clientWidth})")
	assert.LessOrEqual(p.t, got.Scroll, got.Client, "%s scrolls horizontally", p.shown())
}

// accessible runs axe-core over the page: labels, roles, order and contrast.
func (p *page) accessible() {
	p.t.Helper()
	p.report(p.axe("document", "{resultTypes: ['violations'], rules: {'color-contrast': {enabled: false}}}"))
	p.report(p.contrast())
}

func (p *page) report(violations []string) {
	p.t.Helper()
	for _, v := range violations {
		assert.Fail(p.t, "not accessible", v)
	}
}

// contrast checks the contrast of text, each combination of colors and sizes once in a
// window: comparing the colors of all elements takes axe-core longer than its other rules
// together.
func (p *page) contrast() (violations []string) {
	p.t.Helper()
	seen, err := json.Marshal(p.contrasts)
	require.NoError(p.t, err)
	fresh := eval[[]string](p, `((seen) => {
		const fresh = [];
		for (const e of document.querySelectorAll("body *")) {
			const text = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()) || e.matches("input, select, textarea");
			if (!text || !e.checkVisibility()) { continue; }
			const style = getComputedStyle(e);
			let under = e, back;
			do {
				back = getComputedStyle(under).backgroundColor;
				under = under.parentElement;
			} while (under && back === "rgba(0, 0, 0, 0)");
			const key = [style.color, back, style.fontSize, style.fontWeight, style.opacity, e.disabled].join(" ");
			if (!seen.includes(key) && !fresh.includes(key)) {
				fresh.push(key);
				e.dataset.contrast = "";
			}
		}
		return fresh;
	})(`+string(seen)+`)`)
	if len(fresh) == 0 {
		return nil
	}
	p.contrasts = append(p.contrasts, fresh...)
	violations = p.axe("{include: [['[data-contrast]']]}", "{resultTypes: ['violations'], runOnly: {type: 'rule', values: ['color-contrast']}}")
	eval[bool](p, "document.querySelectorAll('[data-contrast]').forEach((e) => delete e.dataset.contrast), true")
	return violations
}

// axe runs axe-core over a part of the page and returns the violations.
func (p *page) axe(part, options string) (violations []string) {
	p.t.Helper()
	if !eval[bool](p, "window.axe !== undefined") {
		source, err := os.ReadFile(filepath.Join("node_modules", "axe-core", "axe.min.js"))
		require.NoError(p.t, err, "integration/with-chromium installs axe-core")
		eval[bool](p, string(source)+";true")
	}
	type violation struct {
		ID    string
		Help  string
		Nodes []string
	}
	found := eval[[]violation](p, "axe.run("+part+", "+options+`).then(r =>
		r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 5).map(n => n.html + ' ' + n.failureSummary)})))`)
	for _, v := range found {
		violations = append(violations, v.ID+": "+v.Help+"\n"+strings.Join(v.Nodes, "\n"))
	}
	return violations
}

// quote returns a string as a JavaScript literal.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(b)
}

// Contrast is checked in each combination of colors, also if it comes up later.
func TestContrastIsChecked(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	p := open(t, base, device{})
	p.visit("/")
	assert.Empty(t, p.contrast())
	require.NotEmpty(t, p.contrasts)
	require.Eventually(t, func() bool { // the page may still add something
		checked := len(p.contrasts)
		assert.Empty(t, p.contrast())
		return len(p.contrasts) == checked
	}, time.Minute, time.Millisecond, "nothing is new")
	eval[bool](p, "document.querySelector('h1').style.color = 'rgb(200, 200, 200)', true")
	assert.Len(t, p.contrast(), 1)
}

// The checks of this package detect a faulty page.
func TestTheBrowserReportsErrorsAndThirdPartyRequests(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	p := open(t, base, device{width: 360})
	p.visit("/__mock/health")
	eval[bool](p, "console.error('no'), true")
	eval[bool](p, "fetch('http://elsewhere.invalid/').then(() => true, () => true)")
	eval[bool](p, "document.body.style.width = '3000px', true")
	assert.Contains(t, strings.Join(p.expectErrors(), "\n"), `console.error "no"`)
	assert.Greater(t, eval[int](p, "document.documentElement.scrollWidth"), 360)
	p.mu.Lock()
	defer p.mu.Unlock()
	assert.True(t, p.hosts["elsewhere.invalid"])
	delete(p.hosts, "elsewhere.invalid")
}
