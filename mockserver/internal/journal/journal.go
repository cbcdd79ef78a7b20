// Package journal records the latest requests and responses. The entries that it
// returns are masked: they contain no keys, session tokens, card tokens, document
// numbers or card data.
package journal

import (
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
)

const (
	// Size is the default number of recorded requests.
	Size    = 1000
	maxBody = 64 << 10 // recorded bytes of a body
)

// Config configures a Journal. All fields but Size, Memory and Events are
// required.
type Config struct {
	Size      int                        // number of recorded requests; 0 means 1000
	Memory    *memlimit.Limit            // memory shared with the server; the journal may use an eighth of it; nil means unlimited
	Now       func() time.Time           // the virtual clock
	Operation func(*http.Request) string // "transactions.create"; "" means none
	Account   func(*http.Request) string // the key of the request's account; "" if unknown
	Events    *events.Hub                // notified of each request, if not nil
}

// Journal is a ring of requests. Its methods are safe for concurrent use.
type Journal struct {
	cfg  Config
	keys *regexp.Regexp

	total atomic.Uint64 // requests so far

	mu    sync.Mutex
	list  []*record // oldest first
	bytes int64     // the approximate size of list

	statuses map[int]uint64 // requests by response status
	cleared  uint64         // calls of Clear
	recorded chan struct{}  // closed at the next request, if not nil

	air    sync.Mutex
	flying map[*record]struct{} // requests in flight
}

// New returns an empty journal.
func New(cfg Config) *Journal {
	if cfg.Size <= 0 {
		cfg.Size = Size
	}
	if cfg.Memory == nil {
		cfg.Memory = memlimit.Unlimited()
	}
	return &Journal{cfg: cfg, keys: events.Keys(), statuses: map[int]uint64{}, flying: map[*record]struct{}{}}
}

// record is a request and its response, not masked. It is never shown.
type record struct {
	id       uint64
	at       time.Time
	began    time.Time    // in wall time
	request  http.Request // without its body and context
	body     capture
	status   int
	header   http.Header
	response capture
	duration time.Duration
	fault    string
	broken   bool // the connection broke before the end of the response
	size     int64

	reader reader
	writer writer
}

// Wrap returns a handler that records the requests to next.
func (j *Journal) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := new(record)
		rec.began, rec.at, rec.broken = time.Now(), j.cfg.Now(), true
		rec.request = http.Request{
			Method: r.Method, URL: r.URL, Host: r.Host, Header: r.Header, RequestURI: r.RequestURI, RemoteAddr: r.RemoteAddr,
		}
		rec.body.expect(r.ContentLength)
		rec.reader = reader{r.Body, &rec.body}
		rec.writer = writer{ResponseWriter: w, rec: rec, journal: j}
		r.Body = &rec.reader
		j.depart(rec)
		defer func() { // deferred, since a handler breaks a connection by panicking
			j.land(rec)
			rec.duration = time.Since(rec.began)
			r.Body = rec.reader.ReadCloser
			aborted := rec.writer.aborted
			rec.reader, rec.writer = reader{}, writer{}
			j.add(rec)
			if j.cfg.Events.Listening() {
				j.emit(rec)
			}
			if aborted != nil {
				memory.Abort(w, aborted)
			}
		}()
		next.ServeHTTP(&rec.writer, r)
		rec.writer.note(http.StatusOK)
		rec.broken = false
	})
}

func (j *Journal) add(rec *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	rec.id = j.total.Add(1)
	j.statuses[rec.status]++
	rec.size = rec.bytes()
	j.list = append(j.list, rec)
	j.count(rec.size)
	part, n := j.cfg.Memory.Part(8), 0
	for ; n < len(j.list)-1 && (len(j.list)-n > j.cfg.Size || j.bytes > part); n++ {
		j.count(-j.list[n].size)
		j.list[n] = nil
	}
	j.list = j.list[n:] // append occasionally moves the remaining entries to a new array
	if j.recorded != nil {
		close(j.recorded)
		j.recorded = nil
	}
}

// count updates the size of the journal by n bytes.
func (j *Journal) count(n int64) {
	j.bytes += n
	j.cfg.Memory.Add(n)
}

// bytes returns the approximate size of the record.
func (r *record) bytes() int64 {
	n := int(unsafe.Sizeof(*r)) + cap(r.body.head) + cap(r.response.head) + len(r.request.RequestURI) + len(r.fault)
	if u := r.request.URL; u != nil {
		n += int(unsafe.Sizeof(*u)) + len(u.Path) + len(u.RawPath) + len(u.RawQuery)
	}
	for _, h := range [...]http.Header{r.request.Header, r.header} {
		for name, values := range h {
			n += len(name) + perHeader
			for _, v := range values {
				n += len(v)
			}
		}
	}
	return int64(n)
}

// perHeader is the approximate size of a header without its strings.
const perHeader = 80

// Total returns how many requests were recorded so far, including those that were
// dropped or cleared since. It takes no lock.
func (j *Journal) Total() uint64 { return j.total.Load() }

// Statuses counts all requests so far by response status, which is 0 if there was no
// response.
func (j *Journal) Statuses() map[int]uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.statuses)
}

// Clear deletes the requests of an account; "" means all accounts.
func (j *Journal) Clear(account string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cleared++
	j.list = slices.DeleteFunc(j.list, func(rec *record) bool {
		gone := account == "" || j.cfg.Account(&rec.request) == account
		if gone {
			j.count(-rec.size)
		}
		return gone
	})
}

// Entry is a masked request and its response. It has the fields of mockserver.Request.
type Entry struct {
	ID             uint64    // the number of the request, from 1
	At             time.Time // on the virtual clock
	Operation      string    // "transactions.create"; "" if it is not an operation of the API
	Method         string
	Path           string
	Query          string
	Header         http.Header
	Body           string
	Status         int // of the response; 0 if none was sent
	ResponseHeader http.Header
	Response       string
	Duration       time.Duration // wall time
	Fault          string        // the injected fault; "" for none
	Broken         bool          // the connection broke before the end of the response
}

// Entries lists the masked requests of an account, oldest first. "" means all accounts.
func (j *Journal) Entries(account string) []Entry {
	j.mu.Lock()
	records := slices.Clone(j.list)
	j.mu.Unlock()
	var list []Entry
	for _, rec := range records {
		if account == "" || j.cfg.Account(&rec.request) == account {
			list = append(list, j.entry(rec))
		}
	}
	return list
}

func (j *Journal) entry(rec *record) Entry {
	m := maskFor(rec, j.keys)
	return Entry{
		ID:             rec.id,
		At:             rec.at,
		Operation:      j.cfg.Operation(&rec.request),
		Method:         rec.request.Method,
		Path:           m.path(rec.request.URL),
		Query:          m.query(rec.request.URL.RawQuery),
		Header:         m.header(rec.request.Header),
		Body:           m.body(&rec.body),
		Status:         rec.status,
		ResponseHeader: m.header(rec.header),
		Response:       m.body(&rec.response),
		Duration:       rec.duration,
		Fault:          rec.fault,
		Broken:         rec.broken,
	}
}

// capture records the beginning of a body.
type capture struct {
	head []byte
	size int
}

func (c *capture) expect(length int64) {
	if length = min(length, maxBody); length > int64(cap(c.head)) {
		c.head = make([]byte, 0, length)
	}
}

func (c *capture) add(b []byte) {
	c.size += len(b)
	c.head = append(c.head, b[:min(len(b), maxBody-len(c.head))]...)
}

func (c *capture) complete() bool { return c.size == len(c.head) }

type reader struct {
	io.ReadCloser

	to *capture
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.to.add(b[:n])
	return n, err
}

// writer records the response.
type writer struct {
	http.ResponseWriter

	rec     *record
	journal *Journal
	aborted error
}

// Abort breaks the connection as soon as the request is recorded: a client that notices
// finds it.
func (w *writer) Abort(err error) { w.aborted = err }

// Unwrap gives http.ResponseController and the faults access to the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// NoteFault records the fault that was injected.
func (w *writer) NoteFault(text string) { w.journal.note(w.rec, text) }

func (w *writer) WriteHeader(status int) {
	w.note(status)
	w.ResponseWriter.WriteHeader(status)
}

// note records the status and header of the response, once.
func (w *writer) note(status int) {
	rec := w.rec
	if rec.status != 0 || status < http.StatusOK {
		return
	}
	rec.status = status
	rec.header = w.Header().Clone()
}

func (w *writer) Write(b []byte) (int, error) {
	w.note(http.StatusOK)
	w.rec.response.add(b)
	return w.ResponseWriter.Write(b)
}
