// Package mockserver is a complete in-memory payment gateway, with every
// endpoint, state and rule of the interface. Use it inside a Go test without a
// socket, as an [http.Handler], or from any language as the binary
// mockgateway.
package mockserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/console"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/events"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/gate"
	"github.com/gateway-go/gateway/mockserver/internal/hosted"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/memory"
	"github.com/gateway-go/gateway/mockserver/internal/store"
	"github.com/gateway-go/gateway/webhook"
)

// Server is a gateway. Its fields act on all accounts: a resource is found by
// its id in any account, and receivers get the events of all accounts.
// [Server.Account] returns the same controls limited to one account.
type Server struct {
	Transactions  Transactions
	Transfers     Transfers
	Subscriptions Subscriptions
	Checkout      Checkout
	Legacy        Legacy
	Clock         *Clock
	Webhooks      Webhooks
	Faults        Faults
	Requests      Requests

	settings *settings // a pointer, because fmt prints only its address if it can't call Format
	memory   *memlimit.Limit
	store    *store.Store
	clock    *clock.Clock
	sender   *deliver.Sender
	faults   *faults.Set
	journal  *journal.Journal
	data     data
	events   *events.Hub
	down     atomic.Bool
	handler  http.Handler

	requestIDs *ids.Source

	mu        sync.Mutex
	listening []*http.Server
	seeding   sync.Mutex        // held while a seed file is applied
	seeded    map[string]string // ids of the entries of seed files, by their names
}

// New returns a gateway. By default its clock moves only when it is advanced.
// Close it when it is no longer needed.
func New(opts ...Option) (*Server, error) {
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("mockserver: an option is nil")
		}
		opt(&cfg)
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Server{settings: &cfg, requestIDs: cfg.ids(""), memory: memlimit.New(cmp.Or(cfg.memory, defaultMemory))}
	s.events = events.New(func() time.Time { return s.clock.Now() }, s.Key())
	s.clock = clock.New(clock.Config{
		Start:        cfg.start,
		Speed:        cfg.speed,
		Fire:         s.fire,
		StillApplies: s.stillApplies,
		Settle:       func(ctx context.Context) error { return s.sender.Settle(ctx) },
		Refuse:       refuseInside,
		Moved:        s.emitClock,
	})
	s.faults = &faults.Set{Seed: cfg.seedOr(rand.Uint64()), Events: s.events} //nolint:gosec // chooses which request fails
	webhooks := deliver.Config{
		Clock: s.clock, Wall: time.Now, InjectFault: s.faults.ForWebhook, Headers: cfg.headers, Memory: s.memory,
		Events: s.events, Dialect: cfg.dialect,
		Timeout: cfg.webhookTimeout, Retries: cfg.retries, PauseAfter: cfg.pauseAfter, AnyCertificate: cfg.anyCertificate,
	}
	if cfg.dataFile != "" {
		webhooks.Persist, webhooks.Paused = s.data.persistWebhooks, true
	}
	s.sender = deliver.New(webhooks)
	s.data.now, s.data.sender = s.clock.Now, s.sender
	s.store = store.New(store.Config{
		Clock:   s.clock,
		IDs:     cfg.ids,
		Outbox:  &s.data,
		Dialect: cfg.dialect,
		Sandbox: cfg.environment == Sandbox,
		AutoPay: cfg.autoPay,
		Fee:     cfg.fee,
		Settled: cfg.settled,
		Opening: cfg.opening,
		Memory:  s.memory,
		Events:  s.events,
		// The journal is made below, before anything is committed.
		Requests: func() uint64 { return s.journal.Total() },
	})
	s.store.Account(s.Key()) // reserves the default account's memory, even if other keys are used first
	s.assemble(s.api(cfg.dialect, s.requestIDs))
	s.Clock = &Clock{s}
	all := s.Account("")
	s.Transactions, s.Transfers, s.Subscriptions = all.Transactions, all.Transfers, all.Subscriptions
	s.Checkout, s.Legacy = all.Checkout, all.Legacy
	s.Webhooks, s.Faults, s.Requests = all.Webhooks, all.Faults, all.Requests
	if err := s.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("mockserver: %w", err), s.Close())
	}
	return s, nil
}

// begin reads the data file, registers the endpoint, applies the seed file and
// starts the clock, as requested by the options.
func (s *Server) begin() error {
	if s.settings.dataFile != "" {
		if err := s.openData(s.settings.dataFile); err != nil {
			return err
		}
	}
	const id = "ep_default"
	if s.settings.endpoint == "" {
		_ = s.sender.RemoveEndpoint("", id) // of an earlier start
	} else if _, err := s.sender.AddEndpoint(deliver.Endpoint{
		ID: id, URL: s.settings.endpoint, Secret: s.settings.endpointSecret,
	}); err != nil {
		return err
	}
	if s.settings.seedFile != "" {
		if err := s.seedFile(s.settings.seedFile); err != nil {
			return err
		}
	}
	s.sender.Resume()
	s.clock.Run()
	s.clock.RunDue() // timers that an earlier process committed but did not fire
	return nil
}

// api returns the interface in a dialect.
func (s *Server) api(dialect spec.Dialect, requestIDs *ids.Source) *httpapi.API {
	return httpapi.New(httpapi.Config{
		Store:       s.store,
		Now:         s.clock.Now,
		IDs:         requestIDs,
		Dialect:     dialect,
		Lenient:     s.settings.lenient,
		Production:  s.settings.environment == Production,
		BasicTokenX: s.settings.basicTokenX,
		PublicURL:   s.settings.publicURL,
		Hosts:       s.settings.allowHosts,
		Events:      s.events,
	})
}

// assemble puts the journal and the faults in front of the API.
func (s *Server) assemble(api *httpapi.API) {
	pages := hosted.New(hosted.Config{
		Store: s.store, Now: s.clock.Now, ServeAs: api.ServeAs, Dialect: s.settings.dialect, Console: s.consolePath(),
	})
	operation := func(r *http.Request) string { return cmp.Or(hosted.Operation(r), api.Operation(r)) }
	account := func(r *http.Request) string {
		if hosted.Serves(r) {
			return pages.Account(r)
		}
		return api.Account(r)
	}
	s.journal = journal.New(journal.Config{
		Now: s.clock.Now, Operation: operation, Account: account, Memory: s.memory, Events: s.events,
	})
	s.faults.Known = func(webhook bool, pattern string) bool { return known(api, webhook, pattern) }
	plane := s.controlPlane(api)
	gateway := s.journal.Wrap(&faults.Injector{
		Set: s.faults, Operation: operation, Account: account,
		Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if hosted.Serves(r) {
				pages.ServeHTTP(w, r)
				return
			}
			api.ServeHTTP(w, r)
		}),
	})
	browsers := s.console(plane, gateway)
	s.handler = &gate.Gate{
		Hosts:       s.settings.allowHosts,
		Open:        admin.Harmless,
		Strict:      admin.Serves,
		Rejected:    s.emitForeign,
		BodyTimeout: s.settings.bodyTimeout,
		Next: gate.CORS(s.settings.origins, gate.Decoded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if browsers != nil && console.Serves(r) {
				browsers.ServeHTTP(w, r)
				return
			}
			if admin.Serves(r) {
				plane.ServeHTTP(w, r)
				return
			}
			if s.down.Load() {
				if !hosted.Quiet(r) { // open pages poll every few seconds
					s.emitUnreachable(r)
				}
				memory.Refuse(w)
			}
			if hosted.Quiet(r) {
				pages.ServeHTTP(w, r)
				return
			}
			gateway.ServeHTTP(w, r)
		}))),
	}
}

// known reports whether a pattern matches any operation or kind of event.
func known(api *httpapi.API, webhooks bool, pattern string) bool {
	if webhooks {
		return slices.ContainsFunc(webhook.DocumentedKinds(), func(k webhook.Kind) bool {
			return faults.Glob(pattern, string(k))
		})
	}
	return slices.ContainsFunc(append(api.Operations(), hosted.Operations()...), func(o spec.Operation) bool {
		return faults.Request{Operation: o.Name, Method: o.Method, Path: o.Path}.CanMatch(pattern)
	})
}

// fire runs a due timer.
func (s *Server) fire(t clock.Timer) error {
	told := s.events.Listening() && s.stillApplies(t)
	if told {
		s.emitTimer(t, nil)
	}
	err := s.fireTimer(t)
	if told && err != nil {
		s.emitTimer(t, err)
	}
	return err
}

func (s *Server) fireTimer(t clock.Timer) error {
	if t.Kind == deliver.TimerKind {
		s.sender.Fire(t)
		return nil
	}
	return s.store.Fire(t)
}

// stillApplies reports whether a timer will have an effect.
func (s *Server) stillApplies(t clock.Timer) bool {
	if t.Kind == deliver.TimerKind {
		return s.sender.StillApplies(t)
	}
	return s.store.StillApplies(t)
}

// refuseInside rejects an advance of the clock by a webhook handler, since it
// would wait for that handler.
func refuseInside() error {
	if deliver.Inside() {
		return deliver.ErrInside
	}
	return nil
}

// seedOr returns the seed, or a random one if none was given.
func (c settings) seedOr(other uint64) uint64 {
	if c.seed == nil {
		return other
	}
	return *c.seed
}

// ids returns the source of ids of an account, or of the server for "". Each
// has its own, so that one account's calls don't change the others' ids.
func (c settings) ids(account string) *ids.Source {
	if c.seed == nil {
		return ids.New()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(account)) // never fails
	return ids.Seeded(*c.seed ^ h.Sum64())
}

// Key returns the API key of the default account: sk_test_mock, in production
// sk_live_mock.
func (s *Server) Key() string {
	if s.settings.environment == Production {
		return "sk_live_mock"
	}
	return "sk_test_mock"
}

// Down makes the gateway unreachable until [Server.Up]: connections are
// refused (reset, over a socket), and no request is executed. The control
// plane and webhooks keep working.
func (s *Server) Down() { s.setDown(true) }

// Up ends [Server.Down].
func (s *Server) Up() { s.setDown(false) }

// Format writes the type's name for every verb: the server's state is large and
// changes while it is printed.
func (*Server) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("mockserver.Server")) }

// Handler returns the gateway as an HTTP handler. Behind a socket it rejects
// host names other than those of this machine and of package httptest with 421:
// see [WithAllowedHosts].
func (s *Server) Handler() http.Handler { return s.handler }

// Account returns the controls of a key's account. They act only on that
// account: resources of other accounts are not found. The controls of "" are
// those of the server's fields, which act on all accounts.
func (s *Server) Account(key string) *Account {
	secret := gateway.NewSecret(key)
	of := scope{store: s.store, account: secret}
	return &Account{
		Transactions:  Transactions{of},
		Transfers:     Transfers{of},
		Subscriptions: Subscriptions{of},
		Checkout:      Checkout{of},
		Legacy:        Legacy{of},
		Webhooks:      Webhooks{sender: s.sender, faults: s.faults, secret: s.settings.secret, account: secret},
		Faults:        Faults{set: s.faults, account: secret},
		Requests:      Requests{journal: s.journal, account: secret},
		server:        s,
		key:           secret,
	}
}

// Account controls one account: the actions of payers, banks and
// issuers, while the merchant acts through the API.
type Account struct {
	Transactions  Transactions
	Transfers     Transfers
	Subscriptions Subscriptions
	Checkout      Checkout
	Legacy        Legacy
	Webhooks      Webhooks
	Faults        Faults
	Requests      Requests

	server *Server
	key    gateway.Secret
}

// Listen serves the gateway on a TCP address such as "127.0.0.1:0", until
// [Server.Close], and returns its base URL.
func (s *Server) Listen(addr string) (baseURL string, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("mockserver: %w", err)
	}
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	s.mu.Lock()
	s.listening = append(s.listening, srv)
	s.mu.Unlock()
	go func() { _ = srv.Serve(l) }() // ends with Close
	return "http://" + l.Addr().String(), nil
}

// Close ends Listen and cancels running deliveries and requests, also those in
// memory that wait in a fault.
func (s *Server) Close() error {
	s.clock.Close()
	s.faults.Close()
	s.sender.Close()
	defer s.events.Close() // events until then are still reported
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, srv := range s.listening {
		errs = append(errs, srv.Close())
	}
	s.listening = nil
	return errors.Join(append(errs, s.data.close())...)
}
