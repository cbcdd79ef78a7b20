package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

func TestNamesOfHeaders(t *testing.T) {
	t.Parallel()
	const punctuation = "!#$%&'*+-.^_`|~" // RFC 9110, section 5.6.2
	for b := range 256 {
		c := string([]byte{byte(b)})
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		for _, names := range []webhook.HeaderNames{{Timestamp: "X" + c}, {Signature: c + "X"}} {
			cfg := signedConfig()
			cfg.Headers = names
			_, err := webhook.New(cfg)
			assert.Equal(t, letter || strings.Contains(punctuation, c), err == nil, "%q: %v", names, err)
		}
	}
}

func TestNewRejectsInvalidConfigurations(t *testing.T) {
	t.Parallel()
	client := (&fakeAPI{}).client(t)
	key := []webhook.SigningKey{{Key: secret}}
	for want, cfg := range map[string]webhook.Config{
		"set Keys":         {},
		"Keys[1] is empty": {Keys: append(key[:1:1], webhook.SigningKey{})},
		"Keys[0] has 7 characters; a signing key has at least 8": {Keys: []webhook.SigningKey{{Key: gateway.NewSecret("1234567")}}},
		"Keys[0] begins or ends with white space":                {Keys: []webhook.SigningKey{{Key: gateway.NewSecret(secret.Reveal() + "\n")}}},
		"Keys[0] is in quotes":                                   {Keys: []webhook.SigningKey{{Key: gateway.NewSecret(`"whsec_of_this_test"`)}}},
		"Keys[1] is in quotes":                                   {Keys: append(key[:1:1], webhook.SigningKey{Key: gateway.NewSecret(`'whsec_of_this_test'`)})},
		"Keys[2] is in quotes":                                   {Keys: append(key[:1:1], webhook.SigningKey{Key: gateway.NewSecret("another secret")}, webhook.SigningKey{Key: gateway.NewSecret("“whsec_of_this_test”")})},
		"Keys[1] begins or ends with white space":                {Keys: append(key[:1:1], webhook.SigningKey{Key: gateway.NewSecret(" \"whsec_of_this_test\"\r\n")})},
		"the ID of Keys[0] must have at most 255 bytes of valid": {Keys: []webhook.SigningKey{{ID: "2026\x00", Key: secret}}},
		"the ID of Keys[1] must have at most 255 bytes of valid": {Keys: append(key[:1:1], webhook.SigningKey{ID: "\xff", Key: gateway.NewSecret("another secret")})},
		"SecretPath begins or ends with white space":             {Keys: key, SecretPath: gateway.NewSecret("c0ffee00c0ffee00\n")},
		"SecretPath begins or ends with white space, or is in":   {Keys: key, SecretPath: gateway.NewSecret(`"c0ffee00c0ffee00"`)},
		"Keys[0] and Keys[1] have the same ID":                   {Keys: []webhook.SigningKey{{ID: "a", Key: secret}, {ID: "a", Key: gateway.NewSecret("another secret")}}},
		"the ID of Keys[0] is the key itself":                    {Keys: []webhook.SigningKey{{ID: secret.Reveal(), Key: secret}}},
		"the NotAfter of every key has passed":                   {Keys: []webhook.SigningKey{{Key: secret, NotAfter: time.Now().Add(-time.Hour)}}},
		"Tolerance is -1ns; it must be at least 1s":              {Keys: key, Tolerance: -1},
		"Tolerance is 13h0m0s; it must be at most 12h30m0s":      {Keys: key, Tolerance: 13 * time.Hour},
		"RequireSignature needs Keys":                            {Trust: webhook.RequireSignature, API: client},
		"needs Keys and API":                                     {Trust: webhook.SignatureOrReadBack, Keys: key},
		"ReadBackOnly needs API":                                 {Trust: webhook.ReadBackOnly, Keys: key},
		"unknown Trust":                                          {Trust: 99, Keys: key},
		"unknown Mode":                                           {Mode: 99, Keys: key},
		"at least 16 characters":                                 {Keys: key, SecretPath: gateway.NewSecret("short")},
		"no slash":                                               {Keys: key, SecretPath: gateway.NewSecret("0123456789/0123456789")},
		"a durable Store":                                        {Keys: key, Mode: webhook.Inbox},
		`Headers.Signature is "X-Signature:", which is not`:      {Keys: key, Headers: webhook.HeaderNames{Signature: "X-Signature:"}},
		`Headers.Timestamp is "X Timestamp", which is not`:       {Keys: key, Headers: webhook.HeaderNames{Timestamp: "X Timestamp"}},
		`Headers.Timestamp and Headers.Signature are both`:       {Keys: key, Headers: webhook.HeaderNames{Timestamp: "x-hub", Signature: "X-Hub"}},
		"needs a durable Store":                                  {Keys: key, Mode: webhook.Inbox, Store: webhook.NewMemoryStore(webhook.MemoryOptions{})},
		"TTL of 1h0m0s is shorter":                               {Keys: key, Store: webhook.NewMemoryStore(webhook.MemoryOptions{TTL: time.Hour})},
	} {
		_, err := webhook.New(cfg)
		require.ErrorContains(t, err, want)
		for _, key := range cfg.Keys {
			if text := strings.Trim(key.Key.Reveal(), " \r\n\"'“”"); text != "" {
				assert.NotContains(t, err.Error(), text)
			}
		}
		if text := cfg.SecretPath.Reveal(); text != "" {
			assert.NotContains(t, err.Error(), strings.Trim(text, "\n\""))
		}
	}
	_, err := webhook.New(webhook.Config{API: client})
	require.NoError(t, err, "deliveries without a secret are confirmed by the API")
	old := webhook.SigningKey{Key: gateway.NewSecret("the old secret"), NotAfter: time.Now().Add(-time.Hour)}
	_, err = webhook.New(webhook.Config{Keys: []webhook.SigningKey{key[0], old}})
	require.NoError(t, err, "an expired key that was not removed yet")
	for _, text := range []string{`a"secret"`, `"a secret`, `a secret'`, `"'"'"'"'`} {
		_, err = webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: gateway.NewSecret(text)}}})
		require.NoError(t, err, "a random secret may contain quotes: %s", text)
	}
}

func TestAHandlerSeesItsKind(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("paid %s %s %d %v", e.ID, e.ResourceID, e.Data.Amount, e.Signed)
		return nil
	})
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("any %s", e.Kind)
		return nil
	})
	webhook.OnTransfer(rx, webhook.PayoutFailed, func(_ context.Context, e *webhook.TransferEvent) error {
		got.add("transfer %s %s", e.Kind, e.State())
		return nil
	})
	webhook.OnSubscription(rx, webhook.SubscriptionRenewed, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("subscription %s %s", e.Kind, e.State())
		return nil
	})
	webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
		got.add("other %s %s", e.Family, e.Kind)
		return nil
	})
	for _, body := range []string{
		paid("evt_1", "tx_1"),
		txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"),
		`{"id":"evt_3","type":"payout.failed","data":{"object":{"id":"po_1","status":"error"}}}`,
		`{"id":"evt_4","type":"payout.created","data":{"object":{"id":"po_2"}}}`,
		`{"id":"evt_5","event":"subscription","data":{"id":"s_1","event_type":"subscription.renewed","status":"active"}}`,
		`{"id":"evt_6","event":"dispute","data":{"id":"d_1","event_type":"dispute.opened"}}`,
		`{"id":"evt_7"}`,
		`{"id":"evt_8","event":"subscription","data":{"id":"s_1","event_type":"transaction.paid"}}`,
	} {
		assert.Equal(t, received, response(rx, signed(body)))
	}
	assert.Equal(t, []string{
		"paid evt_1 tx_1 1990 true", "any transaction.refunded", "transfer payout.failed error", "other transfer payout.created",
		"subscription subscription.renewed active", "other dispute dispute.opened", "other  ",
		"other subscription transaction.paid",
	}, got.all())
}

func TestWithoutAHandlerAnEventIsAcknowledged(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeUnhandled: 1}, rx.Stats())
}

func TestAnEventHasOneEffect(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("%s", e.ID)
		return nil
	})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			w := serve(rx, signed(paid(fmt.Sprintf("evt_%d", i%5), "tx_1")))
			for w.Code == http.StatusServiceUnavailable { // as the gateway would retry
				w = serve(rx, signed(paid(fmt.Sprintf("evt_%d", i%5), "tx_1")))
			}
			assert.Equal(t, http.StatusOK, w.Code)
		})
	}
	all.Wait()
	assert.ElementsMatch(t, []string{"evt_0", "evt_1", "evt_2", "evt_3", "evt_4"}, got.all(), "five events of one resource, each once")
}

func TestAFailureIsRetriedByTheNextDeliveryAfterTheBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.Backoff = func(int) time.Duration { return 5 * time.Second }
		rx := receiver(t, cfg)
		failures := []error{errors.New("no database"), fmt.Errorf("no stock: %w", webhook.RetryAfter(90*time.Second)), nil}
		var attempts []int
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
			attempts = append(attempts, e.Attempt)
			return failures[len(attempts)-1]
		})
		body := paid("evt_1", "tx_1")
		assert.Equal(t, failedNow, response(rx, signed(body)))
		for range 3 {
			w := serve(rx, signed(body))
			assert.Equal(t, http.StatusServiceUnavailable, w.Code)
			assert.Equal(t, "5", w.Header().Get("Retry-After"))
		}
		time.Sleep(5 * time.Second)
		w := serve(rx, signed(body))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "90", w.Header().Get("Retry-After"))
		time.Sleep(30 * time.Second)
		assert.Equal(t, "60", serve(rx, signed(body)).Header().Get("Retry-After"))
		time.Sleep(time.Minute)
		assert.Equal(t, received, response(rx, signed(body)))
		assert.Equal(t, received, response(rx, signed(body)))
		assert.Equal(t, []int{1, 2, 3}, attempts)
		assert.Equal(t, uint64(4), rx.Stats()[webhook.OutcomeBackoff])
	})
}

func TestAPanicOrGoexitOfAHandlerIsAFailure(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){
		"a panic":        func() { panic("a nil pointer") },
		"runtime.Goexit": runtime.Goexit, // as t.FailNow does
	} {
		cfg := signedConfig()
		cfg.Backoff = atOnce
		rx := receiver(t, cfg)
		calls := 0
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
			if calls++; calls == 1 {
				end()
			}
			return nil
		})
		assert.Equal(t, failedNow, response(rx, signed(paid("evt_1", "tx_1"))), name)
		assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))), name)
		assert.Equal(t, 2, calls, name)
	}
}

func TestARejectedForgeryNeverShadowsTheRealEvent(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
		got.add("%s %s", e.Kind, e.ResourceID)
		return nil
	})
	for range 3 {
		assert.Equal(t, http.StatusUnauthorized, serve(rx, forged(paid("evt_1", "tx_evil"))).Code)
		assert.Equal(t, http.StatusUnauthorized, serve(rx, request(paid("evt_1", "tx_evil"))).Code)
	}
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, []string{"transaction.paid tx_1"}, got.all())
}

func TestOneEventOfAResourceAtATime(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var running gauge
	webhook.OnTransaction(rx, webhook.AnyKind, func(context.Context, *webhook.TransactionEvent) error {
		running.add(1)
		defer running.add(-1)
		for range 100 {
			runtime.Gosched() // give other handlers a chance to run
		}
		return nil
	})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			assert.Equal(t, received, response(rx, signed(paid(fmt.Sprintf("evt_%d", i), "tx_1"))))
		})
	}
	all.Wait()
	assert.Equal(t, 1, running.maximum())
}

func TestTooManyConcurrentDeliveriesAreRedelivered(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.MaxConcurrent = 1
	rx := receiver(t, cfg)
	entered, leave := make(chan struct{}), make(chan struct{})
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		close(entered)
		<-leave
		return nil
	})
	done := make(chan string)
	go func() { done <- response(rx, signed(paid("evt_1", "tx_1"))) }()
	<-entered
	w := serve(rx, signed(paid("evt_2", "tx_2")))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	close(leave)
	assert.Equal(t, received, <-done)
}

func TestARunningHandlerFinishesAfterTheSenderHangsUp(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	ctx, hangUp := context.WithCancel(t.Context())
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
		hangUp()
		return ctx.Err()
	})
	serve(rx, signed(paid("evt_1", "tx_1")).WithContext(ctx))
	assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeHandled])
}

func TestTheSecretPath(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.SecretPath = gateway.NewSecret("c0ffee00c0ffee00")
	rx := receiver(t, cfg)
	body := paid("evt_1", "tx_1")
	for path, want := range map[string]string{
		"/webhooks/c0ffee00c0ffee00":  received,
		"/webhooks/c0ffee00c0ffee0":   `404 {"error":"not_found"}`,
		"/webhooks/c0ffee00c0ffee00/": received,
		"/c0ffee00c0ffee00//":         received,
		"/c0ffee00c0ffee00/webhooks":  `404 {"error":"not_found"}`,
		"/":                           `404 {"error":"not_found"}`,
	} {
		r := signed(body)
		r.URL.Path = path
		assert.Equal(t, want, response(rx, r), path)
	}
	got := rx.Receive(t.Context(), webhook.Delivery{Path: "c0ffee00c0ffee00", Header: signed(body).Header, Body: []byte(body)})
	assert.Equal(t, http.StatusOK, got.Status)
}

func TestSlowSendersTimeOut(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.ReadTimeout = 20 * time.Millisecond
	srv := httptest.NewServer(receiver(t, cfg))
	defer srv.Close()
	body, never := make(chan struct{}), blockedReader{make(chan struct{})}
	defer close(never.release)
	defer close(body)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, never)
	require.NoError(t, err)
	sign(r, secret, time.Now(), "")
	res, err := srv.Client().Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	assert.Equal(t, http.StatusRequestTimeout, res.StatusCode)
}

type blockedReader struct{ release chan struct{} }

func (b blockedReader) Read([]byte) (int, error) {
	<-b.release
	return 0, errors.New("released")
}

func TestInvalidHandlerRegistrationsPanic(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	ok := func(context.Context, *webhook.TransactionEvent) error { return nil }
	webhook.OnTransaction(rx, webhook.TransactionPaid, ok)
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPaid, ok) }, "twice")
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.PayoutFailed, ok) }, "another family")
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPending, nil) }, "nil")
	assert.Panics(t, func() { webhook.Ignore(rx, webhook.TransactionPaid) }, "has a handler")
	for _, kind := range []webhook.Kind{webhook.AnyKind, "invoice.paid", ""} {
		assert.PanicsWithValue(t, fmt.Sprintf("webhook: Ignore: %q is not a kind of transactions, subscriptions or payouts", kind),
			func() { webhook.Ignore(rx, kind) })
	}
	serve(rx, signed(paid("evt_1", "tx_1")))
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPending, ok) }, "too late")
}

func TestTheKeyThatVerifiedAnEventIsReported(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	old := gateway.NewSecret("whsec_of_last_year")
	cfg.Keys = []webhook.SigningKey{{ID: "2027", Key: secret}, {ID: "2026", Key: old}}
	var seen, handled []string
	cfg.Observe = func(_ context.Context, o webhook.Observation) { seen = append(seen, o.KeyID) }
	rx := receiver(t, cfg)
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		handled = append(handled, e.KeyID)
		return nil
	})
	for i, key := range []gateway.Secret{secret, old, secret} {
		body := paid(fmt.Sprintf("evt_%d", i), "tx_1")
		r := request(body)
		sign(r, key, time.Now(), body)
		assert.Equal(t, received, response(rx, r))
	}
	response(rx, forged(paid("evt_9", "tx_1")))
	assert.Equal(t, []string{"2027", "2026", "2027"}, handled)
	assert.Equal(t, []string{"2027", "2026", "2027", ""}, seen)
}

func TestObservationsHaveIDsOfProvenEventsOnly(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	var seen []webhook.Observation
	cfg.Observe = func(_ context.Context, o webhook.Observation) {
		o.Duration = 0
		seen = append(seen, o)
	}
	rx := receiver(t, cfg)
	response(rx, signed(paid("evt_1", "tx_1")))
	response(rx, forged(paid("evt_2", "tx_2")))
	assert.Equal(t, []webhook.Observation{
		{
			Outcome: webhook.OutcomeUnhandled, Account: "shop", EventID: "evt_1", Kind: webhook.TransactionPaid, Resource: "transaction/tx_1",
			KeyID: "Keys[0]", Attempt: 1,
		},
		{Outcome: webhook.OutcomeRefused, Account: "shop", Err: webhook.ErrInvalidSignature},
	}, seen)
}
