package mockserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/datafile"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// data is the file that keeps the gateway beyond its process: a snapshot, and
// after it every commit, step of the clock, endpoint and delivery.
type data struct {
	now    func() time.Time
	sender *deliver.Sender
	file   *datafile.File // nil without a file, and while it is read

	// collect gets what would be delivered, and nothing is. Nil delivers.
	collect func(store.Commit)
}

// entry is one record of the file: a snapshot, a commit with the deliveries that
// it causes, all endpoints, what has become of one delivery, or, with Now
// alone, that the clock has moved.
type entry struct {
	Now        time.Time
	Snapshot   *snapshot               `json:",omitempty"`
	Commit     *store.Commit           `json:",omitempty"`
	Deliveries []deliver.SavedDelivery `json:",omitempty"`
	Endpoints  *deliver.Registry       `json:",omitempty"`
	Delivery   *deliver.SavedDelivery  `json:",omitempty"`
}

func (d *data) persist(e entry) error {
	if d.file == nil {
		return nil
	}
	e.Now = d.now()
	b, err := json.Marshal(e) //nolint:musttag // the gateway's own format, read by no one else
	if err != nil {
		return err
	}
	return d.file.Append(b)
}

// Persist implements store.Outbox. A commit and its deliveries are one record, so
// that whenever the process dies either both have happened or neither. The
// events themselves are left out: the deliveries have their bodies.
func (d *data) Persist(c store.Commit) (send func(), err error) {
	if d.collect != nil {
		if len(c.Change.Events) > 0 {
			d.collect(c)
		}
		return func() {}, nil
	}
	posting := d.sender.Prepare(c.Account, c.Change.Events, c.Integration)
	if d.file == nil {
		return posting.Send, nil
	}
	saved, err := posting.Save()
	if err != nil {
		return nil, err
	}
	written := c // so that without a file c takes no memory
	written.Change.Events = nil
	return posting.Send, d.persist(entry{Commit: &written, Deliveries: saved})
}

// persistWebhooks writes down what the sender of webhooks must not forget.
func (d *data) persistWebhooks(k deliver.Changed) error {
	return d.persist(entry{Endpoints: k.Registry, Delivery: k.Delivery})
}

// moved writes down where the clock is.
func (d *data) moved() error { return d.persist(entry{}) }

func (d *data) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}

// openData reads the data file, puts the gateway into the state that it says,
// and writes it anew without its history.
func (s *Server) openData(path string) error {
	var last time.Time
	fired := map[clock.Timer]int{} // since the latest snapshot, and how often
	file, err := datafile.Open(path, func(record []byte) error {
		var e entry
		if err := json.Unmarshal(record, &e); err != nil { //nolint:musttag // the gateway's own format, read by no one else
			return fmt.Errorf("%w: %w", datafile.ErrDamaged, err)
		}
		if e.Now.After(last) {
			last = e.Now
		}
		switch {
		case e.Snapshot != nil:
			clear(fired)
		case e.Commit != nil && e.Commit.Fired != nil:
			fired[*e.Commit.Fired]++
		}
		return s.replay(e)
	})
	if err != nil {
		return err
	}
	s.clock.Drop(func(t clock.Timer) bool {
		n := fired[t]
		if n > 0 {
			fired[t] = n - 1
		}
		return n > 0
	})
	if err := s.resume(file, last); err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// replay does again what one record says.
func (s *Server) replay(e entry) error {
	switch {
	case e.Snapshot != nil:
		if err := s.accepts(*e.Snapshot); err != nil {
			return err
		}
		return s.load(*e.Snapshot)
	case e.Commit != nil:
		if e.Commit.Reset {
			if err := s.sender.Reset(e.Commit.Account); err != nil {
				return err
			}
		}
		if err := s.store.Replay(*e.Commit); err != nil {
			return err
		}
		for _, d := range e.Deliveries {
			s.sender.LoadDelivery(d)
		}
	case e.Endpoints != nil:
		s.sender.LoadEndpoints(*e.Endpoints)
	case e.Delivery != nil:
		s.sender.LoadDelivery(*e.Delivery)
	}
	return nil
}

// resume compacts the file and goes on from its last moment. A clock that runs
// goes on from its own start if that is later: time has passed meanwhile.
func (s *Server) resume(file *datafile.File, last time.Time) error {
	state := s.clock.State()
	if s.settings.start.After(last) && s.settings.speed > 0 {
		last = s.settings.start
	}
	if last.After(state.Now) {
		if err := s.clock.Restore(clock.State{Now: last, Timers: state.Timers}); err != nil {
			return err
		}
	}
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	b, err := json.Marshal(entry{Now: s.clock.Now(), Snapshot: &snap}) //nolint:musttag // the gateway's own format, read by no one else
	if err != nil {
		return err
	}
	if err := file.Compact(b); err != nil {
		return err
	}
	s.data.file = file
	return nil
}
