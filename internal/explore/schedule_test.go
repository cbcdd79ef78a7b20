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
	"github.com/gateway-go/gateway/mockserver"
)

// schedule is one call of an operation, with its faults and events.
type schedule struct {
	t         *testing.T
	run       *explore.Run
	operation *operation
	left      int // the number of faults that are still allowed
	transient int // attempts whose failure another attempt can fix
	serious   int // number of other faults
	defect    defect
	order     order
	wrong     []string // violated properties

	server *mockserver.Server
	key    string            // with its own account
	mock   http.RoundTripper // the transport to the mock that never fails
	sound  *gateway.Client   // uses mock
	client *gateway.Client   // uses a network

	process  int // 1, and 2 after the first one died
	sent     map[string]int
	cancel   context.CancelFunc
	timers   []*time.Timer
	underway []delayed
	makers   map[string]int // the processes that created the resources, by id
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

// receipt is the result of a call.
type receipt struct {
	id    string
	err   error
	died  bool
	about []int // the processes whose requests it is about
}

// choose picks one of n options, or the default when the budget of faults is
// used up.
func (s *schedule) choose(n int) int {
	if s.left == 0 {
		return 0
	}
	pick := s.run.Choose(n)
	if pick > 0 {
		s.left--
	}
	return pick
}

// fault chooses the fault of a request. A read after an hour's wait is not
// stale.
func (s *schedule) fault(write bool) fault {
	faults := writeFaults()
	if !write {
		faults = readFaults()
	}
	n := len(faults)
	if !write && s.operation.again != nil {
		n--
	}
	f := faults[s.choose(n)]
	switch {
	case f.name == "":
	case write && !f.final:
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
func (s *schedule) after(f fault) int {
	var possible []int
	if f.applied {
		possible = append(possible, s.operation.events...)
	}
	if f.name != "" {
		possible = append(possible, contextEndsInWait)
	}
	return s.happens(possible)
}

func (s *schedule) happens(possible []int) int {
	possible = slices.DeleteFunc(slices.Clone(possible), func(event int) bool {
		return event == processDies && s.process == 2 || s.rivals > 0 && (event == aRival || event == anOtherRival)
	})
	if pick := s.choose(1 + len(possible)); pick > 0 {
		s.serious++
		return possible[pick-1]
	}
	return nothing
}

// rival sends an order with the same reference, or refunds another amount.
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
		return s.deliver(aRivalProcess, out), nil
	}))
	if _, err := s.operation.call(s.t.Context(), rival, o); err != nil && !errors.Is(err, gateway.ErrDuplicate) {
		s.broken("the rival failed: " + err.Error())
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

// play makes the call, repeats it if the process died, and checks what the call
// returned.
func (s *schedule) play() {
	s.sound = s.newClient(s.mock)
	if s.operation.prepare != nil {
		if err := s.operation.prepare(s); err != nil {
			s.t.Fatal(err)
		}
	}
	started := time.Now()
	said := s.start(1, func(ctx context.Context) (string, error) { return s.merchant(ctx, s.order) })
	said.about = []int{1}
	if said.died {
		said = s.restart(started)
	}
	s.arrive(beforeNext)
	s.arrive(afterTheCall)
	found := s.read()
	s.judge(said, found)
	s.settle(said, started)
}

// merchant makes the call as a merchant's code would.
func (s *schedule) merchant(ctx context.Context, o order, opts ...gateway.RequestOption) (string, error) {
	if s.defect.merchant != nil {
		return s.defect.merchant(ctx, s, o, opts...)
	}
	return s.operation.call(ctx, s.client, o, opts...)
}

// start runs a call in a separate process, which may die. The context of the
// first process may have a deadline, or have ended before the call.
func (s *schedule) start(process int, call func(context.Context) (string, error)) (said receipt) {
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
			s.rows = append(s.rows, &row{process: process, operation: "-", seen: "the context has ended before"})
		case 2:
			s.serious++
			ctx, cancel = context.WithTimeout(s.t.Context(), 1900*time.Millisecond) // longer than all waits together
			s.rows = append(s.rows, &row{process: process, operation: "-", seen: "the context has a deadline in 1.9 s"})
		}
	}
	s.cancel = cancel
	said.died = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		said.id, said.err = call(ctx)
		said.died = false
	}()
	<-done
	for _, timer := range s.timers {
		timer.Stop()
	}
	cancel()
	return said
}

// restart is the second process. It has the order and the time when it was
// sent, or only the order.
func (s *schedule) restart(started time.Time) receipt {
	if s.operation.again != nil {
		said := s.start(2, func(ctx context.Context) (string, error) { return s.operation.again(ctx, s) })
		said.about = []int{1, 2}
		return said
	}
	var opts []gateway.RequestOption
	about := []int{1, 2}
	if !s.isRefund() && s.run.Choose(2) == 1 {
		about = []int{2}
	} else {
		opts = append(opts, gateway.RepeatOf(started))
	}
	said := s.start(2, func(ctx context.Context) (string, error) { return s.merchant(ctx, s.order, opts...) })
	said.about = about
	return said
}

func (s *schedule) isRefund() bool { return s.operation.op == "transactions.refund" }

// read reads the resources that are stored for the order. There must be at
// most one.
func (s *schedule) read() []stored {
	found, err := s.operation.stored(s.t.Context(), s)
	if err != nil {
		s.broken("the store: " + err.Error())
	}
	if len(found) > 1 {
		s.broken(fmt.Sprintf("the order was carried out %d times", len(found)))
	}
	return found
}

// judge compares what the call returned with the store.
func (s *schedule) judge(said receipt, found []stored) {
	outcome, unknown := errors.AsType[*gateway.OutcomeError](said.err)
	if said.err != nil && s.serious == 0 && (s.transient == 0 || s.operation.settled && s.transient < maxAttempts) {
		s.broken("another attempt would have helped: " + said.err.Error())
	}
	switch {
	case said.died || errors.Is(said.err, errReadFailed):
	case said.err == nil:
		s.judgeSuccess(said.id, found)
	case unknown:
		if outcome.Reference+outcome.IdempotencyKey == "" && s.operation.settled {
			s.broken("the error of an unknown outcome does not name the reference")
		}
	case errors.Is(said.err, gateway.ErrDuplicate):
		s.judgeDuplicate(said, found)
	default:
		if slices.ContainsFunc(found, said.speaksAbout) {
			s.broken("an error says that nothing was done, but it was: " + said.err.Error())
		}
	}
}

// speaksAbout reports whether a receipt is about the resource. Refunds have no
// ids, so all refunds of the order count.
func (r receipt) speaksAbout(found stored) bool {
	return found.id == "" || slices.Contains(r.about, found.maker)
}

func (s *schedule) judgeSuccess(id string, found []stored) {
	switch {
	case len(found) == 0:
		s.broken("success was reported, but nothing was done")
	case found[0].id != id:
		s.broken("success was reported with the id of another resource")
	case found[0].amount != s.order.amount:
		s.broken("success was reported for an order that differs")
	}
}

func (s *schedule) judgeDuplicate(said receipt, found []stored) {
	e, _ := errors.AsType[*gateway.Error](said.err)
	switch {
	case len(found) == 0:
		s.broken("ErrDuplicate, but no resource has the reference")
	case said.speaksAbout(found[0]):
		s.broken("ErrDuplicate, but the call itself created the resource")
	case e != nil && e.ResourceID != "" && e.ResourceID != found[0].id:
		s.broken("ErrDuplicate names another resource")
	}
}

// settle resolves an unknown outcome as documented, by repeating the call with
// its reference. After that the order must have been carried out once.
func (s *schedule) settle(said receipt, started time.Time) {
	outcome, unknown := errors.AsType[*gateway.OutcomeError](said.err)
	if !unknown || !s.operation.settled || len(s.wrong) > 0 {
		return
	}
	o := s.order
	o.reference = outcome.Reference
	if s.isRefund() {
		o.reference = outcome.IdempotencyKey
	}
	_, err := s.operation.call(s.t.Context(), s.sound, o, gateway.RepeatOf(started))
	if err != nil && s.rivals == 0 && s.operation.op != "subscriptions.create" {
		s.broken("the order can't be repeated after an unknown outcome: " + err.Error())
	}
	if len(s.read()) != 1 {
		s.broken("the order was not carried out after it was repeated")
	}
}

func (s *schedule) broken(text string) { s.wrong = append(s.wrong, text) }

// String formats the table of a counter-example.
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
	for _, text := range s.wrong {
		fmt.Fprintf(&b, "  => %s\n", text)
	}
	return b.String()
}
