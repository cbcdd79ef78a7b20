package journal

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// depart adds a request to those in flight.
func (j *Journal) depart(rec *record) {
	j.air.Lock()
	defer j.air.Unlock()
	j.flying[rec] = struct{}{}
}

func (j *Journal) land(rec *record) {
	j.air.Lock()
	defer j.air.Unlock()
	delete(j.flying, rec)
}

// note records the fault that was injected into a request in flight.
func (j *Journal) note(rec *record, fault string) {
	j.air.Lock()
	defer j.air.Unlock()
	rec.fault = fault
}

// InFlight lists the masked requests of an account that are being executed and match a
// pattern, oldest first; see [Journal.Find]. They have no ID, body, status or response yet,
// and Duration is how long they have taken so far. "" means all accounts.
func (j *Journal) InFlight(account, pattern string) []Entry {
	j.air.Lock()
	var list []Entry
	for rec := range j.flying {
		// Without the bodies, which are being recorded.
		list = append(list, j.entry(&record{request: rec.request, at: rec.at, duration: time.Since(rec.began), fault: rec.fault}))
		if account != "" && j.cfg.Account(&rec.request) != account || !list[len(list)-1].Matches(pattern) {
			list = list[:len(list)-1]
		}
	}
	j.air.Unlock()
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(b.Duration, a.Duration) })
	return list
}

// Wait waits until at least n requests of an account that match a pattern have been
// recorded, including earlier ones in the journal, and returns them, oldest first. If ctx
// ends first, it returns those that have been, and the context's error. Requests in flight
// don't count.
func (j *Journal) Wait(ctx context.Context, account, pattern string, n int) ([]Entry, error) {
	var found []Entry
	var seen, cleared uint64
	for {
		j.mu.Lock()
		if j.recorded == nil {
			j.recorded = make(chan struct{})
		}
		recorded := j.recorded
		if j.cleared != cleared {
			found, seen, cleared = nil, 0, j.cleared
		}
		from, _ := slices.BinarySearchFunc(j.list, seen+1, func(rec *record, id uint64) int { return cmp.Compare(rec.id, id) })
		records := slices.Clone(j.list[from:])
		j.mu.Unlock()
		for _, rec := range records {
			seen = rec.id
			if account != "" && j.cfg.Account(&rec.request) != account {
				continue
			}
			if e := j.entry(rec); e.Matches(pattern) {
				found = append(found, e)
			}
		}
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-recorded:
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}
