package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

// Config configures a [Receiver]. Set Keys, API or both; all other fields are
// optional.
type Config struct {
	// Keys are the secrets shared with the gateway; any of them may have signed
	// a delivery.
	Keys []SigningKey
	// Headers are the names of the signature headers. Set them if your gateway
	// does not use the default names.
	Headers HeaderNames
	// Tolerance is the largest accepted difference between a signature's
	// timestamp and the receiver's clock, in either direction and in whole
	// seconds; the default is the constant Tolerance, 5 min. It is at most
	// half of MinRetention, so the Store still knows every event that can be
	// replayed.
	Tolerance time.Duration
	// Trust selects how deliveries are authenticated. The default is
	// RequireSignature if there are Keys and ReadBackOnly if there are none.
	Trust Trust
	// SecretPath is the required last element of the URL path: an unguessable
	// string of at least 16 characters without a slash. A path may end in a slash
	// after it. By default any path is
	// accepted. Use it for unsigned deliveries, with a notify_url like
	// https://shop.example/webhooks/gateway/c0ffee….
	SecretPath gateway.Secret

	// API reads the resources of unsigned deliveries; see Trust. It also lets
	// the receiver recognize a signed and an unsigned delivery of the same
	// event, even if their ids differ. For events that can happen more than
	// once (refunds; failed charges, updates and chargebacks of subscriptions),
	// this takes a call for signed deliveries too. Without a response they get
	// 503 and are redelivered.
	API *gateway.Client
	// ReadBack limits the API calls for unsigned deliveries and, separately,
	// those for signed ones.
	ReadBack ReadBack

	// Account is the name of the account at the gateway that sends the events; by
	// default it is the name of API, see [gateway.WithAccount], whose rules apply.
	// A durable Store needs the name, because receivers of several accounts may
	// share it: each sees and handles only the events of its own.
	Account string
	// Store remembers the events. The default is a memory store, for Sync mode
	// and one process.
	Store Store
	// Mode selects when a delivery is acknowledged.
	Mode Mode

	// Workers is the number of events that Inbox mode handles concurrently;
	// default 8. With a negative number the process only receives events, and
	// other processes that share its store handle them.
	Workers int
	// PollInterval is how often Inbox mode polls the store for events of other
	// processes and for due retries; default 1 s. Events that this process
	// received are handled at once.
	PollInterval time.Duration

	// MaxConcurrent limits the signed deliveries that are processed
	// concurrently and, separately, the unsigned ones; default 64. Further
	// deliveries get 503 and are redelivered.
	MaxConcurrent int
	// HandlerTimeout is the timeout of a handler's context; default 30 s. See
	// [WithTimeout] for one handler.
	HandlerTimeout time.Duration
	// MaxHung is how many handlers may hang without blocking other events; default
	// 16, a negative number means none. A handler hangs if, after its context has
	// ended, it does not return within 5 seconds, or within its timeout if that is
	// shorter. It is reported as [OutcomeHung], and its worker (in Sync mode, the
	// slot of its delivery) is freed. Its event stays claimed while the handler
	// runs, and other events of the resource wait. Once MaxHung handlers hang,
	// further ones keep their worker or slot. See [Receiver.Running].
	MaxHung int
	// Lease is how long an event stays claimed after its process dies; default
	// 1 min. It is extended while a handler runs.
	Lease time.Duration
	// MaxAttempts is the number of failed attempts after which an event
	// becomes a dead letter. The default is 25 in Inbox mode, which takes about
	// half a day, and 8 in Sync mode. In Sync mode anyone can cause attempts by
	// replaying a delivery, so the event must also have been failing for 23
	// hours, almost as long as the gateway redelivers. With a memory store in
	// Sync mode, only a [Permanent] error of a handler creates a dead letter:
	// after other failures, and for an event that can't be read, the gateway
	// gets 500 until it gives up.
	MaxAttempts int
	// Backoff is the wait after the nth failed attempt, from 1. The default
	// doubles from 5 s to 1 h, with jitter. In Sync mode a delivery during the
	// backoff gets 503 with Retry-After and does not count as an attempt.
	Backoff func(attempt int) time.Duration

	// HandleStale passes late events to the handlers too, with Stale set. A
	// "pending" is late if it arrives after the "paid" of the same
	// transaction. By default they are acknowledged and skipped. Events that
	// move money (payments, refunds, renewals, failed charges, payouts) are
	// always handled.
	HandleStale bool

	// MaxBody is the maximum size of a body in bytes; default 1 MiB.
	// Together, the bodies that are being received may take MaxConcurrent ×
	// MaxBody bytes of memory, not counting the first 16 KiB of each. Bodies
	// with well-formed signature headers and a timestamp within the Tolerance
	// have that much memory apart from all others. A body for which there is
	// none takes it from one whose sender has kept the receiver waiting for more
	// than a second (less if many bodies wait, down to 0.1 s), and otherwise gets
	// 503 after half of ReadTimeout.
	MaxBody int64
	// ReadTimeout is the time limit for reading a body; default 10 s.
	ReadTimeout time.Duration

	// Logger gets ids, kinds and errors, never bodies; default [slog.Default]. A
	// [Reconciler] also logs the references of your records.
	Logger *slog.Logger
	// Observe is called after every delivery and every run of a handler, on the
	// goroutine of the delivery or the worker. It must be safe for concurrent use.
	// The context has the values of the delivery's context, but is never canceled;
	// for a worker it has only the values that Begin added. Panics are logged.
	Observe func(ctx context.Context, o Observation)
	// Begin is called before every delivery and every event found by a
	// [Reconciler], with a nil claim, and before every background run, with
	// its claim. It returns a context derived from ctx, which is passed to the
	// Store, the handler and Observe. Observe is called at least once after
	// each Begin. Panics are logged.
	Begin func(ctx context.Context, c *Claim) context.Context
	// Trace returns trace data to store with a new event, such as the W3C
	// traceparent of the delivery. [Record.Trace] has it when the event is
	// handled, even in another process. A value longer than 255 characters, or
	// with anything but printable ASCII, is dropped.
	Trace func(ctx context.Context) string
	// Now is the clock that timestamps are compared with; default [time.Now].
	Now func() time.Time
}

// Trust selects how deliveries are authenticated.
type Trust uint8

// The trust policies.
const (
	trustDefault Trust = iota

	// RequireSignature accepts only signed deliveries.
	RequireSignature
	// SignatureOrReadBack is for a URL that is both a registered endpoint and a
	// notify_url, whose deliveries are unsigned. Deliveries with a signature
	// header must have a valid signature; all others are confirmed by the API.
	SignatureOrReadBack
	// ReadBackOnly confirms every delivery by the API: it reads the resource
	// and accepts the event if the state proves it. The handler gets an event
	// that is rebuilt from the resource: no id, amount, reference or other
	// member of an unsigned body reaches it. A body is rejected if it
	// contradicts the resource, names two resources, or has a kind that no
	// state proves. Two events that the API can't distinguish count as one.
	ReadBackOnly
	// UnsafeTrustBody accepts every delivery. It is for tests.
	UnsafeTrustBody
)

// Mode selects when a delivery is acknowledged with 200.
type Mode uint8

// The modes.
const (
	// Sync responds after the handler has returned. Only the gateway retries.
	// Events that another process set aside, because it had no handler for
	// them, are handled in the background.
	Sync Mode = iota
	// Inbox responds once the event is stored, and handles it afterwards, with
	// its own retries. It needs a durable store. Call [Receiver.Start] after
	// registering the handlers, and [Receiver.Shutdown] before exiting.
	Inbox
)

const minSecretPath = 16

// check rejects a configuration that can't keep the receiver's guarantees.
func (c *Config) check() error {
	if err := c.checkKeys(); err != nil {
		return err
	}
	if c.Tolerance != 0 && c.Tolerance < time.Second {
		return fmt.Errorf("webhook: Tolerance is %v; it must be at least 1s, or 0 for the default of %v", c.Tolerance, Tolerance)
	}
	if c.Tolerance > MinRetention/2 {
		return fmt.Errorf("webhook: Tolerance is %v; it must be at most %v: the store may have forgotten an event that is replayed later",
			c.Tolerance, MinRetention/2)
	}
	if err := c.checkTrust(); err != nil {
		return err
	}
	if err := checkSecretPath(c.SecretPath.Reveal()); err != nil {
		return err
	}
	if err := c.Headers.check(); err != nil {
		return err
	}
	if err := c.checkAccount(); err != nil {
		return err
	}
	if c.Mode > Inbox {
		return errors.New("webhook: unknown Mode")
	}
	if c.Mode == Inbox && (c.Store == nil || !c.Store.Durable()) {
		return errors.New("webhook: Inbox mode acknowledges events before they are handled and needs a durable Store")
	}
	if m, ok := c.Store.(*memoryStore); ok && m.ttl < MinRetention {
		return fmt.Errorf("webhook: MemoryOptions.TTL of %v is shorter than %v: the gateway redelivers for 24 hours, and an event "+
			"that is forgotten earlier would be handled twice", m.ttl, MinRetention)
	}
	return nil
}

// checkSecretPath rejects what can't be the last element of a path.
func checkSecretPath(s string) error {
	switch {
	case s == "":
		return nil
	case len(s) < minSecretPath || strings.Contains(s, "/"):
		return fmt.Errorf("webhook: SecretPath needs at least %d characters and no slash", minSecretPath)
	case strings.TrimSpace(s) != s, spec.Quoted(s):
		return errors.New("webhook: SecretPath begins or ends with white space, or is in quotes, which are not part of the path")
	}
	return nil
}

// account returns the account that sends the events; its Name may be "".
func (c *Config) account() (a gateway.Account) {
	if c.API != nil {
		a = c.API.Account()
	}
	a.Name = cmp.Or(a.Name, c.Account)
	return a
}

func (c *Config) checkAccount() error {
	name := c.account().Name
	if c.Account != "" {
		if err := spec.CheckAccountName(c.Account); err != nil {
			return fmt.Errorf("webhook: Account: %w", err)
		}
		if name != c.Account {
			return fmt.Errorf("webhook: Account is %q, but the client in API belongs to the account %q: remove Account", c.Account, name)
		}
	}
	if name != "" || c.Store == nil || !c.Store.Durable() {
		return nil
	}
	advice := `set Account: "shop-br" in webhook.Config`
	if c.API != nil {
		advice = `create the client in API with gateway.WithAccount("shop-br")`
	}
	return fmt.Errorf("webhook: a durable Store needs a name for your account at the gateway, because receivers of several accounts may share it: %s, "+
		"with a name that you never change", advice)
}

// bindStore replaces the Store by its view for the account. A wrapper that does not
// wrap the views of its store would be bypassed from here on, so it is rejected.
func (c *Config) bindStore(account gateway.Account) error {
	if account.Name == "" {
		return nil
	}
	view := c.Store.For(account)
	if reflect.TypeOf(view) != reflect.TypeOf(c.Store) {
		return fmt.Errorf("webhook: For of the Store, a %T, returned a %T: a store that wraps another one needs a method For that wraps its views too",
			c.Store, view)
	}
	c.Store = view
	return nil
}

// checkKeys rejects empty, truncated and placeholder keys. No error contains a
// part of a key.
func (c *Config) checkKeys() error {
	ids := make(map[string]int, len(c.Keys))
	for i, k := range c.Keys {
		key := k.Key.Reveal()
		if problem := spec.SigningKeyProblem(key); problem != "" {
			return fmt.Errorf("webhook: Keys[%d] %s", i, problem)
		}
		switch {
		case k.ID == key:
			return fmt.Errorf("webhook: the ID of Keys[%d] is the key itself; IDs are logged, so choose another name", i)
		case !usable(k.ID):
			return fmt.Errorf("webhook: the ID of Keys[%d] must have at most %d bytes of valid UTF-8 and no control characters: it is stored with the events",
				i, maxName)
		}
		id := keyID(c.Keys, i)
		if other, taken := ids[id]; taken {
			return fmt.Errorf("webhook: Keys[%d] and Keys[%d] have the same ID", other, i)
		}
		ids[id] = i
	}
	return nil
}

// expired reports whether no key is accepted any more.
func (c *Config) expired() bool {
	now := c.Now()
	return !slices.ContainsFunc(c.Keys, func(k SigningKey) bool { return k.accepted(now) })
}

func (c *Config) checkTrust() error {
	signed, readable := len(c.Keys) > 0, c.API != nil
	if signed && (c.Trust == RequireSignature || c.Trust == SignatureOrReadBack) && c.expired() {
		return errors.New("webhook: the NotAfter of every key has passed: add the secret that the gateway signs with now")
	}
	switch c.Trust {
	case RequireSignature:
		if !signed {
			return errors.New("webhook: RequireSignature needs Keys")
		}
	case SignatureOrReadBack:
		if !signed || !readable {
			return errors.New("webhook: SignatureOrReadBack needs Keys and API")
		}
	case ReadBackOnly:
		if !readable {
			return errors.New("webhook: ReadBackOnly needs API")
		}
	case UnsafeTrustBody:
	case trustDefault:
		return errors.New("webhook: set Keys to verify signatures, or API to confirm unsigned deliveries")
	default:
		return errors.New("webhook: unknown Trust")
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Trust == trustDefault {
		switch {
		case len(c.Keys) > 0:
			c.Trust = RequireSignature
		case c.API != nil:
			c.Trust = ReadBackOnly
		}
	}
	attempts := 8
	if c.Mode == Inbox {
		attempts = 25
	}
	c.MaxAttempts = positive(c.MaxAttempts, attempts)
	c.MaxConcurrent = positive(c.MaxConcurrent, 64)
	c.Workers = cmp.Or(c.Workers, 8)
	c.PollInterval = positive(c.PollInterval, time.Second)
	c.HandlerTimeout = positive(c.HandlerTimeout, 30*time.Second)
	c.MaxHung = cmp.Or(c.MaxHung, 16)
	c.Lease = positive(c.Lease, time.Minute)
	c.MaxBody = min(positive(c.MaxBody, 1<<20), math.MaxInt64-1)
	c.ReadTimeout = positive(c.ReadTimeout, 10*time.Second)
	if c.Backoff == nil {
		c.Backoff = defaultBackoff
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if name := c.account().Name; name != "" {
		c.Logger = c.Logger.With(slog.String("account", name))
	}
	c.Logger = slog.New(quietHandler{c.Logger.Handler()})
	if c.Observe == nil {
		c.Observe = func(context.Context, Observation) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Store == nil && c.Mode == Sync {
		c.Store = NewMemoryStore(MemoryOptions{Now: c.Now})
	}
}

func positive[N int | int64 | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

const (
	firstBackoff = 5 * time.Second
	lastBackoff  = time.Hour
)

func defaultBackoff(attempt int) time.Duration {
	d := lastBackoff
	if attempt < 11 { // 5 s doubled ten times is more than an hour
		d = min(d, firstBackoff<<(max(attempt, 1)-1))
	}
	return d/2 + rand.N(d/2+1) //nolint:gosec // jitter needs no secrecy
}
