package webhook

import (
	"cmp"
	"context"
	"slices"
)

// DeadLetters is as in [Store].
func (s *memoryStore) DeadLetters(_ context.Context, q DeadLetterQuery) ([]DeadLetter, error) {
	q, err := q.Check()
	if err != nil {
		return nil, err
	}
	since, number, _ := q.Position() // checked
	s.mu.Lock()
	defer s.mu.Unlock()
	var dead []*memoryEntry
	for _, e := range s.entries {
		if e.state == StateDead && e.selected(q.DeadLetterFilter) && e.after(since, number) {
			dead = append(dead, e)
		}
	}
	slices.SortFunc(dead, func(a, b *memoryEntry) int {
		return cmp.Or(cmp.Compare(a.since.UnixMilli(), b.since.UnixMilli()), cmp.Compare(a.number, b.number))
	})
	var letters []DeadLetter
	for _, e := range dead[:min(q.Limit, len(dead))] {
		letters = append(letters, DeadLetter{
			Key: e.Key, EventID: e.EventID, Kind: e.Kind, Resource: e.Resource,
			Attempts: e.attempts, Reason: e.reason, Since: e.since, Body: e.Body,
			Cursor: CursorAt(e.since.UnixMilli(), int64(e.number)), //nolint:gosec // entries of one process
		})
	}
	return letters, nil
}

func (e *memoryEntry) selected(f DeadLetterFilter) bool {
	return (f.Kind == "" || e.Kind == f.Kind) && (f.Resource == "" || e.Resource == f.Resource) &&
		!e.since.Before(f.Since)
}

func (e *memoryEntry) after(since, number int64) bool {
	return cmp.Or(cmp.Compare(e.since.UnixMilli(), since), cmp.Compare(int64(e.number), number)) > 0 //nolint:gosec // as above
}

// Requeue is as in [Store].
func (s *memoryStore) Requeue(_ context.Context, keys ...string) (int, error) {
	return s.letters(keys, func(e *memoryEntry) {
		e.attempts = 0
		s.rest(e, s.now())
	}), nil
}

// Discard is as in [Store].
func (s *memoryStore) Discard(_ context.Context, keys ...string) (int, error) {
	return s.letters(keys, func(e *memoryEntry) { s.enter(e, StateDone) }), nil
}

// letters changes the dead letters among the entries with these keys.
func (s *memoryStore) letters(keys []string, change func(*memoryEntry)) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if e := s.entries[key]; e != nil && e.state == StateDead {
			change(e)
			n++
		}
	}
	return n
}

// Unhandled is as in [Store].
func (s *memoryStore) Unhandled(context.Context) ([]UnhandledKind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[route]UnhandledKind)
	for _, e := range s.entries {
		if e.state != StateUnhandled {
			continue
		}
		r := route{e.family, e.Kind}
		n, known := found[r]
		if !known || e.since.Before(n.Since) {
			n.Since = e.since
		}
		found[r] = UnhandledKind{Family: e.family, Kind: e.Kind, Events: n.Events + 1, Since: n.Since}
	}
	list := make([]UnhandledKind, 0, len(found))
	for _, n := range found {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b UnhandledKind) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Kind, b.Kind))
	})
	return list, nil
}
