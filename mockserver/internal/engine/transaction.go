package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/paymentcode"
)

// The payment methods.
const (
	pix     = string(gateway.Pix)
	voucher = string(gateway.Voucher)
	card    = string(gateway.CreditCard)
)

// The states of a transaction.
const (
	pending           = string(gateway.TransactionPending)
	paid              = string(gateway.TransactionPaid)
	expired           = string(gateway.TransactionExpired)
	canceled          = string(gateway.TransactionCanceled)
	refused           = string(gateway.TransactionRefused)
	refunded          = string(gateway.TransactionRefunded)
	partiallyRefunded = string(gateway.TransactionPartiallyRefunded)
	chargedback       = string(gateway.TransactionChargedback)
	captured          = string(gateway.TransactionCaptured)

	authorized    = string(gateway.TransactionAuthorized) // live dialect only
	challenged    = string(gateway.TransactionThreeDSRequired)
	inProtest     = string(gateway.TransactionInProtest)
	partiallyPaid = string(gateway.TransactionPartiallyPaid)
	processed     = string(gateway.TransactionProcessed)
	med           = string(gateway.TransactionMED)

	preChargedback = string(gateway.TransactionPreChargedback)
	waitingPayment = string(gateway.TransactionWaitingPayment)
)

// The kinds of transaction events.
const (
	eventCreated     = "transaction.created"
	eventPending     = "transaction.pending"
	eventPaid        = "transaction.paid"
	eventCanceled    = "transaction.cancelled"
	eventRefunded    = "transaction.refunded"
	eventChargedback = "transaction.chargedback"
	eventChallenge   = "transaction.three_ds_required"

	eventPartiallyRefunded = "transaction.partially_refunded" // live dialect only
)

// The timers of a transaction.
const (
	TimerExpire          TimerKind = "transaction.expire"
	TimerExpireChallenge TimerKind = "transaction.expire_challenge"
	TimerPay             TimerKind = "transaction.pay"
	TimerChargeBack      TimerKind = "transaction.chargeback"
)

// How long a payment may stay open, and when the chargeback of a test token follows.
const (
	PixLifetime       = 24 * time.Hour
	VoucherLifetime   = 3 * 24 * time.Hour
	ChallengeLifetime = 15 * time.Minute

	PSELifetime   = 10 * time.Minute // of a voucher in Colombian pesos, live dialect only
	BreBLifetime  = 5 * time.Minute  // the same, of Bre-B
	PixRefundable = 90 * 24 * time.Hour

	ChargebackDelay = 24 * time.Hour
)

// NewTransaction is a request for a payment: the members of the resource that
// the request sets, and those that are not stored.
type NewTransaction struct {
	Transaction

	Token       string        // of the card
	BuyerID     string        // the id of a customer; Buyer then holds only the other members that were sent
	PixLifetime time.Duration // 0 means [PixLifetime]
}

// Existing is the data of the account on which a new transaction depends.
type Existing struct {
	Reference  *Transaction // the transaction with the same external_ref
	Customer   *Customer    // the customer with the id BuyerID
	TokenSpent bool
}

// CreateTransaction creates a payment (rows X1 to X7).
func CreateTransaction(env Env, in NewTransaction, existing Existing) (Change, *Refusal) {
	if existing.Reference != nil {
		return Change{}, Duplicate("transaction", TransactionPath(existing.Reference.ID))
	}
	if in.BuyerID != "" && existing.Customer == nil {
		return Change{}, NotFound("buyer")
	}
	if in.Method == card {
		if refusal := checkToken(in.Token, existing.TokenSpent); refusal != nil {
			return Change{}, refusal
		}
	}
	t := newTransaction(env, in, existing.Customer)
	var c Change
	switch t.Method {
	case pix:
		t.Status = firstStatus(env)
		c = issuePix(env, t, in.PixLifetime)
	case voucher:
		t.Status = firstStatus(env)
		c = issueVoucher(env, t)
	case card:
		c = charge(env, t, in.Token)
	}
	c.Transactions = []*Transaction{t}
	c.Balance = worth(t)
	return c, nil
}

// firstStatus returns the state of a new Pix or voucher.
func firstStatus(env Env) string {
	if env.Waiting && env.Dialect.Live(spec.TransactionStates) {
		return waitingPayment
	}
	return pending
}

// TransactionPath returns the path of a transaction.
func TransactionPath(id string) string { return "/v2/transactions/" + id }

func newTransaction(env Env, in NewTransaction, customer *Customer) *Transaction {
	t := in.Transaction
	t.ID = env.IDs.UUID(env.Now)
	t.Status = pending
	t.Buyer = buyerOf(env, in.Buyer, customer)
	t.FeeAmount = min(env.Fee, t.Amount)
	t.SettledAmount = settledOf(env, t.Amount)
	t.CreatedAt, t.UpdatedAt = env.Now, env.Now
	return &t
}

// buyerOf returns the buyer. A customer's name and e-mail take precedence, and
// its other members are used unless the request has them.
func buyerOf(env Env, sent *Buyer, customer *Customer) *Buyer {
	switch {
	case customer == nil:
		b := Buyer{}
		if sent != nil {
			b = *sent
		}
		b.ID = env.IDs.UUID(env.Now)
		return &b
	case sent == nil || *sent == Buyer{}:
		return &customer.Buyer
	}
	b := customer.Buyer
	b.Phone = cmp.Or(sent.Phone, b.Phone)
	b.BirthDate = cmp.Or(sent.BirthDate, b.BirthDate)
	if sent.Document != nil {
		b.Document = sent.Document
	}
	if sent.Address != nil {
		b.Address = sent.Address
	}
	return &b
}

// issuePix implements row X1.
func issuePix(env Env, t *Transaction, lifetime time.Duration) Change {
	if lifetime == 0 {
		lifetime = PixLifetime
	}
	t.Pix = &Pix{ExpirationDate: env.Now.Add(lifetime)}
	return Change{
		Events: events(t, eventCreated, eventPending),
		Timers: waiting(env, t, Timer{At: t.Pix.ExpirationDate, Kind: TimerExpire, ID: t.ID}),
	}
}

// issueVoucher implements row X2. Only a voucher in reais is a boleto.
func issueVoucher(env Env, t *Transaction) Change {
	due := env.Now.Add(voucherLifetime(env, t))
	t.Voucher = &Voucher{ExpirationDate: due}
	if t.Currency == string(gateway.BRL) {
		t.Voucher.Barcode = paymentcode.Barcode(due, t.Amount, t.ID)
		t.Voucher.DigitableLine = paymentcode.Line(t.Voucher.Barcode)
	}
	return Change{
		Events: events(t, eventCreated, eventPending),
		Timers: waiting(env, t, Timer{At: due, Kind: TimerExpire, ID: t.ID}),
	}
}

// voucherLifetime returns how long a voucher can be paid in time.
func voucherLifetime(env Env, t *Transaction) time.Duration {
	switch {
	case t.Currency != string(gateway.COP) || !env.Dialect.Live(spec.ColombianVouchers):
		return VoucherLifetime
	case env.BreB:
		return BreBLifetime
	default:
		return PSELifetime
	}
}

// charge implements rows X3 to X6: the token decides the outcome.
func charge(env Env, t *Transaction, token string) Change {
	t.Card = cardOf(token)
	c := Change{}
	if spec.IsSingleUse(token) {
		c.Spent = []string{token}
	}
	switch outcomeOf(token) {
	case cardRefused, cardNeverPays:
		refuse(t, refusalReason(token))
		c.Events = events(t, eventCreated)
	case cardChallenged:
		challenge(env, t)
		c.Events = events(t, eventCreated, eventChallenge)
		c.Timers = []Timer{{At: t.NextAction.ExpiresAt, Kind: TimerExpireChallenge, ID: t.ID}}
	case cardPaid, cardChargedBack:
		settle(env, t, paid)
		c.Events = events(t, eventCreated, eventPaid)
	case cardCaptured:
		settle(env, t, captured)
		c.Events = events(t, eventCreated, eventPaid)
	case cardAuthorized:
		if !env.Dialect.Live(spec.TransactionStates) {
			c.Events = events(t, eventCreated, eventPending)
			break
		}
		t.Status = authorized
		c.Events = events(t, eventCreated)
	default:
		c.Events = events(t, eventCreated, eventPending)
		c.Timers = waiting(env, t)
	}
	if outcomeOf(token) == cardChargedBack {
		c.Timers = []Timer{{At: env.Now.Add(ChargebackDelay), Kind: TimerChargeBack, ID: t.ID}}
	}
	return c
}

// waiting adds the timer of the automatic payment, if there is one, to timers.
func waiting(env Env, t *Transaction, timers ...Timer) []Timer {
	after := env.AutoPay
	if settlesItself(env, t) {
		after = min(cmp.Or(after, SandboxSettlement), SandboxSettlement)
	}
	if after > 0 {
		timers = append(timers, Timer{At: env.Now.Add(after), Kind: TimerPay, ID: t.ID})
	}
	return timers
}

// The sandbox of live gateways (sandbox-pays) pays a Pix or a voucher by itself, after this time,
// if it has this amount or its buyer one of these documents.
const (
	SandboxSettlement = 15 * time.Second
	settlingAmount    = 7300
)

func settlesItself(env Env, t *Transaction) bool {
	if !env.Sandbox || !env.Dialect.Live(spec.SandboxPays) || t.Method == card {
		return false
	}
	if t.Amount == settlingAmount {
		return true
	}
	if t.Buyer == nil || t.Buyer.Document == nil {
		return false
	}
	number := spec.OnlyDigits(t.Buyer.Document.Number)
	return number == "06957410600" || number == "39027187819"
}

// settle marks t as paid in full, in the given state.
func settle(env Env, t *Transaction, status string) {
	t.Status = status
	t.NextAction = nil
	t.PaidAmount, t.RefundedAmount = t.Amount, 0
	t.PaidAt = env.Now
	if t.Pix != nil {
		t.Pix = &Pix{ExpirationDate: t.Pix.ExpirationDate, EndToEndID: env.IDs.EndToEndID(env.Now)}
	}
}

// unsettle reverts settle.
func unsettle(t *Transaction) {
	t.PaidAmount, t.RefundedAmount, t.PaidAt = 0, 0, time.Time{}
	if t.Pix != nil {
		t.Pix = &Pix{ExpirationDate: t.Pix.ExpirationDate}
	}
}

func refuse(t *Transaction, reason string) {
	t.Status = refused
	t.NextAction = nil
	inform(t, refusalReasonKey, reason)
}

// challenge adds a pending 3-D Secure challenge to t, which must be open.
func challenge(env Env, t *Transaction) {
	if env.Dialect.Live(spec.ChallengeState) {
		t.Status = challenged
	}
	t.NextAction = &NextAction{
		ChallengeSessionID: env.IDs.UUID(env.Now),
		ClientSecret:       "cs_" + env.IDs.Alphanumeric(32),
		ExpiresAt:          env.Now.Add(ChallengeLifetime),
	}
}

// inform sets an entry of t's informations. It does not modify the transaction that
// t was copied from.
func inform(t *Transaction, key, value string) {
	forget(t, key)
	t.Informations = append(slices.Clip(t.Informations), Information{Key: key, Value: value})
}

// forget removes an entry of t's informations. It does not modify the transaction
// that t was copied from either.
func forget(t *Transaction, key string) {
	t.Informations = slices.DeleteFunc(slices.Clone(t.Informations), func(i Information) bool { return i.Key == key })
}

// worth returns a transaction's contribution to the account's balance.
func worth(t *Transaction) int64 {
	switch {
	case t.PaidAmount == 0:
		return 0
	case t.Status == chargedback:
		return -t.FeeAmount
	default:
		return t.PaidAmount - t.FeeAmount - t.RefundedAmount
	}
}

func events(t *Transaction, kinds ...string) []Event {
	list := make([]Event, len(kinds))
	for i, kind := range kinds {
		list[i] = Event{Kind: kind, Transaction: t}
	}
	return list
}
