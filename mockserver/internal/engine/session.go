package engine

import (
	"slices"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// The states of a checkout session.
const (
	sessionOpen       = "open"
	sessionReady      = "ready"
	sessionProcessing = "processing"
	sessionCompleted  = "completed"
	sessionExpired    = "expired"
)

// TimerExpireSession expires an abandoned session.
const TimerExpireSession TimerKind = "checkout.expire_session"

// hostedTokenPrefix is the prefix of the tokens that the hosted page generates
// for cards.
const hostedTokenPrefix = "pgct_"

// SessionLifetime is how long a session waits for its buyer.
const SessionLifetime = 30 * time.Minute

// OpenSession simulates a buyer who visits a link. If s is a live session of the
// link, it is resumed, which changes nothing; otherwise a new session is opened. s
// may be nil.
func OpenSession(env Env, l *Link, s *Session) (Change, *Refusal) {
	if refusal := l.gone(); refusal != nil {
		return Change{}, refusal
	}
	if s != nil && s.Slug == l.Slug && (s.Status == sessionProcessing || s.waiting() && env.Now.Before(s.ExpiresAt)) {
		return Change{}, nil
	}
	next := &Session{
		ID:        env.IDs.UUID(env.Now),
		Token:     "cst_" + env.IDs.Alphanumeric(40),
		Slug:      l.Slug,
		Status:    sessionOpen,
		Buyer:     &Buyer{},
		ExpiresAt: env.Now.Add(SessionLifetime),
		CreatedAt: env.Now,
		UpdatedAt: env.Now,
	}
	return Change{Sessions: []*Session{next}, Timers: next.deadline()}, nil
}

// SessionUpdate is the data that a buyer fills in.
type SessionUpdate struct {
	Buyer  func(b *Buyer) // sets the members that were sent; nil if there are none
	Method string         // "" leaves it unchanged
}

// UpdateSession updates a session, which is ready once its buyer and payment
// method are complete. s is the session that the session token identifies,
// or nil.
func UpdateSession(env Env, l *Link, s *Session, in SessionUpdate) (Change, *Refusal) {
	if refusal := checkSession(env, l, s); refusal != nil {
		return Change{}, refusal
	}
	if in.Method != "" && !slices.Contains(l.PaymentMethods, in.Method) {
		return Change{}, Invalid("payment_method", spec.CodeInvalidEnum, "is not offered by this checkout link")
	}
	next := s.to(env.Now, sessionOpen)
	if in.Buyer != nil {
		b := *s.Buyer
		in.Buyer(&b)
		next.Buyer = &b
	}
	if in.Method != "" {
		next.Method, next.MethodAt = in.Method, env.Now
	}
	if len(Missing(env, next)) == 0 {
		next.Status = sessionReady
	}
	return Change{Sessions: []*Session{next}}, nil
}

func checkSession(env Env, l *Link, s *Session) *Refusal {
	switch {
	case s == nil || s.Slug != l.Slug:
		return NewRefusal(CodeSessionToken,
			"The session token does not belong to this checkout link: read the link to get its session_token.")
	case s.Status == sessionExpired, s.waiting() && !env.Now.Before(s.ExpiresAt):
		return NewRefusal(CodeCheckoutGone,
			"The checkout session has expired: read the link again to open a new one.")
	case !s.waiting():
		return NewRefusal(CodeInvalidState, "A checkout session that is "+s.Status+" can't be changed.")
	}
	return l.gone()
}

// Missing lists the members that s still needs for a payment.
func Missing(env Env, s *Session) (missing []spec.Violation) {
	require := func(present bool, field string) {
		if !present {
			missing = append(missing, spec.Violation{Field: field, Code: spec.CodeRequired, Message: "is required"})
		}
	}
	require(s.Method != "", "payment_method")
	require(s.Buyer.Name != "", "buyer.name")
	require(s.Buyer.Email != "", "buyer.email")
	if s.Method == voucher && !env.Dialect.Live(spec.VoucherAddress) {
		require(s.Buyer.Address != nil && s.Buyer.Address.ZipCode != "", "buyer.address.zipCode")
	}
	return missing
}

// waiting reports whether s waits for its buyer.
func (s *Session) waiting() bool { return s.Status == sessionOpen || s.Status == sessionReady }

func (s *Session) to(now time.Time, status string) *Session {
	next := *s
	next.Status = status
	next.UpdatedAt = now
	return &next
}

func (s *Session) deadline() []Timer {
	return []Timer{{At: s.ExpiresAt, Kind: TimerExpireSession, ID: s.ID}}
}

// ExpireSession expires a session. It changes nothing if the expiry has been
// extended since its timer was set.
func ExpireSession(env Env, s *Session) Change {
	if !s.waiting() || env.Now.Before(s.ExpiresAt) {
		return Change{}
	}
	return Change{Sessions: []*Session{s.to(env.Now, sessionExpired)}}
}

// Payment is how a buyer pays a session.
type Payment struct {
	// Key identifies this attempt: a second one with the same key changes
	// nothing. "" means no key.
	Key          string
	Token        string // of the card; "" leaves the payment pending until a control pays it
	TokenSpent   bool
	Installments int // 0 means 1
}

// StartPayment creates the transaction of a ready session, unless an attempt
// with the same key has already created it: see [Session.PaymentWith].
func StartPayment(env Env, l *Link, s *Session, products Catalog, p Payment) (Change, *Refusal) {
	if s != nil && s.Slug == l.Slug && s.PaymentWith(p.Key) != "" {
		return Change{}, nil
	}
	if refusal := checkSession(env, l, s); refusal != nil {
		return Change{}, refusal
	}
	if s.Status != sessionReady {
		return Change{}, NewRefusal(CodeInvalidState,
			"The checkout session is not ready: its buyer's name, e-mail and payment method must be set first.")
	}
	in, refusal := l.payment(env, s, products, p)
	if refusal != nil {
		return Change{}, refusal
	}
	c, refusal := CreateTransaction(env, in, Existing{TokenSpent: p.TokenSpent})
	if refusal != nil {
		return Change{}, refusal
	}
	t := c.Transactions[0]
	next := s.to(env.Now, sessionProcessing)
	next.TransactionID = t.ID
	next.Attempts = append(slices.Clip(s.Attempts), Attempt{Key: p.Key, TransactionID: t.ID})
	c.Sessions = []*Session{next}
	outcome, refusal := FollowSession(env, l, next, t) // for a card that is charged or refused at once
	return c.And(outcome), refusal
}

// payment returns the request for the transaction that pays s.
func (l *Link) payment(env Env, s *Session, products Catalog, p Payment) (NewTransaction, *Refusal) {
	total := l.Total(products)
	if total < spec.MinAmount || total > spec.MaxAmount {
		return NewTransaction{}, NewRefusal(CodeInvalidState, "The total of the checkout link is not an amount that can be paid.")
	}
	in := NewTransaction{Transaction: Transaction{
		Amount:       total,
		Currency:     l.Currency,
		Method:       s.Method,
		Buyer:        s.Buyer,
		Installments: max(p.Installments, 1),
		Products:     l.lineItems(products),
		SessionID:    s.ID,
	}}
	if in.Token = p.Token; s.Method == card && p.Token == "" {
		in.Token = hostedTokenPrefix + env.IDs.Alphanumeric(24)
	}
	return in, nil
}

// PaymentWith returns the id of the transaction that an attempt with the given key
// created, or "" if there was no such attempt.
func (s *Session) PaymentWith(key string) string {
	for _, a := range s.Attempts {
		if a.Key == key && key != "" {
			return a.TransactionID
		}
	}
	return ""
}

// Ready reports whether s has everything that a payment needs.
func Ready(s *Session) bool { return s.Status == sessionReady }

// ByCard reports whether s is to be paid by card.
func ByCard(s *Session) bool { return s.Method == card }

// Processing reports whether the transaction of s waits to be paid.
func Processing(s *Session) bool { return s.Status == sessionProcessing }

// Completed reports whether s has been paid.
func Completed(s *Session) bool { return s.Status == sessionCompleted }

// PayCheckout simulates a buyer who pays. If s is not processing yet, its payment is
// started first; otherwise t is its transaction.
func PayCheckout(env Env, l *Link, s *Session, t *Transaction, products Catalog) (Change, *Refusal) {
	var c Change
	if s.Status != sessionProcessing {
		started, refusal := StartPayment(env, l, s, products, Payment{})
		if refusal != nil {
			return Change{}, refusal
		}
		c, s, t = started, started.Sessions[0], started.Transactions[0]
	}
	payment, refusal := Pay(env, t)
	if refusal != nil {
		return Change{}, refusal
	}
	next, refusal := FollowSession(env, l, s, payment.Transactions[0])
	if refusal != nil {
		return Change{}, refusal
	}
	return c.And(payment).And(next), nil
}

// FollowSession returns how s and its link change after a transition of a
// transaction of s. t is the new version of the transaction, and the change must be
// applied together with it. FollowSession rejects the payment of a link that is used
// up.
func FollowSession(env Env, l *Link, s *Session, t *Transaction) (Change, *Refusal) {
	switch {
	case s.Status == sessionCompleted:
		return Change{}, nil
	case settled(t) && Exhausted(l):
		return Change{}, NewRefusal(CodeInvalidState, "The checkout link of this transaction has been paid as often as its max_uses allows.")
	case settled(t):
		next := s.to(env.Now, sessionCompleted)
		next.TransactionID = t.ID
		return Change{Sessions: []*Session{next}, Links: []*Link{l.use(env.Now)}}, nil
	case s.Status == sessionExpired: // it expired with its link
		return Change{}, nil
	case s.TransactionID != t.ID || open(t): // an earlier attempt, or one that is still open
		return Change{}, nil
	}
	// The buyer may choose again, with the lifetime of a new session.
	next := s.to(env.Now, sessionReady)
	next.TransactionID = ""
	next.ExpiresAt = env.Now.Add(SessionLifetime)
	return Change{Sessions: []*Session{next}, Timers: next.deadline()}, nil
}

// CloseSessions expires the sessions of a link that is used up, except those in done.
// Open payments are canceled, so that no one pays for an item that is already sold.
func CloseSessions(env Env, sessions, done []*Session, transaction func(id string) *Transaction) (c Change) {
	for _, s := range sessions {
		if slices.ContainsFunc(done, func(d *Session) bool { return d.ID == s.ID }) {
			continue
		}
		t := transaction(s.TransactionID)
		switch {
		case s.waiting():
		case s.Status == sessionProcessing && t != nil && open(t):
			c = c.And(end(env, t))
		default:
			continue
		}
		c.Sessions = append(c.Sessions, s.to(env.Now, sessionExpired))
	}
	return c
}
