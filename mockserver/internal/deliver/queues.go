package deliver

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

const (
	// maxWorkers is how many attempts of one account run at the same time.
	maxWorkers = 64
	// maxAllWorkers is how many attempts of all accounts run at the same time. An
	// account whose receivers hang does not delay the others, unless there are
	// several such accounts.
	maxAllWorkers = 512
)

// queueKey identifies deliveries that must stay in order: those about one resource to
// one target.
type queueKey struct{ account, endpoint, url, resource string }

// queue holds the jobs of one key in order. While its first job runs, the queue is not
// in its lane.
type queue struct {
	key  queueKey
	jobs []*job
}

// lane has the queues of one account whose first job can run. Lanes take turns.
type lane struct {
	ready   []*queue
	running int  // attempts
	inTurn  bool // it is in Sender.turn
}

// job is one attempt to make.
type job struct {
	d         *delivery
	scheduled bool // it belongs to the retry schedule

	release *release // it is one of these; nil for others
	first   bool     // it is the first of them, and in its queue

	cancel  context.CancelFunc // ends the attempt; nil unless it is running
	aborted bool               // its result no longer matters
}

// release has jobs that run strictly one after the other, in a chosen order. Only the
// first is in its queue.
type release struct {
	holder string // the account that released them; "" for all accounts
	jobs   []*job
}

// enqueue adds a job to its queue and makes sure that a worker runs it.
func (s *Sender) enqueue(j *job) {
	s.activate(j)
	s.push(j)
}

func (s *Sender) activate(j *job) {
	s.active[j] = struct{}{}
	for w := range s.waiters {
		w.joined(j)
	}
}

// enqueueReleased queues a job after those that the holder released before it.
func (s *Sender) enqueueReleased(holder string, j *job) {
	s.activate(j)
	r := s.released[holder]
	if r == nil {
		r = &release{holder: holder}
		s.released[holder] = r
	}
	j.release = r
	r.jobs = append(r.jobs, j)
	s.pushFirst(r)
}

// pushFirst makes sure that the first released job is in its queue.
func (s *Sender) pushFirst(r *release) {
	switch {
	case len(r.jobs) == 0:
		delete(s.released, r.holder)
	case !r.jobs[0].first:
		r.jobs[0].first = true
		s.push(r.jobs[0])
	}
}

func (s *Sender) push(j *job) {
	if s.closed {
		s.next(j) // the attempt will not be made
		return
	}
	j.d.State = j.d.waitingState()
	key := queueKey{j.d.Account, j.d.Endpoint, j.d.URL, j.d.Resource}
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key}
		s.queues[key] = q
		s.ready(q)
	}
	q.jobs = append(q.jobs, j)
	if s.workers < maxAllWorkers && len(s.turn) > 0 {
		s.workers++
		s.work.Go(s.worker)
	}
}

// ready adds a queue to its lane.
func (s *Sender) ready(q *queue) {
	l := s.lanes[q.key.account]
	if l == nil {
		l = &lane{}
		s.lanes[q.key.account] = l
	}
	l.ready = append(l.ready, q)
	s.queueUp(l)
}

// queueUp gives a lane a turn if it can run an attempt.
func (s *Sender) queueUp(l *lane) {
	if !l.inTurn && len(l.ready) > 0 && l.running < maxWorkers {
		l.inTurn = true
		s.turn = append(s.turn, l)
	}
}

// waitingState returns the state of a delivery that has a queued attempt. It is
// Pending, unless an earlier attempt succeeded: later attempts don't change that.
func (d *delivery) waitingState() State {
	if d.State == Delivered {
		return Delivered
	}
	return Pending
}

// worker makes attempts until none is ready.
func (s *Sender) worker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.turn) > 0 && !s.closed {
		l := s.turn[0]
		s.turn, l.inTurn = s.turn[1:], false
		q := l.ready[0]
		l.ready = l.ready[1:]
		l.running++
		s.queueUp(l)
		s.run(q)
		l.running--
		s.queueUp(l)
		if l.running == 0 && len(l.ready) == 0 {
			delete(s.lanes, q.key.account)
		}
	}
	s.workers--
}

// run makes the attempt of a queue's first job. It is called with the lock held, and
// releases it during the attempt.
func (s *Sender) run(q *queue) {
	j := q.jobs[0]
	r := s.prepare(j)
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	j.cancel = cancel
	s.mu.Unlock()
	a := s.attempt(ctx, r)
	s.mu.Lock()
	if j.aborted {
		return // and its queue is gone
	}
	q.jobs = q.jobs[1:]
	s.done(j, a)
	s.emit(j.d, a, r.secret)
	s.next(j) // after emit: whoever waits for the delivery finds its event
	if len(q.jobs) > 0 {
		s.ready(q)
	} else {
		delete(s.queues, q.key)
	}
}

// done records an attempt, and queues or schedules the delivery's next one.
func (s *Sender) done(j *job, a Attempt) {
	d := j.d
	d.Attempts = append(d.Attempts, a)
	if j.scheduled {
		d.Tries++
	}
	s.pauseFailing(d, a.OK())
	switch {
	case a.OK():
		d.State, d.Next = Delivered, time.Time{}
	case d.State == Delivered:
	case !j.scheduled:
		if d.Fault == faults.DropWebhook || d.Tries >= len(s.schedule) { // no attempt is planned
			d.State = Failed
		}
	case d.Tries < len(s.schedule):
		if at := d.First.Add(s.schedule[d.Tries]); at.After(s.cfg.Clock.Now()) {
			s.wait(d, at)
		} else { // it was held past the time of its next attempt
			s.due(d)
		}
	default:
		d.State = Failed
	}
	s.count(d)
	s.persistDelivery(d)
	if d.Fault == faults.DuplicateWebhook && len(d.Attempts) == 1 {
		s.enqueue(&job{d: d})
	}
}

// pauseFailing counts the failures of an endpoint in a row, and pauses it after too many.
func (s *Sender) pauseFailing(d *delivery, ok bool) {
	e, err := s.endpoint("", d.Endpoint)
	if err != nil || !d.Registered || s.cfg.PauseAfter == 0 {
		return
	}
	if ok {
		e.failures = 0
		return
	}
	if e.failures++; e.failures >= s.cfg.PauseAfter && !e.Paused {
		e.Paused = true
		_ = s.persistEndpoints() // at worst, a restart resumes the endpoint
	}
}

// next marks a job as done and queues the job that waited for it.
func (s *Sender) next(j *job) {
	delete(s.active, j)
	if r := j.release; r != nil {
		r.jobs = slices.DeleteFunc(r.jobs, func(other *job) bool { return other == j })
		s.pushFirst(r)
	}
	for w := range s.waiters {
		s.left(w, j)
	}
}

// abort drops the queued attempts of an account and cancels the running ones, whose
// results are ignored; "" is every account.
func (s *Sender) abort(account string) {
	matches := func(of string) bool { return account == "" || of == account }
	maps.DeleteFunc(s.queues, func(key queueKey, _ *queue) bool { return matches(key.account) })
	for of, l := range s.lanes {
		if matches(of) {
			l.ready = nil
		}
	}
	maps.DeleteFunc(s.lanes, func(_ string, l *lane) bool { return l.running == 0 && len(l.ready) == 0 })
	s.turn = slices.DeleteFunc(s.turn, func(l *lane) bool {
		l.inTurn = len(l.ready) > 0
		return !l.inTurn
	})
	gone := slices.Collect(maps.Keys(s.active))
	gone = slices.DeleteFunc(gone, func(j *job) bool { return !matches(j.d.Account) })
	for _, j := range gone { // first, so that none of them is queued because another one ended
		j.aborted = true
		if r := j.release; r != nil {
			r.jobs = slices.DeleteFunc(r.jobs, func(other *job) bool { return other == j })
		}
	}
	for _, j := range gone {
		if j.cancel != nil {
			j.cancel()
		}
		s.next(j)
	}
}
