package mockserver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/gatewayprobe"
	"github.com/gateway-go/gateway/internal/profile"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/webhook"
)

// Dialect is one of the two readings of the interface.
type Dialect uint8

// The dialects; docs/assumptions.md lists what differs.
const (
	Document Dialect = iota // as the interface document says; the default
	Live                    // as the published gateway responds
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
	Production                    // sk_live_… keys; no status can be set
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
	mistake     error // of an option, found when it was applied
	environment Environment
	lenient     bool
	basicTokenX string
	noConsole   bool
	autoPay     time.Duration
	fee         int64
	opening     int64
	memory      int64
	secret      gateway.Secret
	speed       float64
	dataFile    string
	seedFile    string
	allowHosts  []string
	bodyTimeout time.Duration // 0 is the gate's own

	endpoint       string
	endpointSecret gateway.Secret
	headers        webhook.HeaderNames
}

const defaultMemory = 2 << 30

func defaults() settings {
	return settings{start: time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC), secret: gateway.NewSecret("whsec_mock")}
}

// check rejects invalid settings, so that a mistake shows at the start.
func (c settings) check() error {
	switch {
	case c.fee < 0:
		return errors.New("mockserver: WithFee: a fee can't be negative")
	case c.autoPay < 0:
		return errors.New("mockserver: WithAutoPay: a delay can't be negative")
	case c.memory < 0:
		return errors.New("mockserver: WithMemoryLimit: a limit can't be negative")
	case c.mistake != nil:
		return c.mistake
	case c.environment > Production:
		return errors.New("mockserver: WithEnvironment: neither Sandbox nor Production")
	case c.speed < 0 || c.speed > clock.MaxSpeed || math.IsNaN(c.speed):
		return errors.New("mockserver: WithRealtime: the speed must be above 0 and at most 1000000")
	case slices.ContainsFunc(c.allowHosts, func(name string) bool { return strings.ContainsAny(name, "/:, ") || name == "" }):
		return errors.New("mockserver: WithAllowedHosts: a host name has no scheme, port, path or comma")
	case c.start.UTC().Year() < 1970 || c.start.UTC().Year() > clock.LastYear:
		return fmt.Errorf("mockserver: WithStart: the clock starts between the years 1970 and %d", clock.LastYear)
	}
	if err := deliver.CheckHeaders(c.headers); err != nil {
		return fmt.Errorf("mockserver: WithSignatureHeaders: %w", err)
	}
	return nil
}

// WithSeed makes every id and code repeat: the same seed and the same calls in
// the same order give the same bytes. Without it they can't be predicted.
func WithSeed(seed uint64) Option { return func(s *settings) { s.seed = &seed } }

// WithStart sets the first time of the virtual clock, which is
// 2027-01-04T12:00:00Z otherwise, between the years 1970 and 9599.
func WithStart(t time.Time) Option { return func(s *settings) { s.start = t } }

// WithDialect chooses the reading of the interface.
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

// WithProfile makes the gateway behave as one that package gatewayprobe has probed, in
// every row of docs/assumptions.md for which there is a setting: dialect, leniency and
// fee. It ignores the others, which [gatewayprobe.Profile.NotReproduced] lists. Options
// after it can change these settings again.
func WithProfile(p gatewayprobe.Profile) Option {
	return func(s *settings) {
		set, _, err := profile.Read(p.Readings)
		if err != nil {
			s.mistake = fmt.Errorf("mockserver: WithProfile: %w", err)
		}
		s.dialect, s.lenient, s.fee = set.Dialect, set.Lenient, set.Fee
	}
}

// WithEnvironment chooses the environment.
func WithEnvironment(e Environment) Option { return func(s *settings) { s.environment = e } }

// WithLenient accepts transactions without products or buyer.
func WithLenient() Option { return func(s *settings) { s.lenient = true } }

// WithConsole chooses whether browsers get the console: pages that show what
// happened and do what the control plane does, at / and under /__mock/console.
// They do otherwise. JSON clients never see it, and it costs nothing until a
// page is asked for.
func WithConsole(on bool) Option { return func(s *settings) { s.noConsole = !on } }

// WithBasicTokenX lets the literal Basic credential "token:x" stand for a key.
// Otherwise it identifies no account and gets 401.
func WithBasicTokenX(key string) Option { return func(s *settings) { s.basicTokenX = key } }

// WithAutoPay pays every pending transaction that needs no challenge by itself
// after d on the virtual clock.
func WithAutoPay(d time.Duration) Option { return func(s *settings) { s.autoPay = d } }

// WithFee sets what the gateway keeps of every payment, in cents. It is nothing
// otherwise.
func WithFee(cents int64) Option { return func(s *settings) { s.fee = cents } }

// WithOpeningBalance sets the balance of a new account, in cents. It is 0
// otherwise.
func WithOpeningBalance(cents int64) Option { return func(s *settings) { s.opening = cents } }

// WithMemoryLimit limits the memory, by estimate, of accounts, resources, deliveries,
// journal and snapshots together, in bytes; the default is 2 GiB. A write beyond it,
// and the first call of a new account, gets a 507 with code MEMORY_LIMIT. No resource
// and no pending delivery is dropped; the journal takes up to an eighth of the limit,
// the log of finished deliveries up to a quarter.
func WithMemoryLimit(bytes int64) Option { return func(s *settings) { s.memory = bytes } }

// WithWebhookSecret sets the secret that signs the webhooks of
// [Webhooks.Send]. It is whsec_mock otherwise.
func WithWebhookSecret(secret gateway.Secret) Option { return func(s *settings) { s.secret = secret } }

// WithRealtime lets the clock run: speed is how many of its seconds pass in a
// second of wall time, at most 1,000,000. It can be advanced nevertheless.
func WithRealtime(speed float64) Option { return func(s *settings) { s.speed = speed } }

// WithDataFile stores the gateway's state in a file: resources, balances, timers,
// endpoints and deliveries, each before the call that caused it returns, a change
// together with its webhooks. A file that is damaged or of something else is rejected
// and left as it is. The journal and the faults are not stored. Close the server
// before another one opens the file.
func WithDataFile(path string) Option { return func(s *settings) { s.dataFile = path } }

// WithEndpoint delivers the events of every account to a URL, signed with the
// secret unless that is empty.
func WithEndpoint(url string, secret gateway.Secret) Option {
	return func(s *settings) { s.endpoint, s.endpointSecret = url, secret }
}

// WithSignatureHeaders names the headers that carry the signature of webhooks,
// as the operator of your gateway calls them; an empty name is the default,
// X-Gateway-Timestamp or X-Gateway-Signature. Give your receiver the same names.
// [Endpoint.Headers] goes before them.
func WithSignatureHeaders(names webhook.HeaderNames) Option {
	return func(s *settings) { s.headers = names }
}

// WithAllowedHosts allows host names, without a port, over a socket; "*" is any.
// Loopback names, IP addresses and the names of package httptest are always allowed.
// Every other name gets 421, so that a web page can't reach the gateway under a name
// of its own.
func WithAllowedHosts(names ...string) Option {
	return func(s *settings) { s.allowHosts = append(s.allowHosts, names...) }
}
