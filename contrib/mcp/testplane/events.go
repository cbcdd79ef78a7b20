package testplane

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxRecorded is how many events the recorder keeps.
const maxRecorded = 2000

// reconnect is how long the recorder waits after its connection has ended.
const reconnect = time.Second

// entry is one recorded event.
type entry struct {
	id, kind string
	data     map[string]any
}

// recorder reads the mock's event stream all the time: the mock keeps events only while
// someone reads, and an agent may think for minutes between two calls.
type recorder struct {
	mock *mock
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	list  []entry
	lost  bool          // older events are gone
	ready chan struct{} // closed once the stream has begun
	wake  chan struct{} // closed at the next event
}

func record(m *mock) *recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &recorder{mock: m, stop: stop, done: make(chan struct{}), ready: make(chan struct{}), wake: make(chan struct{})}
	go r.run(ctx)
	return r
}

func (r *recorder) close() {
	r.stop()
	<-r.done
}

func (r *recorder) run(ctx context.Context) {
	defer close(r.done)
	for ctx.Err() == nil {
		r.read(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// request asks for the events after the latest one.
func (r *recorder) request(ctx context.Context, method string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.mock.base+"/__mock/events", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+r.mock.key.Reveal())
	r.mu.Lock()
	if n := len(r.list); n > 0 {
		req.Header.Set("Last-Event-ID", r.list[n-1].id)
	}
	r.mu.Unlock()
	return r.mock.client.Do(req)
}

// read reads the stream until it ends.
func (r *recorder) read(ctx context.Context) {
	resp, err := r.request(ctx, http.MethodGet)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return
	}
	r.begun()
	var e entry
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data, _ = decode([]byte(value)).(map[string]any)
		case "":
			if e.kind != "" {
				r.add(e)
			}
			e = entry{}
		}
	}
}

func (r *recorder) begun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
}

func (r *recorder) add(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
	if len(r.list) > maxRecorded {
		r.list, r.lost = r.list[1:], true
	}
	close(r.wake)
	r.wake = make(chan struct{})
}

// since returns the events after the one with an id, or all with "". complete is false if
// some in between are gone. wake is closed at the next event.
func (r *recorder) since(id string) (list []entry, complete bool, wake <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == "" {
		return append(list, r.list...), !r.lost, r.wake
	}
	for i, e := range r.list {
		if e.id == id {
			return append(list, r.list[i+1:]...), true, r.wake
		}
	}
	return append(list, r.list...), false, r.wake
}

// begin waits until the stream has begun: what happens before is not recorded.
func (r *recorder) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, echo)
	defer cancel()
	select {
	case <-r.ready:
	case <-ctx.Done():
	}
}

// position returns the id of the latest event.
func (r *recorder) position() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.list); n > 0 {
		return r.list[n-1].id
	}
	return ""
}

// catchUp waits until the recorder has what the mock did before.
func (r *recorder) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, echo)
	defer cancel()
	resp, err := r.request(ctx, http.MethodHead)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	if latest := resp.Header.Get("Last-Event-ID"); latest != "" {
		r.until(ctx, "", func(e entry) bool { return e.id == latest })
	}
}

// until waits for an event after a position that matches, and returns those before it.
func (r *recorder) until(ctx context.Context, after string, match func(entry) bool) []entry {
	for {
		list, _, wake := r.since(after)
		for i, e := range list {
			if match(e) {
				return list[:i]
			}
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return list
		}
	}
}
