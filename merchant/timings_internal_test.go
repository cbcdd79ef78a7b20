package merchant

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// The guide has one table of the timings that are rules: it shows what the code does.
func TestTheGuideShowsTheTimings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/merchant.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "\n## Timings\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.TrimSpace(cells[1])] = cells[2]
		}
	}
	delete(rows, "what")
	delete(rows, "---")
	var defaults Config
	_ = defaults.set() // it lacks accounts
	every, within := (&core{shared: &shared{cfg: defaults}}).walking()
	for name, values := range map[string][]any{
		"Comparison of what is paid":                     {defaults.CompareEvery, days(defaults.CompareFor), spec.MaxPageSize},
		"… by a read, although a list shows nothing new": {days(reread)},
		"Lists of what is paid":                          {every, within.Truncate(time.Hour), every / walkShare},
		"… that are no use":                              {days(unlisted), days(distrust)},
		"Search for disputes and chargebacks":            {disputesEvery, taskAgain},
		"… of what waits for the payer or the bank":      {soonest, latest},
		"… of a charge that failed":                      {days(giveUp), days(day)},
		"… of a refund that is confirmed and not shown":  {soonestRefund, soonest, 24 * time.Hour, days(giveUp)},
		"… of a subscription":                            {defaults.CompareEvery, soonest, pastDue},
		"… that failed":                                  {(&comparer{m: &core{shared: &shared{cfg: defaults}}}).lease()},
		"… that found the order locked":                  {busyWait},
		"Comparisons at a time, of each account":         {slots, fresh, routineSlots, routineAll},
		"An event that no reading confirms":              {defaults.lag(), days(announcedFor)},
		"A resource that is not found":                   {days(missingFor), days(giveUp)},
		"The gateway shows less than is booked":          {24 * time.Hour},
		"A sale by link":                                 {defaults.lag()},
		"… while the list of subscriptions is forbidden": {days(forbiddenFor)},
		"Search for sales that no webhook reported":      {sweepEvery, days(recentSweep), days(deepSweepEvery), days(deepSweep)},
		"Adoption":                    {defaults.AdoptRate, defaults.Lease},
		"… of what can't be read":     {days(adoptFor), defaults.lag()},
		"Balance":                     {balanceEvery, balanceAgain},
		"What is not kept any longer": {keepEvery, keepAtOnce, keepPause, days(keepFailed)},
		"… of what events are about that matches nothing":                  {days(defaults.Keep.Unknown)},
		"The buyers of charges that a release before version 9 has stored": {defaults.AdoptRate, findAtOnce},
		"The sums of entries":           {totalEvery, ledger.TotalAtOnce, totalLook},
		"A callback":                    {defaults.CallbackTimeout, ledger.Pause(0), ledger.Pause(100), failedOften},
		"`Open`":                        {recognizing},
		"A fact whose callback is nil":  {skipAfter, days(skippedDays * day)},
		"A `COMMIT` without a response": {patience},
	} {
		row, ok := rows[name]
		require.True(t, ok, "the table lacks %q", name)
		delete(rows, name)
		for _, value := range values {
			assert.Regexp(t, `(^|[^0-9])`+written(value)+`([^0-9a-z]|$)`, row, name)
		}
	}
	assert.Empty(t, rows, "rows that no code has")
}

// days is a time that the table writes in days.
type days time.Duration

func written(value any) string {
	switch v := value.(type) {
	case days:
		return fmt.Sprintf("%d days?", time.Duration(v)/day)
	case time.Duration:
		for _, unit := range []struct {
			length time.Duration
			name   string
		}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
			if v >= unit.length {
				return fmt.Sprintf("%d %s", v/unit.length, unit.name)
			}
		}
	}
	return fmt.Sprint(value)
}

func TestWaitsGrowWithTheAge(t *testing.T) {
	t.Parallel()
	assert.Equal(t, time.Minute, growing(-time.Hour), "a clock that was set back")
	assert.Equal(t, time.Minute, growing(0))
	assert.Equal(t, time.Hour, growing(4*time.Hour))
	assert.Equal(t, 6*time.Hour, growing(1000*time.Hour))
	assert.Equal(t, ledger.Fresh, laneOf(-time.Hour))
	assert.Equal(t, ledger.Fresh, laneOf(time.Hour-1))
	assert.Equal(t, ledger.Open, laneOf(time.Hour))
}

// The guide lists the kinds of problems with the decisions that fit them.
func TestTheGuideListsTheProblems(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/merchant.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Problems\n")
	table, _, _ = strings.Cut(table, "\n## ")
	offered := make(map[string]string)
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for kind := range strings.SplitSeq(cells[1], ",") {
			offered[strings.Trim(kind, " `")] = cells[3]
		}
	}
	delete(offered, "problem")
	delete(offered, "---")
	for _, kind := range []ProblemKind{
		ProblemAmbiguous, ProblemOutcome, ProblemCallback, ProblemEvent, ProblemUnderpaid, ProblemOverpaid, ProblemPaidAgain, ProblemUnknownState,
		ProblemUnmatched, ProblemContested, ProblemContradiction, ProblemLower, ProblemCurrency, ProblemReversed, ProblemCancelRejected,
		ProblemRefundRejected, ProblemMissing, ProblemClosed, ProblemAdoption,
	} {
		row, ok := offered[string(kind)]
		assert.True(t, ok, "the table lacks %s", kind)
		delete(offered, string(kind))
		var names []string
		for _, d := range (&Problem{Kind: kind}).Decisions() {
			names = append(names, map[Decision]string{
				Applied: "`Applied`", SendAgain: "`SendAgain`", Abandon: "`Abandon`", Accept: "`Accept`", Retry: "`Retry`", Dismiss: "`Dismiss`",
			}[d])
		}
		assert.Equal(t, strings.Join(names, ", "), strings.TrimSpace(row), kind)
	}
	assert.Empty(t, offered, "kinds that no code has")
}

// A callback that is not passed on would be nil, and its facts would count as delivered.
func TestEachCallbackIsPassedOn(t *testing.T) {
	t.Parallel()
	given := Callbacks[int]{}
	for _, field := range reflect.ValueOf(&given).Elem().Fields() {
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value {
			return []reflect.Value{reflect.Zero(field.Type().Out(0))}
		}))
	}
	for is, field := range reflect.ValueOf(untyped(given)).Fields() {
		assert.False(t, field.IsNil(), is.Name)
	}
	assert.True(t, reflect.ValueOf(untyped(Callbacks[int]{})).IsZero(), "nil stays nil")
}
