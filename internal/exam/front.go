package exam

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway/internal/explore/fault"
	"github.com/gateway-go/gateway/internal/spec"
)

// Rule says what happens to requests of the program to the gateway.
type Rule struct {
	On    string // the operation, such as transactions.create; "reads" or "writes"; "" is every request
	Times int    // how many requests; 0 means all until the settling
	Case  fault.Case
	Late  time.Duration // of a request that arrives late, in the program's time
	Hang  time.Duration // before the client sees anything

	Stale bool // a read returns the state before the last change

	Defer  func(arrive func()) // takes a request that arrives late; nil: it arrives after Late
	Seen   func(body []byte)   // when the request has arrived
	Before func()              // after that
	After  func()              // when it has been executed, before it has its response

	fired int
}

func (r *Rule) matches(op string, write bool) bool {
	if r.Times > 0 && r.fired == r.Times {
		return false
	}
	switch r.On {
	case "":
		return true
	case "reads":
		return !write
	case "writes":
		return write
	}
	return r.On == op
}

// Front stands between the program and the gateway. As a round tripper it passes
// requests on, and applies the rules.
type Front struct {
	gateway http.RoundTripper
	names   *http.ServeMux
	stage   Stage
	act     *activity
	log     func(Message)
	choices *choices

	mu    sync.Mutex
	rules []*Rule
	late  sync.WaitGroup
	tried map[string]*attempts // by operation and body
	warn  map[string]bool
}

// attempts are the requests with the same bytes.
type attempts struct {
	n         int
	notBefore time.Time // from a Retry-After
}

func newFront(gateway http.RoundTripper, stage Stage, act *activity, log func(Message)) *Front {
	f := &Front{gateway: gateway, names: http.NewServeMux(), stage: stage, act: act, log: log, tried: map[string]*attempts{}, warn: map[string]bool{}}
	routes := map[string]bool{} // a session is opened and resumed by the same route
	for op := range spec.Operations() {
		if route := op.Method + " " + op.Path; !routes[route] {
			routes[route] = true
			f.names.Handle(route, named(op.Name))
		}
	}
	return f
}

// named is the name of an operation, as a handler of a mux that finds it.
type named string

func (named) ServeHTTP(http.ResponseWriter, *http.Request) {}

func (f *Front) operation(r *http.Request) string {
	h, _ := f.names.Handler(r)
	if name, ok := h.(named); ok {
		return string(name)
	}
	return r.Method + " " + r.URL.Path
}

// add adds a rule. The latest rule that matches a request applies.
func (f *Front) add(r *Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
}

// clear removes the rules, and returns those that never applied.
func (f *Front) clear() (unused []*Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.fired == 0 {
			unused = append(unused, r)
		}
	}
	f.rules = nil
	return unused
}

// begin forgets the attempts of the last scenario and returns its warnings.
func (f *Front) begin() (warnings []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.warn {
		warnings = append(warnings, w)
	}
	f.tried, f.warn = map[string]*attempts{}, map[string]bool{}
	return warnings
}

// remove removes one rule.
func (f *Front) remove(r *Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = slices.DeleteFunc(f.rules, func(other *Rule) bool { return other == r })
}

func (f *Front) rule(op string, write bool) *Rule {
	for i := len(f.rules) - 1; i >= 0; i-- {
		if r := f.rules[i]; r.matches(op, write) {
			r.fired++
			return r
		}
	}
	return nil
}

const maxAttempts = 10

// count counts an attempt of a write and warns of too many, or of one before a
// Retry-After is over.
func (f *Front) count(op string, body []byte) {
	key := op + "\x00" + string(body)
	a := f.tried[key]
	if a == nil {
		a = &attempts{}
		f.tried[key] = a
	}
	a.n++
	if a.n == maxAttempts+1 {
		f.warn["more than "+strconv.Itoa(maxAttempts)+" attempts of one "+op] = true
	}
	const clocks = 100 * time.Millisecond // two clocks, and a rounded timer
	if time.Now().Before(a.notBefore.Add(-clocks)) {
		f.warn["Retry-After of a "+op+" was ignored"] = true
	}
}

func (f *Front) saw(op string, body []byte, resp *http.Response) {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.tried[op+"\x00"+string(body)]; a != nil {
		a.notBefore = time.Now().Add(time.Duration(seconds) * time.Second)
	}
}

// RoundTrip implements http.RoundTripper for the program's requests.
func (f *Front) RoundTrip(r *http.Request) (*http.Response, error) {
	write := r.Method != http.MethodGet && r.Method != http.MethodHead
	began := time.Now()
	end := f.act.begin(write)
	defer end()
	out, body, err := copyOf(r)
	if err != nil {
		return nil, err
	}
	op := f.operation(r)
	keyed := r.Header.Get("Idempotency-Key") != ""
	f.mu.Lock()
	rule := f.rule(op, write)
	if write {
		f.count(op, body)
	}
	f.mu.Unlock()
	if rule == nil {
		rule = f.choices.request(op, write, keyed)
	}
	if rule == nil || rule.Case.Keyed && !keyed {
		rule = &Rule{Case: fault.None()}
	}
	what := rule.Case
	if what.See == nil {
		what = fault.None()
	}
	message := Message{Direction: ToGateway, What: describe(op, r), Fault: what.Name, began: began}
	if rule.Seen != nil {
		rule.Seen(body)
	}
	if rule.Before != nil {
		rule.Before()
	}
	if rule.Stale {
		makeStale(out, op)
	}
	var real *http.Response
	switch {
	case what.Late != fault.InTime && rule.Defer != nil:
		rule.Defer(func() { f.arrive(out, body, op) })
	case what.Late != fault.InTime:
		f.arriveLate(out, body, op, rule.Late)
	case what.Applied:
		if real, err = f.execute(out, body); err != nil {
			return nil, err
		}
	}
	if rule.After != nil {
		rule.After()
	}
	if rule.Hang > 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(rule.Hang):
		}
	}
	resp, err := what.See(r, real)
	switch {
	case err != nil:
		message.Answer = reason(err)
	default:
		message.Answer = strconv.Itoa(resp.StatusCode)
		f.saw(op, body, resp)
	}
	f.log(message)
	return resp, err
}

func reason(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "cut off"
	}
	return "reset"
}

// arriveLate executes a request after its connection was reset.
func (f *Front) arriveLate(out *http.Request, body []byte, op string, d time.Duration) {
	end := f.act.begin(true)
	f.late.Go(func() {
		defer end()
		f.stage.Sleep(d)
		f.arrive(out, body, op)
	})
}

func (f *Front) arrive(out *http.Request, body []byte, op string) {
	message := Message{Direction: ToGateway, What: op + " arrives late"}
	resp, err := f.execute(out, body)
	if err != nil {
		message.Answer = reason(err)
	} else {
		message.Answer = strconv.Itoa(resp.StatusCode)
		_ = resp.Body.Close()
	}
	f.log(message)
}

// makeStale makes a read return the state before the last change: the earlier version of
// a resource, or an empty list, which is that of another account.
func makeStale(r *http.Request, op string) {
	if !strings.HasSuffix(op, ".list") {
		r.Header.Set("X-Mock-Fault", "stale-read")
		return
	}
	r.Header.Del("Apikey")
	r.Header.Set("Authorization", "Bearer sk_test_untouched")
}

// execute lets the gateway execute a request, and reads its whole response.
func (f *Front) execute(out *http.Request, body []byte) (*http.Response, error) {
	if body != nil {
		out.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := f.gateway.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return resp, err
}

// copyOf returns a copy of the request that does not end with its client.
func copyOf(r *http.Request) (out *http.Request, body []byte, err error) {
	out = r.Clone(context.WithoutCancel(r.Context()))
	out.RequestURI = ""
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	out.Body, out.ContentLength = http.NoBody, int64(len(body))
	if len(body) == 0 {
		body = nil
	}
	return out, body, err
}

// describe is the operation with the path's parameters, such as
// transactions.get 01a2….
func describe(op string, r *http.Request) string {
	const shown = 8
	for part := range strings.SplitSeq(r.URL.Path, "/") {
		if strings.Count(part, "-") == 4 {
			return op + " …" + part[max(0, len(part)-shown):] // ids begin with the time
		}
	}
	if q := r.URL.RawQuery; q != "" && r.Method == http.MethodGet {
		names := make([]string, 0, 4)
		for name := range r.URL.Query() {
			names = append(names, name)
		}
		return op + " by " + strings.Join(sorted(names), ", ")
	}
	return op
}
