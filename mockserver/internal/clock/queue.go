package clock

import "slices"

// queue is a binary heap of timers, ordered by time and then by arrival. It
// stores values rather than pointers, since a million open payments mean a
// million timers.
type queue struct {
	items []item
	count uint64 // number of timers added so far
}

type item struct {
	Timer

	seq uint64
}

func compare(a, b item) int {
	if d := a.At.Compare(b.At); d != 0 {
		return d
	}
	if a.seq < b.seq {
		return -1
	}
	return 1
}

func (q *queue) less(i, j int) bool { return compare(q.items[i], q.items[j]) < 0 }

func (q *queue) push(t Timer) {
	t.At = t.At.UTC()
	q.insert(item{t, q.count})
	q.count++
}

func (q *queue) insert(it item) {
	if len(q.items) == cap(q.items) {
		q.items = slices.Grow(q.items, len(q.items)) // doubles it; append alone would grow a long queue in small steps and copy it five times
	}
	q.items = append(q.items, it)
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

func (q *queue) pop() item {
	first, last := q.items[0], len(q.items)-1
	q.items[0] = q.items[last]
	q.items[last] = item{}
	q.items = q.items[:last]
	q.down(0)
	return first
}

func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.items) {
			return
		}
		if right := child + 1; right < len(q.items) && q.less(right, child) {
			child = right
		}
		if !q.less(child, i) {
			return
		}
		q.items[i], q.items[child] = q.items[child], q.items[i]
		i = child
	}
}

func (q *queue) drop(match func(Timer) bool) {
	q.items = slices.DeleteFunc(q.items, func(it item) bool { return match(it.Timer) })
	for i := len(q.items)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *queue) list() []Timer {
	sorted := slices.SortedFunc(slices.Values(q.items), compare)
	timers := make([]Timer, len(sorted))
	for i, it := range sorted {
		timers[i] = it.Timer
	}
	return timers
}

// first returns the n timers that fire first. It compares only the candidates for
// the next position: the children of the timers already taken.
func (q *queue) first(n int) []Timer {
	var next []int // indexes of the candidates, the latest timer first
	add := func(i int) {
		if i < len(q.items) {
			at, _ := slices.BinarySearchFunc(next, i, func(a, b int) int { return compare(q.items[b], q.items[a]) })
			next = slices.Insert(next, at, i)
		}
	}
	add(0)
	var timers []Timer
	for len(next) > 0 && len(timers) < n {
		i := next[len(next)-1]
		next = next[:len(next)-1]
		timers = append(timers, q.items[i].Timer)
		add(2*i + 1)
		add(2*i + 2)
	}
	return timers
}
