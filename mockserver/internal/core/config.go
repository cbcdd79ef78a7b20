package core

import (
	"hash/fnv"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/webhook"
)

// Config has the settings of a gateway. The options of package mockserver describe and
// check them.
type Config struct {
	RandomSeed  *uint64 // of ids and codes; nil makes them random
	Start       time.Time
	Speed       float64 // of the clock; 0 stops it
	Dialect     spec.Dialect
	Production  bool // the environment; else sandbox
	Lenient     bool
	BasicTokenX string
	AutoPay     time.Duration
	Fee         int64
	Settled     int64 // in hundredths of a percent; 0 means all
	Opening     int64
	MemoryLimit int64 // 0 means the default
	DataFile    string
	SeedFile    string
	Console     bool // browsers get a console

	AllowHosts  []string
	PublicURL   string
	Origins     []string      // whose scripts may read responses
	BodyTimeout time.Duration // 0 means the gate's default

	Secret         gateway.Secret
	Headers        webhook.HeaderNames
	Endpoint       string
	EndpointSecret gateway.Secret
	WebhookTimeout time.Duration   // 0 means the sender's default
	Retries        []time.Duration // nil means the sender's default
	PauseAfter     int
	AnyCertificate bool
}

// Key returns the API key of the default account.
func (c *Config) Key() string {
	if c.Production {
		return "sk_live_mock"
	}
	return "sk_test_mock"
}

// Environment returns the environment's name.
func (c *Config) Environment() string { return c.environment().String() }

// seedOr returns the seed, or a random one if none was given.
func (c *Config) seedOr(other uint64) uint64 {
	if c.RandomSeed == nil {
		return other
	}
	return *c.RandomSeed
}

// ids returns the source of ids of an account, or of the server for "". Each
// has its own, so that one account's calls don't change the others' ids.
func (c *Config) ids(account string) *ids.Source {
	if c.RandomSeed == nil {
		return ids.New()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(account)) // never fails
	return ids.Seeded(*c.RandomSeed ^ h.Sum64())
}
