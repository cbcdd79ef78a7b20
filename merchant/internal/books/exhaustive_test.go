package books_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
)

// apply is books.ApplyTransaction, or a defective one.
type apply func(books.Books, books.Reading[gateway.Transaction]) (books.Books, books.Result)

// history is what a series of readings made of the books.
type history struct {
	books.Books
	problems
	facts []books.Fact
}

// read applies a reading. The error says which promise is broken.
func (h *history) read(do apply, s seen, at int) error {
	tx := s.built
	if tx == nil {
		tx = s.transaction("t1")
	}
	r := reading(tx, at)
	before, reported, raised := h.Books, slices.Clone(h.Charge.Reported), slices.Clone(h.Charge.Problems)
	after, result := do(h.Books, r)
	again, second := do(after, r)
	switch {
	case !slices.Equal(before.Charge.Reported, reported), !slices.Equal(before.Charge.Problems, raised):
		return errors.New("the records that were given have changed")
	case silent(result):
		return fmt.Errorf("nothing is said to have changed: %+v", result)
	case foreign(result, after.Order.Currency):
		return fmt.Errorf("an amount is in no sum, and no problem says so: %+v", result)
	case before.Order.Currency != "" && before.Order.Currency != after.Order.Currency:
		return fmt.Errorf("the currency of the order was %s, and is %s", before.Order.Currency, after.Order.Currency)
	case len(second.Facts)+len(second.Problems)+len(second.Over) != 0 || second.Outcome == books.Changed || !reflect.DeepEqual(again, after):
		return fmt.Errorf("not idempotent: %+v\nthen %+v: %+v", after, again, second)
	}
	for _, f := range result.Facts {
		if slices.ContainsFunc(h.facts, func(other books.Fact) bool { return other.Key == f.Key }) {
			return fmt.Errorf("the fact %s twice", f.Key)
		}
		if strings.Contains(f.Key, "//") || strings.HasSuffix(f.Key, "/") || f.Order != "o" || f.Record == "" || f.At.IsZero() {
			return fmt.Errorf("an incomplete fact: %+v", f)
		}
		h.facts = append(h.facts, f)
	}
	h.Books = after
	return cmp.Or(h.keep(result), h.check(&before), h.remembered(after.Charge.Problems), h.ofCharge(&after.Order, &after.Charge), s.check(&before, &after, &result, r.At))
}

// check compares the books before and after any reading.
func (h *history) check(before *books.Books) error {
	was, is := &before.Charge, &h.Charge
	settled := 0
	for _, f := range h.facts {
		if f.Kind == books.Settled {
			settled++
		}
	}
	net := int64(0)
	for _, f := range h.facts {
		if f.Currency == h.Order.Currency {
			net += f.Amount
		}
	}
	switch own := sums(h.facts, is.Currency); {
	case is.Paid < was.Paid || is.Refunded < was.Refunded || was.Fee != 0 && is.Fee != was.Fee:
		return fmt.Errorf("not monotonic: %+v\nthen %+v", was, is)
	case is.Left() < 0 || is.Disputed < 0 || is.Attributed != is.Refunded:
		return fmt.Errorf("impossible sums: %+v", is)
	case own != books.Order{Paid: is.Paid, Fee: is.Fee, Refunded: is.Refunded, Disputed: is.Disputed}:
		return fmt.Errorf("the entries add up to %+v, the charge is %+v", own, is)
	case money(h.Order) != sums(h.facts, h.Order.Currency) || h.Order.Net() != net:
		return fmt.Errorf("the entries add up to %+v and %d, the order is %+v", sums(h.facts, h.Order.Currency), net, h.Order)
	case before.Order.SettledBy != "" && before.Order.SettledBy != h.Order.SettledBy:
		return fmt.Errorf("settled by %q, then %q", before.Order.SettledBy, h.Order.SettledBy)
	case (settled == 1) != (h.Order.SettledBy == is.ID) || settled > 1:
		return fmt.Errorf("settled by %q, %d facts", h.Order.SettledBy, settled)
	case h.spare() && reportedAgain(h.facts, is) != nil:
		return reportedAgain(h.facts, is)
	case settled == 1 && (is.Foreign || is.Paid < is.Requested):
		return fmt.Errorf("settled by too little: %+v", is)
	case is.State == books.Paid && is.Paid < is.Requested || is.State == books.Failed && is.Paid > 0 || is.State == books.Pending && is.Paid > 0:
		return fmt.Errorf("the state is wrong: %+v", is)
	}
	return nil
}

// spare reports whether there is money that the order does not need.
func (h *history) spare() bool {
	needed := h.Order.SettledBy == "" && !h.Order.Closed || h.Order.SettledBy == h.Charge.ID
	return !needed && h.Charge.Left() > 0 && h.Charge.Origin != books.FromSubscription
}

// possible reports whether a gateway may report this, according to the interface and
// what is known of live gateways.
func (s seen) possible() bool {
	switch {
	case !books.Pays(s.status):
		return s.paid == 0 && s.refunded == 0
	case s.status == gateway.TransactionPartiallyPaid && s.paid == 0:
		return false
	case s.paid == 0:
		return s.refunded <= 5000
	default:
		return s.refunded <= s.paid
	}
}

// check checks what one reading did: no money that it shows is left out silently, and
// what can't be true changes nothing.
func (s seen) check(before, after *books.Books, result *books.Result, at time.Time) error {
	was, is := &before.Charge, &after.Charge
	known := books.Stage(string(s.status)) != 0
	sameCurrency := was.Paid == 0 || cmp.Or(s.currency, gateway.BRL) == was.Currency
	unreadable := func(r books.Raised) bool {
		return !r.Over && (r.Kind == books.IsContradicted || r.Kind == books.IsUnknownState)
	}
	later := !slices.ContainsFunc(was.Problems, func(r books.Raised) bool { return unreadable(r) && !r.At.Before(at) })
	switch {
	case known && s.possible() && sameCurrency && (s.paid > is.Paid || s.refunded > is.Refunded || s.fee != 0 && books.Stage(string(s.status)) > books.Stage("partially_paid") && is.Fee == 0):
		return fmt.Errorf("money is left out: %+v", is)
	case known && s.possible() && sameCurrency:
		contradictory := s.status == gateway.TransactionPartiallyRefunded && s.refunded == 0
		if later && is.Status == s.status && is.ReadAt.Equal(at) && slices.ContainsFunc(is.Problems, unreadable) != contradictory {
			return fmt.Errorf("this was understood, but the problems are %+v", is.Problems)
		}
	case len(result.Facts) > 0 || is.State != was.State || money(before.Order) != money(after.Order):
		return fmt.Errorf("booked something: %+v", result)
	case !slices.ContainsFunc(is.Problems, unreadable):
		return errors.New("no problem was raised")
	}
	return nil
}

// readings lists every status with every combination of amounts, possible or not.
func readings() (list []seen) {
	for _, status := range append(slices.Collect(spec.LiveTransactionStatuses.All()), "brand_new") {
		for _, paid := range []int64{0, 2500, 5000} {
			for _, refunded := range []int64{0, 1000, 5000} {
				list = append(list, seen{status: gateway.TransactionStatus(status), paid: paid, refunded: refunded, fee: 50 * (refunded % 3)})
			}
		}
	}
	for _, status := range []gateway.TransactionStatus{"paid", "partially_refunded", "chargedback"} {
		list = append(list, seen{status: status, paid: 5000, currency: gateway.USD}, seen{status: status, paid: 6000, fee: 50})
	}
	return list
}

// checkEveryStep applies every reading to every booked state: newer, older, with the same
// updated_at and, at full size, without one. It returns the number of combinations and the
// first broken promise.
func checkEveryStep(do apply) (combinations int, broken error) {
	type next struct {
		seen
		at int
	}
	var list []next
	times := []next{{seen{changed: bookedAt - 1}, readAt + 1}, {seen{changed: bookedAt + 1}, readAt - 1}, {seen{changed: bookedAt}, readAt + 1}}
	if fullSize() {
		times = append(times, next{seen{changed: bookedAt}, readAt - 1}, next{seen{changed: bookedAt + 1}, readAt + 1}, next{at: readAt + 1}, next{at: readAt - 1})
	}
	for _, s := range readings() {
		for _, when := range times {
			s.changed = when.changed
			s.built = s.transaction("t1")
			list = append(list, next{s, when.at})
		}
	}
	for _, b := range []books.Books{
		{Charge: books.Charge{Origin: books.FromOrder}},
		{Charge: books.Charge{Origin: books.FromOrder}, Order: books.Order{SettledBy: "other"}},
		{Charge: books.Charge{Origin: books.FromOrder}, Order: books.Order{Closed: true, Currency: gateway.USD}},
		{Charge: books.Charge{Origin: books.FromSubscription}},
	} {
		b.Order.ID, b.Charge.ID, b.Charge.Requested, b.Charge.Currency, b.Charge.Operation = "o", "c1", 5000, gateway.BRL, books.Sent
		states, err := bookedStates(do, b)
		if err != nil {
			return 0, err
		}
		for _, first := range states {
			for _, s := range list {
				h := history{Books: first.Books, problems: first.problems, facts: slices.Clip(first.facts)}
				combinations++
				if err := h.read(do, s.seen, s.at); err != nil {
					return combinations, fmt.Errorf("booked %+v\nreading %+v: %w", first.Books, s, err)
				}
			}
		}
	}
	return combinations, nil
}

// fullSize reports whether the tests have minutes.
func fullSize() bool { return os.Getenv("FULL_SIZE") != "" }

// bookedAt is the minute of updated_at of what is booked, readAt that of its reading.
const (
	bookedAt = 3
	readAt   = 5
)

// bookedStates returns the new charge and the different states that a possible
// reading, or an expiry and then one, make of it.
func bookedStates(do apply, b books.Books) (list []history, broken error) {
	list = append(list, history{Books: b})
	known := map[string]bool{}
	for _, earlier := range []gateway.TransactionStatus{"", gateway.TransactionExpired} {
		for _, s := range readings() {
			if !s.possible() {
				continue
			}
			h := history{Books: b}
			if earlier != "" {
				broken = errors.Join(broken, h.read(do, seen{status: earlier, changed: 1}, 1))
			}
			s.changed = bookedAt
			broken = errors.Join(broken, h.read(do, s, readAt))
			if !known[fmt.Sprint(h.Books)] {
				known[fmt.Sprint(h.Books)] = true
				list = append(list, h)
			}
		}
	}
	return list, broken
}

func TestEveryReadingOfEveryBookedState(t *testing.T) {
	t.Parallel()
	if testing.Short() && !explore.Sampled(0) {
		t.Skip("-short: a third of the commits run this")
	}
	combinations, err := checkEveryStep(books.ApplyTransaction)
	require.NoError(t, err)
	t.Logf("%d combinations of a booked state, an order and a reading", combinations)
	assert.Greater(t, combinations, 100_000)
}

// life is a possible history of a transaction: each reading is newer than the last.
type life []seen

// lives lists the possible histories with at most n changes, according to the diagram
// of transactions and what only live gateways report.
func lives(t *testing.T, n int) (list []life) {
	t.Helper()
	edges := machine(t, "Transactions")
	add := func(from, to string) { edges = append(edges, edge{from, to}) }
	add("", "waiting_payment")
	add("waiting_payment", "paid")
	add("", "authorized")
	add("authorized", "captured")
	add("pending", "partially_paid")
	add("partially_paid", "paid")
	add("pre_chargedback", "paid")
	var walk func(l life)
	walk = func(l life) {
		if len(l) > 0 {
			list = append(list, slices.Clone(l))
		}
		if len(l) == n {
			return
		}
		last := seen{}
		if len(l) > 0 {
			last = l[len(l)-1]
		}
		for _, e := range edges {
			if e.from == string(last.status) && (e.to != "paid" || last.refunded == 0) {
				walk(append(l, last.then(gateway.TransactionStatus(e.to))))
			}
		}
	}
	walk(nil)
	return list
}

// then returns the next reading of a transaction that changes its status.
func (s seen) then(status gateway.TransactionStatus) seen {
	s.changed++
	was := s.status
	s.status = status
	switch status {
	case gateway.TransactionPaid, gateway.TransactionCaptured:
		s.paid = 5000
	case gateway.TransactionPartiallyPaid:
		s.paid = 2000
	case gateway.TransactionPartiallyRefunded:
		if books.Stage(string(was)) <= books.Stage("partially_refunded") {
			s.refunded += 1000
		}
	case gateway.TransactionRefunded:
		s.refunded = s.paid
	default: // no money moves
	}
	return s
}

// variants returns the same life as gateways may report it.
func (l life) variants() (list []life) {
	money := []func(s *seen){
		func(*seen) {},
		func(s *seen) { s.fee = 50 },
		func(s *seen) { // the fee comes late
			if s.changed > 2 {
				s.fee = 50
			}
		},
	}
	if !slices.ContainsFunc(l, func(s seen) bool { return s.status == gateway.TransactionPartiallyPaid }) {
		money = append(money, func(s *seen) { s.paid = 0 }) // paid_amount is never reported
	}
	times := []func(s *seen){
		func(*seen) {},
		func(s *seen) { s.changed = 0 },
		func(s *seen) { s.changed = 1 }, // the gateway counts seconds, or its clock has stopped
	}
	for _, amounts := range money {
		for _, changed := range times {
			v := slices.Clone(l)
			for i := range v {
				amounts(&v[i])
				changed(&v[i])
			}
			list = append(list, v)
		}
	}
	return list
}

// lags reports whether updated_at tells the readings apart, so that they may be of any
// time: a gateway may return what it knew earlier.
func (l life) lags() bool { return l[len(l)-1].changed == len(l) }

// final is what must not depend on the order of readings. What was reported, and how
// often, may.
func (h *history) final() string {
	c, o := h.Charge, h.Order
	return fmt.Sprint(money(o), o.SettledBy, c.State, c.Status, c.Reason, c.Amount, c.Paid, c.Fee, c.Refunded, c.Disputed, c.Assumed, c.PaidAt, c.UpdatedAt, c.ByOthers)
}

// checkEveryOrder applies the readings of every possible history in every order, and
// one of them again. They were made in their own order or, if updated_at tells them apart,
// in that in which they are applied.
func checkEveryOrder(list []life, do apply) (histories int, broken error) {
	for _, base := range list {
		for _, l := range base.variants() {
			n, err := l.checkEveryOrder(do, func(_, n int) int { return n + 1 })
			histories += n
			if err == nil && l.lags() {
				n, err = l.checkEveryOrder(do, func(i, _ int) int { return i + 1 })
				histories += n
			}
			if err != nil {
				return histories, err
			}
		}
	}
	return histories, nil
}

// checkEveryOrder applies the readings in every order. at returns the minute of the one
// that is applied i-th and is the n-th in their own order.
func (l life) checkEveryOrder(do apply, at func(i, n int) int) (histories int, broken error) {
	want := ""
	for p := range permutations(len(l)) {
		h := history{Books: books.Books{
			Order:  books.Order{ID: "o"},
			Charge: books.Charge{ID: "c1", Origin: books.FromOrder, Requested: 5000, Currency: gateway.BRL, Operation: books.Sent},
		}}
		histories++
		for i, n := range append(p, p[0]) {
			if err := h.read(do, l[n], at(i, n)); err != nil {
				return histories, fmt.Errorf("%+v in the order %v: %w", l, p, err)
			}
		}
		if want == "" {
			want = h.final() // in their own order
		}
		if got := h.final(); got != want {
			return histories, fmt.Errorf("%+v in the order %v:\n%s\nin their own order\n%s", l, p, got, want)
		}
		if last := l[len(l)-1]; h.Charge.Status != last.status {
			return histories, fmt.Errorf("%+v in the order %v ends as %+v", l, p, h.Charge)
		}
	}
	return histories, nil
}

// permutations yields every order of n things, the given one first.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var choose func(chosen []int) bool
		choose = func(chosen []int) bool {
			if len(chosen) == n {
				return yield(slices.Clone(chosen))
			}
			for i := range n {
				if !slices.Contains(chosen, i) && !choose(append(chosen, i)) {
					return false
				}
			}
			return true
		}
		choose(nil)
	}
}

func TestEveryOrderOfEveryPossibleHistory(t *testing.T) {
	t.Parallel()
	length := 4
	if fullSize() {
		length = 5
	}
	list := lives(t, length)
	histories, err := checkEveryOrder(list, books.ApplyTransaction)
	require.NoError(t, err)
	t.Logf("%d orders of the readings of %d possible histories", histories, len(list))
	assert.Greater(t, len(list), 50)
}

// of is a reading of a charge of an order.
type of struct {
	charge string
	seen
}

// Two charges of an order are paid in part, in full or too much, refunded, disputed and
// charged back: in any order of these readings the order is settled once, what it did not
// need and is there is reported once, and the problems that hold are open.
func TestEveryOrderOfTheReadingsOfTwoCharges(t *testing.T) {
	t.Parallel()
	orders := 0
	for name, tc := range map[string]struct {
		steps []of
		want  books.Order
	}{
		"paid twice": {[]of{
			{"c1", seen{status: "pending", changed: 1}},
			{"c1", seen{status: "paid", paid: 5000, fee: 50, changed: 2}},
			{"c1", seen{status: "partially_refunded", paid: 5000, refunded: 1000, fee: 50, changed: 3}},
			{"c2", seen{status: "expired", changed: 1}},
			{"c2", seen{status: "paid", paid: 5000, fee: 50, changed: 2}},
			{"c2", seen{status: "chargedback", paid: 5000, fee: 50, changed: 3}},
		}, books.Order{Paid: 10000, Fee: 100, Refunded: 1000, Disputed: 5000}},
		"underpaid, and the dispute is won": {[]of{
			{"c1", seen{status: "paid", paid: 2000, changed: 1}},
			{"c1", seen{status: "med", paid: 2000, changed: 2}},
			{"c1", seen{status: "paid", paid: 2000, changed: 3}},
			{"c2", seen{status: "paid", paid: 5000, changed: 1}},
		}, books.Order{Paid: 7000}},
		"underpaid, and the contested dispute is lost": {[]of{
			{"c1", seen{status: "paid", paid: 2000, changed: 1}},
			{"c1", seen{status: "in_protest", paid: 2000, changed: 2}},
			{"c1", seen{status: "chargedback", paid: 2000, changed: 3}},
			{"c2", seen{status: "partially_paid", paid: 3000, changed: 1}},
			{"c2", seen{status: "paid", paid: 5000, changed: 2}},
		}, books.Order{Paid: 7000, Disputed: 2000}},
		"underpaid and refunded": {[]of{
			{"c1", seen{status: "partially_paid", paid: 2000, changed: 1}},
			{"c1", seen{status: "partially_refunded", paid: 2000, refunded: 500, changed: 2}},
			{"c1", seen{status: "refunded", paid: 2000, refunded: 2000, changed: 3}},
			{"c2", seen{status: "paid", paid: 5000, changed: 1}},
		}, books.Order{Paid: 7000, Refunded: 2000}},
		"overpaid twice": {[]of{
			{"c1", seen{status: "paid", paid: 7500, changed: 1}},
			{"c1", seen{status: "partially_refunded", paid: 7500, refunded: 2500, changed: 2}},
			{"c2", seen{status: "paid", paid: 6000, changed: 1}},
			{"c2", seen{status: "med", paid: 6000, changed: 2}},
			{"c2", seen{status: "paid", paid: 6000, changed: 3}},
		}, books.Order{Paid: 13500, Refunded: 2500}},
	} {
		for p := range permutations(len(tc.steps)) {
			orders++
			s := newShop(t)
			for _, i := range p {
				s.read(tc.steps[i].charge, tc.steps[i].seen)
			}
			require.Equal(t, tc.want, money(s.order), "%s %d", name, p)
			require.Contains(t, []string{"c1", "c2"}, s.order.SettledBy, "%s %d", name, p)
			settled := 0
			for _, f := range s.facts {
				if f.Kind == books.Settled {
					settled++
				}
				require.False(t, f.Kind == books.PaidAgain && f.Record == s.order.SettledBy, "%s %d: %s", name, p, keys(s.facts))
			}
			require.Equal(t, 1, settled, "%s %d", name, p)
		}
	}
	t.Logf("%d orders of the readings of two charges", orders)
}

// The checks above must find typical defects.
func TestDefectsAreFound(t *testing.T) {
	t.Parallel()
	list := lives(t, 4)
	correct := books.ApplyTransaction
	for name, do := range map[string]apply{
		"a key without the total": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			after, result := correct(b, r)
			for i, f := range result.Facts {
				if f.Kind == books.EntryPaid || f.Kind == books.EntryRefunded {
					result.Facts[i].Key = string(f.Kind) + "/" + r.Resource.ID
				}
			}
			return after, result
		},
		"an older reading counts": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			tx := *r.Resource
			tx.UpdatedAt = gateway.TimestampOf(b.Charge.UpdatedAt.Add(time.Minute))
			r.Resource = &tx
			return correct(b, r)
		},
		"the fee is booked twice": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			fee := b.Charge.Fee
			b.Charge.Fee = 0
			after, result := correct(b, r)
			after.Charge.Fee += fee
			return after, result
		},
		"each reading books what it shows": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			paid := b.Charge.Paid
			b.Charge.Paid = 0
			after, result := correct(b, r)
			after.Charge.Paid += paid
			return after, result
		},
		"what a lower reading shows is unbooked": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			after, result := correct(b, r)
			if r.Resource.RefundedAmount < after.Charge.Refunded {
				after.Order.Refunded += r.Resource.RefundedAmount - after.Charge.Refunded
				after.Charge.Refunded = r.Resource.RefundedAmount
			}
			return after, result
		},
		"of one second the position of the status decides": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			if r.Resource.UpdatedAt.Equal(b.Charge.UpdatedAt) && books.Stage(string(r.Resource.Status)) < books.Stage(string(b.Charge.Status)) {
				return b, books.Result{}
			}
			return correct(b, r)
		},
		"of one second the last reading counts, whenever it was made": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			if r.Resource.UpdatedAt.Equal(b.Charge.UpdatedAt) {
				r.At = b.Charge.ReadAt.Add(time.Minute)
			}
			return correct(b, r)
		},
		"a dispute that was won stays booked": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			after, result := correct(b, r)
			if after.Charge.Disputed < b.Charge.Disputed {
				return b, books.Result{}
			}
			return after, result
		},
		"an order is settled by every payment": func(b books.Books, r books.Reading[gateway.Transaction]) (books.Books, books.Result) {
			b.Order.SettledBy = ""
			return correct(b, r)
		},
	} {
		_, err := checkEveryOrder(list, do)
		assert.Error(t, err, name)
	}
}
