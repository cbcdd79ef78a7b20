package merchant

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/books"
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
	Cancels      int // the number of operations that cancel it

	AuthorizationCode string
	PeriodEnd         time.Time // the end of the period or trial that the newest reading shows
	ReadAfter         time.Time // only a reading that began later shows what is known already; zero if it was made
}

// subscription is a subscription with its place.
type subscription struct {
	subscriptionRecord

	account *account
	ref     string // of the customer, and the idempotency key
	created time.Time
	params  string // the request for the subscription, "" once it is in the outbox or is not needed
}

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
		ID: b.ID, Account: s.account.Name, CustomerID: s.CustomerID, SubscriptionID: b.SubscriptionID, State: b.State, Canceling: s.canceling(),
		Amount: s.Amount, Currency: s.Currency, PaidUntil: b.PaidUntil, FailedAttempts: b.FailedAttempts, Reason: b.Reason,
		Charges: o.Charges, Order: *o, AuthorizationCode: s.AuthorizationCode, CreatedAt: s.created,
	}
	shown.Order.Charges, shown.Order.Refunds = nil, nil
	for _, c := range o.Charges {
		if c.State == Pending && c.Challenge != nil {
			shown.Challenge = c.Challenge
		}
	}
	return shown
}

// subscriptionDesk is a subscription with its charges and their money, under its lock.
type subscriptionDesk struct {
	*desk

	sub *subscription
}

// storedSubscriptions returns the subscriptions that a condition selects.
func (m *Merchant) storedSubscriptions(ctx context.Context, c conn, where string, args ...any) (list []*subscription, err error) {
	err = c.each(ctx, `SELECT account, ref, created_at, params, record FROM gateway_subscriptions `+where, args, func(row database.Scanner) error {
		var name, record string
		var created int64
		s := new(subscription)
		if err := row.Scan(&name, &s.ref, &created, &s.params, &record); err != nil {
			return err
		}
		s.created = time.UnixMilli(created)
		if s.account = m.accounts[name]; s.account == nil {
			return fmt.Errorf("%w: this process has no account %s", ErrAccount, name)
		}
		list = append(list, s)
		return decode(record, &s.subscriptionRecord)
	})
	return list, err
}

// storedSubscription returns a subscription, or [ErrNotFound].
func (m *Merchant) storedSubscription(ctx context.Context, c conn, id string) (*subscription, error) {
	list, err := m.storedSubscriptions(ctx, c, `WHERE id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: subscription %s", ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// readSubscription returns a subscription as the merchant gets it, with its charges if they
// are wanted.
func (m *Merchant) readSubscription(ctx context.Context, c conn, id string, charges bool) (*Subscription, error) {
	s, err := m.storedSubscription(ctx, c, id)
	if err != nil {
		return nil, err
	}
	order, err := m.readOrder(ctx, c, subscriptionSubject(id), charges)
	if err != nil {
		return nil, err
	}
	return s.shown(order), nil
}

// openSubscription locks a subscription.
func (m *Merchant) openSubscription(ctx context.Context, tx *sql.Tx, id string) (*subscriptionDesk, error) {
	d, err := m.open(ctx, tx, subscriptionSubject(id))
	if err != nil {
		return nil, err
	}
	return d.subscription(ctx, id)
}

// subscription returns the desk's subscription, after it has taken over what the outbox
// knows of its requests.
func (d *desk) subscription(ctx context.Context, id string) (*subscriptionDesk, error) {
	s, err := d.m.storedSubscription(ctx, d.c, id)
	if err != nil {
		return nil, err
	}
	d.account = s.account
	sd := &subscriptionDesk{desk: d, sub: s}
	return sd, sd.sync(ctx)
}

// sync takes over the progress of the operations that are not finished.
func (d *subscriptionDesk) sync(ctx context.Context) error {
	s, kind := d.sub, kindSubscribe
	if s.params != "" {
		kind = kindCustomer
	}
	op, err := d.progress(ctx, kind, s.ref, s.Books.Operation)
	if err != nil {
		return err
	}
	if kind == kindCustomer && op == books.Sent { // nothing was sent of the subscription itself
		op = books.Waiting
	}
	if op != "" {
		if err := d.operation(ctx, op, ""); err != nil {
			return err
		}
	}
	if !s.Canceling || s.Cancels == 0 {
		return nil
	}
	if op, err = d.progress(ctx, kindCancel, s.cancelKey(), books.Sent); err != nil || op != books.InDoubt {
		return err
	}
	return d.problem(ctx, &books.Problem{
		Key: string(books.IsAmbiguous) + "/" + s.cancelKey(), Kind: books.IsAmbiguous, Record: s.Books.ID,
		Text: fmt.Sprintf("it is not known whether subscription %s was canceled", s.Books.ID),
	})
}

// operation stores what became of the request for the subscription, or for its customer.
func (d *subscriptionDesk) operation(ctx context.Context, op books.Operation, reason string) error {
	var result books.Result
	d.sub.Books, result = books.ApplySubscriptionOperation(d.order, d.sub.Books, op, reason, d.now)
	return d.report(ctx, result)
}

// save stores the subscription. Its charges are stored when they change.
func (d *subscriptionDesk) save(ctx context.Context) error {
	s := d.sub
	record, err := encoded(&s.subscriptionRecord)
	if err != nil {
		return err
	}
	return d.c.must(ctx, `UPDATE gateway_subscriptions SET subscription_id = NULLIF(?, ''), state = ?, check_at = {now} + ?, params = ?, record = ? WHERE id = ?`,
		strings.ToLower(s.Books.SubscriptionID), string(s.Books.State), d.nextCheck(), s.params, record, s.Books.ID)
}

// nextCheck returns in how many milliseconds the subscription is compared with the gateway,
// or nil if it is not. What matters happens at the end of a period, and while it is past
// due. Its charges are compared too, also after its end.
func (d *subscriptionDesk) nextCheck() *int64 {
	s, wait := d.sub, d.m.cfg.CompareEvery
	// growing is a wait that grows with the time that has passed.
	growing := func(passed time.Duration) time.Duration { return min(wait, max(passed/4, soonest)) }
	switch status := s.Books.Status; {
	case !s.ReadAfter.IsZero():
		wait = 0
	case s.notMade(), status.Final() && !s.Canceling:
		return nil
	case status == "", s.Canceling:
		wait = min(wait, soonest)
	case status == gateway.SubscriptionIncomplete:
		wait = growing(d.now.Sub(s.created))
	case status == gateway.SubscriptionPastDue:
		wait = min(wait, time.Hour)
	case s.PeriodEnd.After(d.now):
		wait = min(wait, s.PeriodEnd.Sub(d.now)+soonest)
	case !s.PeriodEnd.IsZero():
		wait = growing(d.now.Sub(s.PeriodEnd))
	}
	ms := wait.Milliseconds()
	return &ms
}

// handleSubscriptions registers the handlers of the outcomes of the account's requests.
func (m *Merchant) handleSubscriptions(a *account) {
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.CustomerResult) error {
		return m.outcome(ctx, tx, a, `ref = ?`, r.Operation.ExternalRef, func(d *subscriptionDesk) error { return d.customer(ctx, &r) })
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.SubscriptionResult) error {
		return m.outcome(ctx, tx, a, `ref = ?`, r.Operation.IdempotencyKey, func(d *subscriptionDesk) error { return d.created(ctx, &r) })
	})
	operations.OnResult(a.outbox, func(ctx context.Context, tx *sql.Tx, r operations.CancelSubscriptionResult) error {
		return m.outcome(ctx, tx, a, `subscription_id = ?`, strings.ToLower(r.Operation.SubscriptionID), func(d *subscriptionDesk) error { return d.canceled(ctx, &r) })
	})
}

// outcome stores the outcome of a request for a subscription of the account.
func (m *Merchant) outcome(ctx context.Context, tx *sql.Tx, a *account, where, value string, handle func(*subscriptionDesk) error) error {
	list, err := m.storedSubscriptions(ctx, m.store.in(tx), `WHERE account = ? AND `+where, a.Name, value)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%w: the subscription of %s", ErrNotFound, value)
	}
	if err != nil {
		return err
	}
	d, err := m.openSubscription(ctx, tx, list[0].Books.ID)
	if err == nil {
		err = handle(d)
	}
	if err == nil {
		err = d.save(ctx)
	}
	return err
}

// customer stores the outcome of the request for the customer, and the operation that
// creates the subscription.
func (d *subscriptionDesk) customer(ctx context.Context, r *operations.CustomerResult) error {
	s := d.sub
	if r.Value != nil {
		s.CustomerID = r.Value.ID
	}
	if s.params == "" { // withdrawn
		return nil
	}
	params := s.params
	s.params = ""
	if r.Err != nil {
		return d.operation(ctx, books.Refused, r.Err.Error())
	}
	var create operations.CreateSubscription
	if err := json.Unmarshal([]byte(params), &create); err != nil {
		return fmt.Errorf("merchant: the stored request for subscription %s can't be decoded: %w", s.Books.ID, err)
	}
	create.CustomerID = s.CustomerID
	_, err := d.account.outbox.InsertTx(ctx, d.tx, create)
	if errors.Is(err, gateway.ErrValidation) { // by rules of a newer release
		return d.operation(ctx, books.Refused, err.Error())
	}
	if err != nil {
		return err
	}
	return d.operation(ctx, books.Waiting, "")
}

// created stores the outcome of the request for the subscription.
func (d *subscriptionDesk) created(ctx context.Context, r *operations.SubscriptionResult) error {
	if r.Err != nil {
		d.sub.Canceling = false // there is nothing to cancel
		return d.operation(ctx, books.Refused, r.Err.Error())
	}
	if err := d.operation(ctx, books.Applied, ""); err != nil {
		return err
	}
	if err := d.respond(ctx, r.Value, r.Entry); err != nil {
		return err
	}
	if d.sub.Canceling && d.sub.Cancels == 0 {
		return d.sendCancel(ctx)
	}
	return nil
}

// isCancelRejected is a problem: the customer is still charged.
const isCancelRejected = books.ProblemKind("cancel_rejected")

// canceled stores the outcome of the request that cancels the subscription.
func (d *subscriptionDesk) canceled(ctx context.Context, r *operations.CancelSubscriptionResult) error {
	s := d.sub
	s.Canceling = false
	if r.Err == nil {
		return d.respond(ctx, r.Value, r.Entry)
	}
	why := "" // without the gateway's text, which may repeat the reason
	if rejected, ok := errors.AsType[*operations.RejectedError](r.Err); ok {
		why = cmp.Or(rejected.Code, rejected.Kind)
	}
	return d.problem(ctx, &books.Problem{
		Key: string(isCancelRejected) + "/" + r.Operation.Key, Kind: isCancelRejected, Record: s.Books.ID,
		Text: fmt.Sprintf("the gateway rejected the cancellation of subscription %s, which is still charged: %s", s.Books.ID, why),
	})
}

// respond applies the response to a request without its charges, which are read soon: few
// responses have them, and their money is in none.
func (d *subscriptionDesk) respond(ctx context.Context, sub *gateway.Subscription, e *operations.Entry) error {
	response := *sub
	response.Transactions = nil
	// When it was read is not known; it was not before the operation was stored.
	_, err := d.readings(ctx, books.Reading[gateway.Subscription]{Resource: &response, Source: books.FromResponse, At: e.CreatedAt}, nil)
	d.sub.ReadAfter = time.Now()
	return err
}

// transactionReadings are readings of a subscription's charges by their transactions' ids,
// nil for one that can't be read.
type transactionReadings map[string]*books.Reading[gateway.Transaction]

// readings books a reading of the subscription and readings of its charges. If some that it
// needs are missing, it changes nothing and returns the ids of their transactions.
func (d *subscriptionDesk) readings(ctx context.Context, r books.Reading[gateway.Subscription], transactions transactionReadings) (missing []string, err error) {
	stored, err := d.m.readCharges(ctx, d.c, `WHERE subject = ? ORDER BY attempt`, d.order.ID)
	if err != nil {
		return nil, err
	}
	before := make([]books.Charge, len(stored))
	for i := range stored {
		before[i] = stored[i].Books
	}
	after, charges, result := books.ApplySubscription(d.order, d.sub.Books, before, r)
	for _, id := range result.Read {
		if _, ok := transactions[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return missing, nil
	}
	d.sub.Books = after
	if sub := r.Resource; strings.EqualFold(sub.ID, after.SubscriptionID) && sub.Status == after.Status {
		d.sub.show(sub)
	}
	if err := d.saveCharges(ctx, stored, charges); err != nil {
		return nil, err
	}
	if err := d.report(ctx, result); err != nil {
		return nil, err
	}
	for i := range charges {
		one := transactions[charges[i].TransactionID]
		if one == nil || !slices.Contains(result.Read, charges[i].TransactionID) {
			continue
		}
		if err := d.load(ctx, charges[i].ID); err != nil {
			return nil, err
		}
		if err := d.read(ctx, *one); err != nil {
			return nil, err
		}
		if err := d.desk.save(ctx); err != nil {
			return nil, err
		}
	}
	if !r.At.Before(d.sub.ReadAfter) {
		d.sub.ReadAfter = time.Time{}
	}
	return nil, nil
}

// saveCharges stores the charges that a reading of the subscription has added or changed.
func (d *subscriptionDesk) saveCharges(ctx context.Context, stored []*charge, charges []books.Charge) error {
	for i := range charges {
		if i < len(stored) && reflect.DeepEqual(stored[i].Books, charges[i]) {
			continue
		}
		record := chargeRecord{Currency: charges[i].Currency, Amount: charges[i].Requested, Method: d.sub.method()}
		if i < len(stored) {
			record = stored[i].chargeRecord
		}
		record.Books = charges[i]
		text, err := encoded(&record)
		if err != nil {
			return err
		}
		if i < len(stored) {
			err = d.c.must(ctx, `UPDATE gateway_charges SET record = ? WHERE id = ?`, text, record.Books.ID)
		} else {
			err = d.c.must(ctx, `INSERT INTO gateway_charges (id, account, subject, attempt, transaction_id, state, check_at, created_at, record)
				VALUES (?, ?, ?, ?, ?, ?, {now} + ?, {now}, ?)`, record.Books.ID, d.account.Name, d.order.ID, i+1,
				strings.ToLower(record.Books.TransactionID), string(record.Books.State), soonest.Milliseconds(), text)
		}
		if err != nil {
			return err
		}
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

// lookSubscription reads a subscription and books what it shows. Before it is known at the
// gateway it takes over what the outbox knows.
func (m *Merchant) lookSubscription(ctx context.Context, id string, source books.Source) error {
	s, err := m.storedSubscription(ctx, m.store.conn(), id)
	if err != nil {
		return err
	}
	if s.Books.SubscriptionID == "" {
		return m.store.transaction(ctx, func(tx *sql.Tx) error {
			d, err := m.openSubscription(ctx, tx, id)
			if err == nil {
				err = d.save(ctx)
			}
			return err
		})
	}
	_, err = m.bookSubscription(ctx, s, source)
	return err
}

// bookSubscription reads a subscription and those of its charges that changed, and books
// what they show in one transaction: an event is reported together with its money.
func (m *Merchant) bookSubscription(ctx context.Context, s *subscription, source books.Source) (sub *gateway.Subscription, err error) {
	r := books.Reading[gateway.Subscription]{Source: source, At: time.Now()}
	if r.Resource, err = s.account.Client.Subscriptions.Get(ctx, s.Books.SubscriptionID); err != nil {
		return nil, err
	}
	transactions := transactionReadings{}
	var unread error
	for {
		var missing []string
		if err := m.store.transaction(ctx, func(tx *sql.Tx) error {
			d, err := m.openSubscription(ctx, tx, s.Books.ID)
			if err == nil {
				missing, err = d.readings(ctx, r, transactions)
			}
			if err == nil && len(missing) == 0 {
				err = d.save(ctx)
			}
			return err
		}); err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			return r.Resource, unread
		}
		for _, id := range missing {
			one := &books.Reading[gateway.Transaction]{Source: source, At: time.Now()}
			one.Resource, err = s.account.Client.Transactions.Get(ctx, id)
			switch {
			case errors.Is(err, gateway.ErrNotFound): // what else the subscription shows counts all the same
				unread, one = err, nil
			case err != nil:
				return nil, err
			}
			transactions[id] = one
		}
	}
}

// readOne books a reading of the charge's transaction. If its status has changed, the
// subscription that it is a charge of may show more, and is read soon.
func (d *desk) readOne(ctx context.Context, r books.Reading[gateway.Transaction]) error {
	before := d.charge.Books.Status
	if err := d.read(ctx, r); err != nil {
		return err
	}
	id := subscriptionID(d.order.ID)
	if id == "" || d.charge.Books.Status == before {
		return nil
	}
	s, err := d.m.storedSubscription(ctx, d.c, id)
	if err != nil {
		return err
	}
	s.ReadAfter = time.Now()
	return (&subscriptionDesk{desk: d, sub: s}).save(ctx)
}

// onSubscription reads the subscription of an event and books what it shows. One that is
// not known belongs to another system, or is read as soon as the outcome of its creation is
// known.
func (m *Merchant) onSubscription(ctx context.Context, a *account, e *webhook.SubscriptionEvent) error {
	list, err := m.storedSubscriptions(ctx, m.store.conn(), `WHERE account = ? AND subscription_id = ?`, a.Name, strings.ToLower(e.ResourceID))
	if err != nil || len(list) == 0 {
		return err
	}
	sub, err := m.bookSubscription(ctx, list[0], books.FromWebhook)
	if err != nil {
		return err
	}
	if e.Attempt <= readAgain && older(sub, e) {
		return fmt.Errorf("the event says that the subscription is %s, and an older state was read, %s: it is read again", e.State(), sub.Status)
	}
	return nil
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
func (m *Merchant) callSubscription(ctx context.Context, tx *sql.Tx, f *delivery) error {
	if m.cfg.On.Subscription == nil {
		return nil
	}
	c := m.store.in(tx)
	s, err := m.readSubscription(ctx, c, f.record, false)
	if err != nil {
		return err
	}
	s.Event = SubscriptionEvent(f.kind)
	if f.charge != "" {
		ch, err := m.readCharge(ctx, c, f.charge)
		if err != nil {
			return err
		}
		s.Charge = ch.shown()
	}
	return m.cfg.On.Subscription(ctx, tx, s)
}
