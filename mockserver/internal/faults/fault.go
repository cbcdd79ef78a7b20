// Package faults injects failures of networks and servers: it defines which
// request fails, how, how often and with what probability.
package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/duration"
)

// Kind is the kind of a failure, as in the header X-Mock-Fault.
type Kind string

// The faults of requests.
const (
	Slow         Kind = "latency"            // the response is delayed
	Status       Kind = "status"             // an error is returned
	ResetBefore  Kind = "reset-before"       // the connection is reset, the request is not executed
	LoseResponse Kind = "lose-response"      // executed, then the connection is reset
	Truncate     Kind = "truncate"           // executed, the response is truncated
	EmptyBody    Kind = "empty-body"         // executed, the response has no body
	HTMLPage     Kind = "html-page"          // a proxy's error page is returned
	BadJSON      Kind = "bad-json"           // executed, the body is not JSON
	Hang         Kind = "hang-until-timeout" // no response
	UnknownEnum  Kind = "unknown-enum"       // executed, every status is unknown
	ExtraField   Kind = "extra-field"        // executed, every object has an extra member
	StaleRead    Kind = "stale-read"         // a read by id returns the previous version
	Lag          Kind = "lag"                // reads and lists show the state of some time ago
	Shape        Kind = "shape"              // executed, the response is spelled in another way
)

// The faults of webhooks.
const (
	DropWebhook      Kind = "drop-webhook"      // the webhook is not delivered
	DuplicateWebhook Kind = "duplicate-webhook" // the webhook is delivered twice
	DelayWebhook     Kind = "delay-webhook"     // the first attempt comes later, on the virtual clock
	CorruptSignature Kind = "corrupt-signature" // the first attempt's signature is wrong
	StaleTimestamp   Kind = "stale-timestamp"   // the first attempt's timestamp is too old
	ShapeWebhook     Kind = "shape-webhook"     // the body is spelled in another way
)

// The bodies of a Status.
const (
	BodyProblem = "problem" // the default
	BodyCoded   = "coded"   // {error, message, status}
	BodyTitled  = "titled"  // a problem whose title is its code
	BodyHTML    = "html"
	BodyEmpty   = "empty"
)

// DefaultCode is the code in the body of a Status that names none.
const DefaultCode = "MOCK_FAULT"

// maxCode is the maximum length of a code.
const maxCode = 64

// Fault is a failure, and when it happens.
type Fault struct {
	Kind       Kind
	Status     int           // of Status and HTMLPage
	Body       string        // of Status
	Code       string        // of Status, in its body; "" means DefaultCode
	RetryAfter time.Duration // the header of Status and HTMLPage; 0 for none
	Latency    time.Duration // wall time; of any fault for requests
	Delay      time.Duration // of DelayWebhook, on the virtual clock
	Behind     time.Duration // of Lag, on the virtual clock
	Forms      string        // of Shape and ShapeWebhook: names of forms, separated by commas
	Applied    bool          // the request is executed before a Status, HTMLPage or Hang

	Account     string        // whose requests or webhooks; "" for all accounts
	On          string        // the operation or kind of event; "" for any
	For         time.Duration // how long it happens, on the virtual clock; 0 for no limit
	Times       int           // the maximum number of hits; 0 for no limit
	Nth         int           // hit only the nth match, from 1; 0 for every match
	Probability float64       // 0 and 1 mean always
	Never       bool          // a probability of 0
}

// Webhook reports whether the fault is for webhooks.
func (k Kind) Webhook() bool {
	return slices.Contains([]Kind{DropWebhook, DuplicateWebhook, DelayWebhook, CorruptSignature, StaleTimestamp, ShapeWebhook}, k)
}

// kinds lists every fault.
func kinds() []Kind {
	return []Kind{
		Slow, Status, ResetBefore, LoseResponse, Truncate, EmptyBody, HTMLPage, BadJSON, Hang, UnknownEnum, ExtraField,
		StaleRead, Lag, Shape, DropWebhook, DuplicateWebhook, DelayWebhook, CorruptSignature, StaleTimestamp, ShapeWebhook,
	}
}

// Validate checks the fault.
func (f Fault) Validate() error {
	switch {
	case !slices.Contains(kinds(), f.Kind):
		return fmt.Errorf("fault %q is unknown; use one of %s", f.Kind, names())
	case (f.Kind == Status || f.Kind == HTMLPage) && (f.Status < 200 || f.Status > 599):
		return fmt.Errorf("fault %s: the status must be 200 to 599, not %d", f.Kind, f.Status)
	case f.Kind == Slow && f.Latency <= 0, f.Kind == DelayWebhook && f.Delay <= 0:
		return fmt.Errorf("fault %s: the duration must be above zero, such as %s=800ms", f.Kind, f.Kind)
	case f.Kind == Lag && f.Behind <= 0:
		return fmt.Errorf("fault %s: the duration must be above zero, such as %s=2m", f.Kind, f.Kind)
	case f.For < 0:
		return fmt.Errorf("fault %s: for must be a duration above zero, such as 10m", f.Kind)
	case f.Latency < 0 || f.Delay < 0 || f.RetryAfter < 0:
		return errors.New("a duration of a fault must not be negative")
	case f.Kind.Webhook() && f.Latency > 0:
		return fmt.Errorf("fault %s: latency applies to requests only; use delay-webhook to delay webhooks", f.Kind)
	case f.Body != "" && !slices.Contains([]string{BodyProblem, BodyCoded, BodyTitled, BodyHTML, BodyEmpty}, f.Body):
		return fmt.Errorf("fault %s: the body must be problem, coded, titled, html or empty, not %q", f.Kind, f.Body)
	case f.Body != "" && f.Kind != Status, f.Code != "" && f.Kind != Status:
		return fmt.Errorf("fault %s: only status has a body and a code of its own", f.Kind)
	case f.RetryAfter > 0 && f.Kind != Status && f.Kind != HTMLPage:
		return fmt.Errorf("fault %s: only status and html-page have a Retry-After header", f.Kind)
	case f.Code != "" && f.Body != "" && !slices.Contains([]string{BodyProblem, BodyCoded, BodyTitled}, f.Body):
		return fmt.Errorf("fault status: only the bodies problem, coded and titled have a code, not %s", f.Body)
	case !validCode(f.Code):
		return fmt.Errorf("fault status: the code must be 1 to %d capital letters, digits and underscores, "+
			"such as INSUFFICIENT_FUNDS, not %q", maxCode, f.Code)
	case f.Kind == Shape || f.Kind == ShapeWebhook:
		if err := f.Kind.checkForms(f.Forms); err != nil {
			return err
		}
	}
	return f.validateOccurrence()
}

func (f Fault) validateOccurrence() error {
	switch {
	case f.Times < 0 || f.Nth < 0:
		return errors.New("times and nth of a fault must not be negative")
	case f.Probability < 0 || f.Probability > 1:
		return errors.New("the probability of a fault must be 0 to 1")
	}
	return nil
}

// validCode reports whether a code has the form of the API's codes.
func validCode(code string) bool {
	return len(code) <= maxCode && !strings.ContainsFunc(code, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	})
}

// Names lists every fault.
func Names() []string {
	list := make([]string, len(kinds()))
	for i, k := range kinds() {
		list[i] = string(k)
	}
	return list
}

// names lists every fault, for error messages.
func names() string { return strings.Join(Names(), ", ") }

// Parse reads the text form of a fault, as in the header X-Mock-Fault:
// "status=503; retry-after=2", "lose-response", "latency=800ms", "status=409;
// body=coded; code=INSUFFICIENT_FUNDS".
func Parse(text string) (Fault, error) {
	var f Fault
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if name == "" {
			continue
		}
		if err := set(&f, name, value); err != nil {
			return Fault{}, err
		}
	}
	if f.Kind == "" {
		return Fault{}, fmt.Errorf("the fault must be named: use one of %s", names())
	}
	return f, f.Validate()
}

// set applies one name=value of the text form.
func set(f *Fault, name, value string) error {
	var err error
	switch name {
	case "retry-after":
		f.RetryAfter, err = seconds(value)
	case "body":
		f.Body = value
	case "code":
		f.Code = value
		if value == "" {
			err = errors.New("it needs a value, such as code=INSUFFICIENT_FUNDS")
		}
	case "applied":
		f.Applied = true
	case string(Slow):
		f.Latency, err = duration.Parse(value)
		if f.Kind == "" {
			f.Kind = Slow
		}
	default:
		err = setKind(f, Kind(name), value)
	}
	if err != nil {
		return fmt.Errorf("fault %q: %w", name, err)
	}
	return nil
}

func setKind(f *Fault, k Kind, value string) error {
	if k == Status && f.Kind == HTMLPage { // "html-page; status=503"
		return setStatus(f, value)
	}
	if f.Kind != "" && f.Kind != Slow {
		if !slices.Contains(kinds(), k) {
			return fmt.Errorf("%s has no such member; use one of applied, retry-after, body, code and latency", f.Kind)
		}
		return fmt.Errorf("only one fault is allowed, and %s was named before", f.Kind)
	}
	f.Kind = k
	var err error
	switch {
	case k == Status:
		return setStatus(f, value)
	case k == HTMLPage:
		f.Status = http.StatusBadGateway
	case k == DelayWebhook:
		f.Delay, err = duration.Parse(value)
	case k == Lag:
		f.Behind, err = duration.Parse(value)
	case k == Shape || k == ShapeWebhook:
		f.Forms = strings.ReplaceAll(value, " ", "")
	case value != "":
		return fmt.Errorf("takes no value, but got %q", value)
	}
	return err
}

func setStatus(f *Fault, value string) (err error) {
	f.Status, err = strconv.Atoi(value)
	return err
}

// seconds reads "2", "0.5" or a duration.
func seconds(value string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && n < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	return duration.Parse(value)
}

// String returns the text form; [Parse] reads it.
func (f Fault) String() string {
	text := string(f.Kind)
	switch f.Kind {
	case Slow:
		text += "=" + f.Latency.String()
	case Status:
		text += "=" + strconv.Itoa(f.Status)
	case DelayWebhook:
		text += "=" + f.Delay.String()
	case Lag:
		text += "=" + f.Behind.String()
	case Shape, ShapeWebhook:
		text += "=" + f.Forms
	case HTMLPage:
		text += "; status=" + strconv.Itoa(f.Status)
	default: // the name is complete
	}
	if f.Body != "" {
		text += "; body=" + f.Body
	}
	if f.Code != "" {
		text += "; code=" + f.Code
	}
	if f.RetryAfter > 0 {
		text += "; retry-after=" + retryAfter(f.RetryAfter)
	}
	if f.Latency > 0 && f.Kind != Slow {
		text += "; latency=" + f.Latency.String()
	}
	if f.Applied {
		text += "; applied"
	}
	return text
}

// retryAfter formats a duration in seconds, as in the header Retry-After.
func retryAfter(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
