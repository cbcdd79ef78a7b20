package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// asked is what the merchant asked for.
type asked struct {
	Amount        int64
	Currency      gateway.Currency
	Method        gateway.SubscriptionMethod
	Interval      gateway.Interval
	IntervalCount int
}

// subscriptionRecord is what is stored about a subscription.
type subscriptionRecord struct {
	asked

	Books      books.Subscription
	CustomerID string

	Canceling    bool
	CancelReason string
	CancelCall   string // the call of [Merchant.CancelSubscription] that asked for it last
	Cancels      int    // the number of operations that cancel it

	AuthorizationCode string
	PeriodEnd         time.Time // the end of the period or trial that the newest reading shows
	Watch             watch
	ReadAfter         time.Time // only a reading that began later shows what is known already; zero if it was made

	Earlier time.Time `json:",omitzero"` // when an adoption that reported nothing read it; see chargeRecord
}

// subscription is a subscription with its place. Its Ref is that of the customer, and the
// idempotency key. Its Params are "" once the request for the subscription is in the outbox
// or is not needed.
type subscription struct {
	base
	subscriptionRecord

	reading      *books.Reading[gateway.Subscription]
	transactions transactionReadings
	missing      []string
	event        *webhook.SubscriptionEvent // that is handled; nil if there is none
	others       []string                   // transactions that are charges of other records
}

func (s *subscription) row() (ledger.Row, error) {
	row := s.Row
	row.Resource, row.State = strings.ToLower(s.Books.SubscriptionID), s.Books.State
	row.ErasedAt = s.erased
	record := s.subscriptionRecord
	if s.erased != 0 {
		record = s.kept()
	}
	err := s.encode(&row, &record, &record.Books.ReadAt)
	return row, err
}

func (s *subscription) watched() (*watch, *account) { return &s.Watch, s.account }

func (s *subscription) taken() error { return fmt.Errorf("%w: subscription %s", ErrReused, s.ID) }

// notMade reports whether the subscription does not exist and never will.
func (s *subscription) notMade() bool {
	return s.Books.Status == "" && (s.Books.Operation == books.Refused || s.Books.Operation == books.Abandoned)
}

// show takes over what the payer needs.
func (s *subscription) show(sub *gateway.Subscription) {
	if code := sub.AuthorizationQRCode(); code != "" { // later responses may be without it
		s.AuthorizationCode = code
	}
	if sub.Status != gateway.SubscriptionIncomplete {
		s.AuthorizationCode = ""
	}
	s.PeriodEnd = sub.CurrentPeriodEnd.Time
	if sub.TrialEnd.After(s.PeriodEnd) {
		s.PeriodEnd = sub.TrialEnd.Time
	}
}

// canceling reports whether the outcome of a cancellation is not known yet. A webhook can
// tell it before the response to the request is stored.
func (s *subscription) canceling() bool {
	status := s.Books.Status
	return s.Canceling && status != gateway.SubscriptionCancelScheduled && !status.Final()
}

// shown returns the subscription as the merchant gets it.
func (s *subscription) shown(o *Order) *Subscription {
	b := &s.Books
	shown := &Subscription{
		ID: b.ID, Book: s.Subject.Book, Account: s.Account, CustomerID: s.CustomerID, SubscriptionID: b.SubscriptionID, State: b.State, Canceling: s.canceling(),
		Amount: s.Amount, Currency: s.Currency, PaidUntil: b.PaidUntil, FailedAttempts: b.FailedAttempts, Reason: b.Reason,
		Charges: o.Charges, Order: *o, AuthorizationCode: s.AuthorizationCode, CreatedAt: s.Created,
		Erased: erasedAt(s.erased),
	}
	shown.Order.Charges, shown.Order.Refunds = nil, nil
	for _, c := range o.Charges {
		if c.State == Pending && c.Challenge != nil {
			shown.Challenge = c.Challenge
		}
	}
	return shown
}

// loadSubscription returns a subscription of a book, or [ErrNotFound].
func (m *reading) loadSubscription(ctx context.Context, l ledger.Ledger, book, id string) (*subscription, error) {
	row, err := l.Row(ctx, ledger.Subscriptions, book, id)
	if err != nil {
		return nil, err
	}
	return m.subscriptionOf(row)
}

func (m *reading) subscriptionOf(row *ledger.Row) (*subscription, error) {
	s := &subscription{base: m.based(row)}
	err := decode(row.Record, &s.subscriptionRecord)
	if s.erased != 0 { // an earlier release may have stored more since
		s.subscriptionRecord = s.kept()
	}
	s.readAt = s.Books.ReadAt
	return s, err
}

// showSubscription returns a subscription as the merchant gets it, with its charges if they
// are wanted.
func (m *reading) showSubscription(ctx context.Context, l ledger.Ledger, subject ledger.Subject, charges bool) (*Subscription, error) {
	s, err := m.loadSubscription(ctx, l, subject.Book, ledger.SubscriptionID(subject))
	if err != nil {
		return nil, err
	}
	order, err := m.showOrder(ctx, l, subject, charges)
	if err != nil {
		return nil, err
	}
	return s.shown(order), nil
}

// takeOverSubscription takes over the progress of the requests for the subscription that have
// not ended.
func (b *bench) takeOverSubscription() {
	s, kind := b.subscription, b.subscription.creates()
	op := b.requests.progress(s.account, kind, s.Ref, s.Books.Operation)
	if kind == kindCustomer && op == books.Sent { // nothing was sent of the subscription itself
		op = books.Waiting
	}
	if op != "" {
		b.subscriptionIs(op, "")
	}
	if !s.Canceling || s.Cancels == 0 || b.requests.progress(s.account, kindCancel, s.cancelKey(), books.Sent) != books.InDoubt {
		return
	}
	b.problem(s.account, &books.Problem{
		Key: string(books.IsAmbiguous) + "/" + s.cancelKey(), Kind: books.IsAmbiguous, Record: s.ID, About: books.AboutSubscription,
		Text: fmt.Sprintf("it is not known whether subscription %s was canceled", s.ID),
	})
}

// creates returns the kind of the request that creates the subscription, or its customer before.
func (s *subscription) creates() string {
	if s.Params != "" {
		return kindCustomer
	}
	return kindSubscribe
}

// subscriptionIs stores what became of the request for the subscription, or for its customer.
func (b *bench) subscriptionIs(op books.Operation, reason string) {
	s := b.subscription
	var result books.Result
	s.Books, result = books.ApplySubscriptionOperation(b.order.Order, s.Books, op, reason, b.now)
	s.touched = true
	b.report(s.account, result)
}

// next returns when the subscription is compared again. What matters happens at the end of a
// period, and while it is past due. Its charges are compared too, also after its end.
func (s *subscription) next(now time.Time, cfg *Config) ledger.Plan {
	p := ledger.Plan{Wait: cfg.CompareEvery, Lane: ledger.Routine}
	soon, isWatched := s.Watch.next(now)
	switch status := s.Books.Status; {
	case !s.ReadAfter.IsZero():
		p.Wait, p.Lane = 0, ledger.Fresh
	case isWatched:
		p.Never, p.Wait, p.Lane = soon.Never, min(p.Wait, soon.Wait), soon.Lane
	case s.notMade(), status.Final() && !s.Canceling:
		p.Never = true
	case status == "", s.Canceling:
		p.Wait, p.Lane = min(p.Wait, soonest), ledger.Fresh
	case status == gateway.SubscriptionIncomplete:
		age := now.Sub(s.Created)
		p.Wait, p.Lane = min(p.Wait, growing(age)), laneOf(age)
	case status == gateway.SubscriptionPastDue:
		p.Wait, p.Lane = min(p.Wait, pastDue), ledger.Open
	case s.PeriodEnd.After(now):
		p.Wait = min(p.Wait, s.PeriodEnd.Sub(now)+soonest)
	case !s.PeriodEnd.IsZero():
		p.Wait, p.Lane = min(p.Wait, growing(now.Sub(s.PeriodEnd))), ledger.Open
	}
	return p
}

// storeSubscriptions registers the handlers that store the outcomes of the account's requests
// for subscriptions.
func (m *core) storeSubscriptions(a *account) {
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.CustomerResult) error {
		where := ledger.Where{Account: a.Name, Ref: r.Operation.ExternalRef}
		return m.storeSubscription(ctx, tx, where, request{kindCustomer, where.Ref}, func(b *bench) error { return b.customerIs(&r) })
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.SubscriptionResult) error {
		where := ledger.Where{Account: a.Name, Ref: r.Operation.IdempotencyKey}
		return m.storeSubscription(ctx, tx, where, request{kindSubscribe, where.Ref}, func(b *bench) error { return b.created(&r) })
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx sqldb.Tx, r operations.CancelSubscriptionResult) error {
		where := ledger.Where{Account: a.Name, Resource: r.Operation.SubscriptionID}
		return m.storeSubscription(ctx, tx, where, request{kindCancel, r.Operation.Key}, func(b *bench) error { return b.canceled(&r) })
	})
}

// storeSubscription stores the outcome of a request for a subscription.
func (m *core) storeSubscription(ctx context.Context, tx sqldb.Tx, where ledger.Where, ends request, store func(*bench) error) error {
	rows, err := m.ledger(tx).Rows(ctx, ledger.Subscriptions, where)
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: the subscription of %s", ErrNotFound, cmp.Or(where.Ref, where.Resource))
	}
	if err != nil {
		return err
	}
	p := at(&rows[0])
	p.ends, p.of = ends, where.Account
	return m.on(ctx, tx, p, func(b *bench) error {
		b.subscription.touched = true
		return store(b)
	})
}

// customerIs stores the outcome of the request for the customer, and the request for the
// subscription.
func (b *bench) customerIs(r *operations.CustomerResult) error {
	s := b.subscription
	if r.Value != nil {
		s.CustomerID = r.Value.ID
	}
	if s.Params == "" { // withdrawn
		return nil
	}
	params := s.Params
	s.Params = ""
	if op, reason := outcome(r.Err); op == books.Refused {
		b.subscriptionIs(op, reason)
		return nil
	}
	var create operations.CreateSubscription
	if err := json.Unmarshal([]byte(params), &create); err != nil {
		return fmt.Errorf("merchant: the stored request for subscription %s can't be decoded: %w", s.ID, err)
	}
	create.CustomerID = s.CustomerID
	if invalid := create.Validate(); invalid != nil { // by rules of a newer release
		b.subscriptionIs(books.Refused, invalid.Error())
		return nil
	}
	b.sends = append(b.sends, send{s.account, create, "subscription " + s.ID, nil})
	b.subscriptionIs(books.Waiting, "")
	return nil
}

// created stores the outcome of the request for the subscription.
func (b *bench) created(r *operations.SubscriptionResult) error {
	s := b.subscription
	op, reason := outcome(r.Err)
	if op == books.Refused {
		s.Canceling = false // there is nothing to cancel
	}
	b.subscriptionIs(op, reason)
	if op == books.Refused {
		return nil
	}
	b.respond(r.Value, r.Entry)
	if s.Canceling && s.Cancels == 0 {
		b.sendCancel()
	}
	return nil
}

// isCancelRejected is a problem: the customer is still charged.
const isCancelRejected = books.ProblemKind("cancel_rejected")

// canceled stores the outcome of the request that cancels the subscription.
func (b *bench) canceled(r *operations.CancelSubscriptionResult) error {
	s := b.subscription
	s.Canceling = false
	if r.Err == nil {
		b.respond(r.Value, r.Entry)
		return nil
	}
	why := "" // without the gateway's text, which may repeat the reason
	if rejected, ok := errors.AsType[*operations.RejectedError](r.Err); ok {
		why = cmp.Or(rejected.Code, rejected.Kind)
	}
	b.problem(s.account, &books.Problem{
		Key: string(isCancelRejected) + "/" + r.Operation.Key, Kind: isCancelRejected, Record: s.ID,
		About: books.AboutSubscription,
		Text:  fmt.Sprintf("the gateway rejected the cancellation of subscription %s, which is still charged: %s", s.ID, why),
	})
	return nil
}

// respond applies the response to a request without its charges, which are read soon: few
// responses have them, and their money is in none.
func (b *bench) respond(sub *gateway.Subscription, e *operations.Entry) {
	response := *sub
	response.Transactions = nil
	// When it was read is not known; it was not before the operation was stored.
	b.bookSubscription(books.Reading[gateway.Subscription]{Resource: &response, Source: books.FromResponse, At: e.CreatedAt}, nil)
	b.subscription.ReadAfter = b.now
}

// transactionReadings are readings of a subscription's charges by their transactions' ids,
// nil for one that can't be read.
type transactionReadings map[string]*books.Reading[gateway.Transaction]

// otherChargeError reports that a transaction of a subscription is the charge of another record.
type otherChargeError struct{ transaction string }

func (e otherChargeError) Error() string {
	return fmt.Sprintf("transaction %s of a subscription is the charge of another record", e.transaction)
}

// without returns a reading without transactions that are charges of other records, such as a
// sale by link, and raises a problem about each.
func (b *bench) without(others []string, r books.Reading[gateway.Subscription]) books.Reading[gateway.Subscription] {
	s, reading := b.subscription, *r.Resource
	if len(others) == 0 {
		return r
	}
	reading.Transactions = slices.DeleteFunc(slices.Clone(reading.Transactions), func(t gateway.SubscriptionTransaction) bool {
		return slices.Contains(others, t.ID)
	})
	for _, id := range others {
		b.problem(s.account, &books.Problem{
			Key: string(books.IsUnmatched) + "/" + s.ID + "/" + strings.ToLower(id), Kind: books.IsUnmatched, Record: s.ID,
			About: books.AboutSubscription,
			Text:  fmt.Sprintf("transaction %s of subscription %s was booked as the charge of another record before: it is not booked again", id, s.ID),
		})
	}
	r.Resource = &reading
	return r
}

// bookSubscription books a reading of the subscription and readings of its charges. If some
// that it needs are missing, it changes nothing and returns the ids of their transactions.
func (b *bench) bookSubscription(r books.Reading[gateway.Subscription], transactions transactionReadings) (missing []string) {
	s := b.subscription
	before := make([]books.Charge, len(b.charges))
	for i := range b.charges {
		before[i] = b.charges[i].Books
	}
	after, charges, result := books.ApplySubscription(b.order.Order, s.Books, before, r)
	for _, id := range result.Read {
		if _, ok := transactions[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return missing
	}
	s.Books, s.touched = after, true
	if sub := r.Resource; strings.EqualFold(sub.ID, after.SubscriptionID) && sub.Status == after.Status {
		if s.show(sub); s.erased != 0 {
			s.subscriptionRecord = s.kept()
		}
	}
	for i := range charges {
		if i == len(b.charges) {
			b.newCharge(s.account, chargeRecord{Currency: charges[i].Currency, Amount: charges[i].Requested, Method: s.method(), Books: charges[i]}, "")
		}
		b.charges[i].Books = charges[i]
	}
	b.report(s.account, result)
	for _, ch := range b.charges {
		id := ch.Books.TransactionID
		if one := transactions[id]; one != nil && slices.Contains(result.Read, id) {
			b.book(ch, *one)
		}
	}
	if !r.At.Before(s.ReadAfter) {
		s.ReadAfter = time.Time{}
	}
	return nil
}

// method returns the method of the charges.
func (s *subscription) method() gateway.Method {
	if s.Method == gateway.SubscriptionPixAutomatic {
		return gateway.Pix
	}
	return gateway.CreditCard
}

// read reads the subscription, and returns what books it. Before it is known at the gateway
// there is only what the outbox knows. If charges have changed, it is called again to read
// them: an event is reported together with its money.
func (s *subscription) read(ctx context.Context, source books.Source) (func(*bench) error, error) {
	if s.Books.SubscriptionID == "" {
		return func(b *bench) error {
			if b.subscription != nil {
				b.subscription.touched = true
			}
			return nil
		}, nil
	}
	if s.reading == nil {
		if err := s.account.present(); err != nil {
			return nil, err
		}
		r := books.Reading[gateway.Subscription]{Source: source, At: s.account.clock.now()}
		var err error
		if r.Resource, err = s.account.Client.Subscriptions.Get(ctx, s.Books.SubscriptionID); err != nil {
			return nil, err
		}
		s.reading, s.transactions = &r, transactionReadings{}
	}
	for _, id := range s.missing {
		r, err := s.account.readTransaction(ctx, id, source)
		switch {
		case errors.Is(err, gateway.ErrNotFound): // what else the subscription shows counts all the same
			s.transactions[id] = nil
		case err != nil:
			return nil, err
		default:
			s.transactions[id] = &r
		}
	}
	return func(b *bench) error {
		if b.subscription == nil {
			return fmt.Errorf("%w: subscription %s", ErrNotFound, s.ID)
		}
		before := b.subscription.Books
		if s.missing = b.bookSubscription(b.without(s.others, *s.reading), s.transactions); len(s.missing) > 0 {
			return nil
		}
		b.found(b.subscription)
		switch now := &b.subscription.Books; {
		case s.event != nil && older(s.reading.Resource, s.event):
			b.subscription.Watch.announce(b.now, string(s.event.Kind), true)
		case now.Status != before.Status || !now.UpdatedAt.Equal(before.UpdatedAt):
			b.subscription.Watch.announce(b.now, "", false)
		}
		return nil
	}, nil
}

// same is false: a subscription shows its charges, and booking finds out which are new.
func (s *subscription) same(ledger.Lane) bool { return false }

// incomplete reports whether charges of the subscription have to be read before it can be
// booked.
func (s *subscription) incomplete() bool { return len(s.missing) > 0 }

// unread returns an error if a charge of the subscription can't be read.
func (s *subscription) unread() error {
	for id, r := range s.transactions {
		if r == nil {
			return fmt.Errorf("%w: transaction %s of subscription %s", gateway.ErrNotFound, id, s.ID)
		}
	}
	return nil
}

// onSubscription reads the subscription of an event and books what it shows. One that is
// not known belongs to another system, or is read as soon as the outcome of its creation is
// known.
func (m *core) onSubscription(ctx context.Context, a *account, e *webhook.SubscriptionEvent) error {
	rows, err := m.outside().Rows(ctx, ledger.Subscriptions, ledger.Where{Account: a.Name, Resource: e.ResourceID})
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return m.other(ctx, a, e.Event, e.CorrelationID)
	}
	s, err := m.subscriptionOf(&rows[0])
	if err != nil {
		return err
	}
	s.event = e
	if err := m.refresh(ctx, s, books.FromWebhook, ledger.Wait); err != nil {
		return err
	}
	if older(s.reading.Resource, e) {
		return m.behind(e.Event, "subscription", string(s.reading.Resource.Status)+", an older state,")
	}
	if s.Earlier.IsZero() || e.Data.OccurredAt.IsZero() || e.Data.OccurredAt.After(s.Earlier) {
		return nil
	}
	return m.toOther(ctx, a, e.Event)
}

// older reports whether a subscription was read as it was before an event.
func older(sub *gateway.Subscription, e *webhook.SubscriptionEvent) bool {
	charge := e.Data.LatestTransaction
	switch {
	case e.Data.CurrentPeriodEnd.After(sub.CurrentPeriodEnd.Time):
		return true
	case charge != nil && !slices.ContainsFunc(sub.Transactions, func(t gateway.SubscriptionTransaction) bool { return strings.EqualFold(t.ID, charge.ID) }):
		return true
	}
	return e.State() != sub.Status && !sub.UpdatedAt.IsZero() && e.Data.OccurredAt.After(sub.UpdatedAt.Time)
}

// callSubscription calls the callback of a subscription.
func (m *core) callSubscription(ctx context.Context, tx sqldb.Tx, f *ledger.Fact) error {
	if m.callbacks.Subscription == nil {
		return nil
	}
	l := m.ledger(tx)
	s, err := m.showSubscription(ctx, l, f.Subject, false)
	if err != nil {
		return err
	}
	s.Event = SubscriptionEvent(f.Kind)
	if f.Charge != "" {
		ch, err := m.loadCharge(ctx, l, f.Charge)
		if err != nil {
			return err
		}
		s.Charge = ch.shown()
	}
	return m.callbacks.Subscription(ctx, tx, s)
}
