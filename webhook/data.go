package webhook

import (
	"bytes"
	"fmt"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// TransactionEvent is an event of a transaction.
type TransactionEvent struct {
	*Event

	// Data is the transaction as the event describes it.
	Data TransactionData

	// Confirmed is the transaction as the API returned it when the event was
	// accepted. It is nil for a signed event, whose Data is what was signed.
	Confirmed *gateway.Transaction
}

// State returns the confirmed state of the transaction, or else the state in
// the event.
func (e *TransactionEvent) State() gateway.TransactionStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// TransactionData is the data of a transaction's event. Amounts are in cents;
// absent members are zero, as are those of an unexpected type, which the receiver logs
// once; [Event.Raw] has all.
//
// No event says how much was paid back: in the event of a partial refund, Amount
// is still the amount of the charge. Read the transaction for its
// RefundedAmount.
type TransactionData struct {
	ID            string
	EventType     Kind
	CorrelationID string // the external_ref
	Method        gateway.Method
	Status        gateway.TransactionStatus
	Amount        int64 // of the charge, whatever the event reports, or what is settled; see Charged
	BasePrice     int64 // as requested; most gateways don't send it
	PaidAmount    int64 // what the buyer paid; many gateways don't send it
	NetAmount     int64 // what is left after the gateway's fee; many gateways don't send it
	Currency      gateway.Currency
	PaidAt        gateway.Timestamp
	Customer      gateway.Buyer // the name, e-mail address and phone number
	Products      []gateway.ProductLine
	Informations  []gateway.Information
}

// AmountIs reports whether cents is the amount of the transaction: whether it
// equals Amount, BasePrice or a PaidAmount that is not 0; see
// [gateway.Transaction.AmountIs].
func (d *TransactionData) AmountIs(cents int64) bool { return d.amounts().AmountIs(cents) }

// Charged returns in cents what the buyer was charged or is asked to pay; see
// [gateway.Transaction.Charged]. If the event has neither a PaidAmount nor a
// BasePrice, it is Amount, which a live gateway may have reduced to what it
// settles: read the transaction if it differs from your order.
func (d *TransactionData) Charged() int64 { return d.amounts().Charged() }

func (d *TransactionData) amounts() *gateway.Transaction {
	return &gateway.Transaction{Amount: d.Amount, BasePrice: d.BasePrice, PaidAmount: d.PaidAmount}
}

// Transaction returns e as the event of a transaction. It returns an error if
// e belongs to another family, or if an amount in its data can't be read; the error
// names the member.
func (e *Event) Transaction() (*TransactionEvent, error) {
	data, err := typed(e, FamilyTransaction, readTransactionData)
	if err != nil {
		return nil, err
	}
	t := &TransactionEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.transaction
	}
	return t, nil
}

func readTransactionData(o object) TransactionData {
	d := TransactionData{
		ID:            o.text("id"),
		EventType:     Kind(o.text("event_type", "eventType")),
		CorrelationID: o.text("correlation_id", "correlationId", "external_ref"),
		Method:        gateway.Method(o.text("method")),
		Status:        gateway.TransactionStatus(o.text("status")),
		Amount:        o.amount("amount"),
		BasePrice:     o.extraAmount("base_price", "basePrice"),
		PaidAmount:    o.extraAmount("paid_amount", "paidAmount"),
		NetAmount:     o.netAmount(),
		Currency:      gateway.Currency(o.text("currency")),
		PaidAt:        o.timestamp("paid_at", "paidAt"),
	}
	if c, ok := o.object("customer"); ok {
		d.Customer = gateway.Buyer{Name: c.person("name"), Email: c.person("email"), Phone: c.person("phone")}
	}
	odd := o.unreadable
	d.Products = listOf(o, "products", readEventProduct)
	if o.unreadable > odd {
		d.Products = nil // prices mean nothing without the others
	}
	d.Informations = listOf(o, "informations", func(i object) gateway.Information {
		return gateway.Information{Key: i.text("key"), Value: i.text("value")}
	})
	return d
}

// netAmount reads what is left after the fee, which some gateways send within the fee:
// {net_amount, estimated_fee, spread_percentage}.
func (o object) netAmount() int64 {
	if cents := o.extraAmount("net_amount", "netAmount"); cents != 0 {
		return cents
	}
	if fee, ok := o.object("fee"); ok {
		return fee.extraAmount("net_amount", "netAmount")
	}
	return 0
}

func readEventProduct(o object) gateway.ProductLine {
	return gateway.ProductLine{
		Name:     o.text("title", "name"),
		Price:    o.extraAmount("unit_price", "unitPrice", "price"),
		Quantity: o.count("quantity"),
	}
}

// SubscriptionEvent is an event of a subscription.
type SubscriptionEvent struct {
	*Event

	// Data is the subscription as the event describes it.
	Data SubscriptionData

	// Confirmed is the subscription as the API returned it when the event was
	// accepted. It is nil for a signed event, whose Data is what was signed.
	Confirmed *gateway.Subscription
}

// State returns the confirmed state of the subscription, or else the state in
// the event.
func (e *SubscriptionEvent) State() gateway.SubscriptionStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// SubscriptionData is the data of a subscription's event, whether sent in
// snake_case or in camelCase. Amounts are in cents; absent members are zero.
type SubscriptionData struct {
	ID                 string
	EventType          Kind
	CustomerID         string
	Status             gateway.SubscriptionStatus
	PreviousStatus     gateway.SubscriptionStatus // "" if the event created the subscription
	Amount             int64                      // per period
	Currency           gateway.Currency
	Interval           gateway.Interval
	IntervalCount      int
	CurrentPeriodStart gateway.Timestamp
	CurrentPeriodEnd   gateway.Timestamp
	CancelAtPeriodEnd  bool
	CycleCount         int
	CustomerEmail      string
	FailurePolicy      gateway.FailurePolicy
	TrialEnd           gateway.Timestamp
	Metadata           gateway.Metadata // of the subscription when the event was sent
	OccurredAt         gateway.Timestamp
	AttemptNumber      int    // only for a failed charge
	FailureReason      string // only for a failed charge

	// LatestTransaction is the last charge, or nil if there is none.
	LatestTransaction *gateway.SubscriptionTransaction
}

// Subscription returns e as the event of a subscription. The errors are those
// of [Event.Transaction].
func (e *Event) Subscription() (*SubscriptionEvent, error) {
	data, err := typed(e, FamilySubscription, readSubscriptionData)
	if err != nil {
		return nil, err
	}
	t := &SubscriptionEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.subscription
	}
	return t, nil
}

func readSubscriptionData(o object) SubscriptionData {
	d := SubscriptionData{
		ID:                 o.text("id"),
		EventType:          Kind(o.text("event_type", "eventType")),
		CustomerID:         o.text("customer_id", "customerId"),
		Status:             gateway.SubscriptionStatus(o.text("status")),
		PreviousStatus:     gateway.SubscriptionStatus(o.text("previous_status", "previousStatus")),
		Amount:             o.amount("amount"),
		Currency:           gateway.Currency(o.text("currency")),
		Interval:           gateway.Interval(o.text("interval")),
		IntervalCount:      o.count("interval_count", "intervalCount"),
		CurrentPeriodStart: o.timestamp("current_period_start", "currentPeriodStart"),
		CurrentPeriodEnd:   o.timestamp("current_period_end", "currentPeriodEnd"),
		CancelAtPeriodEnd:  o.flag("cancel_at_period_end", "cancelAtPeriodEnd"),
		CycleCount:         o.count("cycle_count", "cycleCount"),
		CustomerEmail:      o.text("customer_email", "customerEmail"),
		FailurePolicy:      gateway.FailurePolicy(o.text("failure_policy", "failurePolicy")),
		TrialEnd:           o.timestamp("trial_end", "trialEnd"),
		Metadata:           o.metadata("metadata"),
		OccurredAt:         o.timestamp("occurred_at", "occurredAt"),
		AttemptNumber:      o.count("attempt_number", "attemptNumber"),
		FailureReason:      o.text("failure_reason", "failureReason"),
	}
	if c, ok := o.object("latest_transaction", "latestTransaction"); ok {
		d.LatestTransaction = readChargeData(c)
	}
	return d
}

func readChargeData(o object) *gateway.SubscriptionTransaction {
	return &gateway.SubscriptionTransaction{
		ID:             o.text("id"),
		Status:         gateway.TransactionStatus(o.text("status")),
		Amount:         o.amount("amount"),
		PaidAmount:     o.amount("paid_amount", "paidAmount"),
		RefundedAmount: o.amount("refunded_amount", "refundedAmount"),
		Currency:       gateway.Currency(o.text("currency")),
		ExternalRef:    o.text("external_ref", "externalRef"),
		CreatedAt:      o.timestamp("created_at", "createdAt"),
		PaidAt:         o.timestamp("paid_at", "paidAt"),
	}
}

// TransferEvent is an event of a transfer.
type TransferEvent struct {
	*Event

	// Data is the transfer as the event describes it: without the Pix key, and with
	// the TransferredAt as its only time. The net_amount of the event is Amount minus Fee.
	Data gateway.Transfer

	// Confirmed is the transfer as the API returned it when the event was
	// accepted. It is nil for a signed event, whose Data is what was signed.
	Confirmed *gateway.Transfer
}

// State returns the confirmed state of the transfer, or else the state in the
// event.
func (e *TransferEvent) State() gateway.TransferStatus {
	if e.Confirmed != nil {
		return e.Confirmed.Status
	}
	return e.Data.Status
}

// Transfer returns e as the event of a transfer. The errors are those of
// [Event.Transaction].
func (e *Event) Transfer() (*TransferEvent, error) {
	data, err := typed(e, FamilyTransfer, readTransferData)
	if err != nil {
		return nil, err
	}
	t := &TransferEvent{Event: e, Data: data}
	if e.confirmed != nil {
		t.Confirmed = e.confirmed.transfer
	}
	return t, nil
}

// readTransferData reads a transfer that was sent flat or under "object".
func readTransferData(o object) gateway.Transfer {
	// Members under "object" take precedence over those beside it, so they
	// are read last.
	if inner, ok := o.object("object"); ok {
		o.to = inner.to
	}
	return gateway.Transfer{
		ID:            o.text("id"),
		Status:        gateway.TransferStatus(o.text("status")),
		Type:          o.text("type"),
		Amount:        o.amount("amount"),
		Fee:           o.extraAmount("fee"),
		ExternalRef:   o.text("external_ref", "externalRef", "correlation_id", "correlationId"),
		TransferredAt: o.timestamp("transferred_at", "transferredAt"),
	}
}

// typed reads the data of an event of family f. It returns an error if the
// event belongs to another family, or if a number in its data can't be read.
func typed[T any](e *Event, f Family, read func(object) T) (data T, err error) {
	if e.Family != f {
		return data, fmt.Errorf("webhook: the event belongs to the family %q, not %q", e.Family, f)
	}
	return dataOf(e, read)
}

// dataOf reads the data of an event that [Parse] accepted; one that was created
// manually may have none.
func dataOf[T any](e *Event, read func(object) T) (data T, err error) {
	if len(e.Raw) == 0 {
		return data, nil
	}
	invalid := jsonread.Read(bytes.Clone(e.Raw), func(d *jsonread.Document) {
		for i := range d.Children(0) {
			if d.Name(i) == "data" {
				r := &reading{doc: d, members: make([]member, 0, typicalMembers)}
				data = read(r.open(i))
				err = r.fault
				if e.receiver != nil {
					e.receiver.warnLeftOut(e, r.leftOut)
				}
				return
			}
		}
	})
	if invalid != nil {
		return data, ErrInvalidJSON
	}
	return data, err
}

// typicalMembers is a capacity that is enough for the members of most events.
const typicalMembers = 24

// reading is the state of a reader of one event's data.
type reading struct {
	doc     *jsonread.Document
	members []member // of the open objects
	fault   error    // the first amount that can't be read

	unreadable int      // members that were left out
	leftOut    []string // their paths
}

type member struct {
	name string
	node int
}

// object reads the members of a JSON object. A member of an unexpected type is
// left out, so an unusual payload does not lose an event. An amount that can't be
// read is an error: otherwise it would be booked as zero.
//
// Every method takes the names of one member in order of preference: the gateway
// writes some in snake_case and in camelCase. Of duplicate members the last
// one counts.
type object struct {
	*reading

	from, to int // its members
}

// person reads a member about a person. A gateway writes an absent one as "null".
func (o object) person(names ...string) string {
	if text := o.text(names...); text != "null" {
		return text
	}
	return ""
}

// open returns the object of a node. A value that is not an object has no
// members.
func (r *reading) open(node int) object {
	from := len(r.members)
	if r.doc.Kind(node) == '{' {
		for i := range r.doc.Children(node) {
			r.members = append(r.members, member{name: r.doc.Name(i), node: i})
		}
	}
	return object{r, from, len(r.members)}
}

// find returns the member with the first of the names that exists; if it is
// duplicated, the last one. It returns nil if there is none, or if it is null.
// The member is valid until the next open.
func (o object) find(names ...string) *member {
	for _, name := range names {
		var found *member
		for i := o.from; i < o.to; i++ {
			if m := &o.members[i]; m.name == name {
				found = m
			}
		}
		if found != nil {
			if o.doc.Kind(found.node) == 'n' {
				return nil
			}
			return found
		}
	}
	return nil
}

func (o object) text(names ...string) (s string) {
	if m := o.find(names...); m != nil {
		var ok bool
		s, ok = o.doc.Scalar(m.node)
		o.leaveOut(m, ok)
	}
	return s
}

// amount reads an integer number of cents: a number or a string that has an exact
// integer value, such as 1990, "1990" or 1990.00.
func (o object) amount(names ...string) (cents int64) {
	m := o.find(names...)
	if m == nil {
		return 0
	}
	digits, ok := o.doc.Scalar(m.node)
	if ok {
		cents, ok = jsonread.Integer(digits)
	}
	if !ok && o.fault == nil {
		o.fault = fmt.Errorf("webhook: %s is not an integer number of cents", o.doc.Path(m.node))
	}
	return cents
}

// extraAmount is amount for members that only inform, or that few gateways send: a value
// that is not a number of cents is left out.
func (o object) extraAmount(names ...string) (cents int64) {
	m := o.find(names...)
	if m == nil {
		return 0
	}
	digits, ok := o.doc.Scalar(m.node)
	if ok {
		cents, ok = jsonread.Integer(digits)
	}
	o.leaveOut(m, ok)
	return cents
}

func (o object) count(names ...string) int { return int(o.extraAmount(names...)) }

func (o object) flag(names ...string) bool {
	m := o.find(names...)
	if m == nil {
		return false
	}
	s := o.doc.Raw(m.node)
	yes, no := s == "true" || s == `"true"`, s == "false" || s == `"false"`
	o.leaveOut(m, yes || no)
	return yes
}

// leaveOut records that a member that only informs could not be read.
func (o object) leaveOut(m *member, ok bool) {
	if ok {
		return
	}
	o.unreadable++
	if path := o.doc.Path(m.node); len(o.leftOut) < mostLeftOut {
		o.leftOut = append(o.leftOut, path)
	}
}

// mostLeftOut limits what is reported of one event.
const mostLeftOut = 20

func (o object) timestamp(names ...string) (t gateway.Timestamp) {
	if m := o.find(names...); m != nil {
		_ = t.UnmarshalJSON([]byte(o.doc.Raw(m.node))) // never fails
		o.leaveOut(m, !t.Unreadable())
	}
	return t
}

func (o object) metadata(names ...string) (md gateway.Metadata) {
	if m := o.find(names...); m != nil {
		_ = md.UnmarshalJSON([]byte(o.doc.Raw(m.node))) // never fails
	}
	return md
}

// object opens a member that is an object.
func (o object) object(names ...string) (inner object, ok bool) {
	m := o.find(names...)
	if m == nil {
		return object{}, false
	}
	if o.doc.Kind(m.node) == '{' {
		return o.open(m.node), true
	}
	o.leaveOut(m, false)
	return object{}, false
}

// mostElements limits the lists that are read element by element. The
// interface allows 100 products and 50 informations.
const mostElements = 1000

// listOf reads a list of objects. Any other list counts as absent.
func listOf[T any](o object, name string, read func(object) T) (list []T) {
	m := o.find(name)
	if m == nil {
		return nil
	}
	n, objects := 0, o.doc.Kind(m.node) == '['
	for i := range o.doc.Children(m.node) {
		n++
		objects = objects && n <= mostElements && o.doc.Kind(i) == '{'
	}
	o.leaveOut(m, objects)
	if !objects || n == 0 {
		return nil
	}
	list = make([]T, 0, n)
	top := len(o.members)
	for i := range o.doc.Children(m.node) {
		list = append(list, read(o.open(i)))
		o.reading.members = o.members[:top]
	}
	return list
}
