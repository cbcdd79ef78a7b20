package exam

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
)

// What a hook may return besides nil: an error matches them with [errors.Is]. Any other
// error means that the outcome is unknown (500), as after a crash.
var (
	// ErrRefused is a definite no (422): the buyer or the operator was told so, and nothing
	// may be charged, refunded or paid out.
	ErrRefused = errors.New("refused")
	// ErrPending means that the outcome is not known yet, and that the program finds out
	// (202). [gateway.ErrOutcomeUnknown] means the same.
	ErrPending = errors.New("not known yet")
	// ErrUnknown means that the program has never heard of what is asked for (404).
	ErrUnknown = errors.New("unknown")
)

// Order is an order that the program must place.
type Order struct {
	ID        string              `json:"id"`     // the exam's; placing it again is the buyer's second click
	Amount    int64               `json:"amount"` // in cents
	Currency  gateway.Currency    `json:"currency"`
	Method    gateway.Method      `json:"method"` // Pix, Voucher or CreditCard
	Buyer     gateway.BuyerParams `json:"buyer"`
	CardToken gateway.CardToken   `json:"card_token,omitzero"` // of a CreditCard
}

// Refund is a refund that the program must make.
type Refund struct {
	OrderID string `json:"-"`
	ID      string `json:"id"`     // another id is another refund, the same one the operator's second click
	Amount  int64  `json:"amount"` // in cents
}

// Status is what the program believes about an order.
type Status string

// The status of an order.
const (
	StatusPending           Status = "pending"
	StatusPaid              Status = "paid"
	StatusPartiallyRefunded Status = "partially_refunded"
	StatusRefunded          Status = "refunded"
	StatusChargedBack       Status = "charged_back"
	StatusFailed            Status = "failed"  // refused, expired or canceled: nothing more is expected
	StatusUnknown           Status = "unknown" // the program will find out
	StatusReview            Status = "review"  // a person must look
)

// Report is what the program believes about an order. Amounts are in cents.
type Report struct {
	ID          string   `json:"id"`
	Status      Status   `json:"status"`
	Paid        int64    `json:"paid"`             // everything that came in, not reduced by refunds
	Refunded    int64    `json:"refunded"`         // what went back by refunds
	ChargedBack int64    `json:"charged_back"`     // what a chargeback took
	Shipped     int64    `json:"shipped"`          // how often the goods were sent: counted where it happens
	Charges     []string `json:"charges,omitzero"` // ids of the transactions; may be empty
}

// Subscription is a subscription that the program must start.
type Subscription struct {
	ID        string              `json:"id"`
	Amount    int64               `json:"amount"` // in cents
	Interval  gateway.Interval    `json:"interval"`
	Buyer     gateway.BuyerParams `json:"buyer"`
	CardToken gateway.CardToken   `json:"card_token"`
}

// Payout is a payout that the program must make.
type Payout struct {
	ID     string         `json:"id"`
	Amount int64          `json:"amount"` // in cents
	PixKey gateway.PixKey `json:"pix_key"`
}

// Agreement is what the program believes about a subscription or a payout.
type Agreement struct {
	ID      string `json:"id"`
	Status  Status `json:"status"`
	Periods int64  `json:"periods"` // that are paid
	Paid    int64  `json:"paid"`    // in cents
}

// Hooks are the functions that an exam calls: each does what a page of the program does.
// As an [http.Handler] they are served below /exam/. Only Place and Report are required;
// a nil function is not offered: the response is 501.
//
// The same hooks serve an exam by the command mockgateway exam. A program must not mount
// them in production: mount them if the environment variable EXAM is 1. This package also
// links the mock gateway, so a program may import it in a file with a build tag only.
type Hooks struct {
	Place  func(ctx context.Context, o Order) error
	Report func(ctx context.Context, orderID string) (Report, error)
	Refund func(ctx context.Context, r Refund) error
	// Tick runs the periodic jobs. now is the gateway's time, by which they must measure
	// their waits: it may be hours after the last one.
	Tick func(ctx context.Context, now time.Time) error
	// Return is the success page, opened by the buyer's browser, which sends a status.
	Return func(ctx context.Context, orderID, status string) error

	Subscribe          func(ctx context.Context, s Subscription) error
	ReportSubscription func(ctx context.Context, id string) (Agreement, error)
	PayOut             func(ctx context.Context, p Payout) error
	ReportPayout       func(ctx context.Context, id string) (Agreement, error)
}

// ServeHTTP implements http.Handler.
func (h Hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "exam" {
		answer(w, http.StatusNotFound, "no hook has this path")
		return
	}
	var id string
	if len(parts) > 2 {
		id, parts[2] = parts[2], "*"
	}
	switch r.Method + " " + strings.Join(parts[1:], "/") {
	case "POST orders":
		act(w, r, h.Place)
	case "GET orders/*":
		show(w, r, id, h.Report)
	case "POST orders/*/refunds":
		act(w, r, about(h.Refund, func(f *Refund) { f.OrderID = id }))
	case "POST orders/*/return":
		act(w, r, h.opened(id))
	case "POST tick":
		act(w, r, h.ticked())
	case "POST subscriptions":
		act(w, r, h.Subscribe)
	case "GET subscriptions/*":
		show(w, r, id, h.ReportSubscription)
	case "POST payouts":
		act(w, r, h.PayOut)
	case "GET payouts/*":
		show(w, r, id, h.ReportPayout)
	default:
		answer(w, http.StatusNotFound, "no hook has this path")
	}
}

// about completes what a hook gets, unless there is none.
func about[T any](call func(context.Context, T) error, complete func(*T)) func(context.Context, T) error {
	if call == nil {
		return nil
	}
	return func(ctx context.Context, body T) error {
		complete(&body)
		return call(ctx, body)
	}
}

// page is the body of a success page.
type page struct {
	Status string `json:"status"`
}

func (h Hooks) opened(id string) func(context.Context, page) error {
	if h.Return == nil {
		return nil
	}
	return func(ctx context.Context, p page) error { return h.Return(ctx, id, p.Status) }
}

// clock is the body of a tick.
type clock struct {
	Now time.Time `json:"now"`
}

func (h Hooks) ticked() func(context.Context, clock) error {
	if h.Tick == nil {
		return nil
	}
	return func(ctx context.Context, c clock) error { return h.Tick(ctx, c.Now) }
}

const maxBody = 1 << 20

// act reads a body and calls a hook that does something.
func act[T any](w http.ResponseWriter, r *http.Request, do func(context.Context, T) error) {
	if do == nil {
		answer(w, http.StatusNotImplemented, "this hook is not offered")
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var body T
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, "the body: "+err.Error())
		return
	}
	if err := do(r.Context(), body); err != nil {
		answer(w, statusOf(err), err.Error())
		return
	}
	answer(w, http.StatusOK, "")
}

// show calls a hook that reports.
func show[T any](w http.ResponseWriter, r *http.Request, id string, read func(context.Context, string) (T, error)) {
	if read == nil {
		answer(w, http.StatusNotImplemented, "this hook is not offered")
		return
	}
	value, err := read(r.Context(), id)
	if err != nil {
		answer(w, statusOf(err), err.Error())
		return
	}
	respond(w, http.StatusOK, value)
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, ErrRefused): // even if it wraps the gateway's error
		return http.StatusUnprocessableEntity
	case errors.Is(err, ErrPending), errors.Is(err, gateway.ErrOutcomeUnknown):
		return http.StatusAccepted
	}
	return http.StatusInternalServerError
}

func answer(w http.ResponseWriter, status int, text string) {
	respond(w, status, map[string]string{"result": cmp.Or(text, "done")})
}

func respond(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
