package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// judge decides what a delivery is: which event, and whether the API confirms it.
//
// Signed and unsigned deliveries have separate readers: anyone who knows the
// receiver's URL can use up the limits of the unsigned one.
type judge struct {
	cfg              *Config
	signed, unsigned *reader // nil without an API
}

func newJudge(cfg *Config, key *keyWatch) judge {
	j := judge{cfg: cfg}
	if cfg.API != nil && cfg.Trust != UnsafeTrustBody {
		source := api{cfg.API, key}
		j.signed, j.unsigned = newReader(source, cfg.ReadBack), newReader(source, cfg.ReadBack)
	}
	return j
}

func (j *judge) readerOf(e *Event) *reader {
	if e.Signed {
		return j.signed
	}
	return j.unsigned
}

// identify returns the record of the event. A proven event is identified by
// its id; an unproven one, after the API has confirmed it, by its fact. Only
// these records are written to the store.
func (j *judge) identify(ctx context.Context, e parsed) (Record, error) {
	switch {
	case j.readerOf(e.Event) == nil:
		return record(e, "", nil)
	case e.Signed:
		fact, err := j.factOf(ctx, e)
		if err != nil {
			return Record{}, err
		}
		return record(e, fact, nil)
	default:
		return j.confirm(ctx, e)
	}
}

// factOf names the fact of a proven event, so that an unproven event with the
// same fact is recognized. If the event can happen more than once, the API's
// state tells which occurrence it is.
func (j *judge) factOf(ctx context.Context, e parsed) (string, error) {
	if !e.Family.known() || e.ResourceID == "" {
		return "", nil
	}
	if fact, ok := ownFact(e); ok {
		return fact, nil
	}
	c, _, err := j.readBack(ctx, e.Event)
	switch {
	case errors.Is(err, errUnknownResource):
		return unnamedFact(e), nil
	case rejectsKey(err):
		// The gateway gives up after a day, but a new key may take longer. The
		// signature proves the event.
		return unnamedFact(e), nil
	case err != nil:
		return "", err
	case c.verdict != confirmed:
		return unnamedFact(e), nil // the signature takes precedence over an API that lags behind
	default:
		return c.fact, nil
	}
}

// unnamedFact is the fact of a signed event whose occurrence the API does not tell. No
// confirmed event has it, but with a fact an unsigned twin is found by the event's id.
func unnamedFact(e parsed) string { return factNamed(e.Event, "event "+e.ID) }

// confirm confirms an unproven event by the API, and rebuilds it from the API's
// resource. The rest of the body is only compared with it.
func (j *judge) confirm(ctx context.Context, e parsed) (Record, error) {
	switch {
	case !e.Family.known() || e.ResourceID == "":
		return Record{}, fmt.Errorf("%w: the event names no resource to look up", ErrUnconfirmed)
	case rowOf(e.Kind) == nil:
		return Record{}, fmt.Errorf("%w: the API can't confirm an event of an unknown kind", ErrUnconfirmed)
	case e.ambiguous:
		return Record{}, fmt.Errorf("%w: the body names more than one resource", ErrUnconfirmed)
	}
	c, res, err := j.readBack(ctx, e.Event)
	switch {
	case errors.Is(err, errUnknownResource):
		return Record{}, fmt.Errorf("%w: the API has no such resource", ErrUnconfirmed)
	case err != nil:
		return Record{}, err
	}
	if err := contradiction(e.Event, res); err != nil {
		return Record{}, err
	}
	switch c.verdict {
	case refuted:
		return Record{}, fmt.Errorf("%w: the resource is %s", ErrUnconfirmed, c.status)
	case behind:
		return Record{}, fmt.Errorf("%w: the resource is still %s", ErrNotConfirmedYet, c.status)
	case confirmed:
	}
	if err := j.checkRemembered(ctx, c.moment); err != nil {
		return Record{}, err
	}
	return rebuilt(e.Event, c, res)
}

// errStore marks an error of the store before there is a record.
var errStore = errors.New("webhook: the store can't be read")

// checkRemembered returns an error if the event is older than the store remembers: it
// may be a replay of an event that was handled before. A memory store is new
// after a restart; events from shortly before are accepted, because they are
// most likely still in flight, and because the clocks of gateway and receiver
// differ.
func (j *judge) checkRemembered(ctx context.Context, moment time.Time) error {
	if moment.IsZero() {
		return nil
	}
	remembers, err := j.cfg.Store.Remembers(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if !j.cfg.Store.Durable() {
		remembers += Tolerance
	}
	if j.cfg.Now().Sub(moment) > remembers {
		return fmt.Errorf("%w: it happened longer ago than the store remembers", ErrUnconfirmed)
	}
	return nil
}

// readBack reads the event's resource and judges the event by it. A call that
// was already running may have seen an older state, so a result of "not yet"
// is read again.
func (j *judge) readBack(ctx context.Context, e *Event) (confirmation, *resource, error) {
	for {
		res, joined, err := j.readerOf(e).read(ctx, e.Family, e.ResourceID)
		if err != nil {
			if !errors.Is(err, errUnknownResource) {
				err = fmt.Errorf("%w: %w", ErrNotConfirmedYet, err)
			}
			return confirmation{}, nil, err
		}
		now := j.cfg.Now()
		c := confirmationBy(e, res, now)
		if !e.Signed {
			c.verdict = max(c.verdict, statusVerdict(e, res, now))
		}
		if c.verdict != behind || !joined {
			return c, res, nil
		}
	}
}

// sameContent compares a signed body with its confirmed twin, which was built
// from the API's resource.
func (j *judge) sameContent(ctx context.Context, body []byte) (bool, error) {
	e, err := Parse(body)
	if err != nil {
		return false, err
	}
	e.Signed = true
	_, res, err := j.readBack(ctx, e)
	if errors.Is(err, errUnknownResource) {
		return false, nil
	}
	return err == nil && contradiction(e, res) == nil, err
}

// terms are the immutable members of an event's resource. The zero value means
// unknown.
type terms struct {
	amounts             []int64 // those of a transaction; see gateway.Transaction.AmountIs
	currency, reference string
}

// termsOf returns the terms in the event's body. It is an error if an amount
// can't be read.
func termsOf(e *Event) (terms, error) {
	return dataOf(e, func(o object) terms {
		switch e.Family {
		case FamilyTransaction:
			d := readTransactionData(o)
			return terms{amounts: []int64{d.Amount, d.BasePrice, d.PaidAmount}, currency: string(d.Currency), reference: d.CorrelationID}
		case FamilySubscription:
			d := readSubscriptionData(o)
			return terms{amounts: []int64{d.Amount}, currency: string(d.Currency)}
		default:
			d := readTransferData(o)
			return terms{amounts: []int64{d.Amount}, reference: d.ExternalRef}
		}
	})
}

func (r *resource) terms() terms {
	switch {
	case r.transaction != nil:
		tx := r.transaction
		return terms{amounts: []int64{tx.Amount, tx.BasePrice, tx.PaidAmount}, currency: string(tx.Currency), reference: tx.ExternalRef}
	case r.subscription != nil:
		return terms{amounts: []int64{r.subscription.Amount}, currency: string(r.subscription.Currency)}
	default:
		return terms{amounts: []int64{r.transfer.Amount}, reference: r.transfer.ExternalRef}
	}
}

// contradicts returns the name of the first member that both have with
// different values, or "".
func (w terms) contradicts(other terms) string {
	switch {
	case !agree(w.amounts, other.amounts):
		return "amount"
	case w.currency != "" && other.currency != "" && w.currency != other.currency:
		return "currency"
	case w.reference != "" && other.reference != "" && w.reference != other.reference:
		return "reference"
	default:
		return ""
	}
}

// agree reports whether a and b have a non-zero amount in common, or one of them
// has none. Event and API may differ in Amount alone: one of them may report what
// is settled.
func agree(a, b []int64) bool {
	none := func(n int64) bool { return n == 0 }
	a, b = slices.DeleteFunc(slices.Clone(a), none), slices.DeleteFunc(slices.Clone(b), none)
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(n int64) bool { return slices.Contains(b, n) })
}

// contradiction returns an error if an unproven event contradicts the API.
func contradiction(e *Event, r *resource) error {
	said, err := termsOf(e)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	if member := said.contradicts(r.terms()); member != "" {
		return fmt.Errorf("%w: the resource has another %s", ErrUnconfirmed, member)
	}
	return nil
}

// verdict is the judgment of an event by the state of its resource in the API.
type verdict uint8

const (
	confirmed verdict = iota // the resource can only reach this state through the event
	behind                   // not yet, but the resource may still get there
	refuted                  // it can't have happened
)

// confirmation is the judgment of an event without its own proof.
type confirmation struct {
	verdict verdict
	fact    string    // see factNamed
	moment  time.Time // when it happened; later than that if the API doesn't say
	late    bool      // the resource is past the waiting state that the event announces
	status  string
}

// confirmationBy judges e by the resource that the API returned for it.
func confirmationBy(e *Event, r *resource, now time.Time) confirmation {
	c := confirmation{status: r.status(), moment: r.head().updatedAt.Time}
	row, occasion := rowOf(e.Kind), ""
	switch family := e.Kind.Family(); {
	case family != "" && family != e.Family:
		c.verdict = refuted // a payment with a subscription's id: the gateway never sends it
		return c
	case row == nil && string(e.Kind) != e.Family.prefix()+"."+c.status:
		c.verdict = refuted // an unknown meaning can't be proven
		return c
	case row == nil && r.transfer == nil:
		occasion = lastUpdate(r)
	case row == nil: // a transfer only moves forward
	default:
		c.verdict = row.proof(r, now)
		if row.at != nil {
			c.moment = row.at(r)
		}
		c.late = row.passed != nil && row.passed(r)
		if row.occasion != nil {
			occasion = row.occasion(r)
		}
	}
	c.fact = factNamed(e, occasion)
	return c
}

// statusVerdict judges the state in an unproven event: the resource must be in
// it or have been in it.
func statusVerdict(e *Event, r *resource, now time.Time) verdict {
	if e.Status == "" || e.Status == r.status() {
		return confirmed
	}
	tx := r.transaction
	switch {
	case r.subscription != nil:
		return stageVerdict(gateway.SubscriptionStatus(e.Status), r.subscription.Status)
	case tx != nil && e.Status == string(gateway.TransactionRefunded) && (tx.Charged() <= 0 || tx.RefundedAmount < tx.Charged()):
		return reached(gateway.TransactionRefunded)(tx) // a part of it proves another state
	}
	if row := derivedRow(e.Family, e.Status); row != nil {
		return row.proof(r, now)
	}
	return confirmed // an intermediate state such as processing: the API neither proves nor refutes it
}

// stageVerdict never rejects a state permanently, since a subscription goes
// through cycles. It only requires that the state is not in the future.
func stageVerdict(said, is gateway.SubscriptionStatus) verdict {
	if subscriptionStage(said) > subscriptionStage(is) {
		return behind
	}
	return confirmed
}

func subscriptionStage(s gateway.SubscriptionStatus) int {
	switch s {
	case gateway.SubscriptionIncomplete:
		return 1
	case gateway.SubscriptionTrialing:
		return 2
	case gateway.SubscriptionActive, gateway.SubscriptionPastDue, gateway.SubscriptionCancelScheduled:
		return 3
	case gateway.SubscriptionCanceled:
		return 4
	default:
		return 0
	}
}

// An unproven event is rebuilt from the resource that the API returned:
// nothing in its body, not even the id, comes from the sender. Otherwise the
// owner of a paid transaction could have any amount, reference or metadata
// confirmed.

// rebuilt returns the record of an event that the API confirmed. e has the
// kind and the resource. The id of its delivery may be guessed, so it is kept
// only if a signed twin can't be found without it.
func rebuilt(e *Event, c confirmation, res *resource) (Record, error) {
	body, err := eventBody(factID(c.fact), e.Kind, res)
	if err != nil {
		return Record{}, fmt.Errorf("webhook: %s of %s can't be written: %w", e.Kind, e.ResourceID, err)
	}
	again, err := parse(body)
	if err != nil {
		return Record{}, err
	}
	again.Source, again.ConfirmedStatus, again.Stale = e.Source, c.status, c.late
	rec, err := record(again, c.fact, res)
	if row := rowOf(e.Kind); e.ID != "" && row != nil && row.needsAPI() {
		rec.EventID = e.ID
	}
	return rec, err
}

// eventBody returns the body that the gateway would have sent, from the
// resource. Members that the API does not return are omitted.
func eventBody(id string, kind Kind, res *resource) ([]byte, error) {
	type object = map[string]any
	body := object{"id": id}
	switch {
	case res.transaction != nil:
		tx := res.transaction
		body["event"] = FamilyTransaction
		data := object{
			"id": tx.ID, "event_type": kind, "status": tx.Status, "correlation_id": tx.ExternalRef, "method": tx.Method,
			"amount": tx.Amount, "currency": tx.Currency, "paid_at": tx.PaidAt, "informations": tx.Informations,
			"customer": object{"name": tx.Buyer.Name, "email": tx.Buyer.Email, "phone": tx.Buyer.Phone},
			"products": eventProducts(tx.Products),
		}
		for name, cents := range map[string]int64{"base_price": tx.BasePrice, "paid_amount": tx.PaidAmount} {
			if cents != 0 {
				data[name] = cents
			}
		}
		if tx.Fee != nil && tx.Fee.NetAmount != 0 {
			data["net_amount"] = tx.Fee.NetAmount
		}
		body["data"] = data
	case res.transfer != nil:
		tr := res.transfer
		body["type"] = kind
		body["data"] = object{"object": object{
			"id": tr.ID, "status": tr.Status, "type": tr.Type, "amount": tr.Amount, "fee": tr.Fee,
			"net_amount": tr.Amount - tr.Fee, "external_ref": tr.ExternalRef, "transferred_at": tr.TransferredAt,
		}}
	default:
		sub := res.subscription
		body["event"] = FamilySubscription
		body["data"] = object{
			"id": sub.ID, "event_type": kind, "status": sub.Status, "customer_id": sub.CustomerID, "amount": sub.Amount,
			"currency": sub.Currency, "interval": sub.Interval, "interval_count": sub.IntervalCount,
			"current_period_start": sub.CurrentPeriodStart, "current_period_end": sub.CurrentPeriodEnd,
			"cancel_at_period_end": sub.CancelAtPeriodEnd, "customer_email": sub.CustomerEmail,
			"failure_policy": sub.FailurePolicy, "trial_end": sub.TrialEnd, "metadata": sub.Metadata,
			"latest_transaction": latestCharge(sub),
		}
	}
	return jsonv2.Marshal(body, jsonv2.Deterministic(true), jsonread.Lenient)
}

func eventProducts(lines []gateway.ProductLine) []map[string]any {
	products := make([]map[string]any, len(lines))
	for i, p := range lines {
		products[i] = map[string]any{"title": p.Name, "unit_price": p.Price, "quantity": p.Quantity}
	}
	return products
}

// latestCharge returns the last charge of a subscription, or nil if the API
// lists none.
func latestCharge(sub *gateway.Subscription) map[string]any {
	if len(sub.Transactions) == 0 {
		return nil
	}
	tx := slices.MaxFunc(sub.Transactions, func(a, b gateway.SubscriptionTransaction) int {
		return a.CreatedAt.Compare(b.CreatedAt.Time)
	})
	return map[string]any{
		"id": tx.ID, "status": tx.Status, "amount": tx.Amount, "paid_amount": tx.PaidAmount, "refunded_amount": tx.RefundedAmount,
		"currency": tx.Currency, "external_ref": tx.ExternalRef, "created_at": tx.CreatedAt, "paid_at": tx.PaidAt,
	}
}

// resource is a resource from the API: exactly one member is set.
type resource struct {
	transaction  *gateway.Transaction
	subscription *gateway.Subscription
	transfer     *gateway.Transfer
}

// head has the members that resources of all families share.
type head struct {
	id, status           string
	createdAt, updatedAt gateway.Timestamp
}

func (r *resource) head() head {
	switch {
	case r.transaction != nil:
		tx := r.transaction
		return head{tx.ID, string(tx.Status), tx.CreatedAt, tx.UpdatedAt}
	case r.subscription != nil:
		sub := r.subscription
		return head{sub.ID, string(sub.Status), sub.CreatedAt, sub.UpdatedAt}
	default:
		tr := r.transfer
		return head{tr.ID, string(tr.Status), tr.CreatedAt, tr.UpdatedAt}
	}
}

// status returns the resource's state, or "" if there is no resource.
func (r *resource) status() string {
	if r == nil {
		return ""
	}
	return r.head().status
}

// proves reports whether an event of the kind must have happened to the resource.
func (r *resource) proves(k Kind, now time.Time) bool { return rowOf(k).proof(r, now) == confirmed }

// encode encodes the resource for the store.
func (r *resource) encode() ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	var state any = r.transfer
	switch {
	case r.transaction != nil:
		state = r.transaction
	case r.subscription != nil:
		state = r.subscription
	}
	return jsonv2.Marshal(state, jsonread.Lenient)
}

func decodeResource(family Family, raw []byte) (*resource, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var r resource
	var into any
	switch family {
	case FamilyTransaction:
		r.transaction = new(gateway.Transaction)
		into = r.transaction
	case FamilySubscription:
		r.subscription = new(gateway.Subscription)
		into = r.subscription
	default:
		r.transfer = new(gateway.Transfer)
		into = r.transfer
	}
	err := jsonv2.Unmarshal(raw, into, jsonread.Lenient)
	return &r, err
}
