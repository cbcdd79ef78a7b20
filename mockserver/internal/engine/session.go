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

// TimerExpireSession ends a session that its buyer has left.
const TimerExpireSession TimerKind = "checkout.expire_session"

// hostedTokenPrefix begins the token that the hosted page makes of a card.
const hostedTokenPrefix = "pgct_"

// SessionLifetime is how long a session waits for its buyer.
const SessionLifetime = 30 * time.Minute

// OpenSession is a buyer's visit of a link: it resumes s where that is a live
// session of the link, which changes nothing, or else opens a new one. s may be
// nil.
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

// SessionUpdate is what a buyer fills in.
type SessionUpdate struct {
	Buyer  func(b *Buyer) // changes the members that were sent; nil is none
	Method string         // "" is unchanged
}

// UpdateSession fills a session in; it is ready when buyer and method are
// complete. s is the session that the token names, or nil.
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
	if next.complete(env) {
		next.Status = sessionReady
	}
	return Change{Sessions: []*Session{next}}, nil
}

func checkSession(env Env, l *Link, s *Session) *Refusal {
	switch {
	case s == nil || s.Slug != l.Slug:
		return NewRefusal(CodeSessionToken,
			"The header x-checkout-session-token must hold the session_token of this checkout link's read.")
	case s.Status == sessionExpired, s.waiting() && !env.Now.Before(s.ExpiresAt):
		return NewRefusal(CodeCheckoutGone,
			"The checkout session has expired: read the link again to open a new one.")
	case !s.waiting():
		return NewRefusal(CodeInvalidState, "A checkout session that is "+s.Status+" can't be changed.")
	}
	return l.gone()
}

// complete reports whether a payment can be made of s.
func (s *Session) complete(env Env) bool {
	if s.Method == "" || s.Buyer.Name == "" || s.Buyer.Email == "" {
		return false
	}
	address := s.Buyer.Address
	return s.Method != voucher || env.Live || address != nil && address.ZipCode != ""
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

// ExpireSession is the end of a session's time. A timer from before the time
// was set anew changes nothing.
func ExpireSession(env Env, s *Session) Change {
	if !s.waiting() || env.Now.Before(s.ExpiresAt) {
		return Change{}
	}
	return Change{Sessions: []*Session{s.to(env.Now, sessionExpired)}}
}

// StartPayment makes the transaction of a ready session.
func StartPayment(env Env, l *Link, s *Session, products Catalog) (Change, *Refusal) {
	if refusal := checkSession(env, l, s); refusal != nil {
		return Change{}, refusal
	}
	if s.Status != sessionReady {
		return Change{}, NewRefusal(CodeInvalidState,
			"The checkout session is not ready: its buyer's name, e-mail and payment method must be set first.")
	}
	total := l.Total(products)
	if total < spec.MinAmount || total > spec.MaxAmount {
		return Change{}, NewRefusal(CodeInvalidState, "The products of the checkout link sum to no amount that can be paid.")
	}
	in := NewTransaction{Transaction: Transaction{
		Amount:       total,
		Currency:     l.Currency,
		Method:       s.Method,
		Buyer:        s.Buyer,
		Installments: 1,
		Products:     l.positions(products),
		SessionID:    s.ID,
	}}
	if s.Method == card {
		in.Token = hostedTokenPrefix + env.IDs.Alphanumeric(24)
	}
	c, refusal := CreateTransaction(env, in, Existing{})
	if refusal != nil {
		return Change{}, refusal
	}
	next := s.to(env.Now, sessionProcessing)
	next.TransactionID = c.Transactions[0].ID
	c.Sessions = []*Session{next}
	return c, nil
}

// Ready reports whether s has all that a payment needs.
func Ready(s *Session) bool { return s.Status == sessionReady }

// Processing reports whether the transaction of s waits for its payment.
func Processing(s *Session) bool { return s.Status == sessionProcessing }

// PayCheckout is a buyer who pays: a ready session's payment is made first. t
// is the transaction of a session in processing.
func PayCheckout(env Env, l *Link, s *Session, t *Transaction, products Catalog) (Change, *Refusal) {
	var c Change
	if s.Status != sessionProcessing {
		started, refusal := StartPayment(env, l, s, products)
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

// FollowSession is what a transition of its transaction means to s and its
// link; t is the transaction after it. It is to be applied together with t, and
// refuses the payment of a link that is used up.
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
	case s.Status == sessionExpired: // with its link
		return Change{}, nil
	case s.TransactionID != t.ID || open(t): // an earlier attempt, or still the same one
		return Change{}, nil
	}
	// The buyer may choose again, with the time of a new session.
	next := s.to(env.Now, sessionReady)
	next.TransactionID = ""
	next.ExpiresAt = env.Now.Add(SessionLifetime)
	return Change{Sessions: []*Session{next}, Timers: next.deadline()}, nil
}

// CloseSessions ends the sessions of a link that is used up, but for those in
// done: payments that wait are canceled, so that nobody pays for what is sold.
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
