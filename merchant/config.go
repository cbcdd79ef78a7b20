package merchant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// Config configures a [Merchant]. Only Accounts is required.
type Config struct {
	// Accounts are the accounts at the gateway. Every record belongs to one of them for
	// good.
	Accounts []Account

	// Location says in which schema the tables are, and who creates them; the zero value is
	// right for most programs.
	Location database.Location

	// SendTimeout, SettleAfter and KeyLifetime are those of [operations.Config].
	SendTimeout, SettleAfter, KeyLifetime time.Duration

	// CompareEvery is how often a charge that was paid is compared with the gateway, for
	// CompareFor after its payment: a Pix dispute has no webhook. Charges are compared by
	// lists of them, see [Account.NoLists]. A subscription is
	// compared as often at least, and more often around the end of its period and while
	// it is past due. The defaults are 24 h and 180 days.
	CompareEvery, CompareFor time.Duration

	// CallbackTimeout is how long a callback and its transaction may take; default 30 s.
	CallbackTimeout time.Duration

	// Lease is how long an event or a comparison stays claimed after its process died;
	// default 15 s. It is extended while the process lives.
	Lease time.Duration

	// Workers is how many operations, and how many callbacks, Run works on at the same
	// time; default 8.
	Workers int

	// PollInterval is how often Run looks for the work of other processes; default 1 s.
	PollInterval time.Duration

	// AdoptRate is how many resources of an account Run reads in a second to adopt them; default 5.
	// See [Merchant.AdoptAll].
	AdoptRate int

	// Keep says for how long data is kept that is not needed for the books.
	Keep Keep

	Logger *slog.Logger // default slog.Default

	// SecondPayment says what happens to money that an order does not need; see
	// [Callbacks.PaidAgain].
	SecondPayment SecondPayment

	// Other is called with each event that matches no record: for the code that charged before
	// this package did, or that still does for another system of the account. It is also called with
	// an event that says no more than what [Merchant.Adopt] found: no callback reports it, so that
	// code may not have heard of it. After an error or a
	// panic the event is repeated, for about half a day; then it is a [Problem]. It may get an
	// event again, and events that are not in the order in which they happened. If the account has
	// subscriptions here, events without a reference come after SettleAfter: until then they may
	// belong to one that is not stored yet. Other must heed the context, which ends after 30
	// seconds. Without Other, events that match nothing are acknowledged, and counted in [Health].
	Other func(ctx context.Context, account string, e *webhook.Event) error

	// Observe is called with each event of the outbox of each account, for metrics; see
	// [operations.Config]. Several goroutines call it at once. It must not block.
	Observe func(ctx context.Context, o operations.Observation)
}

// Keep says for how long [Merchant.Run] keeps what the books do not need. Buyers and Operations count
// from the end of an order, sale, subscription or payout: when nothing of it is under way or compared any
// more, Config.CompareFor after its last payment.
type Keep struct {
	// Buyers is for how long the data of the buyer is kept. Then it is erased as by [Merchant.Erase].
	// 0: for good.
	Buyers time.Duration

	// Operations is for how long the requests are kept, which [Merchant.Story] lacks afterwards. 0: for
	// good.
	Operations time.Duration

	// Events is for how long events are remembered after they were handled, or were set aside for a
	// later release; at least [webhook.MinRetention], default 90 days.
	Events time.Duration

	// Unknown is for how long [Merchant.Unknown] lists a resource after its last event; default
	// 90 days.
	Unknown time.Duration
}

const unknownFor = 90 * day

// set fills in the defaults and checks the durations.
func (k *Keep) set() error {
	k.Unknown = cmp.Or(k.Unknown, unknownFor)
	for _, is := range []struct {
		name  string
		value time.Duration
	}{{"Buyers", k.Buyers}, {"Operations", k.Operations}, {"Events", k.Events}, {"Unknown", k.Unknown}} {
		if is.value < 0 {
			return fmt.Errorf("merchant: Config.Keep.%s must not be negative", is.name)
		}
	}
	if k.Events > 0 && k.Events < webhook.MinRetention {
		return fmt.Errorf("merchant: Config.Keep.Events must be 0 or at least %s: the gateway delivers an event again for 24 hours, and one that is "+
			"forgotten is handled twice", webhook.MinRetention)
	}
	return nil
}

// SecondPayment says what happens to money that an order does not need: a second payment, or
// one after the order was closed.
type SecondPayment int

// What happens to a second payment.
const (
	// ReportSecondPayment leaves it to [Callbacks.PaidAgain] or, if that is nil, to a person:
	// it is a [Problem].
	ReportSecondPayment SecondPayment = iota

	// RefundSecondPayment refunds it in full. While a dispute withholds the money, nothing can
	// be refunded: if the dispute is won, it is refunded then.
	RefundSecondPayment
)

// Account is one account at a gateway.
type Account struct {
	// Name is stored with every record and is never changed, also if the key is rotated;
	// see [gateway.WithAccount] for its form. Open returns [ErrAccount] if the name was
	// used with another base URL.
	Name string

	// Book is the name of the company whose account this is; default Name. The IDs of orders,
	// refunds, payouts, subscriptions and links are unique in a book: two companies may both have
	// an order "1", and neither sees the other's. Accounts of one company that may charge one
	// order have the same book. It never changes.
	Book string

	// Client sends for this account. While a shop moves in, its old code may share it. Otherwise no
	// other program refunds or pays out what is in the books.
	Client *gateway.Client

	// Keys, Trust and SecretPath are those of [webhook.Config].
	Keys       []webhook.SigningKey
	Trust      webhook.Trust
	SecretPath gateway.Secret

	// Prefix begins the references of this account's records; default Name and "-".
	// Resources with another reference belong to other systems. It can't be changed after the
	// first Open, none begins with that of another account of the database, and no other code of
	// the account may make references that begin with it: see [Config.Other].
	Prefix string

	// Links makes a [Charge] of each payment by a link that [Merchant.Link] created. The
	// gateway gives these transactions no reference, so they are recognized by the names,
	// prices and quantities of their products. What other links sell is ignored, and so are
	// the charges of subscriptions.
	Links bool

	// NoSubscriptions says that no system of this account creates subscriptions. A sale by
	// link is then booked at once. Otherwise it may be a subscription's charge, which has no
	// reference either: so it waits until the gateway's list of subscriptions, which may lag,
	// is sure to show it, for Config.SettleAfter.
	NoSubscriptions bool

	// NoLists makes [Merchant.Run] read each charge that was paid every Config.CompareEvery.
	// Otherwise it lists them, a hundred at a time, and reads those that have changed, and each
	// one once in 30 days; and it lists the disputes every 15 minutes. What a list gets wrong
	// costs reads and loses nothing, unless the gateway changes a transaction without moving its
	// updated_at: then a second refund of a part by someone else is booked up to 30 days later.
	// See the assumption books-listed, which gatewayprobe tests.
	NoLists bool

	// Balance returns the balance of the account at the gateway, in cents; nil if you can't
	// read it. [Merchant.Run] notes it four times a day, at moments when nothing waits, and
	// [Merchant.CheckMonth] compares its change with the entries. The gateway shows the
	// balance in its v1 API alone, which has a credential of its own:
	//
	//	Balance: func(ctx context.Context) (int64, gateway.Currency, error) {
	//		b, err := v1.Balance(ctx) // v1 is a legacy.Client
	//		if err != nil {
	//			return 0, "", err
	//		}
	//		return b.Balance, b.Currency, nil
	//	}
	Balance func(ctx context.Context) (cents int64, currency gateway.Currency, err error)

	// Zone decides to which month an entry of the books belongs; default
	// America/Sao_Paulo.
	Zone *time.Location
}

// Callbacks are called once for each fact, in a transaction that also marks the fact as
// delivered: what they write in tx happens exactly once. Facts of one order are delivered
// in order; Goods and Access do not wait for the others. After an error or a panic the
// transaction is rolled back, and the callback runs again later; the record itself is up to
// date meanwhile.
//
// A callback gets the record as it is now, which may be more than the fact says. It writes to
// this database in tx alone and calls no other service; follow-up work is inserted with the Tx
// methods. It does not commit or roll back tx. Goods and Access lock the order or the
// subscription first: in your own transactions, too, call the Tx methods before you change your
// rows, or two transactions may wait for each other until the database ends one.
//
// A fact whose callback is nil in this process waits an hour for one that has it, as during a
// deployment, and delays no other. Then it is given up, and counted in [Health].
type Callbacks[TX any] struct {
	// Goods: whether the goods of an order, or of a sale by link, are owed to the buyer has
	// changed. Send them, or don't any more, by this callback alone: see [Goods].
	Goods func(ctx context.Context, tx TX, g *Goods) error

	// Access: until when a member may use what a subscription pays for has changed, or
	// whether it is renewed: see [Access].
	Access func(ctx context.Context, tx TX, a *Access) error

	// The others are for mails and for accounts. Do not ship by them: what is true of an order
	// when one is called may have been otherwise a moment ago, and Goods says it in order.

	// Paid: an order, or a sale by link, is paid in full, for the first time. The payment may
	// have been refunded or disputed since, see Charge.State, and the order may have been
	// closed, see Charge.OrderClosed.
	Paid func(ctx context.Context, tx TX, c *Charge) error

	// PaidAgain: a charge was paid that the order did not need any more: a second charge,
	// or any payment after [Merchant.CloseOrderTx]. Config.SecondPayment says what happens to
	// the money. It is called once more when a dispute that withheld the money is won.
	PaidAgain func(ctx context.Context, tx TX, c *Charge) error

	// Unpaid: a charge ended without payment, see Charge.Reason. Paid may follow for a
	// voucher that is paid late.
	Unpaid func(ctx context.Context, tx TX, c *Charge) error

	// Refunded: more money of a charge went back, by a refund of yours or by someone else
	// (Refund.ID is ""). Refund.Order says what is left of the order.
	Refunded func(ctx context.Context, tx TX, r *Refund) error

	// RefundRejected: a refund of yours was not made and never will be, see Refund.Reason.
	RefundRejected func(ctx context.Context, tx TX, r *Refund) error

	// Disputed: a charge was charged back or disputed (Charge.Disputed > 0), or the
	// dispute ended in your favor (0 again). Charge.OrderLeft says what is left of the order.
	Disputed func(ctx context.Context, tx TX, c *Charge) error

	// Payout: a payout has ended: it was paid, failed, was canceled or was rejected. It
	// is called again if a payout that was paid is returned.
	Payout func(ctx context.Context, tx TX, p *Payout) error

	// Subscription: see [Subscription.Event]. Paid and Unpaid are not called for the charges of
	// a subscription; Refunded and Disputed are, with Charge.Order "".
	Subscription func(ctx context.Context, tx TX, s *Subscription) error

	// Problem: a person must decide or look, see [Merchant.Problems].
	Problem func(ctx context.Context, tx TX, p *Problem) error
}

var (
	// ErrAccount reports that no account, or more than one, fits, or that the account's
	// name or prefix is in use for another one.
	ErrAccount = errors.New("merchant: the account does not fit")

	// ErrNotFound reports that there is no such record.
	ErrNotFound = ledger.ErrNotFound

	// ErrReused reports that the ID belongs to a record with other parameters.
	ErrReused = errors.New("merchant: the ID belongs to another record")

	// ErrUnknown reports that the outcome of an earlier charge of the order is not known
	// yet. A second charge is not safe before it is.
	ErrUnknown = errors.New("merchant: the outcome of an earlier charge of the order is not known yet")

	// ErrLeft reports that a refund exceeds what is left of the charge, less the refunds
	// that are under way.
	ErrLeft = errors.New("merchant: the refund exceeds what is left of the charge")

	// ErrState reports that the state of the record does not allow the call.
	ErrState = errors.New("merchant: the state of the record does not allow this")

	// ErrCurrency reports that an order has another currency: that of the first charge or
	// payout that was asked for, whatever became of it.
	ErrCurrency = errors.New("merchant: the order has another currency")

	// ErrAdopting reports that an order waits for the adoption of what other code made for it, see
	// [Merchant.AdoptAll]: its buyer may be paying that, and more may be left of its money than the
	// books show. [Merchant.Charge] and [Merchant.Refund] adopt it first, and return this error only
	// if that fails.
	ErrAdopting = errors.New("merchant: the order waits for an adoption")

	// ErrMaybeStored reports that the call may have stored what it was asked for, and may
	// not: the response to a COMMIT was lost, because a connection died, the database or a
	// pooler was restarted, or the context ended, and the database did not respond again
	// within 5 seconds. Call again with the same ID: nothing is stored, sent or booked
	// twice. After any other error of a call nothing is stored, unless its comment says so.
	//
	// In a transaction of yours the same holds for your own COMMIT: unless the database says
	// that it rolled back, call the Tx method again in another transaction.
	ErrMaybeStored = errors.New("merchant: it is not known whether this was stored, because the response to COMMIT was lost: " +
		"call again with the same ID")

	// ErrNotRunning reports that [Merchant.Run] was not called in this process.
	ErrNotRunning = errors.New("merchant: Run was not called in this process")
)

// invalid returns the error of a parameter.
func invalid(op, field, message string) error {
	return &gateway.ValidationError{Op: op, Fields: []gateway.FieldError{{Field: field, Message: message, Code: "invalid"}}}
}

// identify checks the ID of a record of yours, which what names.
func identify(op, field, id, what string) error {
	switch {
	case strings.TrimSpace(id) == "" || strings.TrimSpace(id) != id:
		return invalid(op, field, "is required and must not begin or end with a space: it is the ID of "+what)
	case !ledger.Storable(id):
		return invalid(op, field, "must be valid UTF-8 without the character U+0000: it is the ID of "+what)
	}
	return nil
}

// set fills in the defaults and checks the configuration.
func (c *Config) set() error {
	c.CompareEvery = cmp.Or(c.CompareEvery, 24*time.Hour)
	c.CompareFor = cmp.Or(c.CompareFor, 180*24*time.Hour)
	c.CallbackTimeout = cmp.Or(c.CallbackTimeout, 30*time.Second)
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.Workers = cmp.Or(c.Workers, 8)
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	c.AdoptRate = cmp.Or(c.AdoptRate, 5)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.SecondPayment < ReportSecondPayment || c.SecondPayment > RefundSecondPayment {
		return fmt.Errorf("merchant: Config.SecondPayment must be ReportSecondPayment or RefundSecondPayment, not %d", c.SecondPayment)
	}
	for _, is := range []struct {
		name  string
		value int64
	}{
		{"CompareEvery", int64(c.CompareEvery)},
		{"CompareFor", int64(c.CompareFor)},
		{"CallbackTimeout", int64(c.CallbackTimeout)},
		{"Lease", int64(c.Lease)},
		{"Workers", int64(c.Workers)},
		{"PollInterval", int64(c.PollInterval)},
		{"AdoptRate", int64(c.AdoptRate)},
	} {
		if is.value < 0 {
			return fmt.Errorf("merchant: Config.%s must not be negative", is.name)
		}
	}
	if err := c.Keep.set(); err != nil {
		return err
	}
	if len(c.Accounts) == 0 {
		return errors.New("merchant: Config.Accounts is empty: it needs the name and the client of your account")
	}
	return nil
}

// set fills in the defaults and checks the account.
func (a *Account) set() (err error) {
	if a.Client == nil {
		return fmt.Errorf("merchant: Account.Client of %q is required", a.Name)
	}
	if named := a.Client.Account().Name; named != "" && named != a.Name {
		return fmt.Errorf("%w: the client of account %q was created with gateway.WithAccount(%q)", ErrAccount, a.Name, named)
	}
	if a.Client, err = a.Client.With(gateway.WithAccount(a.Name)); err != nil {
		return fmt.Errorf("merchant: Account.Name: %w", err)
	}
	a.Book = cmp.Or(a.Book, a.Name)
	if strings.TrimSpace(a.Book) != a.Book || !ledger.Storable(a.Book) || len(a.Book) > maxPrefix {
		return fmt.Errorf("merchant: Account.Book of %q must have at most %d bytes of valid UTF-8, without spaces around it", a.Name, maxPrefix)
	}
	a.Prefix = cmp.Or(a.Prefix, a.Name+"-")
	if len(a.Prefix) > maxPrefix || strings.TrimSpace(a.Prefix) != a.Prefix || strings.ContainsFunc(a.Prefix, func(r rune) bool { return r < '!' || r > '~' }) {
		return fmt.Errorf("merchant: Account.Prefix of %q must be 1 to %d printable ASCII characters without spaces", a.Name, maxPrefix)
	}
	if a.Zone == nil {
		if a.Zone, err = time.LoadLocation("America/Sao_Paulo"); err != nil {
			return fmt.Errorf("merchant: Account.Zone of %q: %w: import time/tzdata, or set Zone", a.Name, err)
		}
	}
	return nil
}

const maxPrefix = 80
