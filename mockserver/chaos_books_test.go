package mockserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clear ends the faults of TestChaos and logs how often each occurred.
func (s *storm) clear(t *testing.T) {
	t.Helper()
	took := time.Since(s.began)
	reports := s.gw.Faults.Reports()
	s.gw.Faults.Clear()

	attempts := 0
	verdicts := map[verdict]int{}
	for _, o := range s.outcomes {
		verdicts[o.verdict]++
		attempts += o.attempts
	}
	// The first fault was evaluated for every create.
	assert.Equal(t, reports[0].Seen, attempts, "a request arrived that its caller did not count, or vice versa")
	var what strings.Builder
	for _, r := range reports {
		assert.Positive(t, r.Fired, "%s never happened", r.Fault)
		fmt.Fprintf(&what, "\n%7d × %s", r.Fired, r.Fault)
	}
	t.Logf("%d calls in %d requests and %s:%s", len(s.outcomes), attempts, took.Round(time.Second), &what)

	sum := 0
	for _, v := range []verdict{toldCreated, toldRecovered, toldDuplicate, toldRefused, toldUnknown} {
		assert.Positive(t, verdicts[v], v)
		t.Logf("%7d %s", verdicts[v], v)
		sum += verdicts[v]
	}
	require.Equal(t, len(s.outcomes), sum, "a call has no known result")
}

// read reads the gateway's books. Each entry must exist once, and the entries
// must add up to the balance.
func (s *storm) read(t *testing.T) {
	t.Helper()
	s.books = make(map[string]entry, len(s.outcomes))
	cost := int64(0)
	for e, err := range s.service.all(t.Context(), s.client) {
		require.NoError(t, err)
		_, twice := s.books[e.reference]
		require.False(t, twice, "%s is there twice", e.reference)
		s.books[e.reference] = e
		cost += e.cost
	}
	require.Equal(t, -cost, balance(t, s.gw))
}

// compareBooks compares what the calls returned with the books.
func (s *storm) compareBooks(t *testing.T) {
	t.Helper()
	s.read(t)
	calls, creators := map[string]int{}, map[string]int{}
	for _, o := range s.outcomes {
		require.NotEmpty(t, o.sent, "%s, without a reference: %v", o.verdict, o.err)
		if o.reference != "" {
			require.Equal(t, o.reference, o.sent)
		}
		calls[o.sent]++
		if o.verdict == toldCreated {
			creators[o.sent]++
			require.Equal(t, 1, creators[o.sent], "%s was created for two callers", o.sent)
		}
	}
	for reference := range s.books {
		require.Positive(t, calls[reference], "no caller created %s", reference)
	}
	for _, o := range s.outcomes {
		e, there := s.books[o.sent]
		switch o.verdict {
		case toldCreated, toldRecovered, toldDuplicate:
			require.True(t, there, "%s is missing, but its call returned: %s", o.sent, o.verdict)
		case toldRefused:
			require.False(t, there && calls[o.sent] == 1, "%s is there, but its call returned: %v", o.sent, o.err)
		case toldUnknown: // either is correct
		}
		if o.id != "" {
			require.Equal(t, e.id, o.id, o.sent)
			// An unreadable response may name a resource that another call
			// created.
			require.True(t, e.amount == o.amount || o.verdict == toldUnknown, o.sent)
		}
	}
}

// settle repeats, with its reference, each call whose outcome is unknown or
// that was rejected. After that every order must exist once.
func (s *storm) settle(t *testing.T) {
	t.Helper()
	orders := map[string]bool{}
	for _, o := range s.outcomes {
		orders[o.sent] = true
		if o.verdict != toldUnknown && o.verdict != toldRefused {
			continue
		}
		want := toldCreated
		if _, there := s.books[o.sent]; there {
			want = toldDuplicate
		}
		again := s.create(t, job{o.sent, o.amount})
		require.Equal(t, want, again.verdict, "%s: %v", o.sent, again.err)
		s.books[o.sent] = entry{}
	}
	s.read(t)
	for reference := range orders {
		_, there := s.books[reference]
		require.True(t, there, "%s is missing", reference)
	}
	require.Len(t, s.books, len(orders))
	t.Logf("%7d orders, each there once", len(orders))
}
