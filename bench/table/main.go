// Table reads the output of go test -bench from its input and writes, for each
// benchmark, the medians of every contestant and their ratio to this project's.
//
//	go test -run '^$' -bench . -count 6 . | go run ./table
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// ours is the contestant that the others are compared with.
const ours = "gateway"

// samples holds the figures of one contestant, one of each per run.
type samples struct {
	nanoseconds, bytes, allocs []float64
	other                      map[string][]float64 // by unit
}

// group is one benchmark in one place: "Create/memory".
type group struct {
	name        string
	contestants []string
	samples     map[string]*samples
}

func main() {
	groups, err := read(os.Stdin)
	if err == nil {
		err = write(os.Stdout, groups)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func read(in io.Reader) ([]*group, error) {
	var groups []*group
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, contestant := split(fields[0])
		at := slices.IndexFunc(groups, func(g *group) bool { return g.name == name })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{name: name, samples: make(map[string]*samples)})
		}
		if err := groups[at].add(contestant, fields[2:]); err != nil {
			return nil, fmt.Errorf("%s: %w", fields[0], err)
		}
	}
	return groups, lines.Err()
}

// split takes BenchmarkCreate/memory/stripe-2 apart.
func split(s string) (name, contestant string) {
	s = strings.TrimPrefix(s, "Benchmark")
	if i := strings.LastIndexByte(s, '-'); i > 0 {
		s = s[:i] // GOMAXPROCS
	}
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, ours
	}
	return s[:i], s[i+1:]
}

func (g *group) add(contestant string, figures []string) error {
	s := g.samples[contestant]
	if s == nil {
		s = &samples{other: make(map[string][]float64)}
		g.samples[contestant] = s
		g.contestants = append(g.contestants, contestant)
	}
	for i := 0; i+1 < len(figures); i += 2 {
		value, err := strconv.ParseFloat(figures[i], 64)
		if err != nil {
			return err
		}
		switch figures[i+1] {
		case "ns/op":
			s.nanoseconds = append(s.nanoseconds, value)
		case "B/op":
			s.bytes = append(s.bytes, value)
		case "allocs/op":
			s.allocs = append(s.allocs, value)
		default:
			s.other[figures[i+1]] = append(s.other[figures[i+1]], value)
		}
	}
	return nil
}

func write(out io.Writer, groups []*group) error {
	for _, g := range groups {
		if _, err := fmt.Fprintf(out, "\n%s, %d runs\n\n| | time | bytes | allocations | time, %s = 1 |\n|---|---|---|---|---|\n",
			g.name, g.runs(), ours); err != nil {
			return err
		}
		base := 0.0
		if s := g.samples[ours]; s != nil {
			base = median(s.nanoseconds)
		}
		for _, name := range g.contestants {
			s := g.samples[name]
			ratio := "–"
			if base > 0 {
				ratio = strconv.FormatFloat(median(s.nanoseconds)/base, 'f', 2, 64)
			}
			if _, err := fmt.Fprintf(out, "| %s | %s | %s | %s | %s |\n",
				name+s.extra(), duration(median(s.nanoseconds)), count(s.bytes), count(s.allocs), ratio); err != nil {
				return err
			}
		}
	}
	return nil
}

// extra names the figures that only some benchmarks have: " (9323 req/s)".
func (s *samples) extra() string {
	var b strings.Builder
	for _, unit := range slices.Sorted(maps.Keys(s.other)) {
		_, _ = fmt.Fprintf(&b, " (%.0f %s)", median(s.other[unit]), unit)
	}
	return b.String()
}

func (g *group) runs() int {
	n := 0
	for _, s := range g.samples {
		n = max(n, len(s.nanoseconds))
	}
	return n
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// count writes the median of what not every benchmark counts.
func count(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return strconv.FormatFloat(median(values), 'f', 0, 64)
}

func duration(nanoseconds float64) string {
	switch {
	case nanoseconds >= 1e6:
		return fmt.Sprintf("%.1f ms", nanoseconds/1e6)
	case nanoseconds >= 1e3:
		return fmt.Sprintf("%.1f µs", nanoseconds/1e3)
	default:
		return fmt.Sprintf("%.0f ns", nanoseconds)
	}
}
