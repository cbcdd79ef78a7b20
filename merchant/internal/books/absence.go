package books

import "time"

// Witness is who said that the gateway does not show something.
type Witness uint8

// The witnesses.
const (
	ByList      Witness = iota + 1 // a list without it
	ByNotFound                     // a 404
	ByForbidden                    // a 403: a permission that the key lacks, or a firewall
	ByOlder                        // a reading that is older than what an event or a response announced
)

// Verdict is what an absence means.
type Verdict uint8

// The verdicts.
const (
	// NotYet: the gateway may lag. Ask again after the wait, or earlier: after it the same
	// absence is Gone.
	NotYet Verdict = iota

	// Gone: it is a fact. The thing is not there or, if the witness is ByOlder, what was
	// announced has been overtaken: the event is older than the reading.
	Gone

	// Silent: it proves nothing, however long one waits. A person or another witness must
	// decide.
	Silent
)

// Absence decides what it means that the gateway does not show something. Everything that
// reads a list, a 404, a 403 or a reading that is older than an event asks it.
//
// age is how long ago the thing is known to have existed or changed: a transaction since
// its creation, an event since it was received, a refund since it was confirmed; if that is
// not known, since it was first found missing. lag is how long the gateway may lag behind
// itself. A negative age means that a clock is ahead, and counts as 0: so no wait is longer
// than the lag.
func Absence(by Witness, age, lag time.Duration) (v Verdict, wait time.Duration) {
	switch by {
	case ByList, ByNotFound, ByOlder:
	default: // ByForbidden, or an unknown witness
		return Silent, 0
	}
	lag = max(lag, 0)
	switch {
	case age < 0:
		return NotYet, lag
	case age < lag:
		return NotYet, lag - age
	}
	return Gone, 0
}
