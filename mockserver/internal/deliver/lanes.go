package deliver

import "time"

// laneKey is what must stay in order: one record to one target.
type laneKey struct{ target, resource string }

// lane is the queue of one key. The lane whose first job runs is not among the
// ready ones.
type lane struct {
	key  laneKey
	jobs []*job
}

// job is one attempt to be made.
type job struct {
	d         *delivery
	scheduled bool // it counts as one of the schedule
	queued    bool // it is the first of the queue
}

// enqueue puts a job into its lane and sees to it that somebody does it.
func (s *Sender) enqueue(j *job) {
	s.active++
	s.push(j)
}

// line puts a job into the queue, whose jobs are done strictly one after the
// other.
func (s *Sender) line(j *job) {
	s.active++
	s.queue = append(s.queue, j)
	if len(s.queue) == 1 {
		j.queued = true
		s.push(j)
	}
}

func (s *Sender) push(j *job) {
	if s.closed {
		s.next(j) // it will not be made
		return
	}
	j.d.state = j.d.waitingState()
	key := laneKey{j.d.target.key(), j.d.resource}
	l := s.lanes[key]
	if l == nil {
		l = &lane{key: key}
		s.lanes[key] = l
		s.ready = append(s.ready, l)
	}
	l.jobs = append(l.jobs, j)
	if s.workers < maxWorkers && len(s.ready) > 0 {
		s.workers++
		s.work.Go(s.worker)
	}
}

// waitingState is Pending, but a delivered one stays delivered whatever
// becomes of further attempts.
func (d *delivery) waitingState() State {
	if d.state == Delivered {
		return Delivered
	}
	return Pending
}

// worker makes attempts until no lane is ready.
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
		if len(l.jobs) > 0 {
			s.ready = append(s.ready, l)
		} else {
			delete(s.lanes, l.key)
		}
	}
	s.workers--
}

// done writes an attempt down and decides what comes next.
func (s *Sender) done(j *job, a Attempt) {
	d := j.d
	d.attempts = append(d.attempts, a)
	if j.scheduled {
		d.tries++
	}
	switch {
	case a.OK():
		d.state, d.next = Delivered, time.Time{}
	case d.state == Delivered:
	case !j.scheduled:
		if d.fault.Drop || d.tries == len(s.schedule) { // no attempt is planned
			d.state = Failed
		}
	case d.tries < len(s.schedule):
		if at := d.first.Add(s.schedule[d.tries]); at.After(s.cfg.Clock.Now()) {
			s.wait(d, at)
		} else { // it was held for longer than the schedule waits
			s.due(d)
		}
	default:
		d.state = Failed
	}
	s.count(d)
	s.keepDelivery(d)
	if copies := d.fault.Copies; copies > 0 {
		d.fault.Copies--
		s.enqueue(&job{d: d})
	}
	s.next(j)
}

// next counts a job as done and goes on with what hangs on it.
func (s *Sender) next(j *job) {
	s.active--
	if j.queued {
		if s.queue = s.queue[1:]; len(s.queue) > 0 {
			s.queue[0].queued = true
			s.push(s.queue[0])
		}
	}
	if s.active == 0 {
		s.tellIdle()
	}
}

func (s *Sender) tellIdle() {
	for _, idle := range s.idle {
		close(idle)
	}
	s.idle = nil
}
