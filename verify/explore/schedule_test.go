package explore_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/internal/explore/fault"
	"github.com/gateway-go/gateway/mockserver"
)

// schedule is one call of an operation, with its faults and events.
type schedule struct {
	t          *testing.T
	run        *explore.Run
	operation  *operation
	faultsLeft int // the number of faults that are still allowed
	transient  int // faults after which another attempt can succeed
	serious    int // other faults and events
	defect     defect
	order      order
	violations []string // of the properties

	server *mockserver.Server
	key    string            // of an account of its own
	mock   http.RoundTripper // to the mock, without faults
	sound  *gateway.Client   // uses mock
	client *gateway.Client   // uses network

	process  int // 1, or 2 after the first has crashed
	sent     map[string]int
	cancel   context.CancelFunc
	timers   []*time.Timer
	inFlight []delayed
	creators map[string]int // the processes that created the resources, by id
	rivals   int

	notBefore time.Time
	rows      []*row
}

// row is a request in the table of a counter-example.
type row struct {
	process                int
	operation, fault, seen string
	status                 int
	events                 []string
}

// result is what a call returned.
type result struct {
	id      string
	err     error
	crashed bool
	about   []int // the processes whose requests it reports on
}

// choose picks one of n options, or the default if no more faults are allowed.
func (s *schedule) choose(n int) int {
	if s.faultsLeft == 0 {
		return 0
	}
	pick := s.run.Choose(n)
	if pick > 0 {
		s.faultsLeft--
	}
	return pick
}

// fault chooses the fault of a request. A read after an hour's wait is not
// stale.
func (s *schedule) fault(write bool) fault.Case {
	faults := fault.Writes()
	if !write {
		faults = fault.Reads()
	}
	n := len(faults)
	if !write && s.operation.again != nil {
		n--
	}
	f := faults[s.choose(n)]
	switch {
	case f.Name == "":
	case write && !f.Final:
		s.transient++
	default:
		s.serious++
	}
	return f
}

// before chooses what happens before the gateway gets a request.
func (s *schedule) before() int { return s.happens(s.operation.events) }

// after chooses what happens between a request and its response. If the gateway
// did nothing, the same event before the next request, or at the end, covers the
// case.
func (s *schedule) after(f fault.Case) int {
	var possible []int
	if f.Applied {
		possible = append(possible, s.operation.events...)
	}
	if f.Name != "" {
		possible = append(possible, contextEndsInWait)
	}
	return s.happens(possible)
}

func (s *schedule) happens(possible []int) int {
	possible = slices.DeleteFunc(slices.Clone(possible), func(event int) bool {
		return event == processCrashes && s.process == 2 || s.rivals > 0 && (event == rivalSendsSame || event == rivalSendsOther)
	})
	if pick := s.choose(1 + len(possible)); pick > 0 {
		s.serious++
		return possible[pick-1]
	}
	return nothing
}

// rival lets another client send an order with the same reference or, if the
// operation is a refund, refund a different amount.
func (s *schedule) rival(amount int64) {
	s.rivals++
	o := s.order
	o.amount = amount
	if o.token != "" {
		o.token = "pgct_ok_2"
	}
	if s.operation.op == "transactions.refund" {
		o.amount, o.reference = rivalRefund, ""
	}
	rival := s.newClient(roundTrip(func(r *http.Request) (*http.Response, error) {
		out, err := copyOf(r)
		if err != nil {
			return nil, err
		}
		return s.deliver(rivalProcess, out), nil
	}))
	if _, err := s.operation.call(s.t.Context(), rival, o); err != nil && !errors.Is(err, gateway.ErrDuplicate) {
		s.violated("the rival failed: " + err.Error())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *schedule) newClient(transport http.RoundTripper) *gateway.Client {
	opts := append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, s.operation.options...)
	client, err := gateway.New(mockserver.BaseURL, gateway.BearerToken(s.key), opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// play makes the call, repeats it if the process crashes, and checks what the call
// returned.
func (s *schedule) play() {
	s.sound = s.newClient(s.mock)
	if s.operation.prepare != nil {
		if err := s.operation.prepare(s); err != nil {
			s.t.Fatal(err)
		}
	}
	started := time.Now()
	res := s.start(1, func(ctx context.Context) (string, error) { return s.merchant(ctx, s.order) })
	res.about = []int{1}
	if res.crashed {
		res = s.restart(started)
	}
	s.arrive(fault.BeforeNext)
	s.arrive(fault.AfterTheCall)
	found := s.read()
	s.check(res, found)
	s.resolve(res, started)
}

// merchant makes the call as a merchant's code would.
func (s *schedule) merchant(ctx context.Context, o order, opts ...gateway.RequestOption) (string, error) {
	if s.defect.merchant != nil {
		return s.defect.merchant(ctx, s, o, opts...)
	}
	return s.operation.call(ctx, s.client, o, opts...)
}

// start runs a call in a separate process, which may crash. The context of the
// first process may have a deadline, or may have ended before the call.
func (s *schedule) start(process int, call func(context.Context) (string, error)) (res result) {
	s.process, s.sent, s.notBefore = process, map[string]int{}, time.Time{}
	var transport http.RoundTripper = network{s}
	if s.defect.client != nil {
		transport = s.defect.client(transport)
	}
	s.client = s.newClient(transport)
	ctx, cancel := context.WithCancel(s.t.Context())
	if process == 1 {
		switch s.choose(3) {
		case 1:
			s.serious++
			cancel()
			s.rows = append(s.rows, &row{process: process, operation: "-", seen: "the context had ended before"})
		case 2:
			s.serious++
			ctx, cancel = context.WithTimeout(s.t.Context(), 1900*time.Millisecond) // longer than all waits together
			s.rows = append(s.rows, &row{process: process, operation: "-", seen: "the context's deadline is in 1.9 s"})
		}
	}
	s.cancel = cancel
	res.crashed = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		res.id, res.err = call(ctx)
		res.crashed = false
	}()
	<-done
	for _, timer := range s.timers {
		timer.Stop()
	}
	cancel()
	return res
}

// restart runs the second process, which knows the order and, in some runs, when
// it was first sent.
func (s *schedule) restart(started time.Time) result {
	if s.operation.again != nil {
		res := s.start(2, func(ctx context.Context) (string, error) { return s.operation.again(ctx, s) })
		res.about = []int{1, 2}
		return res
	}
	var opts []gateway.RequestOption
	about := []int{1, 2}
	if !s.isRefund() && s.run.Choose(2) == 1 {
		about = []int{2}
	} else {
		opts = append(opts, gateway.FirstSent(started))
	}
	res := s.start(2, func(ctx context.Context) (string, error) { return s.merchant(ctx, s.order, opts...) })
	res.about = about
	return res
}

func (s *schedule) isRefund() bool { return s.operation.op == "transactions.refund" }

// read returns the resources that are stored for the order, of which there must be
// at most one.
func (s *schedule) read() []stored {
	found, err := s.operation.stored(s.t.Context(), s)
	if err != nil {
		s.violated("reading the stored resources failed: " + err.Error())
	}
	if len(found) > 1 {
		s.violated(fmt.Sprintf("the order was carried out %d times", len(found)))
	}
	return found
}

// check compares what the call returned with what is stored.
func (s *schedule) check(res result, found []stored) {
	outcome, unknown := errors.AsType[*gateway.OutcomeError](res.err)
	if res.err != nil && s.serious == 0 && (s.transient == 0 || s.operation.repeatable && s.transient < maxAttempts) {
		s.violated("another attempt would have helped: " + res.err.Error())
	}
	switch {
	case res.crashed || errors.Is(res.err, errReadFailed):
	case res.err == nil:
		s.checkSuccess(res.id, found)
	case unknown:
		if outcome.Reference+outcome.IdempotencyKey == "" && s.operation.repeatable {
			s.violated("the error of an unknown outcome does not name the reference")
		}
	case errors.Is(res.err, gateway.ErrDuplicate):
		s.checkDuplicate(res, found)
	default:
		if slices.ContainsFunc(found, res.isAbout) {
			s.violated("an error says that nothing was done, but it was: " + res.err.Error())
		}
	}
}

// isAbout reports whether the result is about the resource. Refunds have no ids, so
// it is about every refund of the order.
func (r result) isAbout(found stored) bool {
	return found.id == "" || slices.Contains(r.about, found.creator)
}

func (s *schedule) checkSuccess(id string, found []stored) {
	switch {
	case len(found) == 0:
		s.violated("success was reported, but nothing was done")
	case found[0].id != id:
		s.violated("success was reported with the id of another resource")
	case found[0].amount != s.order.amount:
		s.violated("success was reported for a different order")
	}
}

func (s *schedule) checkDuplicate(res result, found []stored) {
	e, _ := errors.AsType[*gateway.Error](res.err)
	switch {
	case len(found) == 0:
		s.violated("ErrDuplicate, but no resource has the reference")
	case res.isAbout(found[0]):
		s.violated("ErrDuplicate, but the call itself created the resource")
	case e != nil && e.ResourceID != "" && e.ResourceID != found[0].id:
		s.violated("ErrDuplicate names another resource")
	}
}

// resolve resolves an unknown outcome as documented, by repeating the call with its
// reference. After that, the order must have been carried out exactly once.
func (s *schedule) resolve(res result, started time.Time) {
	outcome, unknown := errors.AsType[*gateway.OutcomeError](res.err)
	if !unknown || !s.operation.repeatable || len(s.violations) > 0 {
		return
	}
	o := s.order
	o.reference = outcome.Reference
	if s.isRefund() {
		o.reference = outcome.IdempotencyKey
	}
	_, err := s.operation.call(s.t.Context(), s.sound, o, gateway.FirstSent(started))
	if err != nil && s.rivals == 0 && s.operation.op != "subscriptions.create" {
		s.violated("the order can't be repeated after an unknown outcome: " + err.Error())
	}
	if len(s.read()) != 1 {
		s.violated("the order was not carried out exactly once after it was repeated")
	}
}

func (s *schedule) violated(text string) { s.violations = append(s.violations, text) }

// String returns the counter-example as a table.
func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  process  request               what happens                                       the client sees\n", s.operation.name)
	for _, r := range s.rows {
		seen := r.seen
		if r.status != 0 {
			seen = fmt.Sprint(r.status)
		}
		what := strings.Join(append([]string{r.fault}, r.events...), "; ")
		fmt.Fprintf(&b, "  %-7d  %-20s  %-49s  %s\n", r.process, r.operation, strings.Trim(what, "; "), seen)
	}
	for _, text := range s.violations {
		fmt.Fprintf(&b, "  => %s\n", text)
	}
	return b.String()
}
