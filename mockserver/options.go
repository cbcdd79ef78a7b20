package mockserver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/internal/profile"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/core"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/webhook"
)

// Dialect is one of the two variants of the interface.
type Dialect uint8

// The dialects; docs/assumptions.md lists what differs.
const (
	Document Dialect = iota // as the interface document says; the default
	Live                    // as live gateways respond
)

// String returns the dialect's name: "document" or "live".
func (d Dialect) String() string {
	if d == Live {
		return "live"
	}
	return "document"
}

// Option configures a [Server].
type Option func(*settings)

type settings struct {
	core.Config

	faults  []Fault
	mistake error // error of an option
}

func defaults() settings {
	return settings{Config: core.Config{
		Start: time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC), Secret: gateway.NewSecret("whsec_mock"), Console: true,
	}}
}

// check rejects invalid settings, so that mistakes are reported at the start.
func (c settings) check() error {
	switch {
	case c.Fee < 0:
		return errors.New("mockserver: WithFee: a fee can't be negative")
	case c.AutoPay < 0:
		return errors.New("mockserver: WithAutoPay: a delay can't be negative")
	case c.MemoryLimit < 0:
		return errors.New("mockserver: WithMemoryLimit: a limit can't be negative")
	case c.WebhookTimeout < 0:
		return errors.New("mockserver: WithWebhookTimeout: a limit can't be negative")
	case c.PauseAfter < 0:
		return errors.New("mockserver: WithEndpointPause: a number of failures can't be negative")
	case c.mistake != nil:
		return c.mistake
	case c.Settled != 0 && !c.Dialect.Live(spec.BasePrice):
		return errors.New("mockserver: WithSettledPercent: only the live dialect reports what it settles as the amount")
	case c.Speed < 0 || c.Speed > clock.MaxSpeed || math.IsNaN(c.Speed):
		return errors.New("mockserver: WithRealtime: the speed must be above 0 and at most 1000000")
	case slices.ContainsFunc(c.AllowHosts, func(name string) bool { return strings.ContainsAny(name, "/:, ") || name == "" }):
		return errors.New("mockserver: WithAllowedHosts: a host name has no scheme, port, path or comma")
	case c.Start.UTC().Year() < 1970 || c.Start.UTC().Year() > clock.LastYear:
		return fmt.Errorf("mockserver: WithStart: the clock starts between the years 1970 and %d", clock.LastYear)
	}
	if err := gate.CheckOrigins(c.Origins); err != nil {
		return fmt.Errorf("mockserver: WithCORS: %w", err)
	}
	if c.PublicURL != "" {
		if err := deliver.CheckURL(c.PublicURL); err != nil {
			return fmt.Errorf("mockserver: WithPublicURL: %w", err)
		}
	}
	if err := deliver.CheckSecret(c.Secret); err != nil {
		return fmt.Errorf("mockserver: WithWebhookSecret: %w", err)
	}
	if err := deliver.CheckSecret(c.EndpointSecret); err != nil {
		return fmt.Errorf("mockserver: WithEndpoint: %w", err)
	}
	if err := deliver.CheckHeaders(c.Headers); err != nil {
		return fmt.Errorf("mockserver: WithSignatureHeaders: %w", err)
	}
	return nil
}

// WithSeed makes ids and codes deterministic: the same seed and the same calls
// in the same order return the same bytes. Without it they are random.
// After a reset, an account begins with its first ids again.
func WithSeed(seed uint64) Option { return func(s *settings) { s.RandomSeed = &seed } }

// WithStart sets the start of the virtual clock, between the years 1970 and
// 9599; default 2027-01-04T12:00:00Z.
func WithStart(t time.Time) Option { return func(s *settings) { s.Start = t } }

// WithDialect sets the dialect of the interface. Run your tests with both: live
// gateways reject some requests that the document allows.
func WithDialect(d Dialect) Option {
	return func(s *settings) {
		switch d {
		case Document:
			s.Dialect = spec.DocumentDialect
		case Live:
			s.Dialect = spec.LiveDialect
		default:
			s.mistake = errors.New("mockserver: WithDialect: neither Document nor Live")
		}
	}
}

// WithProfile makes the gateway behave like the one that cmd/gatewayprobe has
// probed, in the rows of docs/assumptions.md that belong to the dialects, in its fee
// and in what it settles. report is the file that its flag -json writes. The other
// rows are ignored: the report marks them with not_reproduced. Later options can
// override these settings.
func WithProfile(report []byte) Option {
	return func(s *settings) {
		p, err := gatewayprobe.ReadProfile(report)
		if err != nil {
			s.mistake = fmt.Errorf("mockserver: WithProfile: %w", err)
			return
		}
		set, _, err := profile.Read(p.Readings)
		if err != nil {
			s.mistake = fmt.Errorf("mockserver: WithProfile: %w", err)
		}
		s.Dialect, s.Lenient, s.Fee, s.Settled = set.Dialect, set.Lenient, set.Fee, set.Settled
	}
}

// WithFaults adds faults at the start, for every account; see [Faults.Add].
func WithFaults(list ...Fault) Option {
	return func(s *settings) { s.faults = append(s.faults, list...) }
}

// WithProduction makes the server a production environment: its keys begin with
// sk_live_, and setting a transaction's status gets 403. The default is a sandbox,
// whose keys begin with sk_test_. A key of the other environment gets 401.
func WithProduction() Option { return func(s *settings) { s.Production = true } }

// WithLenient accepts transactions without products or buyer.
func WithLenient() Option { return func(s *settings) { s.Lenient = true } }

// WithConsole sets whether browsers get the console: pages at / and under
// /__mock/console that show what happened and offer the actions of the control
// plane. The default is true. JSON clients never see it, and it uses no
// resources until a page is requested.
func WithConsole(on bool) Option { return func(s *settings) { s.Console = on } }

// WithBasicTokenX maps the literal Basic credential "token:x" to a key.
// Without it that credential gets 401.
func WithBasicTokenX(key string) Option { return func(s *settings) { s.BasicTokenX = key } }

// WithAutoPay automatically pays every pending transaction after d on the virtual
// clock, except those that need a challenge.
func WithAutoPay(d time.Duration) Option { return func(s *settings) { s.AutoPay = d } }

// WithFee sets the gateway's fee for every payment, in cents; default 0.
func WithFee(cents int64) Option { return func(s *settings) { s.Fee = cents } }

// WithSettledPercent makes the gateway report in the amount of every transaction what
// it settles, as some live gateways do: that percentage of the amount that the buyer is
// charged, rounded down to whole cents, from the create on. base_price and paid_amount
// have what the buyer is charged, and payments, refunds, fees and the balance count
// from that. The percentage is above 0 and below 100, with at most two decimals, and
// needs the live dialect. [Transactions.SettleFor] sets the amount of one transaction.
func WithSettledPercent(percent float64) Option {
	return func(s *settings) {
		s.Settled = int64(math.Round(percent * 100))
		if s.Settled <= 0 || s.Settled >= engine.WholeShare || math.Abs(percent*100-float64(s.Settled)) > 1e-6 {
			s.mistake = errors.New("mockserver: WithSettledPercent: the percentage must be above 0 and below 100, with at most two decimals")
		}
	}
}

// WithOpeningBalance sets the balance of a new account, in cents; default 0.
func WithOpeningBalance(cents int64) Option { return func(s *settings) { s.Opening = cents } }

// WithMemoryLimit limits the memory, by estimate, of accounts, resources, deliveries,
// journal and snapshots together, in bytes; the default is 2 GiB. A write beyond it,
// and the first call of a new account, gets a 507 with code MEMORY_LIMIT. No resource
// and no pending delivery is dropped; the journal takes up to an eighth of the limit,
// the log of finished deliveries up to a quarter.
func WithMemoryLimit(bytes int64) Option { return func(s *settings) { s.MemoryLimit = bytes } }

// WithWebhookSecret sets the secret that signs the webhooks of
// [Webhooks.Send]; default whsec_mock. Like every secret of an endpoint, it must be
// one that a [webhook.Receiver] accepts: at least 8 characters, without quotes or
// white space around it.
func WithWebhookSecret(secret gateway.Secret) Option { return func(s *settings) { s.Secret = secret } }

// WithRealtime lets the clock run: speed is how many of its seconds pass per
// second of wall time, at most 1,000,000. The clock can still be advanced.
func WithRealtime(speed float64) Option { return func(s *settings) { s.Speed = speed } }

// WithDataFile stores the gateway's state in a file: resources, balances, timers,
// endpoints and deliveries. A change is stored together with its webhooks, before
// the call that made the change returns. A file that is damaged or not a data file
// is rejected and left unchanged. The journal and the faults are not stored.
// Close the server before another one opens the file.
func WithDataFile(path string) Option { return func(s *settings) { s.DataFile = path } }

// WithEndpoint delivers the events of every account to a URL, signed with the
// secret unless it is empty; see [WithWebhookSecret] for secrets.
func WithEndpoint(url string, secret gateway.Secret) Option {
	return func(s *settings) { s.Endpoint, s.EndpointSecret = url, secret }
}

// WithWebhookTimeout sets how long a receiver may take to respond, in wall time; default
// 10 seconds. The clock's Advance waits as long behind each attempt to a receiver that
// hangs.
func WithWebhookTimeout(d time.Duration) Option {
	return func(s *settings) { s.WebhookTimeout = d }
}

// WithWebhookRetries sets the times of the retries of a failed delivery, after the first
// attempt, on the virtual clock: at most 100, in increasing order and within 365 days.
// None means that a delivery is attempted once. The default is that of [Webhooks].
func WithWebhookRetries(after ...time.Duration) Option {
	return func(s *settings) {
		s.Retries = append([]time.Duration{}, after...)
		if err := deliver.CheckRetries(after); err != nil {
			s.mistake = fmt.Errorf("mockserver: WithWebhookRetries: %w", err)
		}
	}
}

// WithEndpointPause pauses a registered receiver after that many attempts in a row have
// failed, as some gateways do: what happens meanwhile is not sent later, and earlier
// deliveries continue. [Webhooks.ResumeEndpoint] resumes it. The default, 0, pauses none.
func WithEndpointPause(failures int) Option { return func(s *settings) { s.PauseAfter = failures } }

// WithAnyCertificate accepts the TLS certificate of every receiver of webhooks, such as a
// self-signed one.
func WithAnyCertificate() Option { return func(s *settings) { s.AnyCertificate = true } }

// WithSignatureHeaders sets the names of the signature headers of webhooks, if
// your gateway's operator has changed them; an empty name means the default,
// X-Gateway-Timestamp or X-Gateway-Signature. Configure your receiver with the
// same names. [Endpoint.Headers] takes precedence.
func WithSignatureHeaders(names webhook.HeaderNames) Option {
	return func(s *settings) { s.Headers = names }
}

// WithAllowedHosts allows host names, without a port, over a socket; "*" means
// any. Loopback names, IP addresses and the names of package httptest are
// always allowed. Every other name gets 421, so that a web page can't reach
// the gateway by DNS rebinding.
func WithAllowedHosts(names ...string) Option {
	return func(s *settings) { s.AllowHosts = append(s.AllowHosts, names...) }
}

// WithCORS lets scripts of web pages call the gateway from other origins, such as
// "http://localhost:5173", and read its responses; "*" is every origin. Pages of the listed
// origins may also use the control plane, those that only "*" allows may not. The default
// is none. A live gateway allows no pages: a secret key doesn't belong in a browser.
func WithCORS(origins ...string) Option {
	return func(s *settings) { s.Origins = append(s.Origins, origins...) }
}

// WithPublicURL sets the address at which buyers reach the server, such as
// "https://gateway.test:8443": those of checkout links begin with it. Without it
// they begin with the address that the client used, or with that in the headers
// Forwarded, or X-Forwarded-Host and X-Forwarded-Proto, of a proxy, if
// [WithAllowedHosts] allows its host name.
func WithPublicURL(url string) Option { return func(s *settings) { s.PublicURL = url } }
