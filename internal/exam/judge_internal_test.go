package exam

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore/fault"
)

// A shop may report pending until the end, but what can't be healed fails at once.
func TestTheJudgeFindsEveryDifference(t *testing.T) {
	t.Parallel()
	const amount = 5000
	charge := func(status gateway.TransactionStatus, paid, refunded int64) *Charge {
		return &Charge{ID: "c", Amount: amount, Currency: "BRL", Method: "pix", Status: status, Paid: paid, Refunded: refunded}
	}
	paid := func() *truth { return truthOf(charge(gateway.TransactionPaid, amount, 0)) }
	right := func() *Report { return &Report{Found: true, Status: StatusPaid, Paid: amount, Shipped: 1} }
	report := func(set func(*Report)) *Report {
		r := right()
		set(r)
		return r
	}
	order := func(answers ...int) *Order {
		return &Order{ID: "x000001", Amount: amount, Method: "pix", answers: answers}
	}
	refunds := func(o *Order, list ...*refund) *Order {
		o.refunds = list
		return o
	}
	with := func(o *Order, set func(*Order)) *Order {
		set(o)
		return o
	}
	partly := func() *truth { return truthOf(charge(gateway.TransactionPartiallyRefunded, amount, 1000)) }
	partlyRight := func() *Report {
		return report(func(r *Report) { r.Status, r.Refunded = StatusPartiallyRefunded, 1000 })
	}
	cases := []struct {
		name   string
		o      *Order
		t      *truth
		r      *Report
		atOnce []Claim
		final  []Claim
		warns  bool
	}{
		{"right", order(201), paid(), right(), nil, nil, false},
		{"two payable charges", order(201), truthOf(charge(gateway.TransactionPaid, amount, 0), charge(gateway.TransactionPending, 0, 0)), right(), []Claim{ChargedOnce}, nil, false},
		{"a second charge after a refused one", order(201), truthOf(charge(gateway.TransactionPaid, amount, 0), charge(gateway.TransactionRefused, 0, 0)), right(), nil, nil, false},
		{"two charges, one refunded", order(201), truthOf(charge(gateway.TransactionPaid, amount, 0), charge(gateway.TransactionRefunded, amount, amount)), right(), []Claim{ChargedOnce, RefundedOnce}, []Claim{NothingLost, BooksAgree}, false},
		{"another amount", order(201), truthOf(&Charge{Amount: 4999, Currency: "BRL", Method: "pix", Status: gateway.TransactionPaid, Paid: 5000}), right(), []Claim{RightCharge}, nil, false},
		{"another method", order(201), truthOf(&Charge{Amount: amount, Currency: "BRL", Method: "voucher", Status: gateway.TransactionPaid, Paid: 5000}), right(), []Claim{RightCharge}, nil, false},
		{"another currency", order(201), truthOf(&Charge{Amount: amount, Currency: "MXN", Method: "pix", Status: gateway.TransactionPaid, Paid: 5000}), right(), []Claim{RightCharge}, nil, false},
		{"not booked", order(201), paid(), &Report{Found: true, Status: StatusPending}, nil, []Claim{NothingLost, ShippedOnce, BooksAgree}, false},
		{"never heard of it", order(201), paid(), &Report{}, nil, []Claim{NothingLost}, false},
		{"left unknown", order(202), paid(), report(func(r *Report) { r.Status = StatusUnknown }), nil, []Claim{NothingLost}, false},
		{"review is no way out", order(201), paid(), report(func(r *Report) { r.Status = StatusReview }), nil, []Claim{BooksAgree}, false},
		{"review of what is ambiguous", with(order(201), func(o *Order) { o.ambiguous = true }), paid(), report(func(r *Report) { r.Status, r.Shipped = StatusReview, 0 }), nil, nil, false},
		{"paid is invented", order(201), truthOf(charge(gateway.TransactionPending, 0, 0)), right(), []Claim{NothingMadeUp, ShippedOnce}, []Claim{BooksAgree}, false},
		{"paid twice in the books", order(201), paid(), report(func(r *Report) { r.Paid = 2 * amount }), []Claim{NothingMadeUp}, nil, false},
		{"shipped twice", order(201), paid(), report(func(r *Report) { r.Shipped = 2 }), []Claim{ShippedOnce}, nil, false},
		{"never shipped", order(201), paid(), report(func(r *Report) { r.Shipped = 0 }), nil, []Claim{ShippedOnce}, false},
		{"shipped after the refund of everything", with(refunds(order(201), &refund{"r1", amount, []int{200}}), func(o *Order) { o.fullAck = true }), truthOf(charge(gateway.TransactionRefunded, amount, amount)), report(func(r *Report) { r.Status, r.Refunded = StatusRefunded, amount }), []Claim{ShippedOnce}, nil, false},
		{"a refund is booked", refunds(order(201), &refund{"r1", 1000, []int{200}}), partly(), partlyRight(), nil, nil, false},
		{"a refund that no one asked for", order(201), partly(), partlyRight(), []Claim{RefundedOnce}, nil, false},
		{"a refund by someone else", with(order(201), func(o *Order) { o.elsewhere = 1000 }), partly(), partlyRight(), nil, nil, false},
		{"a refund is made twice", refunds(order(201), &refund{"r1", 500, []int{202, 200}}), partly(), partlyRight(), []Claim{RefundedOnce}, nil, false},
		{"a refund is not booked", refunds(order(201), &refund{"r1", 1000, []int{200}}), partly(), right(), nil, []Claim{BooksAgree}, false},
		{"a refund was reported and not made", refunds(order(201), &refund{"r1", 1000, []int{200}}), paid(), right(), nil, []Claim{RefundedOnce}, false},
		{"a refund was accepted and never made", refunds(order(201), &refund{"r1", 1000, []int{202}}), paid(), right(), nil, []Claim{RefundedOnce}, false},
		{"a refund was accepted and can't be made", refunds(order(201), &refund{"r1", 3000, []int{200}}, &refund{"r2", 3000, []int{202}}), truthOf(charge(gateway.TransactionPartiallyRefunded, amount, 3000)), report(func(r *Report) { r.Status, r.Refunded = StatusPartiallyRefunded, 3000 }), nil, nil, false},
		{"a refund was refused and made", refunds(order(201), &refund{"r1", 1000, []int{409}}), partly(), partlyRight(), []Claim{TrueAnswers}, nil, false},
		{"a refund was refused", refunds(order(201), &refund{"r1", 1000, []int{409}}), paid(), right(), nil, nil, false},
		{"a chargeback is not booked", order(201), truthOf(charge(gateway.TransactionChargedback, amount, 0)), right(), nil, []Claim{BooksAgree}, false},
		{"a chargeback", order(201), truthOf(charge(gateway.TransactionChargedback, amount, 0)), report(func(r *Report) { r.Status, r.ChargedBack = StatusChargedBack, amount }), nil, nil, false},
		{"a dispute counts as paid", order(201), truthOf(charge(gateway.TransactionMED, amount, 0)), right(), nil, nil, false},
		{"a dispute counts as lost", order(201), truthOf(charge(gateway.TransactionPreChargedback, amount, 0)), report(func(r *Report) { r.Status, r.ChargedBack = StatusChargedBack, amount }), nil, nil, false},
		{"a dispute took something else", order(201), truthOf(charge(gateway.TransactionPreChargedback, amount, 0)), report(func(r *Report) { r.Status, r.ChargedBack = StatusChargedBack, amount-1 }), nil, []Claim{BooksAgree}, false},
		{"not placed, and charged", order(402), truthOf(charge(gateway.TransactionPending, 0, 0)), &Report{Found: true, Status: StatusFailed}, []Claim{TrueAnswers}, []Claim{BooksAgree}, false},
		{"the second of two clicks is refused", order(201, 409), paid(), right(), nil, nil, false},
		{"no response, then refused", order(0, 402), paid(), right(), nil, nil, false},
		{"placed, and not charged", order(201), truthOf(), &Report{Found: true, Status: StatusPending}, nil, []Claim{TrueAnswers}, true},
		{"a lost sale", order(202), truthOf(), &Report{Found: true, Status: StatusUnknown}, nil, nil, true},
		{"not placed", order(402), truthOf(), &Report{Found: true, Status: StatusFailed}, nil, nil, false},
		{"not placed and forgotten", order(402), truthOf(), &Report{}, nil, nil, false},
		{"not paid", order(201), truthOf(charge(gateway.TransactionPending, 0, 0)), &Report{Found: true, Status: StatusPending}, nil, nil, false},
		{"not paid and unknown", order(202), truthOf(charge(gateway.TransactionPending, 0, 0)), &Report{Found: true, Status: StatusUnknown}, nil, nil, true},
		{"refused and pending", order(402), truthOf(charge(gateway.TransactionRefused, 0, 0)), &Report{Found: true, Status: StatusPending}, nil, nil, true},
		{"pending and failed", order(201), truthOf(charge(gateway.TransactionPending, 0, 0)), &Report{Found: true, Status: StatusFailed}, nil, []Claim{BooksAgree}, false},
	}
	for _, tc := range cases {
		var now, final verdict
		judgeAtOnce(tc.o, tc.t, tc.r, &now)
		judgeAtTheEnd(tc.o, tc.t, tc.r, true, &final)
		assert.Equal(t, tc.atOnce, claims(now), "%s, at once: %v", tc.name, now.failures)
		assert.Equal(t, tc.final, claims(final), "%s, at the end: %v", tc.name, final.failures)
		assert.Equal(t, tc.warns, len(final.warnings) > 0, "%s: %v", tc.name, final.warnings)
	}
	var v verdict
	judgeAtTheEnd(refunds(order(201), &refund{"r1", 1000, []int{202}}), paid(), right(), false, &v)
	assert.Empty(t, v.failures, "a program without jobs can't make an accepted refund")
}

func claims(v verdict) (list []Claim) {
	for _, f := range v.failures {
		list = append(list, f.Claim)
	}
	return slices.Compact(list)
}

func TestAReportMustHaveTheForm(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&Report{Status: StatusReview}).check())
	require.ErrorContains(t, (&Report{Status: "PAID"}).check(), `not "PAID"`)
	require.ErrorContains(t, (&Report{Status: StatusPaid, Paid: -1}).check(), "negative")
}

// Another encoder's bytes have the same meaning.
func TestARerenderedEventMeansTheSame(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"evt_1","event":"transaction","data":{"amount":1999,"list":[1,"a/b",null,true,{"é":"José & <\"Ana\"> \u2028 😀"}],"rate":1.50,"empty":{},"none":[]}}`)
	other := rerender(body)
	assert.NotEqual(t, string(body), string(other))
	assert.JSONEq(t, string(body), string(other))
	assert.Contains(t, string(other), "1.50", "a number keeps its digits")
	assert.Contains(t, string(other), `a\/b`[1:])
	assert.Equal(t, "no JSON", string(rerender([]byte("no JSON"))))
}

// What is in progress is counted once, whoever ends it how often.
func TestActivityIsCounted(t *testing.T) {
	t.Parallel()
	var a activity
	read, write := a.begin(false), a.begin(true)
	busy, last := a.state()
	assert.True(t, busy)
	assert.Zero(t, last)
	write()
	write()
	busy, last = a.state()
	assert.True(t, busy, "the read is in progress")
	assert.NotZero(t, last)
	read()
	busy, again := a.state()
	assert.False(t, busy)
	assert.Equal(t, last, again, "a read does not end the quiet")
}

// A scenario says what it does, what it is about, and can be chosen by name or claim.
func TestEveryScenarioIsListed(t *testing.T) {
	t.Parallel()
	all, err := Scenarios(nil, nil)
	require.NoError(t, err)
	seen := map[string]bool{}
	covered := map[Claim]bool{}
	for _, s := range all {
		assert.False(t, seen[s.Name], s.Name)
		seen[s.Name] = true
		assert.NotEmpty(t, s.About, s.Name)
		assert.NotEmpty(t, s.Claims, s.Name)
		for _, c := range s.Claims {
			covered[c] = true
		}
	}
	for _, c := range []Claim{ChargedOnce, RightCharge, NothingLost, NothingMadeUp, ShippedOnce, RefundedOnce, BooksAgree, TrueAnswers, GenuineAccepts, ForgedIgnored, Restarts} {
		assert.True(t, covered[c], c)
	}
	some, err := Scenarios([]string{"C10", "plain"}, []string{"cents"})
	require.NoError(t, err)
	assert.Len(t, some, 2)
	_, err = Scenarios([]string{"plane"}, nil)
	require.ErrorContains(t, err, `"plane"`)
	_, err = Scenarios(nil, []string{"C12"})
	require.ErrorContains(t, err, `"C12"`)
}

// A random schedule's name is enough to play it again.
func TestARandomScheduleHasAName(t *testing.T) {
	t.Parallel()
	list, err := Scenarios([]string{"random-0.1.2"}, nil)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "random-0.1.2", list[0].Name)
	assert.Contains(t, list[0].About, mishaps()[1].about)
	smaller := Smaller(list[0])
	require.Len(t, smaller, 2)
	assert.Equal(t, "random-0.2", smaller[0].Name)
	assert.Empty(t, Smaller(&Scenario{Name: "random-0"}))
	for _, name := range []string{"random-", "random-9", "random-0.9999", "random-0.-1", "random-x"} {
		_, err := Scenarios([]string{name}, nil)
		require.Error(t, err, name)
	}
}

// An event's kind is read from each of its forms.
func TestAnEventIsRead(t *testing.T) {
	t.Parallel()
	for body, kind := range map[string]string{
		`{"id":"e","event":"transaction","data":{"id":"t","event_type":"transaction.paid"}}`: "transaction.paid",
		`{"id":"e","event":"subscription","data":{"id":"t","event_type":"renewed"}}`:         "subscription.renewed",
		`{"id":"e","type":"payout.created","data":{"id":"t"}}`:                               "payout.created",
	} {
		d := &Delivery{Body: []byte(body)}
		d.read()
		assert.Equal(t, []string{kind, "e", "t"}, []string{d.Kind, d.EventID, d.Resource}, body)
	}
	genuine := &Delivery{EventID: "e", Body: []byte(`{"id":"e","data":{"id":"t","amount":1000,"correlation_id":"r"}}`)}
	forged := genuine.About(&Charge{ID: "t", Ref: "r", Amount: 1000}, &Charge{ID: "u", Ref: "s", Amount: 2000}, "f")
	assert.JSONEq(t, `{"id":"f","data":{"id":"u","amount":2000,"correlation_id":"s"}}`, string(forged.Body))
}

// A warning is given for the eleventh attempt, and for one before Retry-After is over.
func TestTheFrontCountsAttempts(t *testing.T) {
	t.Parallel()
	f := newFront(nil, nil, &activity{}, func(Message) {})
	body := []byte(`{"amount":1}`)
	for range maxAttempts {
		f.count(create, body)
	}
	assert.Empty(t, f.begin())
	for range maxAttempts + 1 {
		f.count(create, body)
	}
	f.count(create, []byte("another"))
	assert.Equal(t, []string{"more than 10 attempts of one transactions.create"}, f.begin())

	f.count(create, body)
	f.saw(create, body, &http.Response{Header: http.Header{"Retry-After": {"3600"}}})
	f.count(create, body)
	assert.Equal(t, []string{"Retry-After of a transactions.create was ignored"}, f.begin())
	f.count(create, body)
	f.saw(create, body, &http.Response{Header: http.Header{"Retry-After": {"0"}}})
	f.count(create, body)
	f.saw(create, body, &http.Response{Header: http.Header{"Retry-After": {"soon"}}})
	f.count(create, body)
	assert.Empty(t, f.begin())
}

// A gateway says only of a request with an idempotency key that the key is in use.
func TestAKeyIsInUseOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{"": http.StatusCreated, "k1": http.StatusConflict} {
		f := newFront(created{}, nil, &activity{}, func(Message) {})
		i := slices.IndexFunc(fault.Writes(), func(c fault.Case) bool { return c.Keyed })
		require.GreaterOrEqual(t, i, 0)
		f.add(&Rule{On: "writes", Case: fault.Writes()[i]})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v2/transactions", strings.NewReader(`{}`))
		require.NoError(t, err)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		resp, err := f.RoundTrip(r)
		require.NoError(t, err)
		assert.Equal(t, want, resp.StatusCode, key)
		require.NoError(t, resp.Body.Close())
	}
}

// created is a gateway that creates whatever it is asked for.
type created struct{}

func (created) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// The latest rule that matches a request applies, as often as it says.
func TestRulesApply(t *testing.T) {
	t.Parallel()
	f := newFront(nil, nil, &activity{}, func(Message) {})
	every, once := &Rule{On: "writes"}, &Rule{On: create, Times: 1}
	f.add(every)
	f.add(once)
	assert.Same(t, once, f.rule(create, true))
	assert.Same(t, every, f.rule(create, true))
	assert.Nil(t, f.rule("transactions.get", false))
	reads := &Rule{On: "reads"}
	f.add(reads)
	assert.Same(t, reads, f.rule("transactions.get", false))
	f.remove(reads)
	assert.Nil(t, f.rule("transactions.get", false))
	unused := &Rule{On: refundOp}
	f.add(unused)
	assert.Equal(t, []*Rule{unused}, f.clear())
	assert.Nil(t, f.rule(create, true))
}

func TestTheResultIsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Result{Seed: 1, Started: time.Unix(0, 0).UTC(), Outcomes: []Outcome{{Scenario: "plain", Status: Passed}, {Status: Failed}}})
	require.NoError(t, err)
	assert.True(t, bytes.Contains(text, []byte(`"status":"passed"`)))
	r := Result{Outcomes: []Outcome{{Status: Passed}, {Status: Passed}, {Status: Skipped}}}
	assert.Equal(t, 2, r.Count(Passed))
}

// The line that repeats a failure plays one scenario: its orders must be those of the
// exam in which other scenarios came before it.
func TestAScenarioHasTheSameOrdersAlone(t *testing.T) {
	t.Parallel()
	last := func(seed uint64, scenarios ...string) (o *Order) {
		act := &activity{}
		e := &Exam{
			cfg: Config{Seed: seed}, amounts: map[int64]bool{}, orders: map[string]*Order{},
			front: newFront(nil, nil, act, nil), relay: newRelay(nil, "", gateway.Secret{}, act, nil),
		}
		for _, name := range scenarios {
			o = e.newPlay(t.Context(), name).Order(gateway.Pix)
		}
		return o
	}
	alone := last(1, "duplicate")
	assert.Equal(t, alone, last(1, "plain", "lost-response", "duplicate"))
	assert.NotEqual(t, alone, last(1, "plain"))
	assert.NotEqual(t, alone, last(2, "duplicate"))
}
