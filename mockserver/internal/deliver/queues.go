package deliver

import (
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

// queueKey identifies the deliveries that must stay in order: one resource to
// one target.
type queueKey struct{ endpoint, url, resource string }

// queue holds the jobs of one key in order. While its first job runs it is not
// among the ready ones.
type queue struct {
	key  queueKey
	jobs []*job
}

// job is one attempt that has to be made.
type job struct {
	d         *delivery
	scheduled bool // it is an attempt of the schedule
	inRelease bool // it is the first of the released ones
}

// enqueue adds a job to its queue and makes sure that a worker runs it.
func (s *Sender) enqueue(j *job) {
	s.active++
	s.push(j)
}

// enqueueReleased queues a job after those that were released before it. Released
// jobs run strictly one after the other.
func (s *Sender) enqueueReleased(j *job) {
	s.active++
	s.released = append(s.released, j)
	if len(s.released) == 1 {
		j.inRelease = true
		s.push(j)
	}
}

func (s *Sender) push(j *job) {
	if s.closed {
		s.next(j) // the attempt will not be made
		return
	}
	j.d.State = j.d.waitingState()
	key := queueKey{j.d.Endpoint, j.d.URL, j.d.Resource}
	l := s.queues[key]
	if l == nil {
		l = &queue{key: key}
		s.queues[key] = l
		s.ready = append(s.ready, l)
	}
	l.jobs = append(l.jobs, j)
	if s.workers < maxWorkers && len(s.ready) > 0 {
		s.workers++
		s.work.Go(s.worker)
	}
}

// waitingState is Pending, but a delivered one stays delivered whatever the
// result of further attempts.
func (d *delivery) waitingState() State {
	if d.State == Delivered {
		return Delivered
	}
	return Pending
}

// worker makes attempts until no queue is ready.
func (s *Sender) worker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) > 0 && !s.closed {
		l := s.ready[0]
		s.ready = s.ready[1:]
		j := l.jobs[0]
		r := s.prepare(j)
		s.mu.Unlock()
		a := s.attempt(r)
		s.mu.Lock()
		l.jobs = l.jobs[1:]
		s.done(j, a)
		s.emit(j.d, a, r.secret)
		if len(l.jobs) > 0 {
			s.ready = append(s.ready, l)
		} else {
			delete(s.queues, l.key)
		}
	}
	s.workers--
}

// done records an attempt and decides what comes next.
func (s *Sender) done(j *job, a Attempt) {
	d := j.d
	d.Attempts = append(d.Attempts, a)
	if j.scheduled {
		d.Tries++
	}
	switch {
	case a.OK():
		d.State, d.Next = Delivered, time.Time{}
	case d.State == Delivered:
	case !j.scheduled:
		if d.Fault == faults.DropWebhook || d.Tries == len(s.schedule) { // no attempt is planned
			d.State = Failed
		}
	case d.Tries < len(s.schedule):
		if at := d.First.Add(s.schedule[d.Tries]); at.After(s.cfg.Clock.Now()) {
			s.wait(d, at)
		} else { // it was held for longer than the schedule's next wait
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
	s.next(j)
}

// next marks a job as done and queues the jobs that waited for it.
func (s *Sender) next(j *job) {
	s.active--
	if j.inRelease {
		if s.released = s.released[1:]; len(s.released) > 0 {
			s.released[0].inRelease = true
			s.push(s.released[0])
		}
	}
	if s.active == 0 {
		s.signalIdle()
	}
}

func (s *Sender) signalIdle() {
	for _, idle := range s.idle {
		close(idle)
	}
	s.idle = nil
}
