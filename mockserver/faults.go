package mockserver

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

// Fault is an injected failure. The function that creates it determines the
// failure; its methods set the details and limit when it occurs. A request can
// inject one into itself with the header X-Mock-Fault, in the form of
// [Fault.String].
//
//	gw.Faults.Add(mockserver.Status(503).RetryAfter(2 * time.Second).On("transactions.create").Times(1))
type Fault struct{ fault faults.Fault }

// Status returns an error without executing the request. The body is a problem;
// see [Fault.CodedBody] and [Fault.TitledBody].
func Status(status int) Fault { return Fault{faults.Fault{Kind: faults.Status, Status: status}} }

// Latency delays the response, in wall time.
func Latency(d time.Duration) Fault { return Fault{faults.Fault{Kind: faults.Slow, Latency: d}} }

// ResetBefore resets the connection without executing the request.
func ResetBefore() Fault { return kind(faults.ResetBefore) }

// LoseResponse executes the request and then resets the connection, but only if
// the request changed something.
func LoseResponse() Fault { return kind(faults.LoseResponse) }

// Truncate executes the request and cuts the response in the middle.
func Truncate() Fault { return kind(faults.Truncate) }

// EmptyBody executes the request and returns its status without a body.
func EmptyBody() Fault { return kind(faults.EmptyBody) }

// HTMLPage returns a proxy's error page, status 502, without executing the
// request.
func HTMLPage() Fault {
	return Fault{faults.Fault{Kind: faults.HTMLPage, Status: http.StatusBadGateway}}
}

// BadJSON executes the request and returns the first half of the body as if it
// were complete.
func BadJSON() Fault { return kind(faults.BadJSON) }

// HangUntilTimeout never responds and doesn't execute the request.
func HangUntilTimeout() Fault { return kind(faults.Hang) }

// UnknownEnum executes the request and replaces every state with an unknown one.
func UnknownEnum() Fault { return kind(faults.UnknownEnum) }

// ExtraField executes the request and adds an unknown member to every object of
// the response.
func ExtraField() Fault { return kind(faults.ExtraField) }

// StaleRead returns a resource as it was before its last change, like a lagging
// replica: 404 if that was its creation.
func StaleRead() Fault { return kind(faults.StaleRead) }

// Lag shows the state of d ago, on the virtual clock, in reads and lists, like a replica
// that is behind: what is younger is absent, and 404 if it is read by id. Webhooks don't
// lag. The gateway remembers the latest 1,024 changes of each kind of resource.
func Lag(d time.Duration) Fault { return Fault{faults.Fault{Kind: faults.Lag, Behind: d}} }

// Shape executes the request and spells the response in the given forms, which live
// gateways were seen to use: "fee-text", "amounts-text". [ShapeNames] lists them.
func Shape(forms ...string) Fault {
	return Fault{faults.Fault{Kind: faults.Shape, Forms: strings.Join(forms, ",")}}
}

// ShapeWebhook spells a webhook in the given forms: "kind-in-event", "fee-object".
// [WebhookShapeNames] lists them.
func ShapeWebhook(forms ...string) Fault {
	return Fault{faults.Fault{Kind: faults.ShapeWebhook, Forms: strings.Join(forms, ",")}}
}

// ShapeNames lists the forms of [Shape].
func ShapeNames() []string { return faults.FormNames(false) }

// WebhookShapeNames lists the forms of [ShapeWebhook].
func WebhookShapeNames() []string { return faults.FormNames(true) }

// DropWebhook drops a delivery.
func DropWebhook() Fault { return kind(faults.DropWebhook) }

// DuplicateWebhook makes a delivery twice, regardless of the response to the
// first.
func DuplicateWebhook() Fault { return kind(faults.DuplicateWebhook) }

// DelayWebhook delays the first attempt of a delivery on the virtual clock, so
// that other events overtake it.
func DelayWebhook(d time.Duration) Fault {
	return Fault{faults.Fault{Kind: faults.DelayWebhook, Delay: d}}
}

// CorruptSignature invalidates the signature of a delivery's first attempt.
func CorruptSignature() Fault { return kind(faults.CorruptSignature) }

// StaleTimestamp signs a delivery's first attempt with a timestamp outside the
// receiver's tolerance.
func StaleTimestamp() Fault { return kind(faults.StaleTimestamp) }

func kind(k faults.Kind) Fault { return Fault{faults.Fault{Kind: k}} }

// RetryAfter adds the header to the response of [Status] or [HTMLPage].
func (f Fault) RetryAfter(d time.Duration) Fault {
	f.fault.RetryAfter = d
	return f
}

// Code sets the machine-readable code in the body of [Status], such as
// "INSUFFICIENT_FUNDS", instead of MOCK_FAULT. docs/mockgateway.md lists the
// codes that the mock itself returns; any other code of capital letters,
// digits and underscores is accepted too.
func (f Fault) Code(code string) Fault {
	f.fault.Code = code
	return f
}

// TitledBody gives the response of [Status] a problem whose title is its code, such as
// PAYMENT_BLOCKED, and that has no other code, as some rejections of live gateways.
func (f Fault) TitledBody() Fault {
	f.fault.Body = faults.BodyTitled
	return f
}

// CodedBody gives the response of [Status] the body {error, message, status}.
func (f Fault) CodedBody() Fault {
	f.fault.Body = faults.BodyCoded
	return f
}

// NoBody gives the response of [Status] no body.
func (f Fault) NoBody() Fault {
	f.fault.Body = faults.BodyEmpty
	return f
}

// Latency delays any fault of a request, in wall time.
func (f Fault) Latency(d time.Duration) Fault {
	f.fault.Latency = d
	return f
}

// Applied executes the request before [Status], [HTMLPage] or
// [HangUntilTimeout] replaces its response.
func (f Fault) Applied() Fault {
	f.fault.Applied = true
	return f
}

// On limits a fault to an operation ("transactions.create", "transactions.*",
// "GET transactions.*", "GET *", "POST /v2/transactions", "/v2/transactions/{id}") or,
// for webhooks, to a kind of event ("transaction.paid", "transaction.*"). "" means any.
func (f Fault) On(what string) Fault {
	f.fault.On = what
	return f
}

// For ends a fault after d on the virtual clock. The default is no end.
func (f Fault) For(d time.Duration) Fault {
	f.fault.For = d
	if d <= 0 {
		f.fault.For = -1 // rejected by Add: 0 would be no end
	}
	return f
}

// Times limits how often a fault happens. The default is unlimited.
func (f Fault) Times(n int) Fault {
	f.fault.Times = n
	if n <= 0 {
		f.fault.Times = -1 // rejected by Add: 0 would be unlimited
	}
	return f
}

// Nth limits a fault to the nth match, counted from 1.
func (f Fault) Nth(n int) Fault {
	f.fault.Nth = n
	if n <= 0 {
		f.fault.Nth = -1 // rejected by Add: 0 would be each
	}
	return f
}

// Probability sets the share of matches that the fault hits, 0 to 1. The
// choice is deterministic with [WithSeed].
func (f Fault) Probability(p float64) Fault {
	f.fault.Probability = p
	f.fault.Never = p == 0
	return f
}

// String returns the fault in the form of the header X-Mock-Fault: "status=503;
// retry-after=2".
func (f Fault) String() string { return f.fault.String() }

// Faults are the pending faults of requests, and those of webhooks, which
// [Webhooks] can add too.
type Faults struct {
	set     *faults.Set
	account gateway.Secret // its key; empty for every account
}

// Add appends faults to the pending ones. If several match, the first one that
// fires takes effect. At most 1,000 may be pending; the oldest one that can't
// fire again makes room for a new one.
func (f Faults) Add(list ...Fault) error {
	var errs []error
	for _, fault := range list {
		fault.fault.Account = f.account.Reveal()
		_, err := f.set.Add(fault.fault)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Clear removes the faults of requests. Those of webhooks stay:
// [Webhooks.ClearFaults] removes them.
func (f Faults) Clear() { f.set.Clear(f.account.Reveal(), false) }

// FaultReport is a fault with its numbers of matches and hits.
type FaultReport struct {
	Fault Fault
	Seen  int // number of matching requests or webhooks
	Fired int // number of hits
}

// Reports lists the faults in the order in which they were added, including
// those that can't fire again.
func (f Faults) Reports() []FaultReport {
	var list []FaultReport
	for _, r := range f.set.Reports(f.account.Reveal()) {
		list = append(list, FaultReport{Fault: Fault{r.Fault}, Seen: r.Seen, Fired: r.Fired})
	}
	return list
}

// FaultNames lists the faults of requests and webhooks, as the header X-Mock-Fault and the
// control plane name them: "lose-response".
func FaultNames() []string { return faults.Names() }
