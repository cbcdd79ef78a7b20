// Package exam examines a merchant's program: it plays the life of orders against
// the program and the mock gateway, with faults on the way, and then compares what
// the program believes with what the gateway knows. docs/exam.md describes the
// hooks and the claims.
//
// A [Scenario] is a script. It runs on a [Stage], which starts and stops the
// program: package outside has one for processes and sockets, mockserver/exam one
// for a handler in a synctest bubble.
package exam

import (
	"context"
	"net/http"
	"time"
)

// Claim is a property that a program must have.
type Claim string

// The claims of docs/exam.md.
const (
	ChargedOnce    Claim = "C1"  // an order is charged once
	RightCharge    Claim = "C2"  // with its amount, currency and method
	NothingLost    Claim = "C3"  // no payment is lost
	NothingMadeUp  Claim = "C4"  // no payment is invented
	ShippedOnce    Claim = "C5"  // goods leave once, if paid
	RefundedOnce   Claim = "C6"  // a refund happens once
	BooksAgree     Claim = "C7"  // refunds, chargebacks and status agree with the gateway's
	TrueAnswers    Claim = "C8"  // a definite response is true
	GenuineAccepts Claim = "C9"  // genuine events get through
	ForgedIgnored  Claim = "C10" // forgeries do nothing
	Restarts       Claim = "C11" // a restart needs no hands
)

// Hook is an optional hook of the program, or another ability that a scenario needs.
type Hook string

// What a scenario may need besides placing and reporting an order.
const (
	NeedsRefund        Hook = "refunds"
	NeedsTick          Hook = "tick"
	NeedsReturn        Hook = "return"
	NeedsSubscriptions Hook = "subscriptions"
	NeedsPayouts       Hook = "payouts"
	NeedsRestart       Hook = "restart"
)

// Scenario is one script.
type Scenario struct {
	Name   string
	About  string // what happens, in one line
	Claims []Claim
	Needs  []Hook

	play func(*Play)
}

// Stage runs the program.
type Stage interface {
	// Shop sends a request to the program. The host of the URL does not matter.
	Shop(r *http.Request) (*http.Response, error)
	// Kill ends the program at once, as a crash does. It returns when it has ended.
	Kill()
	// Restart starts it again, with what it had stored. The error says why it does
	// not respond.
	Restart(ctx context.Context) error
	// CanRestart reports whether the stage can restart the program.
	CanRestart() bool
	// Dead reports whether the program was killed and not started again.
	Dead() bool
	// Settle waits until nothing is in progress, and reports whether that was
	// reached. state reports whether something is in progress, and when the last
	// message ended.
	Settle(ctx context.Context, state func() (busy bool, last time.Time)) bool
	// Sleep waits in the program's time.
	Sleep(d time.Duration)
}

// Status is how a scenario ended.
type Status string

// How a scenario can end.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped" // what it needs is not offered, or its fault never happened
	NotRun  Status = "not run" // the time was up
)

// Finding is a claim that does not hold, and why.
type Finding struct {
	Claim Claim  `json:"claim"`
	Text  string `json:"text"`
}

// Outcome is the result of a scenario.
type Outcome struct {
	Scenario string        `json:"scenario"`
	About    string        `json:"about"`
	Claims   []Claim       `json:"claims"`
	Status   Status        `json:"status"`
	Why      string        `json:"why,omitempty"` // of a scenario that was skipped or not run
	Failures []Finding     `json:"failures,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
	Right    string        `json:"right,omitempty"` // since when the report was right: "at once", "after 10 min"
	Orders   []OrderBooks  `json:"orders"`
	Exchange []Message     `json:"exchange"`
	Took     time.Duration `json:"took_ns"`
}

// OrderBooks are both sides' view of an order at the end.
type OrderBooks struct {
	ID      string `json:"id"`
	Amount  int64  `json:"amount"` // in cents
	Shop    string `json:"shop"`
	Gateway string `json:"gateway"`
}

// Direction says who sends a message.
type Direction string

// The directions of a message.
const (
	ToGateway Direction = "->" // a request of the program
	ToShop    Direction = "<-" // a webhook
	Hooked    Direction = ">>" // the exam calls a hook
	Event     Direction = "**" // something happens, such as a payment or a crash
)

// Message is one line of a scenario's exchange.
type Message struct {
	At        time.Duration `json:"at_ns"` // since the beginning of the scenario
	Direction Direction     `json:"direction"`
	What      string        `json:"what"`
	Fault     string        `json:"fault,omitempty"`
	Answer    string        `json:"answer,omitempty"` // "201", "reset"

	began time.Time
}

// Result is the result of an exam.
type Result struct {
	Version   string        `json:"version"` // of the module
	Command   []string      `json:"command,omitempty"`
	Commit    string        `json:"commit,omitempty"` // of the program, if it is in a git work tree
	Dialect   string        `json:"dialect"`
	Seed      uint64        `json:"seed"`
	Started   time.Time     `json:"started"`
	Took      time.Duration `json:"took_ns"`
	Starts    int           `json:"starts"`
	Slow      bool          `json:"slow,omitempty"` // the program starts slowly, so fewer crashes were tried
	Outcomes  []Outcome     `json:"outcomes"`
	Random    int           `json:"random,omitempty"`   // random schedules that passed
	Warnings  []string      `json:"warnings,omitempty"` // that belong to no scenario
	Output    string        `json:"output,omitempty"`   // the end of what the program printed
	ProgramIs string        `json:"program,omitempty"`  // "exited", if it did so by itself
}

// Count returns how many scenarios ended with the status.
func (r *Result) Count(s Status) (n int) {
	for _, o := range r.Outcomes {
		if o.Status == s {
			n++
		}
	}
	return n
}
