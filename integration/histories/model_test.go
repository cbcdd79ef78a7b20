// Package histories compares what the mock gateway does with a second, small model of
// a charge and of a payout, written from docs/states.md and nothing else: in random
// sequences, and under concurrency with lost responses, where a history must have an
// order of its operations that explains every response.
package histories_test

import "fmt"

// input is one operation on the charge or the payout with one reference.
type input struct {
	Ref    string // "charge 3"
	Do     string
	Amount int64 // of a refund; 0 is all that is left
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
	Left     int64  // of a refund: what can still be refunded
}

// rejected is a 409 or 422, or a control that the state does not allow.
var rejected = output{}

const amount = 1990 // of every charge and payout

// state is that of one reference. The zero value is before the create.
type state struct {
	Status   string
	Refunded int64
}

// dialect has the differences of the two dialects.
type dialect struct{ payoutsRepeat bool }

// step returns what the gateway has to do.
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

// payoutMoves are where the moves of a payout lead, by the state that they start from.
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
		if d.payoutsRepeat { // the payout that was made first, as it is now
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
