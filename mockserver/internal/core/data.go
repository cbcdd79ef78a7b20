package core

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/datafile"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// data is the file that persists the gateway's state: a snapshot, followed by
// every commit, clock step, endpoint and delivery.
type data struct {
	core *Core
	file *datafile.File[entry] // nil without a file, and while the file is being read

	mu        sync.Mutex
	snapshot  int64 // length of the snapshot in bytes
	rewriting bool  // it is being compacted, since it has outgrown its snapshot
	closed    bool
	work      sync.WaitGroup

	// collect, if set, receives commits instead of their being stored and their webhooks
	// being sent.
	collect func(store.Commit)
}

// entry is one record of the file: a commit, or those of a seed file, with the
// deliveries that it causes, all endpoints, the state of one delivery, or, with only Now, an
// advance of the clock. A snapshot is an entry with the rest of the state,
// followed by entries with its timers, deliveries and resources, the latter as
// commits.
type entry struct {
	Now        time.Time
	Snapshot   *Snapshot
	Timers     []clock.Timer
	Commit     *store.Commit
	Seed       []store.Commit // of one seed file
	Deliveries []deliver.SavedDelivery
	Endpoints  *deliver.Registry
	Delivery   *deliver.SavedDelivery
}

// minGrowth is how much a file must grow before it is compacted.
const minGrowth = 1 << 20

func (d *data) persist(e entry) error {
	if d.file == nil {
		return nil
	}
	e.Now = d.core.now()
	if err := d.file.Append(e); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rewriting || d.closed || d.file.Size() <= 2*d.snapshot+minGrowth {
		return nil
	}
	d.rewriting = true
	d.work.Go(func() {
		err := d.core.rewriteData(d.file)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.rewriting = false
		if err != nil { // nothing is lost: compaction is retried when the file is twice as long
			d.snapshot = d.file.Size()
		}
	})
	return nil
}

// Persist implements store.Outbox. A commit and its deliveries are one record,
// so they are atomic even if the process dies. Webhook bodies are omitted,
// because they are rendered from the resources.
func (d *data) Persist(c store.Commit) (send func(), err error) {
	if d.collect != nil {
		d.collect(c)
		return func() {}, nil
	}
	posting := d.core.Sender.Prepare(c.Account, c.Change.Events, c.Integration)
	if d.file == nil {
		return posting.Send, nil
	}
	written := compact(c) // without a file c uses no memory
	return posting.Send, d.persist(entry{Commit: &written, Deliveries: posting.Compact()})
}

// persistSeed saves the commits of a seed file as one record, with their webhooks if
// they are to be sent.
func (d *data) persistSeed(commits []store.Commit, webhooks bool) (send func(), err error) {
	var e entry
	var postings []*deliver.Posting
	for _, c := range commits {
		if webhooks {
			p := d.core.Sender.Prepare(c.Account, c.Change.Events, c.Integration)
			postings = append(postings, p)
			e.Deliveries = append(e.Deliveries, p.Compact()...)
		}
		if d.file != nil {
			e.Seed = append(e.Seed, compact(c))
		}
	}
	return func() {
		for _, p := range postings {
			p.Send()
		}
	}, d.persist(e)
}

// compact returns a commit in the form in which it is stored.
func compact(c store.Commit) store.Commit {
	c.Change, c.Integration = c.Change.Compact(), nil
	return c
}

// persistWebhooks records state that the webhook sender must keep.
func (d *data) persistWebhooks(k deliver.Changed) error {
	return d.persist(entry{Endpoints: k.Registry, Delivery: k.Delivery})
}

func (d *data) close() error {
	if d.file == nil {
		return nil
	}
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	err := d.file.Close()
	d.work.Wait()
	return err
}

// openData reads the data file, restores the gateway's state from it, and
// continues from its last time.
func (c *Core) openData(path string) error {
	var last time.Time
	fired := firedTimers{} // since the latest snapshot
	var snapshot bool      // the previous record was a part of the snapshot
	file, err := datafile.Open(path, func(e entry, end int64) error {
		if e.Now.After(last) {
			last = e.Now
		}
		if snapshot = e.Snapshot != nil || snapshot && e.Now.IsZero(); snapshot {
			c.data.snapshot = end
		}
		if e.Snapshot != nil {
			clear(fired)
		}
		if e.Commit != nil {
			fired.count(*e.Commit)
		}
		for _, commit := range e.Seed {
			fired.count(commit)
		}
		return c.replay(e)
	})
	if err != nil {
		return err
	}
	c.Clock.Drop(fired.drop)
	if err = c.Store.Check(last); err == nil {
		err = c.resume(file, last)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

// firedTimers counts how often timers have fired in commits that are replayed: the
// replay sets them again.
type firedTimers map[clock.Timer]int

func (f firedTimers) count(c store.Commit) {
	if c.Fired != nil {
		f[*c.Fired]++
	}
}

// drop reports whether a timer has fired already. Each report counts as one.
func (f firedTimers) drop(t clock.Timer) bool {
	n := f[t]
	if n > 0 {
		f[t] = n - 1
	}
	return n > 0
}

// replay applies one record.
func (c *Core) replay(e entry) error {
	switch {
	case e.Snapshot != nil:
		if err := c.accepts(*e.Snapshot); err != nil {
			return err
		}
		return c.load(*e.Snapshot)
	case e.Commit != nil:
		return c.replayCommit(*e.Commit, e.Deliveries)
	case e.Seed != nil:
		return c.replaySeed(e)
	case e.Endpoints != nil:
		if err := e.Endpoints.Check(); err != nil {
			return err
		}
		c.Sender.LoadEndpoints(*e.Endpoints)
	case e.Delivery != nil:
		e.Deliveries = append(e.Deliveries, *e.Delivery)
	}
	if err := c.loadDeliveries(e.Deliveries); err != nil {
		return err
	}
	c.Clock.Add(e.Timers...)
	return nil
}

func (c *Core) replaySeed(e entry) error {
	byEvent := map[string][]deliver.SavedDelivery{}
	for _, d := range e.Deliveries {
		byEvent[d.EventID] = append(byEvent[d.EventID], d)
	}
	for _, commit := range e.Seed {
		var own []deliver.SavedDelivery
		for i := range commit.Change.Events {
			own = append(own, byEvent[commit.Change.Events[i].ID]...)
		}
		if err := c.replayCommit(commit, own); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) replayCommit(commit store.Commit, deliveries []deliver.SavedDelivery) error {
	if commit.Reset {
		if err := c.Sender.Reset(commit.Account); err != nil {
			return err
		}
	}
	commit.Change.Expand()
	if err := c.Store.Replay(commit); err != nil {
		return err
	}
	for _, d := range deliveries {
		if err := d.Check(); err != nil {
			return err
		}
	}
	if len(commit.Change.Events) > 0 {
		c.Sender.LoadPosting(commit.Account, commit.Change.Events, deliveries)
	}
	return nil
}

func (c *Core) loadDeliveries(list []deliver.SavedDelivery) error {
	for _, d := range list {
		if err := d.Check(); err != nil {
			return err
		}
		c.Sender.LoadDelivery(d)
	}
	return nil
}

// resume continues from the last time in a file. A running clock continues
// from its own start if that is later, because time has passed since.
func (c *Core) resume(file *datafile.File[entry], last time.Time) error {
	if c.Start.After(last) && c.Speed > 0 {
		last = c.Start
	}
	c.Clock.Resume(last)
	resumed, err := file.Resume()
	if err == nil && !resumed {
		err = c.rewriteData(file)
	}
	c.data.file = file
	return err
}

// rewriteData replaces the data file with a snapshot of the current state and
// the records appended in the meantime. The state is copied atomically, and
// written in the background.
func (c *Core) rewriteData(file *datafile.File[entry]) error {
	size, err := file.Compact(func(mark func()) (iter.Seq[entry], error) {
		snap, err := c.stateAt(mark)
		return snap.entries(), err
	})
	if err != nil {
		return err
	}
	c.data.mu.Lock()
	defer c.data.mu.Unlock()
	c.data.snapshot = size
	return nil
}

// perRecord is the number of resources, timers or deliveries of a snapshot in
// one record.
const perRecord = 100

// entries returns the snapshot as records of the data file.
func (snap Snapshot) entries() iter.Seq[entry] {
	return func(yield func(entry) bool) {
		timers, deliveries := snap.Clock.Timers, snap.Webhooks.Deliveries
		snap.Clock.Timers, snap.Webhooks.Deliveries, snap.Webhooks.Held = nil, nil, nil
		commits := snap.Store.Split(perRecord)
		if !yield(entry{Now: snap.Clock.Now, Snapshot: &snap}) {
			return
		}
		timers = slices.DeleteFunc(timers, func(t clock.Timer) bool { return t.Kind == deliver.TimerKind }) // derived from the deliveries
		for part := range slices.Chunk(timers, perRecord) {
			if !yield(entry{Timers: part}) {
				return
			}
		}
		for part := range slices.Chunk(deliveries, perRecord) {
			if !yield(entry{Deliveries: part}) {
				return
			}
		}
		for c := range commits {
			if !yield(entry{Commit: &c}) {
				return
			}
		}
	}
}
