// Package report shows the result of an exam: as text while it runs, and as JUnit,
// JSON and HTML files.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gateway-go/gateway/internal/exam"
)

// Report is a result with what its readers need to repeat it.
type Report struct {
	*exam.Result
	Flags  []string // of the command line, without those that select scenarios or name files
	Strict bool     // a warning fails the exam
}

// The exit codes of an exam that was played.
const (
	Passed     = 0
	Failed     = 1
	Incomplete = 3
)

// Code returns the exit code. An exam in which no scenario passed shows nothing, so
// that it is incomplete even if every scenario was skipped for a good reason.
func (r Report) Code() int {
	switch {
	case r.Count(exam.Failed) > 0, r.Strict && r.warnings() > 0:
		return Failed
	case r.Count(exam.NotRun) > 0, r.Count(exam.Passed)+r.Random == 0:
		return Incomplete
	}
	return Passed
}

func (r Report) warnings() int {
	n := len(r.Warnings)
	for _, o := range r.Outcomes {
		n += len(o.Warnings)
	}
	return n
}

// JSON writes the whole result.
func (r Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r.Result)
}

// Try returns the command that plays a scenario again.
func (r Report) Try(scenario string) string {
	args := append([]string{"mockgateway", "exam", "-only", scenario, "-seed", strconv.FormatUint(r.Seed, 10)}, r.Flags...)
	if len(r.Command) > 0 {
		args = append(append(args, "--"), r.Command...)
	}
	return quoted(args)
}

// quoted returns a command as one types it in a shell.
func quoted(args []string) string {
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = clean(arg)
		if arg == "" || strings.ContainsFunc(arg, special) {
			list[i] = "'" + strings.ReplaceAll(list[i], "'", `'\''`) + "'"
		}
	}
	return strings.Join(list, " ")
}

// special reports whether a character may need quotes in a shell.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:=,+@%", r)
}

// summary is the last line of the text.
func (r Report) summary() string {
	parts := []string{}
	for _, s := range []exam.Status{exam.Passed, exam.Failed, exam.Skipped, exam.NotRun} {
		n := r.Count(s)
		if n == 0 && s != exam.Passed {
			continue
		}
		parts = append(parts, strconv.Itoa(n)+" "+string(s)+r.reasons(s))
	}
	text := plural(len(r.Outcomes), "scenario") + ": " + strings.Join(parts, ", ")
	if r.Random > 0 {
		text += "; " + plural(r.Random, "random schedule") + " passed"
	}
	if n := r.warnings(); n > 0 {
		text += "; " + plural(n, "warning")
	}
	text += "; " + seconds(r.Took)
	if r.Starts > 0 {
		text += ", " + plural(r.Starts, "start")
	}
	if r.Slow {
		text += "; the program starts slowly, so fewer crashes were tried"
	}
	return text
}

// reasons returns why scenarios have a status, with counts if there are several.
func (r Report) reasons(s exam.Status) string {
	count := map[string]int{}
	for _, o := range r.Outcomes {
		if why, _, _ := strings.Cut(o.Why, ":"); o.Status == s && why != "" {
			count[why]++
		}
	}
	list := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	switch len(list) {
	case 0:
		return ""
	case 1:
		return " (" + clean(list[0]) + ")"
	}
	for i, why := range list {
		list[i] = fmt.Sprintf("%d: %s", count[why], clean(why))
	}
	return " (" + strings.Join(list, "; ") + ")"
}

// Meaning says what a claim demands.
func Meaning(c exam.Claim) string {
	switch c {
	case exam.ChargedOnce:
		return "an order is charged once"
	case exam.RightCharge:
		return "the right amount, currency and method are charged"
	case exam.NothingLost:
		return "no payment is lost"
	case exam.NothingMadeUp:
		return "no payment is invented"
	case exam.ShippedOnce:
		return "goods leave once"
	case exam.RefundedOnce:
		return "a refund happens once"
	case exam.BooksAgree:
		return "the books agree"
	case exam.TrueAnswers:
		return "what it told the buyer is true"
	case exam.GenuineAccepts:
		return "genuine events get through"
	case exam.ForgedIgnored:
		return "forgeries do nothing"
	case exam.Restarts:
		return "a restart needs no hands"
	}
	return ""
}

// claims returns the claims that failed, each once.
func claims(o *exam.Outcome) []exam.Claim {
	var list []exam.Claim
	for _, f := range o.Failures {
		if !slices.Contains(list, f.Claim) {
			list = append(list, f.Claim)
		}
	}
	slices.SortFunc(list, func(a, b exam.Claim) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // C2 before C10
	})
	return list
}

func join(claims []exam.Claim) string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = string(c)
	}
	return strings.Join(list, " ")
}

// about names the orders of an outcome.
func about(o *exam.Outcome) string {
	switch len(o.Orders) {
	case 0:
		return ""
	case 1:
		return "order " + o.Orders[0].ID + ", " + reais(o.Orders[0].Amount)
	}
	return strconv.Itoa(len(o.Orders)) + " orders"
}

// limits are printed with a pass.
var limits = []string{
	"With these faults, one or two at a time, the program's reports agreed with the mock gateway. That is not what the warehouse did: a hook that lies passes.",
	"A crash between two commits with no message between them is only sampled. A failing database, two processes behind a balancer, a full disk, load and jumping clocks are not tried.",
	"A program without the hook tick is examined for webhooks and retries, not for reconciliation.",
	"The mock is not your gateway: probe it, and pass its report with -profile.",
}

var sequence = regexp.MustCompile("\x1b(?:\\[[0-9;:?]*[ -/]*[@-~]|[@-Z\\\\-_])") // of a terminal

// clean returns one line without control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, sequence.ReplaceAllString(s, ""))
}

// Lines returns what a program printed without control characters and empty lines at
// its ends.
func Lines(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, clean(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// reais writes cents: 1990 is 19.90.
func reais(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s" }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
