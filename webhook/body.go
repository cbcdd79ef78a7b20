package webhook

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// A body's buffer starts with firstBody bytes; bytes beyond freeBody are taken
// from a pool. The gateway's events are a few KiB, so ordinary deliveries
// are not affected by any number of large bodies.
const (
	firstBody = 4 << 10
	freeBody  = 16 << 10
)

// slowBody is how long a receiver that has run out of memory waits for the
// bytes of one body, in total. A body that takes longer gives its memory to
// another. If those that wait need more memory than there is, it is shorter, down
// to fastBody, so that the last of them waits about as long.
const (
	slowBody = time.Second
	fastBody = slowBody / 10
)

// roomCheck is how often bodies that have become slow are looked for while
// others wait.
const roomCheck = fastBody / 5

var errBodyMemory = errors.New("webhook: the bodies that are being received need too much memory")

// bodyPool limits the total memory of the bodies that are being received. A
// valid signature is known only after the last byte, and anyone can forge the
// headers. So the pool does not turn a body away when others have taken all
// memory: it takes the memory back from those whose senders are slow.
//
// A body gets all its memory at once. If it got it piece by piece, bodies that
// wait for the next piece would keep what they have from those that could end.
type bodyPool struct {
	size int64

	mu      sync.Mutex
	used    int64
	wanted  int64                    // by those that wait
	most    int64                    // the largest value of wanted since none waited
	bodies  map[*bodyMemory]struct{} // those that have memory
	waiting []*bodyMemory            // in order of arrival
	checks  *time.Timer              // runs while bodies wait
}

// bodyMemory is the memory of one body. The fields of the second group are
// guarded by the pool's lock.
type bodyMemory struct {
	pool      *bodyPool
	interrupt func() bool // ends the current Read; false if that is impossible
	patience  time.Time   // until when it waits for memory
	reserved  bool        // it has memory of the pool

	need    int64         // bytes that it has or waits for
	slow    time.Duration // time spent in earlier Reads
	reading time.Time     // when the current Read began; zero if there is none
	taken   bool          // interrupted, so that its memory will be free soon
	lasting bool          // can't be interrupted
	granted chan struct{} // closed when it gets its memory
}

// newBodyPool returns a pool for as many bodies of the maximum size as there
// may be concurrent deliveries.
func newBodyPool(cfg *Config) *bodyPool {
	size := int64(math.MaxInt64)
	if cfg.MaxBody <= size/int64(cfg.MaxConcurrent) {
		size = int64(cfg.MaxConcurrent) * cfg.MaxBody
	}
	return &bodyPool{size: size, bodies: make(map[*bodyMemory]struct{})}
}

// reserve gets the memory for a body of at most the given size. It reports false
// if there is none before the body's patience ends.
func (m *bodyMemory) reserve(ctx context.Context, size int64) bool {
	if m.reserved || size <= freeBody {
		return true
	}
	m.need, m.granted = size-freeBody, make(chan struct{})
	m.pool.enqueue(m)
	giveUp := time.NewTimer(time.Until(m.patience))
	defer giveUp.Stop()
	select {
	case <-m.granted:
		m.reserved = true
	case <-giveUp.C:
	case <-ctx.Done():
	}
	m.reserved = m.reserved || !m.pool.withdraw(m)
	return m.reserved
}

func (p *bodyPool) enqueue(m *bodyMemory) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, m)
	p.wanted += m.need
	p.most = max(p.most, p.wanted)
	p.serve()
}

// withdraw removes a body from those that wait. It reports false if the body has
// just got its memory.
func (p *bodyPool) withdraw(m *bodyMemory) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, m)
	if i < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	p.wanted -= m.need
	p.serve() // the next one may fit
	return true
}

// release returns the body's memory to the pool.
func (m *bodyMemory) release() {
	if !m.reserved {
		return
	}
	p := m.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.bodies, m)
	p.used -= m.need
	p.serve()
}

// serve gives memory to the bodies that wait, and makes room for those that
// don't fit.
func (p *bodyPool) serve() {
	for len(p.waiting) > 0 && p.waiting[0].need <= p.size-p.used {
		m := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.wanted -= m.need
		p.used += m.need
		p.bodies[m] = struct{}{}
		close(m.granted)
	}
	if len(p.waiting) == 0 {
		p.most = 0
		if p.checks != nil {
			p.checks.Stop()
			p.checks = nil
		}
		return
	}
	p.makeRoom(time.Now())
	if p.checks == nil {
		p.checks = time.AfterFunc(roomCheck, p.check)
	}
}

func (p *bodyPool) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks = nil
	p.serve()
}

// makeRoom interrupts slow bodies, the slowest first, until those that wait
// will fit.
func (p *bodyPool) makeRoom(now time.Time) {
	limit := slowBody
	if p.most > p.size {
		limit = max(fastBody, time.Duration(float64(slowBody)*float64(p.size)/float64(p.most)))
	}
	missing := p.used + p.wanted - p.size
	var slow []*bodyMemory
	for m := range p.bodies {
		if m.taken {
			missing -= m.need
		} else if !m.lasting && m.slowness(now) >= limit {
			slow = append(slow, m)
		}
	}
	slices.SortFunc(slow, func(a, b *bodyMemory) int { return cmp.Compare(b.slowness(now), a.slowness(now)) })
	for _, m := range slow {
		if missing <= 0 {
			return
		}
		if m.taken = m.interrupt(); m.taken {
			missing -= m.need
		} else {
			m.lasting = true
		}
	}
}

// slowness returns how long the sender has kept the receiver waiting, or 0 if
// it does not wait now.
func (m *bodyMemory) slowness(now time.Time) time.Duration {
	if m.reading.IsZero() {
		return 0
	}
	return m.slow + now.Sub(m.reading)
}

// read calls r.Read. While the body has memory of the pool, the time is taken.
func (m *bodyMemory) read(r io.Reader, b []byte) (n int, err error) {
	if !m.reserved {
		return r.Read(b)
	}
	m.pool.mu.Lock()
	m.reading = time.Now()
	m.pool.mu.Unlock()
	n, err = r.Read(b)
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	m.slow += time.Since(m.reading)
	m.reading = time.Time{}
	return n, err
}

// gaveUp reports whether the body was interrupted.
func (m *bodyMemory) gaveUp() bool {
	m.pool.mu.Lock()
	defer m.pool.mu.Unlock()
	return m.taken
}

// readBody reads the whole body within the limits of size, time and memory.
func (in *intake) readBody(w http.ResponseWriter, r *http.Request, memory *bodyMemory) ([]byte, error) {
	control := http.NewResponseController(w)
	// Recorders and cloud function adapters support no deadlines, but have no
	// slow senders.
	now := time.Now()
	_ = control.SetReadDeadline(now.Add(in.cfg.ReadTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	memory.patience = now.Add(in.cfg.ReadTimeout / 2)
	memory.interrupt = func() bool { return control.SetReadDeadline(time.Unix(1, 0)) == nil }

	body, err := in.readAll(r.Context(), http.MaxBytesReader(w, r.Body, in.cfg.MaxBody), r.ContentLength, memory)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, errTooLarge
	case errors.Is(err, errBodyMemory), err != nil && memory.gaveUp():
		w.Header().Set("Connection", "close")
		return nil, errBodyMemory
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, errSlowSender
	case err != nil:
		return nil, errBodyLost
	}
	return body, nil
}

// readAll is io.ReadAll into a slice that grows with the received bytes,
// regardless of the announced length.
func (in *intake) readAll(ctx context.Context, r io.Reader, announced int64, memory *bodyMemory) ([]byte, error) {
	b := make([]byte, 0, in.capacity(0, announced))
	for {
		if len(b) == cap(b) {
			larger := in.capacity(cap(b), announced)
			if larger > freeBody && !memory.reserve(ctx, in.largest(announced)) {
				return nil, errBodyMemory
			}
			b = append(make([]byte, 0, larger), b...)
		}
		n, err := memory.read(r, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// largest returns the most memory that a body may need.
func (in *intake) largest(announced int64) int64 {
	if announced >= 0 {
		return min(announced, in.cfg.MaxBody) + 1
	}
	return in.cfg.MaxBody + 1
}

// capacity returns the next capacity of a body. One byte more than the length
// is enough to detect the end without growing.
func (in *intake) capacity(now int, announced int64) int {
	next := min(int64(max(2*now, firstBody)), in.cfg.MaxBody+1)
	if announced >= int64(now) && announced < next {
		next = announced + 1
	}
	return int(next)
}
