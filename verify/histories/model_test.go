// Package histories_test compares the mock gateway with a second, small model of a
// charge and a payout, written from docs/states.md alone: in random sequences,
// and under concurrency with lost responses, where some order of the
// operations must explain every response.
package histories_test

import "fmt"

// input is one operation on the charge or the payout with one reference.
type input struct {
	Ref    string // "charge 3"
	Do     string
	Amount int64 // of a refund; 0 is the whole remainder
}

func (in input) String() string {
	if in.Do == "refund" {
		return fmt.Sprintf("%s of %d", in.Do, in.Amount)
	}
	return in.Do
}

// output is the caller's result. Unknown is a lost response.
type output struct {
	Unknown  bool
	OK       bool
	Status   string // of a create, a read and a payout's cancellation
	Refunded int64  // of a read
	Left     int64  // of a refund: the amount that can still be refunded
}

// rejected is a 400, 409 or 422, or a control that the state does not allow.
var rejected = output{}

const amount = 1990 // of every charge and payout

// state is the state of one reference. The zero value is before the create.
type state struct {
	Status   string
	Refunded int64
}

// dialect holds the differences between the two dialects.
type dialect struct{ payoutsRepeat bool }

// step returns the state and the response that the gateway must produce.
func (d dialect) step(payout bool, s state, in input) (state, output) {
	if payout {
		return d.stepPayout(s, in)
	}
	return stepCharge(s, in)
}

func stepCharge(s state, in input) (state, output) {
	switch {
	case in.Do == "create" && s.Status == "":
		s.Status = "pending"
		return s, output{OK: true, Status: "pending"}
	case in.Do == "read":
		return s, output{OK: true, Status: s.Status, Refunded: s.Refunded}
	case in.Do == "pay" && s.Status == "pending":
		s.Status = "paid"
		return s, output{OK: true}
	case in.Do == "cancel" && s.Status == "pending":
		s.Status = "canceled"
		return s, output{OK: true}
	case in.Do == "refund" && (s.Status == "paid" || s.Status == "partially_refunded"):
		left := amount - s.Refunded
		sum := in.Amount
		if sum == 0 {
			sum = left
		}
		if sum > left {
			return s, rejected
		}
		s.Refunded += sum
		s.Status = "partially_refunded"
		if sum == left {
			s.Status = "refunded"
		}
		return s, output{OK: true, Left: left - sum}
	default:
		return s, rejected
	}
}

// payoutMoves maps each transition of a payout to its new state, by starting
// state.
var payoutMoves = map[string]map[string]string{
	"cancel":  {"pending": "cancelled", "in_analysis": "cancelled"},
	"analyse": {"pending": "in_analysis"},
	"process": {"pending": "processing", "in_analysis": "processing"},
	"settle":  {"processing": "paid"},
	"fail":    {"processing": "error", "in_analysis": "error"},
}

func (d dialect) stepPayout(s state, in input) (state, output) {
	switch in.Do {
	case "create":
		if s.Status == "" {
			s.Status = "pending"
			return s, output{OK: true, Status: "pending"}
		}
		if d.payoutsRepeat { // the payout that was created first, in its current state
			return s, output{OK: true, Status: s.Status}
		}
		return s, rejected
	case "read":
		return s, output{OK: true, Status: s.Status}
	}
	to, ok := payoutMoves[in.Do][s.Status]
	if !ok {
		return s, rejected
	}
	s.Status = to
	if in.Do == "cancel" {
		return s, output{OK: true, Status: to}
	}
	return s, output{OK: true}
}
