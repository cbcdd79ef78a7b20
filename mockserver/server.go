// Package mockserver is a complete in-memory payment gateway, with every
// endpoint, state and rule of the interface. Use it inside a Go test without a
// socket, as an [http.Handler], or from any language as the binary
// mockgateway.
package mockserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/core"
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

	core    *core.Core
	handler http.Handler

	mu        sync.Mutex
	listening []*http.Server
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
	c, err := core.New(cfg.Config)
	if err != nil {
		return nil, fmt.Errorf("mockserver: %w", err)
	}
	s := &Server{core: c, handler: handler(c), Clock: &Clock{c.Clock}}
	all := s.Account("")
	s.Transactions, s.Transfers, s.Subscriptions = all.Transactions, all.Transfers, all.Subscriptions
	s.Checkout, s.Legacy = all.Checkout, all.Legacy
	s.Webhooks, s.Faults, s.Requests = all.Webhooks, all.Faults, all.Requests
	if err := s.Faults.Add(cfg.faults...); err != nil {
		return nil, errors.Join(fmt.Errorf("mockserver: WithFaults: %w", err), s.Close())
	}
	return s, nil
}

// Key returns the API key of the default account: sk_test_mock, in production
// sk_live_mock.
func (s *Server) Key() string { return s.core.Key() }

// Down makes the gateway unreachable until [Server.Up]: connections are
// refused (reset, over a socket), and no request is executed. The control
// plane and webhooks keep working.
func (s *Server) Down() { s.core.Down(true) }

// Up ends [Server.Down].
func (s *Server) Up() { s.core.Down(false) }

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
	key = s.core.Keys.Account(key)
	secret := gateway.NewSecret(key)
	of := scope{store: s.core.Store, account: secret}
	return &Account{
		Transactions:  Transactions{of},
		Transfers:     Transfers{of},
		Subscriptions: Subscriptions{of},
		Checkout:      Checkout{of},
		Legacy:        Legacy{of},
		Webhooks:      Webhooks{sender: s.core.Sender, faults: s.core.Faults, secret: s.core.Secret, account: secret},
		Faults:        Faults{set: s.core.Faults, account: secret},
		Requests:      Requests{journal: s.core.Journal, account: secret},
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

// RevokeKey revokes the account's keys, as gateways do without notice when a key expires:
// from now on every call gets 401, while webhooks go on. [Account.RestoreKey] or a
// [Server.Reset] makes them valid again. Like faults, it is not stored in a data file.
func (a *Account) RevokeKey() { a.server.core.Keys.Revoke(a.key.Reveal()) }

// RestoreKey makes the revoked keys of the account valid again.
func (a *Account) RestoreKey() { a.server.core.Keys.Restore(a.key.Reveal()) }

// ReplaceKey gives the account a new key, which no account uses. The keys that it has stay
// valid, unless they are revoked.
func (a *Account) ReplaceKey(key string) error {
	if err := a.server.core.API.ReplaceKey(a.key.Reveal(), key); err != nil {
		return fmt.Errorf("mockserver: %w", err)
	}
	return nil
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
	s.core.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, srv := range s.listening {
		errs = append(errs, srv.Close())
	}
	s.listening = nil
	return errors.Join(append(errs, s.core.Close())...)
}
