// Package mockserver is a whole payment gateway in memory: every endpoint,
// state and rule of the interface, inside a Go test without a socket, as an
// [http.Handler], or as the binary mockgateway for any language.
package mockserver

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gateway-go/gateway/mockserver/internal/artefact"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// Server is a gateway. Its fields act on the default account, the one of
// [Server.Key]; [Server.Account] gives the same for any other.
type Server struct {
	Transactions  Transactions
	Transfers     Transfers
	Subscriptions Subscriptions
	Checkout      Checkout
	Legacy        Legacy
	Clock         *Clock

	settings settings
	store    *store.Store
	clock    *clock.Clock
	handler  http.Handler

	mu        sync.Mutex
	listening []*http.Server
}

// New returns a gateway with a clock that stands still until it is advanced.
// Close it when it is no longer needed.
func New(opts ...Option) (*Server, error) {
	cfg := defaults()
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("mockserver: an option is nil")
		}
		opt(&cfg)
	}
	s := &Server{settings: cfg}
	s.clock = clock.New(clock.Config{
		Start: cfg.start,
		Fire:  func(t clock.Timer) { s.store.Fire(t) },
	})
	s.store = store.New(store.Config{
		Clock:   s.clock,
		IDs:     func(account string) store.IDs { return cfg.ids(account) },
		Live:    cfg.dialect == Live,
		Sandbox: cfg.environment == Sandbox,
		AutoPay: cfg.autoPay,
		Fee:     cfg.fee,
		Opening: cfg.opening,
		Limit:   cfg.memory,
	})
	s.handler = httpapi.New(httpapi.Config{
		Store:       s.store,
		Now:         s.clock.Now,
		IDs:         cfg.ids(""),
		Live:        cfg.dialect == Live,
		Loose:       cfg.loose,
		Production:  cfg.environment == Production,
		BasicTokenX: cfg.basicTokenX,
	})
	s.Clock = &Clock{s.clock}
	a := s.Account(s.Key())
	s.Transactions, s.Transfers, s.Subscriptions = a.Transactions, a.Transfers, a.Subscriptions
	s.Checkout, s.Legacy = a.Checkout, a.Legacy
	return s, nil
}

// ids returns the source of ids of an account, or of the server for "". Each
// has its own, so that what one account does leaves the others' ids alone.
func (c settings) ids(account string) *artefact.IDs {
	if c.seed == nil {
		return artefact.NewIDs()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(account)) // never fails
	return artefact.NewSeededIDs(*c.seed ^ h.Sum64())
}

// Key returns the API key of the default account: sk_test_mock, in production
// sk_live_mock.
func (s *Server) Key() string {
	if s.settings.environment == Production {
		return "sk_live_mock"
	}
	return "sk_test_mock"
}

// Handler returns the gateway as an HTTP handler.
func (s *Server) Handler() http.Handler { return s.handler }

// Account returns the controls of the account that a key opens.
func (s *Server) Account(key string) *Account {
	return &Account{
		Transactions:  Transactions{s.store, key},
		Transfers:     Transfers{s.store, key},
		Subscriptions: Subscriptions{s.store, key},
		Checkout:      Checkout{s.store, key},
		Legacy:        Legacy{s.store, key},
		server:        s,
		key:           key,
	}
}

// Account holds the controls of one account: what payers, banks and issuers
// do, as against what the merchant does through the API.
type Account struct {
	Transactions  Transactions
	Transfers     Transfers
	Subscriptions Subscriptions
	Checkout      Checkout
	Legacy        Legacy

	server *Server
	key    string
}

// Listen serves the gateway on a TCP address such as "127.0.0.1:0", until
// [Server.Close], and returns its base URL.
func (s *Server) Listen(addr string) (baseURL string, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("mockserver: %w", err)
	}
	srv := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	s.mu.Lock()
	s.listening = append(s.listening, srv)
	s.mu.Unlock()
	go func() { _ = srv.Serve(l) }() // ends with Close
	return "http://" + l.Addr().String(), nil
}

// Close ends what Listen began. Running requests are cut off.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, srv := range s.listening {
		errs = append(errs, srv.Close())
	}
	s.listening = nil
	return errors.Join(errs...)
}
