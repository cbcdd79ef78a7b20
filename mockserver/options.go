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

// Environment is the environment of a server.
type Environment uint8

// The environments. A key of the other one gets 401.
const (
	Sandbox    Environment = iota // sk_test_… keys; the default
	Production                    // sk_live_… keys; setting a transaction's status gets 403
)

// String returns the environment's name: "sandbox" or "production".
func (e Environment) String() string {
	if e == Production {
		return "production"
	}
	return "sandbox"
}

// Option configures a [Server].
type Option func(*settings)

type settings struct {
	seed        *uint64
	start       time.Time
	dialect     spec.Dialect
	mistake     error // error of an option
	environment Environment
	lenient     bool
	basicTokenX string
	noConsole   bool
	autoPay     time.Duration
	fee         int64
	settled     int64 // in hundredths of a percent; 0 means all
	opening     int64
	memory      int64
	secret      gateway.Secret
	speed       float64
	dataFile    string
	seedFile    string
	allowHosts  []string
	publicURL   string
	origins     []string      // whose scripts may read responses
	bodyTimeout time.Duration // 0 means the gate's default

	webhookTimeout time.Duration   // 0 means the sender's default
	retries        []time.Duration // nil means the sender's default
	pauseAfter     int
	anyCertificate bool

	endpoint       string
	endpointSecret gateway.Secret
	headers        webhook.HeaderNames
}

const defaultMemory = 2 << 30

func defaults() settings {
	return settings{start: time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC), secret: gateway.NewSecret("whsec_mock")}
}

// check rejects invalid settings, so that mistakes are reported at the start.
func (c settings) check() error {
	switch {
	case c.fee < 0:
		return errors.New("mockserver: WithFee: a fee can't be negative")
	case c.autoPay < 0:
		return errors.New("mockserver: WithAutoPay: a delay can't be negative")
	case c.memory < 0:
		return errors.New("mockserver: WithMemoryLimit: a limit can't be negative")
	case c.webhookTimeout < 0:
		return errors.New("mockserver: WithWebhookTimeout: a limit can't be negative")
	case c.pauseAfter < 0:
		return errors.New("mockserver: WithEndpointPause: a number of failures can't be negative")
	case c.mistake != nil:
		return c.mistake
	case c.settled != 0 && !c.dialect.Live(spec.D24):
		return errors.New("mockserver: WithSettledPercent: only the live dialect reports what it settles as the amount")
	case c.environment > Production:
		return errors.New("mockserver: WithEnvironment: neither Sandbox nor Production")
	case c.speed < 0 || c.speed > clock.MaxSpeed || math.IsNaN(c.speed):
		return errors.New("mockserver: WithRealtime: the speed must be above 0 and at most 1000000")
	case slices.ContainsFunc(c.allowHosts, func(name string) bool { return strings.ContainsAny(name, "/:, ") || name == "" }):
		return errors.New("mockserver: WithAllowedHosts: a host name has no scheme, port, path or comma")
	case c.start.UTC().Year() < 1970 || c.start.UTC().Year() > clock.LastYear:
		return fmt.Errorf("mockserver: WithStart: the clock starts between the years 1970 and %d", clock.LastYear)
	}
	if err := gate.CheckOrigins(c.origins); err != nil {
		return fmt.Errorf("mockserver: WithCORS: %w", err)
	}
	if c.publicURL != "" {
		if err := deliver.CheckURL(c.publicURL); err != nil {
			return fmt.Errorf("mockserver: WithPublicURL: %w", err)
		}
	}
	if err := deliver.CheckSecret(c.secret); err != nil {
		return fmt.Errorf("mockserver: WithWebhookSecret: %w", err)
	}
	if err := deliver.CheckSecret(c.endpointSecret); err != nil {
		return fmt.Errorf("mockserver: WithEndpoint: %w", err)
	}
	if err := deliver.CheckHeaders(c.headers); err != nil {
		return fmt.Errorf("mockserver: WithSignatureHeaders: %w", err)
	}
	return nil
}

// WithSeed makes ids and codes deterministic: the same seed and the same calls
// in the same order return the same bytes. Without it they are random.
// After a reset, an account begins with its first ids again.
func WithSeed(seed uint64) Option { return func(s *settings) { s.seed = &seed } }

// WithStart sets the start of the virtual clock, between the years 1970 and
// 9599; default 2027-01-04T12:00:00Z.
func WithStart(t time.Time) Option { return func(s *settings) { s.start = t } }

// WithDialect sets the dialect of the interface. Run your tests with both: live
// gateways reject some requests that the document allows.
func WithDialect(d Dialect) Option {
	return func(s *settings) {
		switch d {
		case Document:
			s.dialect = spec.DocumentDialect
		case Live:
			s.dialect = spec.LiveDialect
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
		s.dialect, s.lenient, s.fee, s.settled = set.Dialect, set.Lenient, set.Fee, set.Settled
	}
}

// WithEnvironment sets the environment.
func WithEnvironment(e Environment) Option { return func(s *settings) { s.environment = e } }

// WithLenient accepts transactions without products or buyer.
func WithLenient() Option { return func(s *settings) { s.lenient = true } }

// WithConsole sets whether browsers get the console: pages at / and under
// /__mock/console that show what happened and offer the actions of the control
// plane. The default is true. JSON clients never see it, and it uses no
// resources until a page is requested.
func WithConsole(on bool) Option { return func(s *settings) { s.noConsole = !on } }

// WithBasicTokenX maps the literal Basic credential "token:x" to a key.
// Without it that credential gets 401.
func WithBasicTokenX(key string) Option { return func(s *settings) { s.basicTokenX = key } }

// WithAutoPay automatically pays every pending transaction after d on the virtual
// clock, except those that need a challenge.
func WithAutoPay(d time.Duration) Option { return func(s *settings) { s.autoPay = d } }

// WithFee sets the gateway's fee for every payment, in cents; default 0.
func WithFee(cents int64) Option { return func(s *settings) { s.fee = cents } }

// WithSettledPercent makes the gateway report in the amount of every transaction what
// it settles, as some live gateways do: that percentage of the amount that the buyer is
// charged, rounded down to whole cents, from the create on. base_price and paid_amount
// have what the buyer is charged, and payments, refunds, fees and the balance count
// from that. The percentage is above 0 and below 100, with at most two decimals, and
// needs the live dialect. [Transactions.SettleFor] sets the amount of one transaction.
func WithSettledPercent(percent float64) Option {
	return func(s *settings) {
		s.settled = int64(math.Round(percent * 100))
		if s.settled <= 0 || s.settled >= engine.WholeShare || math.Abs(percent*100-float64(s.settled)) > 1e-6 {
			s.mistake = errors.New("mockserver: WithSettledPercent: the percentage must be above 0 and below 100, with at most two decimals")
		}
	}
}

// WithOpeningBalance sets the balance of a new account, in cents; default 0.
func WithOpeningBalance(cents int64) Option { return func(s *settings) { s.opening = cents } }

// WithMemoryLimit limits the memory, by estimate, of accounts, resources, deliveries,
// journal and snapshots together, in bytes; the default is 2 GiB. A write beyond it,
// and the first call of a new account, gets a 507 with code MEMORY_LIMIT. No resource
// and no pending delivery is dropped; the journal takes up to an eighth of the limit,
// the log of finished deliveries up to a quarter.
func WithMemoryLimit(bytes int64) Option { return func(s *settings) { s.memory = bytes } }

// WithWebhookSecret sets the secret that signs the webhooks of
// [Webhooks.Send]; default whsec_mock. Like every secret of an endpoint, it must be
// one that a [webhook.Receiver] accepts: at least 8 characters, without quotes or
// white space around it.
func WithWebhookSecret(secret gateway.Secret) Option { return func(s *settings) { s.secret = secret } }

// WithRealtime lets the clock run: speed is how many of its seconds pass per
// second of wall time, at most 1,000,000. The clock can still be advanced.
func WithRealtime(speed float64) Option { return func(s *settings) { s.speed = speed } }

// WithDataFile stores the gateway's state in a file: resources, balances, timers,
// endpoints and deliveries. A change is stored together with its webhooks, before
// the call that made the change returns. A file that is damaged or not a data file
// is rejected and left unchanged. The journal and the faults are not stored.
// Close the server before another one opens the file.
func WithDataFile(path string) Option { return func(s *settings) { s.dataFile = path } }

// WithEndpoint delivers the events of every account to a URL, signed with the
// secret unless it is empty; see [WithWebhookSecret] for secrets.
func WithEndpoint(url string, secret gateway.Secret) Option {
	return func(s *settings) { s.endpoint, s.endpointSecret = url, secret }
}

// WithWebhookTimeout sets how long a receiver may take to respond, in wall time; default
// 10 seconds. The clock's Advance waits as long behind each attempt to a receiver that
// hangs.
func WithWebhookTimeout(d time.Duration) Option {
	return func(s *settings) { s.webhookTimeout = d }
}

// WithWebhookRetries sets the times of the retries of a failed delivery, after the first
// attempt, on the virtual clock: at most 100, in increasing order and within 365 days.
// None means that a delivery is attempted once. The default is that of [Webhooks].
func WithWebhookRetries(after ...time.Duration) Option {
	return func(s *settings) {
		s.retries = append([]time.Duration{}, after...)
		if err := deliver.CheckRetries(after); err != nil {
			s.mistake = fmt.Errorf("mockserver: WithWebhookRetries: %w", err)
		}
	}
}

// WithEndpointPause pauses a registered receiver after that many attempts in a row have
// failed, as some gateways do: what happens meanwhile is not sent later, and earlier
// deliveries continue. [Webhooks.ResumeEndpoint] resumes it. The default, 0, pauses none.
func WithEndpointPause(failures int) Option { return func(s *settings) { s.pauseAfter = failures } }

// WithAnyCertificate accepts the TLS certificate of every receiver of webhooks, such as a
// self-signed one.
func WithAnyCertificate() Option { return func(s *settings) { s.anyCertificate = true } }

// WithSignatureHeaders sets the names of the signature headers of webhooks, if
// your gateway's operator has changed them; an empty name means the default,
// X-Gateway-Timestamp or X-Gateway-Signature. Configure your receiver with the
// same names. [Endpoint.Headers] takes precedence.
func WithSignatureHeaders(names webhook.HeaderNames) Option {
	return func(s *settings) { s.headers = names }
}

// WithAllowedHosts allows host names, without a port, over a socket; "*" means
// any. Loopback names, IP addresses and the names of package httptest are
// always allowed. Every other name gets 421, so that a web page can't reach
// the gateway by DNS rebinding.
func WithAllowedHosts(names ...string) Option {
	return func(s *settings) { s.allowHosts = append(s.allowHosts, names...) }
}

// WithCORS lets scripts of web pages call the gateway from other origins, such as
// "http://localhost:5173", and read its responses; "*" is every origin. Pages of the listed
// origins may also use the control plane, those that only "*" allows may not. The default
// is none. A live gateway allows no pages: a secret key doesn't belong in a browser.
func WithCORS(origins ...string) Option {
	return func(s *settings) { s.origins = append(s.origins, origins...) }
}

// WithPublicURL sets the address at which buyers reach the server, such as
// "https://gateway.test:8443": those of checkout links begin with it. Without it
// they begin with the address that the client used, or with that in the headers
// X-Forwarded-Host and X-Forwarded-Proto of a proxy, if [WithAllowedHosts]
// allows its host name.
func WithPublicURL(url string) Option { return func(s *settings) { s.publicURL = url } }
