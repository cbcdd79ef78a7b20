package webhooktest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/storetest"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// shop is a merchant: its effects, its failures, and the API that it reads.
type shop struct {
	mu      sync.Mutex
	effects []webhooktest.Effect
	failure error
	states  map[string]string
}

func (s *shop) act(e webhooktest.Effect) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failure; err != nil {
		s.failure = nil
		return err
	}
	s.effects = append(s.effects, e)
	return nil
}

func (s *shop) all() []webhooktest.Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]webhooktest.Effect{}, s.effects...)
}

func (s *shop) failNext(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = err
}

func (s *shop) setAPI(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = make(map[string]string)
	}
	s.states[id] = status
}

// RoundTrip simulates the API.
func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	s.mu.Lock()
	status, found := s.states[id]
	s.mu.Unlock()
	code, body := http.StatusOK, fmt.Sprintf(`{"success":true,"requestId":"r","data":{"id":%q,"status":%q,"amount":1990}}`, id, status)
	if !found {
		code, body = http.StatusNotFound, `{"title":"Not Found","status":404}`
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

func (s *shop) client(t *testing.T) *gateway.Client {
	t.Helper()
	c, err := gateway.New("https://gateway.invalid", gateway.BearerToken("sk_test_x"), gateway.WithHTTPClient(&http.Client{Transport: s}))
	require.NoError(t, err)
	return c
}

func (s *shop) target(h http.Handler) webhooktest.Target {
	return webhooktest.Target{Handler: h, Secret: webhooktest.Secret(), Effects: s.all, FailNext: s.failNext}
}

var keys = []webhook.SigningKey{{Key: webhooktest.Secret()}}

func TestOurHandlerPasses(t *testing.T) {
	t.Parallel()
	for name, configure := range map[string]func(*shop, *webhook.Config, *webhooktest.Target){
		"Sync": func(_ *shop, cfg *webhook.Config, _ *webhooktest.Target) { cfg.Keys = keys },
		"Inbox": func(_ *shop, cfg *webhook.Config, _ *webhooktest.Target) {
			cfg.Keys, cfg.Mode, cfg.Account = keys, webhook.Inbox, "shop"
			cfg.Store = storetest.Durable{Store: webhook.NewMemoryStore(webhook.MemoryOptions{})}
		},
		"SignatureOrReadBack": func(s *shop, cfg *webhook.Config, target *webhooktest.Target) {
			cfg.Keys, cfg.API, cfg.Trust = keys, s.client(t), webhook.SignatureOrReadBack
			target.SetAPI = s.setAPI
		},
		"ReadBackOnly": func(s *shop, cfg *webhook.Config, target *webhooktest.Target) {
			cfg.API = s.client(t)
			target.SetAPI, target.Secret = s.setAPI, gateway.Secret{}
		},
		"with a secret path": func(_ *shop, cfg *webhook.Config, target *webhooktest.Target) {
			cfg.Keys, cfg.SecretPath = keys, gateway.NewSecret("c0ffeec0ffeec0ffee")
			target.Path = "/hooks/c0ffeec0ffeec0ffee"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shop{}
			cfg := webhook.Config{HandleStale: true, Logger: slog.New(slog.DiscardHandler), Backoff: func(int) time.Duration { return 0 }}
			target := s.target(nil)
			configure(s, &cfg, &target)
			rx, err := webhook.New(cfg)
			require.NoError(t, err)
			for _, kind := range []webhook.Kind{webhook.TransactionPaid, webhook.TransactionRefunded} {
				webhook.OnTransaction(rx, kind, func(_ context.Context, e *webhook.TransactionEvent) error {
					return s.act(webhooktest.Effect{EventID: e.ID, Kind: e.Kind, Resource: e.ResourceID})
				})
			}
			target.Handler = rx
			webhooktest.Run(t, target)
			require.NoError(t, rx.Shutdown(t.Context()))
		})
	}
}

// wrong is a typical merchant's handler with one bug.
type wrong struct {
	*shop

	verify    func(header http.Header, body []byte) error
	key       func(e *webhook.Event) string // the dedupe key; nil for no dedupe
	markFirst bool

	lock sync.Mutex
	seen map[string]bool
}

func verifySignature(h http.Header, body []byte) error {
	return webhook.Verify(h, body, webhooktest.Secret())
}

func byEvent(e *webhook.Event) string { return e.ID }

func (w *wrong) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.lock.Lock() // none of the bugs is about concurrency
	defer w.lock.Unlock()
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, 1<<20))
	if err == nil && r.Method != http.MethodPost {
		err = fmt.Errorf("no %s here", r.Method)
	}
	if err == nil {
		err = w.verify(r.Header, body)
	}
	if err != nil {
		http.Error(rw, "no", http.StatusUnauthorized)
		return
	}
	e, err := webhook.Parse(body)
	if err != nil {
		http.Error(rw, "no", http.StatusBadRequest)
		return
	}
	if err := w.handle(e); err != nil {
		http.Error(rw, "no", http.StatusInternalServerError)
		return
	}
	_, _ = rw.Write([]byte(`{"received":true}`))
}

func (w *wrong) handle(e *webhook.Event) error {
	if e.Kind != webhook.TransactionPaid && e.Kind != webhook.TransactionRefunded {
		return nil
	}
	if w.key != nil && w.seen[w.key(e)] {
		return nil
	}
	if w.seen == nil {
		w.seen = make(map[string]bool)
	}
	if w.markFirst {
		w.seen[w.key(e)] = true
	}
	if err := w.act(webhooktest.Effect{EventID: e.ID, Kind: e.Kind, Resource: e.ResourceID}); err != nil {
		return err
	}
	if w.key != nil {
		w.seen[w.key(e)] = true
	}
	return nil
}

// report collects the failures of a battery.
type report struct {
	mu     sync.Mutex
	errors []string
}

func (*report) Helper() {}

func (r *report) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestWrongHandlersFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		handler *wrong
		finds   []string // the expected reports of the battery, one per line
	}{
		"none": {&wrong{verify: verifySignature, key: byEvent}, nil},
		"no dedupe": {&wrong{verify: verifySignature}, []string{
			"a redelivered event: one event, delivered four times: 4 effects, want 1",
			"delivered ten times concurrently",
		}},
		"dedupe by resource": {&wrong{verify: verifySignature, key: func(e *webhook.Event) string { return e.ResourceID }}, []string{
			"several events of one resource: a payment and two partial refunds of one transaction: 1 effects, want 3",
		}},
		"marks before handling": {&wrong{verify: verifySignature, key: byEvent, markFirst: true}, []string{
			"a failing effect: an event that failed once, redelivered: 0 effects, want 1",
		}},
		"trusts the body": {&wrong{verify: func(http.Header, []byte) error { return nil }, key: byEvent}, []string{
			"an unsigned delivery: an unsigned delivery about an unknown resource: status 200, want an error",
			"a forged delivery: a delivery signed with another key had an effect, want none",
			"a forged delivery before the real one", "an old signature", "a changed body",
		}},
		"verifies re-serialised JSON": {&wrong{verify: verifyAgain, key: byEvent}, []string{
			"the signature covers the exact bytes: a body with spaces: status 401, want 2xx",
			"a changed body: a signed body with spaces that were not there: status 200, want an error",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.handler.shop = &shop{}
			target := tc.handler.target(tc.handler)
			target.EffectTimeout = 50 * time.Millisecond
			var got report
			webhooktest.Run(&got, target)
			if tc.finds == nil {
				assert.Empty(t, got.errors)
			}
			for _, want := range tc.finds {
				assert.Contains(t, strings.Join(got.errors, "\n"), want)
			}
		})
	}
}

// verifyAgain decodes the body and verifies its re-encoding. It is the typical
// bug with frameworks that provide only a parsed body.
func verifyAgain(h http.Header, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return verifySignature(h, again)
}

func TestATargetMustBeComplete(t *testing.T) {
	t.Parallel()
	var got report
	webhooktest.Run(&got, webhooktest.Target{})
	assert.Len(t, got.errors, 1)
}

func TestStoreBatteryFindsBugs(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(webhook.Store) webhook.Store{
		"forgets puts":        func(s webhook.Store) webhook.Store { return amnesiac{s} },
		"completes any claim": func(s webhook.Store) webhook.Store { return &generous{Store: s} },
		"has one account":     func(s webhook.Store) webhook.Store { return oneAccount{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var got report
				webhooktest.RunStore(&got, func() webhook.Store { return spoil(webhook.NewMemoryStore(webhook.MemoryOptions{})) })
				assert.NotEmpty(t, got.errors)
			})
		})
	}
}

// amnesiac is a store that reports every event as new.
type amnesiac struct{ webhook.Store }

func (s amnesiac) For(a gateway.Account) webhook.Store { return amnesiac{s.Store.For(a)} }

func (s amnesiac) Put(ctx context.Context, rec webhook.Record) (webhook.Entry, error) {
	e, err := s.Store.Put(ctx, rec)
	e.Added = true
	return e, err
}

// generous is a store that completes an event for any former holder of its
// claim.
type generous struct{ webhook.Store }

func (s *generous) For(a gateway.Account) webhook.Store { return &generous{s.Store.For(a)} }

func (s *generous) Settle(ctx context.Context, c *webhook.Claim, d webhook.Disposition) error {
	_ = s.Store.Settle(ctx, c, d)
	return nil
}

func TestEveryKindParses(t *testing.T) {
	t.Parallel()
	events := webhooktest.Every()
	require.Len(t, events, len(webhook.DocumentedKinds()))
	for _, e := range events {
		e.ID, e.ResourceID = "evt_1", "res_1"
		got, err := webhook.Parse(e.Body())
		require.NoError(t, err, e.Kind)
		assert.Equal(t, e.Kind, got.Kind)
		assert.Equal(t, e.Kind.Family(), got.Family)
		assert.Equal(t, "res_1", got.ResourceID)
		assert.NotEmpty(t, got.Status)
		require.NoError(t, webhook.Verify(webhooktest.Signed(gateway.NewSecret("k"), e.Body()).Header, e.Body(), gateway.NewSecret("k")))
		assert.Equal(t, webhook.ErrStaleTimestamp, webhook.Verify(webhooktest.Stale(gateway.NewSecret("k"), e.Body()).Header, e.Body(), gateway.NewSecret("k")))
	}
	assert.Contains(t, string(webhooktest.Event{Kind: webhook.TransactionPaid, Data: map[string]any{"amount": 7}}.Body()), `"amount":7,`)
}

func TestADeliverySignedByAllKeysIsAcceptedByEach(t *testing.T) {
	t.Parallel()
	body := webhooktest.Event{Kind: webhook.TransactionPaid}.Body()
	r := webhooktest.SignedByAll(body, gateway.NewSecret("the new key"), gateway.NewSecret("the old key"))
	for _, key := range []gateway.Secret{gateway.NewSecret("the new key"), gateway.NewSecret("the old key")} {
		require.NoError(t, webhook.Verify(r.Header, body, key))
	}
	assert.Equal(t, webhook.ErrInvalidSignature, webhook.Verify(r.Header, body, gateway.NewSecret("another key")))
}

func TestADeliveryCanBeSentAgain(t *testing.T) {
	t.Parallel()
	r := webhooktest.Signed(gateway.NewSecret("k"), []byte(`{"id":"e"}`))
	for range 2 {
		body, err := io.ReadAll(webhooktest.Again(r).Body)
		require.NoError(t, err)
		assert.Len(t, body, len(`{"id":"e"}`))
	}
}

// oneAccount is a store that does not distinguish accounts.
type oneAccount struct{ webhook.Store }

func (s oneAccount) For(gateway.Account) webhook.Store { return s }
