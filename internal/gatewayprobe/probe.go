// Package gatewayprobe tests a gateway's sandbox against docs/assumptions.md.
//
// Where the interface document, the specification of the gateway's HTTP API, is silent,
// this project had to choose. Each choice is a row of docs/assumptions.md, and most rows
// can be tested from outside: the probe sends a few requests for each and reports whether
// the gateway agrees with the row or differs from it. If the probe can't tell, it reports
// why. Pass a report to mockserver.WithProfile, and the mock gateway behaves
// like the probed one. Compare a later run with the profile to see what has changed.
//
//	report, err := gatewayprobe.Run(ctx, gatewayprobe.Config{
//		BaseURL: "https://sandbox.gateway.example",
//		Key:     gateway.NewSecret(os.Getenv("GATEWAY_API_KEY")),
//	})
//
// Probe a sandbox only. The probe creates transactions, customers, subscriptions,
// checkout links and small transfers, whose references begin with "probe-". It
// cancels the transfers and subscriptions; no route deletes the others.
package gatewayprobe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/profile"
)

// Config sets which gateway to probe and how. BaseURL and Key are required.
type Config struct {
	BaseURL string         // of the sandbox, without a path: https, or http to a loopback host
	Key     gateway.Secret // an API key of the sandbox

	// KnownSandbox accepts a key and a host that don't look like a sandbox's.
	// A key that begins with sk_live_ is still rejected.
	KnownSandbox bool

	// Only limits the run to these rows of docs/assumptions.md; if empty, all rows run.
	Only []string

	// Rate is the maximum number of requests per second; 0 means 5.
	Rate float64

	// MaxRequests is the maximum number of requests; 0 means 1000. Rows beyond it are
	// reported as not tested.
	MaxRequests int

	// CardTokens are tokens of the payment element, by the outcome of a charge: "ok",
	// "refused" and "3ds". Each is used once. For an outcome without one, the probe
	// tries the mock gateway's test tokens.
	CardTokens map[string][]string

	// WebhookURL is the public URL of Receiver. Without one, rows about webhooks are not
	// tested.
	WebhookURL string
	Receiver   *Receiver

	// WebhookWait is how long the probe waits for a delivery; 0 means 15 seconds.
	WebhookWait time.Duration

	// Profile is what the gateway is compared with; the zero Profile is
	// docs/assumptions.md, in the document dialect.
	Profile Profile

	// HTTPClient sends the requests; nil means a client with a timeout of 30 seconds.
	// Redirects are not followed.
	HTTPClient *http.Client

	// Progress, if not nil, is called after each row.
	Progress func(Result)
}

// Defaults of [Config].
const (
	DefaultRate        = 5
	DefaultMaxRequests = 1000
	DefaultWebhookWait = 15 * time.Second
)

// Step is how a run tests one row of docs/assumptions.md.
type Step struct {
	ID     string `json:"id"`              // of the row
	Claim  string `json:"claim"`           // the row's text
	Does   string `json:"does,omitzero"`   // what the probe sends
	Reason string `json:"reason,omitzero"` // why the row can't be tested from outside

	// Setting reports whether mockserver.WithProfile can set the row.
	Setting bool `json:"setting,omitzero"`
}

// Steps lists what [Run] does, in the same order. It sends nothing. If only is not
// empty, it lists only those rows.
func Steps(only ...string) []Step {
	var list []Step
	tests := experiments()
	for _, a := range docs.Assumptions() {
		if len(only) > 0 && !slices.Contains(only, a.ID) {
			continue
		}
		list = append(list, Step{ID: a.ID, Claim: a.Text, Does: tests[a.ID].does, Reason: reasons()[a.ID], Setting: profile.Sets(a.ID)})
	}
	return list
}

// ErrNotSandbox means that the gateway may not be a sandbox. Nothing was created
// there.
var ErrNotSandbox = errors.New("not a sandbox")

// Run probes a gateway. The error is nil if the run went through all rows, even
// if some could not be tested. If ctx ends, Run returns its error and a report
// of the rows that were finished. If the run can't start, for example because of
// [ErrNotSandbox], the report is nil and nothing was created.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	p, err := newProbe(cfg)
	if err != nil {
		return nil, fmt.Errorf("gatewayprobe: %w", err)
	}
	report := &Report{Gateway: p.base.String(), Started: time.Now().UTC()}
	if err := p.preflight(ctx); err != nil {
		return nil, fmt.Errorf("gatewayprobe: %w", err)
	}
	tests := experiments()
	for _, step := range Steps(cfg.Only...) {
		result := Result{ID: step.ID, Claim: step.Claim}
		if test, found := tests[step.ID]; found {
			p.try(ctx, test, &result)
		} else {
			result.Verdict, result.Why = CannotTell, step.Reason
		}
		if ctx.Err() != nil {
			return p.finish(report), fmt.Errorf("gatewayprobe: stopped at %s: %w", step.ID, context.Cause(ctx))
		}
		report.Results = append(report.Results, result)
		if cfg.Progress != nil {
			cfg.Progress(result)
		}
	}
	return p.finish(report), nil
}

// preflight checks whether the gateway is a sandbox: only a sandbox allows a status
// to be set. The transaction does not exist, so nothing changes.
func (p *probe) preflight(ctx context.Context) error {
	t := p.trial(ctx)
	r := t.try(http.MethodPut, "/v2/transactions/"+unknownID, object{"status": "paid"})
	switch {
	case r.err != nil:
		return fmt.Errorf("the gateway can't be reached: %w", r.err)
	case r.status == http.StatusUnauthorized:
		return errors.New("the gateway rejects the API key (401)")
	case r.status == http.StatusForbidden:
		return fmt.Errorf("%w: the gateway does not allow this key to set a status (403), as in production", ErrNotSandbox)
	case r.status == http.StatusNotFound, r.invalid():
		return nil
	}
	return fmt.Errorf("%w: setting the status of an unknown transaction returns %s", ErrNotSandbox, r.summary())
}

func (p *probe) finish(report *Report) *Report {
	report.Ended, report.Requests = time.Now().UTC(), p.requests
	without := report.Profile().NotReproduced()
	for i := range report.Results {
		result := &report.Results[i]
		result.NotReproduced = result.Verdict != CannotTell && slices.Contains(without, result.ID)
	}
	return report
}

// try runs an experiment and fills in its result.
func (p *probe) try(ctx context.Context, test experiment, result *Result) {
	t := p.trial(ctx)
	defer func() {
		t.tidy(ctx)
		result.Exchanges = p.masked(t.exchanges)
	}()
	reading, why := t.outcome(test)
	if why != "" {
		result.Verdict, result.Why = CannotTell, p.line(why)
		return
	}
	result.Reading, result.Verdict = p.line(reading), Agrees
	if expected := p.cfg.Profile.reading(result.ID, test.dialect); result.Reading != expected {
		result.Verdict, result.Expected = Differs, expected
	}
}

// outcome runs an experiment until it is decided.
func (t *trial) outcome(test experiment) (reading, why string) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case decided:
			reading, why = end.reading, end.why
		default:
			panic(end)
		}
	}()
	if test.webhook {
		t.needsReceiver()
	}
	if test.run != nil {
		return test.run(t), ""
	}
	test.check(t)
	return assumed, ""
}

// decided ends an experiment early, with its reading or the reason why it can't
// tell.
type decided struct{ reading, why string }

// newRun returns the prefix of a run's references.
func newRun() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	return "probe-" + id.String()[:8], nil
}
