package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/internal/truncate"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

// Find lists the requests that match a pattern, oldest first; see
// [faults.Request.Matches]. "" matches all.
func (j *Journal) Find(account, pattern string) []Entry {
	return slices.DeleteFunc(j.Entries(account), func(e Entry) bool { return !e.Matches(pattern) })
}

// Matches reports whether a pattern matches the request; see [Journal.Find].
func (e *Entry) Matches(pattern string) bool {
	return pattern == "" || faults.Request{Operation: e.Operation, Method: e.Method, Path: e.Path}.Matches(pattern)
}

// maxNear is the maximum number of near misses.
const maxNear = 3

// NearMisses lists the requests that a pattern almost matches, closest first: those
// with another method, a mistyped path or a similar operation.
func (j *Journal) NearMisses(account, pattern string) []Entry {
	type miss struct {
		Entry

		distance int
	}
	var misses []miss
	for _, e := range j.Entries(account) {
		if e.Matches(pattern) {
			continue
		}
		if d := e.distance(pattern); d <= max(3, len(pattern)/3) {
			misses = append(misses, miss{e, d})
		}
	}
	slices.SortStableFunc(misses, func(a, b miss) int { return a.distance - b.distance })
	var near []Entry
	for _, m := range misses[:min(len(misses), maxNear)] {
		near = append(near, m.Entry)
	}
	return near
}

// Missing says in words that only some of n requests match a pattern, with those in flight
// and the near misses.
func (j *Journal) Missing(account, pattern string, n, found int) string {
	parts := []string{fmt.Sprintf("%d of %d requests match %q", found, n, pattern)}
	for _, part := range []struct {
		what string
		list []Entry
	}{{"in flight: ", j.InFlight(account, pattern)}, {"similar: ", j.NearMisses(account, pattern)}} {
		var names []string
		for _, e := range part.list[:min(len(part.list), maxNear)] {
			names = append(names, e.Method+" "+truncate.Ellipsis(e.Path, 100))
		}
		if len(names) > 0 {
			parts = append(parts, part.what+strings.Join(names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// distance returns the edit distance between a pattern and the part of the request
// that the pattern describes.
func (e *Entry) distance(pattern string) int {
	method, path, found := strings.Cut(pattern, " ")
	switch {
	case found:
		return editDistance(strings.ToUpper(method), e.Method) + editDistance(path, likeTemplate(path, e.Path))
	case strings.HasPrefix(pattern, "/"):
		return editDistance(pattern, likeTemplate(pattern, e.Path))
	default:
		return editDistance(pattern, e.Operation)
	}
}

// likeTemplate replaces the elements of a path that are parameters in the template
// with these parameters.
func likeTemplate(template, path string) string {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	for i := range min(len(want), len(got)) {
		if strings.HasPrefix(want[i], "{") || want[i] == "*" {
			got[i] = want[i]
		}
	}
	return strings.Join(got, "/")
}

// editDistance returns the Levenshtein distance of two strings.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			cost := diagonal
			if a[i] != b[k] {
				cost++
			}
			diagonal = row[k+1]
			row[k+1] = min(cost, row[k]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
