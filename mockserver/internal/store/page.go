package store

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// Query selects resources of a table and a page of them, newest first.
type Query[R any] struct {
	Limit  int
	Cursor string // "" means the first page
	Prev   bool   // the page before the cursor instead of after it
	Skip   int    // number of resources to skip, for lists by page number

	Since, Until time.Time       // both inclusive; zero means no limit
	Match        func(r *R) bool // a filter beyond the indexes; nil accepts all

	facets   []choice[Facet[R]]
	postings []choice[Posting[R]]
}

// Facet is an index of a table on a string with few distinct values, each shared by
// many resources.
type Facet[R any] int

// Posting is an index of a table on a string with many distinct values, each shared by
// few resources.
type Posting[R any] int

// choice is a condition on an index: the value is one of values.
type choice[I any] struct {
	index  I
	values []string
}

// In selects the resources whose facet has one of the values. Without values, it
// selects all.
func (q *Query[R]) In(facet Facet[R], values ...string) {
	if len(values) > 0 {
		q.facets = append(q.facets, choice[Facet[R]]{facet, values})
	}
}

// Is selects the resources whose posting has the value; "" selects all.
func (q *Query[R]) Is(posting Posting[R], value string) {
	if value != "" {
		q.postings = append(q.postings, choice[Posting[R]]{posting, []string{value}})
	}
}

// Page is a part of the selected resources, newest first.
type Page[R any] struct {
	Rows  []*R
	Total int    // number of selected resources on all pages
	Next  string // cursor of the older page; "" on the last one
	Prev  string // cursor of the newer page; "" on the first one
}

// ErrCursor means that a cursor was not issued for this list.
var ErrCursor = errors.New("not a cursor of this list")

// Page returns the page that q selects.
func (t *Table[R]) Page(q Query[R]) (Page[R], error) {
	s := t.selected(q)
	start := len(t.rows)
	if q.Cursor != "" {
		at, ok := t.parseCursor(q.Cursor)
		if !ok {
			return Page[R]{}, ErrCursor
		}
		start = at
	}
	var at []int
	if q.Prev && q.Cursor != "" {
		at = s.newer(start+1, q.Limit)
	} else {
		at = s.older(start, q.Skip, q.Limit)
	}
	p := Page[R]{Rows: make([]*R, len(at)), Total: s.count()}
	for i, pos := range at {
		p.Rows[i] = t.rows[pos]
	}
	if len(at) == 0 {
		// The resources here are no longer selected, but a page other than the
		// first needs a cursor to the previous one.
		if _, more := s.after(start); more && !q.Prev && start > 0 && start < len(t.rows) {
			p.Prev = t.cursor(start - 1)
		}
		return p, nil
	}
	if _, more := s.before(at[len(at)-1]); more {
		p.Next = t.cursor(at[len(at)-1])
	}
	if _, more := s.after(at[0] + 1); more {
		p.Prev = t.cursor(at[0])
	}
	return p, nil
}

// All returns all selected resources, newest first.
func (t *Table[R]) All(q Query[R]) []*R {
	s := t.selected(q)
	var rows []*R
	for _, at := range s.older(len(t.rows), 0, len(t.rows)) {
		rows = append(rows, t.rows[at])
	}
	return rows
}

// selection is the set of positions that a query selects.
type selection[R any] struct {
	rows   []*R
	lo, hi int         // positions from lo to below hi
	sets   [][]*bitset // for each facet, at least one must contain the position
	lists  [][]uint32  // each must contain the position
	match  func(*R) bool

	facets   []choice[Facet[R]] // the conditions that sets fulfil
	combined map[combination]int
}

func (t *Table[R]) selected(q Query[R]) selection[R] {
	s := selection[R]{rows: t.rows, hi: len(t.rows), match: q.Match, facets: q.facets, combined: t.combined}
	if !q.Since.IsZero() {
		s.lo = sort.Search(len(t.rows), func(i int) bool { return !t.schema.created(t.rows[i]).Before(q.Since) })
	}
	if !q.Until.IsZero() {
		s.hi = sort.Search(len(t.rows), func(i int) bool { return t.schema.created(t.rows[i]).After(q.Until) })
	}
	for _, c := range q.facets {
		var sets []*bitset
		for _, v := range slices.Compact(slices.Sorted(slices.Values(c.values))) {
			if set := t.facets[c.index][v]; set != nil {
				sets = append(sets, set)
			}
		}
		s.sets = append(s.sets, sets)
	}
	for _, c := range q.postings {
		s.lists = append(s.lists, t.postings[c.index][c.values[0]])
	}
	return s
}

// older skips positions below start and returns up to n further ones, descending.
func (s *selection[R]) older(start, skip, n int) []int {
	at := make([]int, 0, min(n, 128))
	if s.everything() {
		start, skip = min(start, s.hi)-skip, 0
	}
	for pos, ok := s.before(start); ok && len(at) < n; pos, ok = s.before(pos) {
		if skip > 0 {
			skip--
			continue
		}
		at = append(at, pos)
	}
	return at
}

// newer returns the n lowest positions from start on, descending.
func (s *selection[R]) newer(start, n int) []int {
	at := make([]int, 0, min(n, 128))
	for pos, ok := s.after(start); ok && len(at) < n; pos, ok = s.after(pos + 1) {
		at = append(at, pos)
	}
	slices.Reverse(at)
	return at
}

// everything reports whether every position from lo to hi is selected.
func (s *selection[R]) everything() bool {
	return len(s.sets) == 0 && len(s.lists) == 0 && s.match == nil
}

// before returns the greatest selected position below at.
func (s *selection[R]) before(at int) (int, bool) {
	at = min(at, s.hi)
	if len(s.lists) > 0 {
		list := s.lists[0]
		for i := search(list, at) - 1; i >= 0 && int(list[i]) >= s.lo; i-- {
			if s.has(int(list[i])) {
				return int(list[i]), true
			}
		}
		return 0, false
	}
	for at > s.lo {
		w := (at - 1) / 64
		for word := s.word(w) & (^uint64(0) >> (63 - (at-1)%64)); word != 0; {
			bit := highest(word)
			if pos := w*64 + bit; pos < s.lo {
				return 0, false
			} else if s.match == nil || s.match(s.rows[pos]) {
				return pos, true
			}
			word &^= 1 << bit
		}
		at = w * 64
	}
	return 0, false
}

// after returns the lowest selected position that is at or above at.
func (s *selection[R]) after(at int) (int, bool) {
	at = max(at, s.lo)
	if len(s.lists) > 0 {
		list := s.lists[0]
		for i := search(list, at); i < len(list) && int(list[i]) < s.hi; i++ {
			if s.has(int(list[i])) {
				return int(list[i]), true
			}
		}
		return 0, false
	}
	for ; at < s.hi; at = (at/64 + 1) * 64 {
		w := at / 64
		for word := s.word(w) & (^uint64(0) << (at % 64)); word != 0; word &= word - 1 {
			if pos := w*64 + lowest(word); pos >= s.hi {
				return 0, false
			} else if s.match == nil || s.match(s.rows[pos]) {
				return pos, true
			}
		}
	}
	return 0, false
}

// has reports whether a position within the range is selected.
func (s *selection[R]) has(at int) bool {
	for _, list := range s.lists {
		if i := search(list, at); i == len(list) || int(list[i]) != at {
			return false
		}
	}
	return s.word(at/64)&(1<<(at%64)) != 0 && (s.match == nil || s.match(s.rows[at]))
}

// word returns which of 64 positions the facets select.
func (s *selection[R]) word(w int) uint64 {
	word := ^uint64(0)
	for _, sets := range s.sets {
		var some uint64
		for _, set := range sets {
			some |= set.word(w)
		}
		word &= some
	}
	return word
}

// count returns how many positions are selected. Filters on facets alone need no
// search.
func (s *selection[R]) count() (n int) {
	switch {
	case s.everything():
		return max(0, s.hi-s.lo)
	case len(s.lists) > 0 || s.match != nil:
		for at, ok := s.after(s.lo); ok; at, ok = s.after(at + 1) {
			n++
		}
	case s.lo == 0 && s.hi == len(s.rows):
		for values, resources := range s.combined {
			if s.selects(values) {
				n += resources
			}
		}
	case s.lo < s.hi:
		return s.ones(s.hi) - s.ones(s.lo)
	}
	return n
}

// selects reports whether the query selects resources with these facets.
func (s *selection[R]) selects(values combination) bool {
	return !slices.ContainsFunc(s.facets, func(c choice[Facet[R]]) bool { return !slices.Contains(c.values, values[c.index]) })
}

// ones returns how many positions below end the facets select.
func (s *selection[R]) ones(end int) (n int) {
	for w := range end / 64 {
		n += bits.OnesCount64(s.word(w))
	}
	if end%64 > 0 {
		n += bits.OnesCount64(s.word(end/64) & (1<<(end%64) - 1))
	}
	return n
}

// cursor returns the cursor of a row: its position and a checksum, so that made-up
// and truncated cursors are rejected.
func (t *Table[R]) cursor(at int) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(at)) //nolint:gosec // as in put
	b = binary.BigEndian.AppendUint32(b, t.checksum(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func (t *Table[R]) parseCursor(s string) (int, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 8 || binary.BigEndian.Uint32(b[4:]) != t.checksum(b[:4]) {
		return 0, false
	}
	at := int(binary.BigEndian.Uint32(b))
	return at, at < len(t.rows)+t.hidden
}

func (t *Table[R]) checksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE([]byte(t.schema.name)), crc32.IEEETable, b)
}
