package mockserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

// Fault is something that goes wrong on purpose: one of the functions that
// return it says what, its methods say when. A request can ask for a fault of
// itself with the header X-Mock-Fault, in the words of [Fault.String].
//
//	gw.Faults.Add(mockserver.Status(503).RetryAfter(2 * time.Second).On("transactions.create").Times(1))
type Fault struct{ fault faults.Fault }

// Status answers an error instead of the gateway, which does nothing. The body
// is a problem; see [Fault.CodedBody].
func Status(status int) Fault { return Fault{faults.Fault{Kind: faults.Status, Status: status}} }

// Latency makes the answer late, in wall time.
func Latency(d time.Duration) Fault { return Fault{faults.Fault{Kind: faults.Slow, Latency: d}} }

// ResetBefore resets the connection before anything is carried out.
func ResetBefore() Fault { return kind(faults.ResetBefore) }

// LoseResponse carries the request out and resets the connection instead of
// answering. It does so only to requests that changed something.
func LoseResponse() Fault { return kind(faults.LoseResponse) }

// Truncate carries the request out and breaks off in the middle of the answer.
func Truncate() Fault { return kind(faults.Truncate) }

// EmptyBody carries the request out and answers its status without a body.
func EmptyBody() Fault { return kind(faults.EmptyBody) }

// HTMLPage answers with the error page of a proxy, status 502, instead of the
// gateway, which does nothing.
func HTMLPage() Fault {
	return Fault{faults.Fault{Kind: faults.HTMLPage, Status: http.StatusBadGateway}}
}

// BadJSON carries the request out and answers half of the body as if it were
// whole.
func BadJSON() Fault { return kind(faults.BadJSON) }

// HangUntilTimeout never answers, and does nothing.
func HangUntilTimeout() Fault { return kind(faults.Hang) }

// UnknownEnum carries the request out and answers states that no version of
// the interface knows.
func UnknownEnum() Fault { return kind(faults.UnknownEnum) }

// ExtraField carries the request out and adds an unknown member to every
// object of the answer.
func ExtraField() Fault { return kind(faults.ExtraField) }

// StaleRead answers a read by id as before the record's last change, as a
// replica does that lags: 404 where that was its creation.
func StaleRead() Fault { return kind(faults.StaleRead) }

// DropWebhook makes a delivery vanish.
func DropWebhook() Fault { return kind(faults.DropWebhook) }

// DuplicateWebhook makes a delivery twice, the second time whatever the answer
// to the first.
func DuplicateWebhook() Fault { return kind(faults.DuplicateWebhook) }

// DelayWebhook makes the first attempt of a delivery later, on the virtual
// clock, so that other events overtake it.
func DelayWebhook(d time.Duration) Fault {
	return Fault{faults.Fault{Kind: faults.DelayWebhook, Delay: d}}
}

// CorruptSignature makes the signature of a delivery's first attempt wrong.
func CorruptSignature() Fault { return kind(faults.CorruptSignature) }

// StaleTimestamp signs a delivery's first attempt well, with a moment outside
// the receiver's window.
func StaleTimestamp() Fault { return kind(faults.StaleTimestamp) }

func kind(k faults.Kind) Fault { return Fault{faults.Fault{Kind: k}} }

// RetryAfter adds the header to the answer of [Status] or [HTMLPage].
func (f Fault) RetryAfter(d time.Duration) Fault {
	f.fault.RetryAfter = d
	return f
}

// Code sets the machine-readable code in the body of [Status], in place of
// MOCK_FAULT: "INSUFFICIENT_FUNDS". docs/mockgateway.md lists those that the
// mock itself returns; any other of capital letters, digits and underscores is
// accepted too.
func (f Fault) Code(code string) Fault {
	f.fault.Code = code
	return f
}

// CodedBody gives the answer of [Status] the body {error, message, status}.
func (f Fault) CodedBody() Fault {
	f.fault.Body = faults.BodyCoded
	return f
}

// NoBody gives the answer of [Status] no body.
func (f Fault) NoBody() Fault {
	f.fault.Body = faults.BodyEmpty
	return f
}

// Latency makes any fault of a request late, in wall time.
func (f Fault) Latency(d time.Duration) Fault {
	f.fault.Latency = d
	return f
}

// Applied lets the gateway carry the request out before [Status], [HTMLPage]
// or [HangUntilTimeout] take its answer's place.
func (f Fault) Applied() Fault {
	f.fault.Applied = true
	return f
}

// On limits a fault to an operation ("transactions.create", "transactions.*",
// "POST /v2/transactions", "/v2/transactions/{id}") or, of webhooks, to a kind
// of event ("transaction.paid", "transaction.*"). "" is any.
func (f Fault) On(what string) Fault {
	f.fault.On = what
	return f
}

// Times limits how often a fault happens. Without it there is no end.
func (f Fault) Times(n int) Fault {
	f.fault.Times = n
	if n <= 0 {
		f.fault.Times = -1 // refused by Add: 0 would be without end
	}
	return f
}

// Nth lets a fault happen to the nth that matches only, counted from 1.
func (f Fault) Nth(n int) Fault {
	f.fault.Nth = n
	if n <= 0 {
		f.fault.Nth = -1 // refused by Add: 0 would be each
	}
	return f
}

// Probability lets a fault happen to some of those that match, 0 to 1. The
// choice repeats exactly with [WithSeed].
func (f Fault) Probability(p float64) Fault {
	f.fault.Probability = p
	f.fault.Never = p == 0
	return f
}

// String returns what goes wrong in the form of the header X-Mock-Fault:
// "status=503; retry-after=2".
func (f Fault) String() string { return f.fault.String() }

// Faults are those that wait for requests, and, where added here or by
// [Webhooks], those that wait for webhooks.
type Faults struct {
	set     *faults.Set
	account gateway.Secret // its key; empty for every account
}

// Add puts faults behind those that wait already. Where several match, the
// first that fires wins. At most 1,000 may wait; the oldest one that will not
// happen again makes room for a new one.
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

// FaultReport is a fault that waits and what has become of it.
type FaultReport struct {
	Fault Fault
	Seen  int // requests or webhooks that matched
	Fired int // those that it hit
}

// Reports lists the faults in the order in which they were added, those that
// will not happen again among them.
func (f Faults) Reports() []FaultReport {
	var list []FaultReport
	for _, r := range f.set.Reports(f.account.Reveal()) {
		list = append(list, FaultReport{Fault: Fault{r.Fault}, Seen: r.Seen, Fired: r.Fired})
	}
	return list
}
