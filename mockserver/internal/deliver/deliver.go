// Package deliver sends webhooks: it renders the events of commits, sends each to
// every matching target, retries on a schedule, and logs every attempt.
//
// Workers make first attempts immediately, in wall time; retries are timers on the
// virtual clock. Deliveries about one resource to one target are made in order, one
// at a time. No lock is held during an attempt, so a receiver may call the gateway.
package deliver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/webhook"
)

const (
	// DefaultTimeout limits an attempt, in wall time.
	DefaultTimeout = 10 * time.Second
	// MaxRetries is how many retries a schedule may have.
	MaxRetries = 100
	// MaxRetryTime is the latest retry, after the first attempt.
	MaxRetryTime = 365 * 24 * time.Hour
	// TimerKind is the kind of an attempt's timer.
	TimerKind = "webhook.attempt"

	defaultLog = 10_000 // number of finished deliveries in the log
)

// DefaultRetries returns the times of the retries, relative to the first attempt.
func DefaultRetries() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// Config configures a Sender. Clock and Wall are required.
type Config struct {
	Clock *clock.Clock
	// Wall returns wall time. It is used only to measure attempts and for the
	// timestamps of signatures, which receivers compare with their own clocks.
	Wall func() time.Time
	// InjectFault returns the fault to inject into the delivery of an event of a
	// kind. Nil injects none.
	InjectFault func(account, kind string) faults.Fault
	// Persist saves what a restart must restore; nil saves nothing. It is
	// called with the sender's lock held.
	Persist func(Changed) error
	// Paused means that no attempt is made before [Sender.Resume].
	Paused bool
	// Timeout limits an attempt, in wall time; 0 means DefaultTimeout.
	Timeout time.Duration
	// Retries are the times of the retries, relative to the first attempt, in order; nil
	// means DefaultRetries.
	Retries []time.Duration
	// PauseAfter is how many attempts in a row must fail until an endpoint is paused; 0
	// pauses none.
	PauseAfter int
	// AnyCertificate accepts the certificate of every receiver.
	AnyCertificate bool
	// Headers are the names of the signature headers; "" means the default.
	Headers webhook.HeaderNames
	// Dialect is that of the bodies.
	Dialect spec.Dialect
	// Log is the number of finished deliveries to keep in the log; 0 means 10,000.
	Log int
	// Memory is the limit that deliveries share with the rest of the server;
	// finished ones may use a quarter of it. Nil means unlimited.
	Memory *memlimit.Limit
	// Events receives webhooks and attempts; nil publishes none.
	Events *events.Hub
}

// Sender sends the webhooks of one server. Its methods are safe for concurrent
// use.
type Sender struct {
	cfg      Config
	schedule []time.Duration
	network  *http.Client

	ctx  context.Context //nolint:containedctx // the parent of every attempt's context; canceled by Close
	stop context.CancelFunc
	work sync.WaitGroup // the workers

	mu         sync.Mutex
	paused     bool
	closed     bool
	endpoints  []*Endpoint
	hosts      map[string]http.Handler // in-memory handlers, by host
	created    uint64                  // number of deliveries created so far
	registered uint64                  // number of endpoints registered so far
	log        []*delivery             // oldest first
	swept      int                     // the length of the log after the last sweep
	bytes      int64                   // the approximate size of the log
	sweptBytes int64                   // its size after the last sweep
	byID       map[string]*delivery
	held       map[string][]*delivery // by account; "" holds the deliveries of all accounts
	queues     map[queueKey]*queue
	lanes      map[string]*lane // by account
	turn       []*lane          // those that can run an attempt, in the order of their turns
	workers    int
	released   map[string]*release // by the account that released them
	active     map[*job]struct{}   // the queued and running jobs
	waiters    map[*waiter]struct{}
}

// New returns a Sender. Close it when it is no longer needed.
func New(cfg Config) *Sender {
	if cfg.Log == 0 {
		cfg.Log = defaultLog
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Retries == nil {
		cfg.Retries = DefaultRetries()
	}
	if cfg.Memory == nil {
		cfg.Memory = memlimit.Unlimited()
	}
	if cfg.InjectFault == nil {
		cfg.InjectFault = func(string, string) faults.Fault { return faults.Fault{} }
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{
		cfg: cfg, schedule: append([]time.Duration{0}, cfg.Retries...), ctx: ctx, stop: stop, paused: cfg.Paused,
		hosts:    map[string]http.Handler{},
		byID:     map[string]*delivery{},
		held:     map[string][]*delivery{},
		queues:   map[queueKey]*queue{},
		lanes:    map[string]*lane{},
		released: map[string]*release{},
		active:   map[*job]struct{}{},
		waiters:  map[*waiter]struct{}{},
	}
	s.network = &http.Client{
		Transport:     &router{sender: s, network: networkTransport(cfg.Timeout, cfg.AnyCertificate)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// Posting holds the webhooks of one commit. They are saved together with the commit
// before they are sent.
type Posting struct {
	sender     *Sender
	deliveries []*delivery
	notes      []note // for the subscribers of the event stream
}

// Prepare creates the deliveries of a commit's events, which become visible with
// [Posting.Send]. v1 is the account's v1 integration, or nil.
func (s *Sender) Prepare(account string, events []engine.Event, v1 *engine.Integration) *Posting {
	p := &Posting{sender: s}
	if len(events) == 0 {
		return p
	}
	p.deliveries = make([]*delivery, 0, len(events))
	messages := make([]message, len(events))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range events {
		m := &messages[i]
		m.setEvent(&events[i], s.cfg.Dialect)
		targets := s.targets(account, m.event, v1)
		if s.cfg.Events.Listening() {
			p.notes = append(p.notes, noteOf(account, m.event, len(targets)))
		}
		for _, t := range targets {
			p.deliveries = append(p.deliveries, s.prepareTo(t, account, m))
		}
		if len(targets) == 0 {
			d := s.newDelivery(account, m, target{})
			d.State = NoEndpoint
			p.deliveries = append(p.deliveries, d)
		}
	}
	return p
}

func (s *Sender) prepareTo(t target, account string, m *message) *delivery {
	d := s.newDelivery(account, m, t)
	d.First = s.cfg.Clock.Now()
	f := s.cfg.InjectFault(account, m.event.Kind)
	d.Fault = f.Kind
	switch f.Kind {
	case faults.DropWebhook:
		d.State = Dropped
	case faults.DelayWebhook:
		d.First = d.First.Add(f.Delay)
		d.Next = d.First
	case faults.ShapeWebhook:
		d.message = shaped(m.event, s.cfg.Dialect, f.Forms)
	default: // the other kinds of fault apply to attempts
	}
	return d
}

// Compact returns the deliveries without the data that [Sender.LoadPosting] takes
// from their events.
func (p *Posting) Compact() []SavedDelivery {
	list := make([]SavedDelivery, len(p.deliveries))
	for i, d := range p.deliveries {
		list[i] = d.SavedDelivery
		list[i].Account, list[i].Kind, list[i].Resource, list[i].Created = "", "", "", time.Time{}
		if d.message.event == nil { // its body can't be rendered from the event: see shaped
			list[i].Body, _ = d.message.bytes()
		}
	}
	return list
}

// Send queues the deliveries and returns without waiting for them.
func (p *Posting) Send() {
	if len(p.deliveries) == 0 {
		return
	}
	p.publish()
	s := p.sender
	s.mu.Lock()
	defer s.mu.Unlock()
	p.send()
}

func (p *Posting) send() {
	s := p.sender
	for _, d := range p.deliveries {
		s.remember(d)
		switch {
		case d.State != Pending:
		case !d.Next.IsZero():
			s.wait(d, d.Next)
		default:
			s.due(d)
		}
	}
}

func (p *Posting) publish() {
	for _, n := range p.notes {
		p.sender.cfg.Events.Publish(n.account, events.Event{Type: events.TypeWebhook, Webhook: &n.webhook}, n.private...)
	}
}

// Fire queues the attempt of a timer.
func (s *Sender) Fire(t clock.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.byID[t.ID]; d != nil && d.State == Pending && d.Next.Equal(t.At) {
		s.due(d)
	}
}

// StillApplies reports whether the attempt of a timer still has to be made.
func (s *Sender) StillApplies(t clock.Timer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.byID[t.ID]
	return d != nil && d.State == Pending && d.Next.Equal(t.At)
}

// due queues the next scheduled attempt, unless deliveries are held.
func (s *Sender) due(d *delivery) {
	d.Next = time.Time{}
	for _, account := range [...]string{"", d.Account} {
		if waiting, holding := s.held[account]; holding {
			d.State = Held
			s.held[account] = append(waiting, d)
			s.emit(d, Attempt{}, gateway.Secret{})
			return
		}
	}
	j := &job{d: d, scheduled: true}
	for _, holder := range [...]string{"", d.Account} {
		if s.released[holder] != nil { // deliveries that were released earlier come first
			s.enqueueReleased(holder, j)
			return
		}
	}
	s.enqueue(j)
}

// wait sets a timer for the next attempt of the schedule.
func (s *Sender) wait(d *delivery, at time.Time) {
	d.Next = at
	s.cfg.Clock.Add(clock.Timer{At: at, Account: d.Account, Kind: TimerKind, ID: d.ID})
}

// Errors of the sender's controls.
var (
	// ErrInside is returned to a webhook handler that waits for deliveries.
	ErrInside = errors.New("called from inside a webhook handler: it would wait for its own delivery")
	// ErrUnknownDelivery is returned for a delivery that does not exist or was
	// dropped from the log.
	ErrUnknownDelivery = errors.New("no delivery has this id")
	// ErrNotHeld is returned for the release of a delivery that is not held.
	ErrNotHeld = errors.New("the delivery is not held")
	// ErrNoTarget is returned for the redelivery of an event that no endpoint gets.
	ErrNoTarget = errors.New("the delivery has no endpoint")
	// ErrUnknownEndpoint is returned for an endpoint that does not exist.
	ErrUnknownEndpoint = errors.New("no endpoint has this id")
)

// Close cancels running attempts and waits until they have ended.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	s.network.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = map[string]*release{}
	clear(s.active)
	for w := range s.waiters {
		s.over(w)
	}
}
