// Table runs the benchmarks in passes and writes, for each of them, the medians of every
// contestant and their ratio to this project's.
//
//	go run ./table -passes 15 -bench Create/memory -benchtime 2000x
//
// In each pass, the contestants run one after another, once each. The speed of a shared
// host changes from minute to minute, so only figures of the same pass are compared. The
// ratio is the median over all passes; half of the passes are within the range that
// follows it. The fastest passes, which other guests of the host disturbed least, are
// compared too.
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ours is the contestant that the others are compared with.
const ours = "gateway"

// samples holds the figures of one contestant, one per unit and pass.
type samples struct {
	nanoseconds, bytes, allocs []float64
	other                      map[string][]float64 // by unit
}

// group is one benchmark in one place: "Create/memory".
type group struct {
	name    string
	samples map[string]*samples // by contestant
}

func main() {
	passes := flag.Int("passes", 6, "how many times every contestant runs")
	bench := flag.String("bench", ".", "`regexp` of the benchmarks")
	benchtime := flag.String("benchtime", "300ms", "duration or count, such as 2000x, of a run")
	flag.Parse()
	if err := run(context.Background(), *passes, "-test.run=^$", "-test.bench="+*bench, "-test.benchtime="+*benchtime); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, passes int, args ...string) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "bench.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".") //nolint:gosec // a temporary directory
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go test -c: %w", err)
	}
	t := table{}
	for range passes {
		pass := exec.CommandContext(ctx, binary, args...) //nolint:gosec // the binary that was just built
		pass.Stderr = os.Stderr
		out, err := pass.Output()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if err := t.read(bytes.NewReader(out)); err != nil {
			return err
		}
	}
	return t.write(os.Stdout)
}

// table holds the benchmarks in the order in which they ran.
type table struct{ groups []*group }

// read adds the figures of a pass.
func (t *table) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, contestant := split(fields[0])
		at := slices.IndexFunc(t.groups, func(g *group) bool { return g.name == name })
		if at < 0 {
			at = len(t.groups)
			t.groups = append(t.groups, &group{name: name, samples: make(map[string]*samples)})
		}
		if err := t.groups[at].add(contestant, fields[2:]); err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
	}
	return lines.Err()
}

// split splits a name such as BenchmarkCreate/memory/stripe-2.
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

func (t *table) write(out io.Writer) error {
	for _, g := range t.groups {
		if _, err := fmt.Fprintf(out, "\n%s, %d passes\n\n| | time | bytes | allocations | time, %s = 1 | fastest pass | fastest, %s = 1 |\n|---|---|---|---|---|---|---|\n",
			g.name, g.passes(), ours, ours); err != nil {
			return err
		}
		for _, name := range g.contestants() {
			s := g.samples[name]
			if _, err := fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s |\n",
				name+s.extra(), duration(median(s.nanoseconds)), count(s.bytes), count(s.allocs), g.ratio(name),
				duration(slices.Min(s.nanoseconds)), g.ratioOfFastest(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// contestants returns this project, followed by the others in alphabetical order.
func (g *group) contestants() []string {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(g.samples)), func(name string) bool { return name == ours })
	if g.samples[ours] == nil {
		return others
	}
	return append([]string{ours}, others...)
}

// ratio compares a contestant with this project in each pass.
func (g *group) ratio(name string) string {
	base, s := g.samples[ours], g.samples[name]
	if base == nil || len(base.nanoseconds) != len(s.nanoseconds) {
		return "–"
	}
	ratios := make([]float64, len(s.nanoseconds))
	for i := range ratios {
		ratios[i] = s.nanoseconds[i] / base.nanoseconds[i]
	}
	slices.Sort(ratios)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(ratios), ratios[len(ratios)/4], ratios[len(ratios)*3/4])
}

// ratioOfFastest compares the fastest pass of a contestant with this project's, which
// may be a different one.
func (g *group) ratioOfFastest(name string) string {
	base := g.samples[ours]
	if base == nil {
		return "–"
	}
	return fmt.Sprintf("%.2f", slices.Min(g.samples[name].nanoseconds)/slices.Min(base.nanoseconds))
}

// extra returns the figures that only some benchmarks have: " (9323 req/s)".
func (s *samples) extra() string {
	var b strings.Builder
	for _, unit := range slices.Sorted(maps.Keys(s.other)) {
		_, _ = fmt.Fprintf(&b, " (%.0f %s)", median(s.other[unit]), unit)
	}
	return b.String()
}

func (g *group) passes() int {
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

// count formats the median of a figure that not every benchmark reports.
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
