package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/gateway-go/gateway/internal/exam"
)

//go:embed page.html
var page string

// view is what the page shows.
type view struct {
	Report
	Facts   []fact
	Summary string
	Title   string
	Tone    string // good, open or bad
	Failed  []failed
	Notes   []note
	Output  string
	Limits  []string
	Claims  []exam.Claim
}

type failed struct {
	exam.Outcome
	Claims []exam.Claim // that failed
	Lines  []line
	Try    string
}

// note has the warnings of a scenario, or of the exam if it has no name.
type note struct {
	Scenario string
	Warnings []string
}

// HTML writes one page that needs no other resource.
func (r Report) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"seconds": seconds, "reais": reais, "clean": clean, "meaning": Meaning, "tone": tone,
	}).Parse(page)
	if err != nil {
		return err
	}
	v := view{Report: r, Facts: r.facts(), Summary: r.summary(), Output: Lines(r.Output), Claims: []exam.Claim{
		exam.ChargedOnce, exam.RightCharge, exam.NothingLost, exam.NothingMadeUp, exam.ShippedOnce, exam.RefundedOnce,
		exam.BooksAgree, exam.TrueAnswers, exam.GenuineAccepts, exam.ForgedIgnored, exam.Restarts,
	}}
	switch r.Code() {
	case Passed:
		v.Title, v.Tone, v.Limits = "passed", "good", limits
	case Failed:
		v.Title, v.Tone = "failed", "bad"
	default:
		v.Title, v.Tone = "incomplete", "open"
	}
	if len(r.Warnings) > 0 {
		v.Notes = append(v.Notes, note{"", r.Warnings})
	}
	for _, o := range r.Outcomes {
		if o.Status == exam.Failed {
			v.Failed = append(v.Failed, failed{o, claims(&o), minimized(&o, readsOf(r.Outcomes, o.Scenario)), r.Try(o.Scenario)})
		}
		if len(o.Warnings) > 0 {
			v.Notes = append(v.Notes, note{o.Scenario, o.Warnings})
		}
	}
	var b strings.Builder // nothing is written if the template fails
	if err := t.Execute(&b, v); err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}

func tone(s exam.Status) string {
	switch s {
	case exam.Passed:
		return "good"
	case exam.Failed:
		return "bad"
	case exam.NotRun:
		return "open"
	default:
		return "done"
	}
}
