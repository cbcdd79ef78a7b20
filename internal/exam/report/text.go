package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/gateway-go/gateway/internal/exam"
)

// Text writes the result while the exam runs.
type Text struct {
	To       io.Writer
	Report   Report // its Result needs what [Report.Try] reads
	Total    int    // scenarios
	Progress bool   // To is a terminal
	Color    bool
}

// The colors, as terminals number them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	gray   = "90"
)

func (t *Text) paint(color, text string) string {
	if !t.Color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (t *Text) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.To, format, args...) }

const wipe = "\r\x1b[K" // the line of the terminal

// Started shows which scenario runs.
func (t *Text) Started(s *exam.Scenario) {
	if !t.Progress {
		return
	}
	place := fmt.Sprintf("%d/%d ", len(t.Report.Outcomes)+1, t.Total)
	if len(t.Report.Outcomes) >= t.Total { // random ones follow the list
		place = ""
	}
	t.printf("%s%s%s", wipe, place, s.Name)
}

const nameWidth = 26

// Ended writes the line of a scenario, and the exchange of a failure.
func (t *Text) Ended(o exam.Outcome) {
	if t.Progress {
		t.printf(wipe)
	}
	name := pad(clean(o.Scenario), nameWidth)
	switch o.Status {
	case exam.Passed:
		end := ""
		if o.Right != "" && o.Right != "at once" {
			end = "  right " + clean(o.Right)
		}
		t.printf("%s   %s %s%s\n", t.paint(green, "ok"), name, seconds(o.Took), end)
	case exam.Skipped:
		t.printf("%s %s %s\n", t.paint(gray, "skip"), name, clean(o.Why))
	case exam.NotRun:
		t.printf("%s %s not run: %s\n", t.paint(yellow, "----"), name, clean(o.Why))
	case exam.Failed:
		t.printf("%s %s  %s\n", t.paint(red, "FAIL"), clean(o.Scenario), strings.TrimRight(join(claims(&o))+"   "+clean(about(&o)), " "))
		t.printf("%s", t.Report.failure(&o, "  "))
	}
	t.Report.Outcomes = append(t.Report.Outcomes, o)
	for _, w := range o.Warnings {
		t.printf("     %s\n", t.paint(yellow, "warning: "+clean(w)))
	}
}

// Finish writes the end.
func (t *Text) Finish() {
	if t.Progress {
		t.printf(wipe)
	}
	for _, w := range t.Report.Warnings {
		t.printf("%s\n", t.paint(yellow, "warning: "+clean(w)))
	}
	if t.Report.ProgramIs != "" {
		t.printf("the program: %s\n", clean(t.Report.ProgramIs))
	}
	t.printf("\n%s\n", t.Report.summary())
	switch t.Report.Code() {
	case Passed:
		t.printf("\nWhat this does not show:\n")
		for _, l := range limits {
			t.printf("- %s\n", l)
		}
	case Incomplete:
		text := "incomplete: nothing failed, but no scenario passed"
		if t.Report.Count(exam.NotRun) > 0 {
			text = "incomplete: nothing failed, but not everything was run; a longer -budget may be needed"
		}
		t.printf("%s\n", t.paint(yellow, text))
	}
}

// failure is the explanation of a failure: the exchange, what is wrong, both sides and
// how to repeat it.
func (r Report) failure(o *exam.Outcome, indent string) string {
	return explain(o, minimized(o, readsOf(r.Outcomes, o.Scenario)), indent, r.Try(o.Scenario))
}

// Explain returns the explanation of one outcome, in which a white box says how to repeat
// it.
func Explain(o *exam.Outcome, try string) string { return explain(o, minimized(o, nil), "  ", try) }

func explain(o *exam.Outcome, lines []line, indent, try string) string {
	var b strings.Builder
	width := 28
	for _, l := range lines {
		if l.Answer != "" {
			width = max(width, utf8.RuneCountInString(l.Text())+1)
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(&b, "%s     %s %s\n", indent, pad("shop", width), "gateway")
	}
	for _, l := range lines {
		text := indent + string(l.Direction) + "   " + pad(l.Text(), width)
		switch {
		case l.Answer == "":
		case l.Direction == exam.ToGateway:
			text += "         " + clean(l.Answer)
		default:
			text += " " + clean(l.Answer)
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	for _, f := range o.Failures {
		fmt.Fprintf(&b, "%s=>   %s %s\n", indent, f.Claim, clean(f.Text))
	}
	for _, s := range o.Orders {
		fmt.Fprintf(&b, "%s     %s: shop %s; gateway %s\n", indent, clean(s.ID), clean(s.Shop), clean(s.Gateway))
	}
	fmt.Fprintf(&b, "%s     try it: %s\n", indent, try)
	return b.String()
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}
