package store

import (
	"slices"
	"sort"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// schema defines how a table stores resources of type R.
type schema[R any] struct {
	name string // part of a cursor's checksum, so that cursors of other tables are rejected
	id   func(*R) string
	size func(*R) int64 // an estimate, for the memory limit
	// times returns the times of the creation and of the latest change.
	times func(*R) (created, updated time.Time)
	// created returns the creation time, for filters by date. It may be nil.
	created func(*R) time.Time
	// ref returns the caller's own reference, which is unique unless it is "". It may
	// be nil.
	ref      func(*R) string
	postings []func(*R) string // see [Posting]
	facets   []func(*R) string // see [Facet]
}

// Table holds an account's resources of one kind in the order of their creation. The
// account's lock guards the table; the resources are immutable and may be read without
// it.
type Table[R any] struct {
	schema schema[R]
	rows   []*R // a row's position is its Seq-1
	byID   map[string]uint32
	byRef  map[string]uint32

	before   map[string][]*R // the latest replaced versions, by id, oldest first
	replaced []string        // the id of each of them, as a ring buffer
	oldest   int             // the index of the oldest in replaced
	hidden   int             // how many rows are left out: see [Table.AsOf]

	remembered int64 // the approximate size of before

	postings []map[string][]uint32 // ascending positions
	facets   []map[string]*bitset
	combined map[combination]int // how many resources have each combination
}

// combination holds the values of a resource's facets.
type combination [6]string

func newTable[R any](s schema[R]) Table[R] {
	t := Table[R]{schema: s, byID: map[string]uint32{}, byRef: map[string]uint32{}, combined: map[combination]int{}}
	for range s.postings {
		t.postings = append(t.postings, map[string][]uint32{})
	}
	for range s.facets {
		t.facets = append(t.facets, map[string]*bitset{})
	}
	return t
}

// Len returns the number of resources.
func (t *Table[R]) Len() int { return len(t.rows) }

// Get returns the resource with an id, or nil.
func (t *Table[R]) Get(id string) *R {
	if at, ok := t.byID[id]; ok {
		return t.rows[at]
	}
	return nil
}

// Counts returns how many resources have each value of a facet.
func (t *Table[R]) Counts(facet Facet[R]) map[string]int {
	counts := map[string]int{}
	for values, n := range t.combined {
		counts[values[facet]] += n
	}
	return counts
}

// maxBefore is the number of replaced versions that a table stores.
const maxBefore = 1024

// Before returns a resource as it was before its last change. It returns nil if the
// last change created it, and the current version if the change was too long ago.
func (t *Table[R]) Before(id string) *R {
	if old := t.before[id]; len(old) > 0 {
		return old[len(old)-1]
	}
	r := t.Get(id)
	if row, ok := any(r).(interface{ Stamp() *engine.Row }); r != nil && ok && row.Stamp().Rev > 1 {
		return r
	}
	return nil
}

// AsOf returns the table as it was at a time: resources that were created later are left
// out. Of a resource that has changed more often since than the table remembers, it has
// the oldest version that is left.
func (t *Table[R]) AsOf(at time.Time) Table[R] {
	then := newTable(t.schema)
	for _, r := range t.rows {
		if v := t.versionAt(r, at); v != nil {
			then.put(v, uint64(len(then.rows))+1)
		}
	}
	then.hidden = len(t.rows) - len(then.rows)
	return then
}

// versionAt returns the version that a resource had at a time, nil if it did not exist.
func (t *Table[R]) versionAt(r *R, at time.Time) *R {
	created, updated := t.schema.times(r)
	if created.After(at) {
		return nil
	}
	old := t.before[t.schema.id(r)]
	for i := len(old) - 1; i >= 0 && updated.After(at); i-- {
		r = old[i]
		_, updated = t.schema.times(r)
	}
	return r
}

// remember stores a replaced version. If there are too many, it drops the oldest.
func (t *Table[R]) remember(id string, old *R) {
	if t.before == nil {
		t.before = map[string][]*R{}
	}
	if len(t.replaced) < maxBefore {
		t.replaced = append(t.replaced, id)
	} else {
		oldest := t.replaced[t.oldest]
		versions := t.before[oldest]
		t.remembered -= t.schema.size(versions[0])
		if len(versions) == 1 {
			delete(t.before, oldest)
		} else {
			t.before[oldest] = versions[1:]
		}
		t.replaced[t.oldest] = id
		t.oldest = (t.oldest + 1) % maxBefore
	}
	t.remembered += t.schema.size(old)
	t.before[id] = append(t.before[id], old)
}

// ByRef returns the resource with a reference, or nil. No resource has the
// reference "".
func (t *Table[R]) ByRef(ref string) *R {
	if at, ok := t.byRef[ref]; ok && ref != "" {
		return t.rows[at]
	}
	return nil
}

// put adds the seq-th resource of the table, or replaces the one with the same id.
// It returns the approximate growth of the table in bytes.
func (t *Table[R]) put(r *R, seq uint64) (bytes int64) {
	id := t.schema.id(r)
	if seq != uint64(len(t.rows))+1 { // otherwise the resource is new
		if pos, ok := t.byID[id]; ok {
			old, before := t.rows[pos], t.remembered
			t.rows[pos] = r
			t.remember(id, old)
			t.reindex(int(pos), old, r)
			return t.schema.size(r) - t.schema.size(old) + t.remembered - before
		}
	}
	at := len(t.rows)
	t.rows = append(t.rows, r)
	t.byID[id] = uint32(at) //nolint:gosec // the memory limit keeps tables far below 2^32 rows
	t.reindex(at, nil, r)
	return t.schema.size(r)
}

// reindex moves a row from the index entries of old, which may be nil, to
// those of r.
func (t *Table[R]) reindex(at int, old, r *R) {
	pos := uint32(at) //nolint:gosec // as in put
	if t.schema.ref != nil {
		if ref := t.schema.ref(r); ref != "" {
			t.byRef[ref] = pos
		}
	}
	for i, key := range t.schema.postings {
		to := key(r)
		if old != nil {
			from := key(old)
			if from == to {
				continue
			}
			t.unpost(i, from, at)
		}
		if to != "" {
			list := t.postings[i][to]
			t.postings[i][to] = slices.Insert(list, search(list, at), pos)
		}
	}
	to := t.combination(r)
	t.combined[to]++
	if old == nil {
		for i := range t.schema.facets {
			t.facet(i, to[i]).add(at)
		}
		return
	}
	from := t.combination(old)
	if t.combined[from]--; t.combined[from] == 0 {
		delete(t.combined, from)
	}
	for i := range t.schema.facets {
		if from[i] != to[i] {
			t.facets[i][from[i]].remove(at)
			t.facet(i, to[i]).add(at)
		}
	}
}

func (t *Table[R]) combination(r *R) (c combination) {
	for i, key := range t.schema.facets {
		c[i] = key(r)
	}
	return c
}

func (t *Table[R]) unpost(i int, key string, at int) {
	list := t.postings[i][key]
	switch j := search(list, at); {
	case key == "":
	case len(list) == 1:
		delete(t.postings[i], key)
	default:
		t.postings[i][key] = slices.Delete(list, j, j+1)
	}
}

func (t *Table[R]) facet(i int, value string) *bitset {
	set := t.facets[i][value]
	if set == nil {
		set = &bitset{}
		t.facets[i][value] = set
	}
	return set
}

// search returns the index of the first position in list that is at least at.
func search(list []uint32, at int) int {
	return sort.Search(len(list), func(i int) bool { return int(list[i]) >= at })
}
