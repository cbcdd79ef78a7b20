package deliver

import (
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

// queueKey identifies deliveries that must stay in order: those about one resource to
// one target.
type queueKey struct{ endpoint, url, resource string }

// queue holds the jobs of one key in order. While its first job runs, the queue is not
// in ready.
type queue struct {
	key  queueKey
	jobs []*job
}

// job is one attempt to make.
type job struct {
	d         *delivery
	scheduled bool // it belongs to the retry schedule
	inRelease bool // it is the first in Sender.released
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
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key}
		s.queues[key] = q
		s.ready = append(s.ready, q)
	}
	q.jobs = append(q.jobs, j)
	if s.workers < maxWorkers && len(s.ready) > 0 {
		s.workers++
		s.work.Go(s.worker)
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

// worker makes attempts until no queue is ready.
func (s *Sender) worker() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) > 0 && !s.closed {
		q := s.ready[0]
		s.ready = s.ready[1:]
		j := q.jobs[0]
		r := s.prepare(j)
		s.mu.Unlock()
		a := s.attempt(r)
		s.mu.Lock()
		q.jobs = q.jobs[1:]
		s.done(j, a)
		s.emit(j.d, a, r.secret)
		s.next(j) // after emit: whoever waits for the delivery finds its event
		if len(q.jobs) > 0 {
			s.ready = append(s.ready, q)
		} else {
			delete(s.queues, q.key)
		}
	}
	s.workers--
}

// done records an attempt, and queues or schedules the delivery's next one.
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
