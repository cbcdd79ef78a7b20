package deliver

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
)

// State is the state of a delivery.
type State string

// The states of a delivery.
const (
	Pending    State = "pending"     // an attempt is running or planned
	Delivered  State = "delivered"   // an attempt got a 2xx response
	Failed     State = "failed"      // every attempt failed, and no other is planned
	Held       State = "held"        // held until it is released
	Dropped    State = "dropped"     // dropped by a fault
	NoEndpoint State = "no_endpoint" // no endpoint matches the event
)

// Delivery is one event for one target.
type Delivery struct {
	ID       string
	Account  string // its API key, which is secret
	EventID  string
	Kind     string
	Resource string
	Endpoint string // the id of an endpoint, or notify_url, webhookUrl, pixWebhookUrl
	URL      string // "" for an in-memory endpoint
	State    State
	Body     []byte
	Created  time.Time // on the virtual clock, like all times but Wall
	Next     time.Time // the time of the next attempt; zero for none
	Attempts []Attempt
}

// Attempt is one request to a target.
type Attempt struct {
	Number   int       // from 1
	At       time.Time // on the virtual clock
	Wall     time.Time
	Status   int    // of the response; 0 without one
	Response string // the beginning of the response body
	Error    string // why it failed; "" if it succeeded
	Duration time.Duration
	Signed   bool   // the request had a signature
	Fault    string // the injected fault; "" for none
}

// OK reports whether the receiver acknowledged the event.
func (a Attempt) OK() bool { return a.Status >= 200 && a.Status < 300 }

// message is an event with its body, which is rendered on first use.
type message struct {
	event   *engine.Event
	dialect spec.Dialect

	once sync.Once
	body []byte
	err  error
	size atomic.Int64 // its approximate size
	// countedIn is the delivery whose size includes the message. It is guarded by
	// the sender's lock.
	countedIn *delivery
}

// setEvent sets the event to render.
func (m *message) setEvent(e *engine.Event, dialect spec.Dialect) {
	m.event, m.dialect = e, dialect
	m.size.Store(memlimit.SizeOfEvent(e))
}

// shaped returns a message of its own for a delivery whose body a fault changes.
func shaped(e *engine.Event, dialect spec.Dialect, forms string) *message {
	m := &message{}
	if m.body, m.err = Render(e, dialect); m.err == nil {
		t := cmp.Or(e.Transaction, &engine.Transaction{})
		m.body = faults.ShapedEvent(m.body, forms, e.Transaction != nil, t.Amount, t.FeeAmount)
	}
	m.size.Store(int64(len(m.body)))
	return m
}

func (m *message) bytes() ([]byte, error) {
	m.once.Do(func() {
		if m.body == nil {
			m.body, m.err = Render(m.event, m.dialect)
			m.size.Store(int64(len(m.body)))
			m.event = nil // don't keep old versions of its resource in memory
		}
	})
	return m.body, m.err
}

// delivery is a delivery with its state, guarded by the sender's lock. Its body
// is in the message, which all deliveries of an event share.
type delivery struct {
	SavedDelivery

	message *message
	counted int64 // bytes counted for it against the memory limit
}

// newDelivery creates a delivery. It is called with the lock held.
func (s *Sender) newDelivery(account string, m *message, t target) *delivery {
	s.created++
	return &delivery{message: m, SavedDelivery: SavedDelivery{
		Delivery: Delivery{
			ID:       "dlv_" + strconv.FormatUint(s.created, 10),
			Account:  account,
			EventID:  m.event.ID,
			Kind:     m.event.Kind,
			Resource: resource(m.event),
			Endpoint: t.name,
			URL:      t.url,
			State:    Pending,
			Created:  m.event.At,
		},
		Registered: t.endpoint,
	}}
}

// remember adds a delivery to the log.
func (s *Sender) remember(d *delivery) {
	s.log = append(s.log, d)
	s.byID[d.ID] = d
	s.count(d)
	s.sweep()
}

// sweep drops the oldest finished deliveries when there are twice as many as
// configured, or when they exceed their share of the memory. Pending and held
// deliveries are never dropped.
func (s *Sender) sweep() {
	part := s.cfg.Memory.Part(4)
	crowded := len(s.log) >= max(2*s.cfg.Log, s.swept+s.cfg.Log)
	heavy := s.bytes > max(part, s.sweptBytes+part/4)
	if !crowded && !heavy {
		return
	}
	surplus := -s.cfg.Log
	for _, d := range s.log {
		if d.finished() {
			surplus++
		}
	}
	s.log = slices.DeleteFunc(s.log, func(d *delivery) bool {
		if !d.finished() || surplus <= 0 && (!heavy || s.bytes <= part/4*3) {
			return false
		}
		surplus--
		s.forget(d)
		return true
	})
	s.swept, s.sweptBytes = len(s.log), s.bytes
}

// forget releases the memory of a delivery that leaves the log.
func (s *Sender) forget(d *delivery) {
	delete(s.byID, d.ID)
	if d.message.countedIn == d {
		d.message.countedIn = nil
	}
	s.bytes -= d.counted
	s.cfg.Memory.Add(-d.counted)
	d.counted = 0
}

// count updates the memory that is counted for a delivery. The body is counted
// with the first delivery of its event.
func (s *Sender) count(d *delivery) {
	if s.byID[d.ID] != d {
		return // dropped in the meantime
	}
	if d.message.countedIn == nil {
		d.message.countedIn = d
	}
	size := int64(unsafe.Sizeof(*d)) + int64(2*len(d.ID)+len(d.EventID)+len(d.Resource)+len(d.URL)) + mapEntry
	if d.message.countedIn == d {
		size += int64(unsafe.Sizeof(*d.message)) + d.message.size.Load()
	}
	for _, a := range d.Attempts {
		size += int64(unsafe.Sizeof(a)) + int64(len(a.Response)+len(a.Error))
	}
	s.bytes += size - d.counted
	s.cfg.Memory.Add(size - d.counted)
	d.counted = size
}

// mapEntry is the approximate size of a delivery's entries in byID and in the log.
const mapEntry = 64

// finished reports whether d has no scheduled attempts left.
func (d *delivery) finished() bool { return d.State != Pending && d.State != Held }

// Deliveries lists the deliveries of an account, oldest first. "" means all accounts.
func (s *Sender) Deliveries(account string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Delivery
	for _, d := range s.log {
		if account == "" || d.Account == account {
			list = append(list, d.view())
		}
	}
	return list
}

// Count counts the deliveries in the log by state.
func (s *Sender) Count() map[State]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[State]int{}
	for _, d := range s.log {
		counts[d.State]++
	}
	return counts
}

// Delivery returns one delivery of an account; "" means any account.
func (s *Sender) Delivery(account, id string) (Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.find(account, id)
	if err != nil {
		return Delivery{}, err
	}
	return d.view(), nil
}

func (s *Sender) find(account, id string) (*delivery, error) {
	d := s.byID[id]
	if d == nil || account != "" && d.Account != account {
		return nil, ErrUnknownDelivery
	}
	return d, nil
}

func (d *delivery) view() Delivery {
	v := d.Delivery
	v.Attempts = slices.Clone(d.Attempts)
	body, _ := d.message.bytes() // attempts report the error
	v.Body = slices.Clone(body)
	return v
}
