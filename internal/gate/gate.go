// Package gate pauses the requests of an account while its gateway fails, so that an outage
// costs a few probes instead of every request that waits, with all its retries.
//
// A [Gate] closes after a failure: 5xx, 429, 401 or no response. Then each kind of request may
// probe once, after a pause that doubles with each probe that fails, and one success opens the
// gate. Each kind has a pause of its own: if one endpoint alone fails, the success of another
// opens the gate, and only the requests of that endpoint go on pausing.
//
// What a caller waits for is not paused: a call without a mark in its context is a caller's and
// may probe once a second. Work in the background is marked with [Background].
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
)

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute

	// longestAsked bounds the Retry-After of a gateway that asks for days.
	longestAsked = time.Hour

	// callerPause is how often a caller may probe, and how long one waits for that.
	callerPause = time.Second

	// probeLease is how long a probe is the only one of its kind. One that hangs for longer
	// hides nothing: the next one begins, with a lease of twice the length.
	probeLease   = 5 * time.Second
	longestLease = 20 * time.Second

	// While the window is below wide, it limits the background's requests in flight. Each
	// success adds one. So what waits does not hit a gateway that has just come back all at
	// once, and one that hangs does not get all of it before the first timeout.
	wide = 64

	// idleWindow is the window when nothing has succeeded for idle.
	idleWindow = 2
	idle       = 30 * time.Second

	// shortDeadline is how long an attempt must have taken before the end of its caller's
	// deadline says something about the gateway.
	shortDeadline = time.Second
)

// Gate is the gate of an account. It is safe for concurrent use.
type Gate struct {
	account string
	logger  *slog.Logger
	jitter  func(time.Duration) time.Duration // in [0, d)

	mu        sync.Mutex
	closed    bool
	said      bool // that it is closed
	since     time.Time
	status    int       // of the last failure; 0 if there was no response
	until     time.Time // no kind probes before
	kinds     map[string]*kind
	flying    int // requests of the background
	window    int
	succeeded time.Time     // the last success
	asked     time.Time     // the last probe of a caller
	changed   chan struct{} // is closed if what waits may go on; nil if nothing waits
	stopped   bool
}

// kind is the requests with one name, such as "transactions.get".
type kind struct {
	fails  int       // in a row
	failed time.Time // the last one
	until  time.Time // the end of the pause
	lease  time.Time // until then a probe is the only one
	flying int       // requests of the background that began in this turn
	turn   int       // a new one begins when the gate opens or closes, and when all in flight hang
	began  time.Time // the last one of the background
	hung   int       // leases that ended without an outcome
}

// New returns an open gate.
func New(account string, logger *slog.Logger) *Gate {
	return &Gate{
		account: account, logger: logger, kinds: make(map[string]*kind), window: idleWindow,
		jitter: func(d time.Duration) time.Duration { return rand.N(max(d, 1)) }, //nolint:gosec // jitter needs no secrecy
	}
}

// ClosedError reports that a request was not sent because the gate is closed.
type ClosedError struct {
	Account string
	Since   time.Time
	Status  int // of the last response; 0 if there was none
}

// Error says what fails.
func (e *ClosedError) Error() string {
	if e.Since.IsZero() {
		return "other requests of the account " + e.Account + " come first: it is sent later"
	}
	why := "the gateway does not respond"
	if e.Status != 0 {
		why = fmt.Sprintf("the gateway responded with %d", e.Status)
	}
	return fmt.Sprintf("the requests of the account %s are paused since %s, because %s: it is sent when the gateway works again",
		e.Account, e.Since.UTC().Format(time.RFC3339), why)
}

// Refused reports whether err is the error of a call whose first attempt was not made because
// the gate was closed: the call sent nothing.
func Refused(err error) bool {
	e, ok := errors.AsType[*gateway.Error](err)
	if !ok || e.Attempts > 0 {
		return false
	}
	_, ok = errors.AsType[*ClosedError](e.Err)
	return ok
}

// RejectsKey reports whether err is a request that was not sent because the gateway rejects
// the account's key.
func RejectsKey(err error) bool {
	e, ok := errors.AsType[*ClosedError](err)
	return ok && e.Status == http.StatusUnauthorized
}

// State is whether a gate is closed.
type State struct {
	Closed bool
	Since  time.Time
	Status int // of the last failure; 0 if there was no response
}

// State returns whether the gate is closed.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{g.closed, g.since, g.status}
}

// Stop ends the waits of the background, and those that would begin later.
func (g *Gate) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.signal()
}

// Changed returns a channel that is closed when what waits may go on.
func (g *Gate) Changed() <-chan struct{} {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.change()
}

func (g *Gate) change() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

func (g *Gate) signal() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

func (g *Gate) kind(name string) *kind {
	k := g.kinds[name]
	if k == nil {
		k = new(kind)
		g.kinds[name] = k
	}
	return k
}

// Room returns how many requests of a kind the background may begin now.
func (g *Gate) Room(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.kind(name)
	if wait := g.wait(k, time.Now()); wait > 0 {
		return 0
	}
	switch {
	case g.closed || k.fails > 0:
		return 1
	case g.window >= wide:
		return wide
	}
	return max(1, g.window-g.flying)
}

// Fails reports whether the last request of a kind has failed.
func (g *Gate) Fails(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kind(name).fails > 0
}

// wait returns how long a request of the background must wait, or 0.
func (g *Gate) wait(k *kind, now time.Time) time.Duration {
	at := k.until
	for _, t := range []time.Time{g.until, k.lease} {
		if t.After(at) {
			at = t
		}
	}
	if wait := at.Sub(now); wait > 0 {
		return wait
	}
	if !k.lease.IsZero() { // it has ended without an outcome
		k.lease = time.Time{}
		k.hung++
	}
	if g.window > idleWindow && now.Sub(g.succeeded) > idle {
		g.window = idleWindow
	}
	if g.closed || k.flying == 0 || g.window >= wide || g.flying < g.window {
		return 0
	}
	if wait := k.leased().Sub(now); wait > 0 {
		return wait
	}
	k.hung++
	g.forget(k)
	return 0
}

// leased is until when the last request of a kind is the only one.
func (k *kind) leased() time.Time { return k.began.Add(min(probeLease<<min(k.hung, 8), longestLease)) }

// forget no longer counts the requests in flight of a kind.
func (g *Gate) forget(k *kind) {
	g.flying -= k.flying
	k.flying = 0
	k.turn++
}

// entry is a request of the background, or several that a Pass admits.
type entry struct {
	kind  *kind
	turn  int
	lease time.Time // before it began
}

func (g *Gate) begin(k *kind, now time.Time) entry {
	e := entry{k, k.turn, k.lease}
	k.began = now
	if g.closed || k.fails > 0 {
		k.lease = k.leased()
	}
	k.flying++
	g.flying++
	return e
}

func (g *Gate) end(e entry) {
	if e.turn == e.kind.turn {
		e.kind.flying--
		g.flying--
		g.signal()
	}
}

// Enter implements [gateway.Gate].
func (g *Gate) Enter(ctx context.Context, a gateway.Attempt) (func(gateway.AttemptResult) bool, error) {
	if p, ok := ctx.Value(passKey{}).(*Pass); ok && p.gate == g {
		return p.enter(ctx, a.Name)
	}
	m, background := ctx.Value(modeKey{}).(mode)
	if !background {
		if err := g.admitCaller(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		return func(r gateway.AttemptResult) bool {
			g.report(ctx, began, &r, a.Name)
			return true
		}, nil
	}
	e, err := g.admit(ctx, a.Name, m.patience)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func(r gateway.AttemptResult) bool {
		more := g.report(ctx, began, &r, a.Name)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.end(e)
		return more
	}, nil
}

// admit waits until a request of the background may begin, but no longer than its patience.
func (g *Gate) admit(ctx context.Context, name string, patience time.Duration) (entry, error) {
	var e entry
	err := g.await(ctx, patience, func(now time.Time) (time.Duration, bool) {
		k := g.kind(name)
		wait := g.wait(k, now)
		if wait == 0 {
			e = g.begin(k, now)
		}
		return wait, !g.stopped
	})
	return e, err
}

// admitCaller waits until a caller may begin a request.
func (g *Gate) admitCaller(ctx context.Context) error {
	return g.await(ctx, callerPause, func(now time.Time) (time.Duration, bool) { return g.waitOfCaller(now), true })
}

// waitOfCaller begins a caller's request, or returns how long it must wait.
func (g *Gate) waitOfCaller(now time.Time) time.Duration {
	if !g.closed {
		return 0
	}
	wait := g.asked.Add(callerPause).Sub(now)
	if wait <= 0 {
		g.asked = now
	}
	return max(wait, 0)
}

// await calls try, under the lock, until it returns no wait, for as long as patience.
func (g *Gate) await(ctx context.Context, patience time.Duration, try func(now time.Time) (wait time.Duration, patient bool)) error {
	end := time.Now().Add(patience)
	for {
		now := time.Now()
		g.mu.Lock()
		wait, patient := try(now)
		if wait == 0 {
			g.mu.Unlock()
			return nil
		}
		if !patient || !now.Before(end) {
			defer g.mu.Unlock()
			return g.refusal()
		}
		changed := g.change()
		g.mu.Unlock()
		timer := time.NewTimer(min(wait, end.Sub(now)))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}

func (g *Gate) refusal() error {
	e := &ClosedError{Account: g.account}
	if g.closed {
		e.Since, e.Status = g.since, g.status
	}
	return e
}

// report notes the outcome of a request, and returns whether the gate is open. A failure is also
// one of the kinds that wait for it.
func (g *Gate) report(ctx context.Context, began time.Time, r *gateway.AttemptResult, name string, waiting ...string) (open bool) {
	now := time.Now()
	g.mu.Lock()
	say := noNews
	switch judge(ctx, r, now.Sub(began)) {
	case works:
		say = g.success(g.kind(name), now)
	case fails:
		for _, name := range append(waiting, name) {
			say = max(say, g.failure(g.kind(name), began, now, r))
		}
	case unclear:
	}
	is := State{g.closed, g.since, g.status}
	g.mu.Unlock()
	g.say(ctx, say, is)
	return !is.Closed
}

type verdict uint8

const (
	unclear verdict = iota
	works
	fails
)

// judge says what the outcome of an attempt shows of the gateway. An error about one record
// shows that it is there.
func judge(ctx context.Context, r *gateway.AttemptResult, took time.Duration) verdict {
	if v := shown(r.StatusCode, r.Err); v != unclear {
		return v
	}
	switch end := ctx.Err(); {
	case r.StatusCode == 0 && r.Err == nil, errors.Is(end, context.Canceled):
		return unclear
	case end != nil && took < shortDeadline:
		return unclear
	}
	return fails
}

// shown is what a response shows. It is unclear without a complete one.
func shown(status int, err error) verdict {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return fails
	case status >= 400 && status <= 499:
		return works
	case status >= 200 && status <= 299 && err == nil:
		return works
	case status >= 300:
		return fails
	}
	return unclear
}

// Silent reports whether err is that of a call that got no response about what it asked for.
func Silent(err error) bool {
	e, ok := errors.AsType[*gateway.Error](err)
	return ok && shown(e.StatusCode, err) != works
}

// success opens the gate.
func (g *Gate) success(k *kind, now time.Time) news {
	k.fails, k.hung, k.until, k.lease = 0, 0, time.Time{}, time.Time{}
	g.succeeded = now
	if g.window < wide {
		g.window++
	}
	if !g.closed {
		g.signal()
		return noNews
	}
	g.turnTo(false)
	// The others don't wait for the end of pauses that were made for all.
	for _, other := range g.kinds {
		other.until, other.lease, other.hung = time.Time{}, time.Time{}, 0
	}
	g.until, g.asked = time.Time{}, time.Time{}
	g.signal()
	if !g.said {
		return noNews
	}
	g.said = false
	return opened
}

// turnTo opens or closes the gate.
func (g *Gate) turnTo(closed bool) {
	g.closed, g.window = closed, idleWindow
	for _, k := range g.kinds {
		g.forget(k)
	}
}

// failure closes the gate, or makes the pause longer. A request that began before the last
// success or failure says nothing new: so one failure among many successes closes nothing.
func (g *Gate) failure(k *kind, began, now time.Time, r *gateway.AttemptResult) news {
	if began.Before(g.succeeded) || began.Before(k.failed) || g.closed && began.Before(g.since) {
		return noNews
	}
	asked := min(r.RetryAfter, longestAsked)
	known := k.fails > 0
	if !began.Before(k.until) { // a caller's probe within the pause makes it no longer
		k.fails++
		k.failed = now
		k.until = now.Add(g.pause(k.fails, asked))
	}
	k.lease, k.hung = time.Time{}, 0
	if g.closed || !known {
		g.status = r.StatusCode
	}
	if !g.closed && !known {
		for _, other := range g.kinds {
			if other != k && other.flying > 0 { // what is in flight is its probe
				other.lease = other.leased()
			}
		}
		g.turnTo(true)
		g.since, g.until = now, k.until
	}
	if g.closed && asked > 0 && k.until.After(g.until) {
		g.until = k.until
	}
	if g.closed && !g.said && k.fails > 1 {
		g.said = true
		return closedNow
	}
	return noNews
}

// pause is the pause after so many failures, or the one that the gateway asks for.
func (g *Gate) pause(fails int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked + g.jitter(asked/4)
	}
	d := min(firstPause<<min(fails-1, 16), longestPause)
	return d/2 + g.jitter(d/2)
}

// news is what is logged: once that the gate is closed, when the first probe has failed, and
// once that it is open again.
type news uint8

const (
	noNews news = iota
	closedNow
	opened
)

func (g *Gate) say(ctx context.Context, what news, is State) {
	ctx = context.WithoutCancel(ctx)
	account, since := slog.String("account", g.account), slog.Time("since", is.Since)
	switch what {
	case noNews:
	case closedNow:
		g.logger.LogAttrs(ctx, slog.LevelError, "gateway: the gateway fails, so the account's requests are paused, apart from probes",
			account, since, slog.Int("status", is.Status))
	case opened:
		g.logger.LogAttrs(ctx, slog.LevelInfo, "gateway: the gateway works again, so the account's requests go on", account, since)
	}
}
