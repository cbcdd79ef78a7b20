package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/events"
)

const (
	maxFaults  = 1000
	maxPattern = 256 // characters of Fault.On
)

// ErrLimit means that the set is full.
var ErrLimit = fmt.Errorf("the gateway has reached its limit of %d pending faults: clear some", maxFaults)

// Set holds the faults for requests and webhooks. The zero Set is empty and
// ready.
type Set struct {
	// Seed makes the outcomes of probabilities reproducible.
	Seed uint64
	// Known reports whether pattern matches an operation or a kind of event;
	// nil accepts any pattern. It catches mistyped patterns, which would never
	// match.
	Known func(webhook bool, pattern string) bool
	// Now returns the time of the virtual clock, on which faults end. Nil ends none.
	Now func() time.Time
	// Events is notified of changes and hits. It may be nil.
	Events *events.Hub

	armed atomic.Int32 // the length of list; avoids the lock if there are no faults

	lot   lot
	mu    sync.Mutex
	list  []*entry
	count int // faults so far
}

// entry is a fault with its counters.
type entry struct {
	Fault

	id     string
	until  time.Time // its end on the virtual clock; zero for none
	random *rand.Rand
	seen   int
	fired  int
}

// Report is a fault with its matches and hits.
type Report struct {
	ID    string
	Fault Fault
	Until time.Time // its end on the virtual clock; zero for none
	Seen  int       // requests or webhooks that matched
	Fired int       // those that the fault hit
}

// Add appends a fault and returns its id. If several faults match, the first that
// fires applies.
func (s *Set) Add(f Fault) (id string, err error) {
	if err := f.Validate(); err != nil {
		return "", err
	}
	if len(f.On) > maxPattern {
		return "", fmt.Errorf("fault %s: on must have at most %d characters", f.Kind, maxPattern)
	}
	if f.On != "" && s.Known != nil && !s.Known(f.Kind.Webhook(), f.On) {
		return "", s.unmatched(f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= maxFaults {
		done := slices.IndexFunc(s.list, s.done)
		if done < 0 {
			return "", ErrLimit
		}
		s.list = slices.Delete(s.list, done, done+1)
	}
	s.count++
	w := &entry{
		Fault:  f,
		id:     "fault_" + strconv.Itoa(s.count),
		random: rand.New(rand.NewPCG(s.Seed, uint64(s.count))), //nolint:gosec // reproducible on purpose
	}
	if f.For > 0 && s.Now != nil {
		w.until = s.Now().Add(f.For)
	}
	s.list = append(s.list, w)
	s.armed.Store(int32(len(s.list))) //nolint:gosec // far below 2^31
	s.emit("added", w)
	return w.id, nil
}

// unmatched says why nothing ever matches the fault's On.
func (s *Set) unmatched(f Fault) error {
	webhooks := f.Kind.Webhook()
	form, of, other := "an operation or a route such as transactions.create, transactions.* or POST /v2/transactions", "requests", "webhooks"
	if webhooks {
		form, of, other = "a kind of event such as transaction.paid or transaction.*", other, of
	}
	if s.Known(!webhooks, f.On) {
		return fmt.Errorf("fault %s: it is a fault of %s, so on must be %s; %q is for %s", f.Kind, of, form, f.On, other)
	}
	return fmt.Errorf("fault %s: on must be %s, not %q", f.Kind, form, f.On)
}

// Clear removes an account's faults for requests, or those for webhooks. "" means all
// accounts.
func (s *Set) Clear(account string, webhooks bool) {
	s.remove(func(w *entry) bool {
		return w.Kind.Webhook() == webhooks && (account == "" || w.Account == account)
	})
}

// Remove removes a fault of an account and reports whether there was one. "" means any
// account.
func (s *Set) Remove(account, id string) bool {
	return s.remove(func(w *entry) bool { return w.id == id && (account == "" || w.Account == account) })
}

func (s *Set) remove(match func(*entry) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(w *entry) bool {
		gone := match(w)
		if gone {
			s.emit("removed", w)
		}
		return gone
	})
	s.armed.Store(int32(len(s.list))) //nolint:gosec // far below 2^31
	return len(s.list) < before
}

// Reports lists the faults of an account in the order in which they were added,
// including those that can't fire again. "" means all accounts.
func (s *Set) Reports(account string) []Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reports []Report
	for _, w := range s.list {
		if account == "" || w.Account == account {
			reports = append(reports, Report{ID: w.id, Fault: w.Fault, Until: w.until, Seen: w.seen, Fired: w.fired})
		}
	}
	return reports
}

// Request contains the parts of a request that patterns are matched against.
type Request struct{ Account, Operation, Method, Path string }

// ForRequest returns the fault for a request.
func (s *Set) ForRequest(r Request) (Fault, bool) {
	return s.next(r.Account, r.Operation, false, func(pattern string) bool { return r.Matches(pattern) })
}

// ForWebhook returns the fault for the delivery of an event; the zero Fault is
// none.
func (s *Set) ForWebhook(account, kind string) Fault {
	f, _ := s.next(account, kind, true, func(pattern string) bool { return Glob(pattern, kind) })
	return f
}

// next returns the fault that hits an operation, or a kind of event.
func (s *Set) next(account, target string, webhook bool, matches func(pattern string) bool) (Fault, bool) {
	if s.armed.Load() == 0 {
		return Fault{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.list {
		mine := w.Account == "" || w.Account == account
		if mine && w.Kind.Webhook() == webhook && !s.over(w) && (w.On == "" || matches(w.On)) && w.fire() {
			s.hit(account, target, w)
			return w.Fault, true
		}
	}
	return Fault{}, false
}

// over reports whether the time of a fault has passed.
func (s *Set) over(w *entry) bool { return !w.until.IsZero() && !s.Now().Before(w.until) }

// done reports whether a fault can't fire again.
func (s *Set) done(w *entry) bool {
	return s.over(w) || w.Times > 0 && w.fired >= w.Times || w.Nth > 0 && w.seen >= w.Nth
}

// fire counts a match and decides whether the fault hits it.
func (w *entry) fire() bool {
	if w.Times > 0 && w.fired >= w.Times {
		return false
	}
	w.seen++
	if w.Nth > 0 && w.seen != w.Nth {
		return false
	}
	if w.Never {
		return false
	}
	if w.Probability > 0 && w.Probability < 1 && w.random.Float64() >= w.Probability {
		return false
	}
	w.fired++
	return true
}

// Matches reports whether a pattern matches the request: an optional method and the
// operation's name ("transactions.create", "GET transactions.*", "GET *") or a path
// ("POST /v2/transactions", "/v2/transactions/{id}").
func (r Request) Matches(pattern string) bool { return r.matches(pattern, PathMatches) }

// CanMatch reports whether a pattern can match any request of an operation. The path of
// r is the operation's path template.
func (r Request) CanMatch(pattern string) bool {
	return r.matches(pattern, func(path, template string) bool {
		return PathMatches(path, template) || PathMatches(template, path)
	})
}

func (r Request) matches(pattern string, samePath func(pattern, path string) bool) bool {
	method, target, found := strings.Cut(pattern, " ")
	if !found {
		method, target = "", pattern
	}
	if method != "" && !strings.EqualFold(method, r.Method) {
		return false
	}
	if target = strings.TrimSpace(target); strings.HasPrefix(target, "/") {
		return samePath(target, r.Path)
	}
	return Glob(target, r.Operation)
}

// Glob reports whether a name matches a pattern, which may end in "*".
func Glob(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// PathArguments reports whether a path matches a template, and returns the path's
// elements that the template has in braces.
func PathArguments(template, path string) (args []string, ok bool) {
	if !PathMatches(template, path) {
		return nil, false
	}
	elements := strings.Split(path, "/")
	for i, name := range strings.Split(template, "/") {
		if strings.HasPrefix(name, "{") {
			args = append(args, elements[i])
		}
	}
	return args, true
}

// PathMatches reports whether a path matches a template: "{id}" and "*" match
// any element.
func PathMatches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		if w != got[i] && w != "*" && !strings.HasPrefix(w, "{") {
			return false
		}
	}
	return true
}
