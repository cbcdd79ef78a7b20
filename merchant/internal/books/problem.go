package books

import (
	"fmt"
	"iter"
	"strconv"
	"time"
)

// Raised is what a record remembers of a problem about it or one of its refunds. It is
// raised once as long as it holds, and again if it holds again later.
type Raised struct {
	Kind   ProblemKind
	Record string // the ID of the record that it is about
	About  About
	Detail string // distinguishes it from others of its kind
	Times  int    // how often it was raised
	Over   bool
	At     time.Time // of the last reading or outcome that showed it
}

// raisedOf yields the problems of a kind about the ledger's record that were ever raised.
func (l *ledger) raisedOf(kind ProblemKind) iter.Seq[*Raised] {
	return func(yield func(*Raised) bool) {
		for i := range *l.raised {
			if r := &(*l.raised)[i]; r.Kind == kind && r.Record == l.record && r.About == l.about && !yield(r) {
				return
			}
		}
	}
}

// find returns the problem about the ledger's record, or nil if it was never raised.
func (l *ledger) find(kind ProblemKind, detail string) *Raised {
	for r := range l.raisedOf(kind) {
		if r.Detail == detail {
			return r
		}
	}
	return nil
}

// problem raises a problem about the record, unless it was raised before and is not over.
// detail distinguishes it from others of its kind. The key of one that holds again has a
// count, because keys are unique.
func (l *ledger) problem(kind ProblemKind, detail, format string, args ...any) {
	r := l.find(kind, detail)
	switch {
	case r == nil:
		*l.raised = append(*l.raised, Raised{Kind: kind, Record: l.record, About: l.about, Detail: detail})
		r = &(*l.raised)[len(*l.raised)-1]
	case !r.Over:
		if l.now.After(r.At) {
			r.At = l.now
		}
		return
	}
	r.Times, r.Over, r.At = r.Times+1, false, l.now
	key := string(kind) + "/" + l.record + "/" + detail
	if l.about != AboutCharge {
		key = string(kind) + "/" + string(l.about) + "/" + l.record + "/" + detail
	}
	if r.Times > 1 {
		key += "/" + strconv.Itoa(r.Times)
	}
	l.raise(key, kind, format, args...)
}

// raise raises a problem about the record that holds for good.
func (l *ledger) raise(key string, kind ProblemKind, format string, args ...any) {
	l.Outcome = Changed
	l.Problems = append(l.Problems, Problem{Key: key, Kind: kind, Record: l.record, About: l.about, Text: fmt.Sprintf(format, args...)})
}

// over says that the problems of a kind about the record do not hold any more.
func (l *ledger) over(kind ProblemKind) {
	open := false
	for r := range l.raisedOf(kind) {
		open = open || !r.Over
		r.Over = true
	}
	if open {
		l.ended(kind)
	}
}

// ended says that the problems of a kind about the record do not hold any more, also those
// that the caller has raised.
func (l *ledger) ended(kind ProblemKind) {
	l.Outcome = Changed
	l.Over = append(l.Over, Over{Kind: kind, Record: l.record, About: l.about})
}

// overIfLater is over, if this reading is later than all that showed the problems.
func (l *ledger) overIfLater(kind ProblemKind) {
	for r := range l.raisedOf(kind) {
		if !r.Over && !l.now.After(r.At) {
			return
		}
	}
	l.over(kind)
}

// hold raises a problem about the record if it holds, and says that it is over if not. If
// it holds with another detail, the earlier one is over.
func (l *ledger) hold(holds bool, kind ProblemKind, detail, format string, args ...any) {
	if r := l.find(kind, detail); !holds || r == nil || r.Over {
		l.over(kind)
	}
	if holds {
		l.problem(kind, detail, format, args...)
	}
}

// aboutRefund runs do for a refund of the ledger's charge.
func (l *ledger) aboutRefund(id string, do func()) {
	own := l.record
	l.record, l.about = id, AboutRefund
	do()
	l.record, l.about = own, AboutCharge
}

// wasRaised reports whether a problem of a kind about the record was ever raised.
func (l *ledger) wasRaised(kind ProblemKind) bool {
	for range l.raisedOf(kind) {
		return true
	}
	return false
}
