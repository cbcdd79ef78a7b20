package explore_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver"
)

// maxFaults returns the maximum number of faults in a schedule of an operation.
// With three, each attempt of a call fails in every possible way, and each pair of
// failures is combined with everything that can happen around it. i is the operation's
// index.
func maxFaults(i int, op *operation) int {
	n, err := strconv.Atoi(os.Getenv("SCHEDULES"))
	switch {
	case err == nil:
		return n
	case os.Getenv("FULL_SIZE") != "" && explore.Sampled(i):
		return 3
	case op.variant:
		return 1
	default:
		return 2
	}
}

// TestEveryFaultSchedule runs every schedule of every operation. A schedule
// determines the fault of each request and the events around it.
func TestEveryFaultSchedule(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	t.Cleanup(func() {
		fmt.Printf("explored %d fault schedules of %d operations\n", total.Load(), len(operations()))
	})
	for i, op := range operations() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			found, runs := exploreOperation(t, &op, defect{}, maxFaults(i, &op))
			total.Add(int64(runs))
			t.Logf("%s: %d schedules, with up to %d faults each", op.name, runs, maxFaults(i, &op))
			if found != nil {
				t.Fatalf("schedule %d:\n%v", runs, found)
			}
		})
	}
}

// exploreOperation runs the schedules of an operation until one violates a
// property, or the defect's property if it names one. It returns that schedule,
// minimized.
func exploreOperation(t *testing.T, op *operation, d defect, faults int) (counterExample *schedule, runs int) {
	t.Helper()
	fails := func(s *schedule) bool {
		return slices.ContainsFunc(s.violations, func(text string) bool { return strings.Contains(text, d.finds) })
	}
	var tree explore.Tree
	var picks []int
	for more := true; more && picks == nil; {
		// Each mock gateway has its own bubble and gets only 1000 schedules, so that
		// it does not accumulate too much data.
		synctest.Test(t, func(t *testing.T) {
			server := mockserver.Run(t, append(op.gateway(), mockserver.WithConsole(false), mockserver.WithOpeningBalance(1e9))...)
			for range 1000 {
				run := tree.Next()
				if run == nil {
					more = false
					return
				}
				if fails(play(t, server, op, d, faults, run, tree.Runs())) {
					picks = run.Picks()
					return
				}
			}
		})
	}
	if picks == nil {
		return nil, tree.Runs()
	}
	synctest.Test(t, func(t *testing.T) {
		server := mockserver.Run(t, op.gateway()...)
		n := 0
		replay := func(run *explore.Run) *schedule {
			n++
			return play(t, server, op, d, faults, run, n)
		}
		picks = explore.Minimize(picks, func(run *explore.Run) bool { return fails(replay(run)) })
		counterExample = replay(explore.Replay(picks))
	})
	return counterExample, tree.Runs()
}

// play runs one schedule in account number n.
func play(t *testing.T, server *mockserver.Server, op *operation, d defect, faults int, run *explore.Run, n int) *schedule {
	t.Helper()
	s := &schedule{
		t: t, run: run, operation: op, faultsLeft: faults, defect: d,
		server: server, key: fmt.Sprintf("sk_test_%d", n), mock: server.Transport(), creators: map[string]int{},
	}
	s.order = order{amount: op.amount, reference: "order-1"}
	if op.name == "charge with a generated reference" || op.again != nil {
		s.order.reference = ""
	}
	if d.gateway != nil {
		s.mock = d.gateway(s.mock)
	}
	s.play()
	return s
}
