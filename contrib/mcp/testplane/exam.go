package testplane

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gateway-go/gateway/internal/exam"
	"github.com/gateway-go/gateway/internal/exam/outside"
	"github.com/gateway-go/gateway/internal/exam/report"
	"github.com/gateway-go/gateway/mockserver"
)

type examInput struct {
	Only []string `json:"only,omitempty" jsonschema:"names of scenarios or claims, such as duplicate or C1; all if absent"`
	Skip []string `json:"skip,omitempty" jsonschema:"names of scenarios or claims"`
	Seed *uint64  `json:"seed,omitempty" jsonschema:"repeats the ids and amounts of an exam"`
}

type examResult struct {
	outcome

	Passed    int           `json:"passed"`
	Failed    int           `json:"failed"`
	Skipped   int           `json:"skipped"`
	NotRun    int           `json:"not_run" jsonschema:"the time was up"`
	Seed      uint64        `json:"seed"`
	Scenarios []examOutcome `json:"scenarios"`
}

type examOutcome struct {
	Scenario string        `json:"scenario"`
	About    string        `json:"about"`
	Status   string        `json:"status"`
	Failures []examFinding `json:"failures,omitempty"`
}

type examFinding struct {
	Claim string `json:"claim"`
	Means string `json:"means" jsonschema:"what the claim demands"`
}

const (
	examBudget = 3 * time.Minute
	examGrace  = 3 * time.Second
	examHang   = 3 * time.Second
	examStart  = 30 * time.Second
	maxLines   = 60 // of an exchange
)

// runExam examines the program of the configuration. Neither the program nor its
// arguments come from the caller.
func (p *Plane) runExam(ctx context.Context, in examInput) (out examResult, err error) {
	if len(p.cfg.Exam.Command) == 0 {
		return out, &ToolError{
			Code: "NOT_CONFIGURED", Detail: "this server was started without -exam-command", Docs: "gateway://docs/agents",
			DoNext: `Ask the user to add -exam-command "COMMAND" to the server's configuration: the command that starts the program.`,
		}
	}
	if !p.exam.TryLock() {
		return out, mistake("an exam is running: wait for its result")
	}
	defer p.exam.Unlock()
	scenarios, err := exam.Scenarios(in.Only, in.Skip) //nolint:contextcheck // a list: nothing runs yet
	if err != nil {
		return out, mistake("only, skip: %v", err)
	}
	if len(scenarios) == 0 {
		return out, mistake("only and skip leave no scenario")
	}
	cfg := outside.Config{
		Command: p.cfg.Exam.Command, Path: cmp.Or(p.cfg.Exam.Path, "/webhooks"), Scenarios: scenarios,
		Key: testKey + "exam_" + random(), Secret: "whsec_" + random(), Seed: rand.Uint64N(1e6), //nolint:gosec // easy to type again
		Budget: cmp.Or(p.cfg.Exam.Budget, examBudget), Grace: examGrace, Hang: examHang, StartTimeout: examStart,
	}
	if in.Seed != nil {
		cfg.Seed = *in.Seed
	}
	if p.cfg.Exam.Dialect == "live" {
		cfg.Options = []mockserver.Option{mockserver.WithDialect(mockserver.Live)}
	}
	mask := report.NewMask(cfg.Key, cfg.Secret)
	result, err := outside.Run(ctx, cfg)
	var start *outside.StartError
	if errors.As(err, &start) {
		var failed examResult
		failed.quote("program.error", mask.Text(start.Error()))
		failed.quote("program.output", tail(mask.Text(start.Output)))
		failed.Failure = &ToolError{
			Code: "PROGRAM_NOT_STARTED", Detail: "the program can't be examined: it does not start, does not respond, or has no hooks",
			DoNext: "Read its output under untrusted. docs/exam.md describes the hooks that it must serve if EXAM is 1.",
		}
		return failed, errShown
	}
	if err != nil {
		return out, err
	}
	mask.Result(result)
	return examView(result), nil
}

// errShown means that the result has its failure already.
var errShown = errors.New("the exam was not played")

func random() string {
	var b [12]byte
	_, _ = cryptorand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// tail returns the end of a program's output, which says why it ended.
func tail(text string) string {
	runes := []rune(text)
	return string(runes[max(0, len(runes)-maxQuote):])
}

func examView(r *exam.Result) (out examResult) {
	out.Passed, out.Failed, out.Skipped, out.NotRun = r.Count(exam.Passed), r.Count(exam.Failed), r.Count(exam.Skipped), r.Count(exam.NotRun)
	out.Seed, out.Scenarios = r.Seed, []examOutcome{}
	for i, o := range r.Outcomes {
		v := examOutcome{Scenario: o.Scenario, About: o.About, Status: string(o.Status)}
		at := fmt.Sprintf("scenarios[%d]", i)
		out.quote(at+".why", o.Why) // may quote the program
		for _, f := range o.Failures {
			v.Failures = append(v.Failures, examFinding{string(f.Claim), report.Meaning(f.Claim)})
			out.quote(at+".failure", f.Text)
		}
		if o.Status == exam.Failed {
			for _, m := range o.Exchange[:min(len(o.Exchange), maxLines)] {
				out.quote(at+".exchange", string(m.Direction)+" "+m.What+" "+m.Fault+" "+m.Answer)
			}
			for _, b := range o.Orders {
				out.quote(at+".books", "shop "+b.Shop+"; gateway "+b.Gateway)
			}
		}
		out.Scenarios = append(out.Scenarios, v)
	}
	switch {
	case out.Failed > 0:
		out.DoNext = "The first failed scenario shows where the program loses money: fix it, then run it alone with only and the same seed."
	case out.NotRun > 0 || out.Passed == 0:
		out.DoNext = "The exam is incomplete: run the scenarios that were not run, with only."
	default:
		out.DoNext = "Nothing failed. Run it with the live dialect too, and probe the real gateway before going live."
	}
	return out
}
