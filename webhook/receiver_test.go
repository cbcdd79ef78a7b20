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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

func TestNewRefusesWhatCannotKeepThePromise(t *testing.T) {
	t.Parallel()
	client := (&fakeAPI{}).client(t)
	key := []webhook.SigningKey{{Key: secret}}
	for want, cfg := range map[string]webhook.Config{
		"set Keys":         {},
		"Keys[1] is empty": {Keys: append(key[:1:1], webhook.SigningKey{})},
		"Keys[0] has 7 characters, a signing key has at least 8": {Keys: []webhook.SigningKey{{Key: "1234567"}}},
		"Keys[0] begins or ends with white space":                {Keys: []webhook.SigningKey{{Key: secret + "\n"}}},
		"Keys[0] and Keys[1] have the same ID":                   {Keys: []webhook.SigningKey{{ID: "a", Key: secret}, {ID: "a", Key: "another secret"}}},
		"the ID of Keys[0] is the key itself":                    {Keys: []webhook.SigningKey{{ID: string(secret), Key: secret}}},
		"Tolerance is -1ns, it must be at least 1s":              {Keys: key, Tolerance: -1},
		"RequireSignature needs Keys":                            {Trust: webhook.RequireSignature, API: client},
		"needs Keys and API":                                     {Trust: webhook.SignatureOrReadBack, Keys: key},
		"ReadBackOnly needs API":                                 {Trust: webhook.ReadBackOnly, Keys: key},
		"unknown Trust":                                          {Trust: 99, Keys: key},
		"unknown Mode":                                           {Mode: 99, Keys: key},
		"at least 16 characters":                                 {Keys: key, SecretPath: "short"},
		"no slash":                                               {Keys: key, SecretPath: "0123456789/0123456789"},
		"a durable Store":                                        {Keys: key, Mode: webhook.Inbox},
		"needs a durable Store":                                  {Keys: key, Mode: webhook.Inbox, Store: webhook.NewMemoryStore(webhook.MemoryOptions{})},
		"TTL of 1h0m0s is shorter":                               {Keys: key, Store: webhook.NewMemoryStore(webhook.MemoryOptions{TTL: time.Hour})},
	} {
		_, err := webhook.New(cfg)
		require.ErrorContains(t, err, want)
	}
	_, err := webhook.New(webhook.Config{API: client})
	require.NoError(t, err, "without a secret deliveries are confirmed by the API")
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
		assert.Equal(t, received, answer(rx, signed(body)))
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
	assert.Equal(t, received, answer(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeUnhandled: 1}, rx.Stats())
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.MaxBody = 300
	rx := receiver(t, cfg)
	body := paid("evt_1", "tx_1")
	tampered := signed(body)
	tampered.Body = http.NoBody
	stale := request(body)
	sign(stale, secret, time.Now().Add(-301*time.Second), body)
	for name, tc := range map[string]struct {
		request *http.Request
		want    string
	}{
		"good":             {signed(body), received},
		"unsigned":         {request(body), `401 {"error":"missing_signature"}`},
		"forged":           {forged(body), `401 {"error":"invalid_signature"}`},
		"tampered":         {tampered, `401 {"error":"invalid_signature"}`},
		"stale":            {stale, `401 {"error":"stale_timestamp"}`},
		"no JSON":          {signed("no JSON"), `400 {"error":"invalid_json"}`},
		"empty":            {signed(""), `400 {"error":"invalid_json"}`},
		"no id":            {signed(`{"event":"transaction"}`), `400 {"error":"missing_event_id"}`},
		"a GET":            {httptest.NewRequest(http.MethodGet, "/", http.NoBody), `405 {"error":"method_not_allowed"}`},
		"a form":           {contentType(signed(body), "application/x-www-form-urlencoded"), `415 {"error":"unsupported_media_type"}`},
		"no type":          {contentType(signed(body), ""), received},
		"a charset":        {contentType(signed(body), "application/json; charset=utf-8"), received},
		"another JSON":     {contentType(signed(body), "application/cloudevents+json"), received},
		"compressed":       {withHeader(signed(body), "Content-Encoding", "gzip"), `415 {"error":"unsupported_media_type"}`},
		"too large":        {signed(strings.Repeat(" ", 301)), `413 {"error":"body_too_large"}`},
		"large, unlabeled": {chunked(signed(strings.Repeat(" ", 301))), `413 {"error":"body_too_large"}`},
		"at the limit":     {signed(body + strings.Repeat(" ", 300-len(body))), received},
		"chunked":          {chunked(signed(body)), received},
	} {
		assert.Equal(t, tc.want, answer(rx, tc.request), name)
	}
	assert.Equal(t, "POST", serve(rx, httptest.NewRequest(http.MethodPut, "/", http.NoBody)).Header().Get("Allow"))
	assert.Equal(t, "application/json", serve(rx, signed(body)).Header().Get("Content-Type"))
}

func forged(body string) *http.Request {
	r := request(body)
	sign(r, "guessed", time.Now(), body)
	return r
}

func contentType(r *http.Request, value string) *http.Request {
	r.Header.Del("Content-Type")
	if value != "" {
		r.Header.Set("Content-Type", value)
	}
	return r
}

func withHeader(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	return r
}

func TestABodyThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	r := request("")
	r.Body, r.ContentLength = unreadable{t}, 1<<20+1
	w := serve(rx, r)
	assert.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	assert.Equal(t, "close", w.Header().Get("Connection"))
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unreadable")
}
func (unreadable) Close() error { return nil }

func TestAnEventIsEffectiveOnce(t *testing.T) {
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
			for w.Code == http.StatusServiceUnavailable { // as the gateway would
				w = serve(rx, signed(paid(fmt.Sprintf("evt_%d", i%5), "tx_1")))
			}
			assert.Equal(t, http.StatusOK, w.Code)
		})
	}
	all.Wait()
	assert.ElementsMatch(t, []string{"evt_0", "evt_1", "evt_2", "evt_3", "evt_4"}, got.all(), "five events of one resource, each once")
}

func TestAFailureIsTriedAgainByTheNextDeliveryAfterTheBackoff(t *testing.T) {
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
		assert.Equal(t, failedNow, answer(rx, signed(body)))
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
		assert.Equal(t, received, answer(rx, signed(body)))
		assert.Equal(t, received, answer(rx, signed(body)))
		assert.Equal(t, []int{1, 2, 3}, attempts)
		assert.Equal(t, uint64(4), rx.Stats()[webhook.OutcomeBackoff])
	})
}

func TestAPanicIsAFailure(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.Backoff = atOnce
	rx := receiver(t, cfg)
	calls := 0
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
		if calls++; calls == 1 {
			panic("a nil somewhere")
		}
		return nil
	})
	assert.Equal(t, failedNow, answer(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, received, answer(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, 2, calls)
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
	assert.Equal(t, received, answer(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, []string{"transaction.paid tx_1"}, got.all())
}

func TestLateEventsAreSkippedUnlessAskedFor(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		cfg := signedConfig()
		cfg.HandleStale = asked
		rx := receiver(t, cfg)
		var got effects
		webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
			got.add("%s %v", e.Kind, e.Stale)
			return nil
		})
		assert.Equal(t, received, answer(rx, signed(paid("evt_3", "tx_1"))))
		assert.Equal(t, received, answer(rx, signed(txBody("evt_2", webhook.TransactionPending, "tx_1", "pending"))))
		assert.Equal(t, received, answer(rx, signed(txBody("evt_4", webhook.TransactionRefunded, "tx_1", "partially_refunded"))))
		assert.Equal(t, received, answer(rx, signed(txBody("evt_5", webhook.TransactionRefunded, "tx_1", "partially_refunded"))))
		want := []string{"transaction.paid false", "transaction.refunded false", "transaction.refunded false"}
		if asked {
			want = []string{"transaction.paid false", "transaction.pending true", "transaction.refunded false", "transaction.refunded false"}
		} else {
			assert.Equal(t, uint64(1), rx.Stats()[webhook.OutcomeStale])
		}
		assert.Equal(t, want, got.all())
	}
}

func TestLateEventsOfASubscriptionGoByTheirMoment(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var got effects
	webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
		got.add("%s", e.ID)
		return nil
	})
	for _, e := range []struct{ id, kind, at string }{
		{"renewed", "renewed", "2027-03-01T00:00:00.500Z"},
		{"past due, before", "past_due", "2027-03-01T00:00:00.499Z"},
		{"past due, after", "past_due", "2027-04-01T00:00:00.000Z"},
		{"chargeback, whenever", "chargeback_received", "2027-01-01T00:00:00.000Z"},
		{"canceled", "canceled", "2027-05-01T00:00:00.000Z"},
		{"payment failed, same moment", "payment_failed", "2027-05-01T00:00:00.000Z"},
		{"no moment", "updated", ""},
	} {
		body := fmt.Sprintf(`{"id":%q,"event":"subscription","data":{"id":"s_1","event_type":"subscription.%s","occurred_at":%q}}`, e.id, e.kind, e.at)
		assert.Equal(t, received, answer(rx, signed(body)))
	}
	assert.Equal(t, []string{"renewed", "past due, after", "chargeback, whenever", "canceled", "payment failed, same moment", "no moment"}, got.all())
}

func TestLateEventsThatTellOfMoneyAreHandled(t *testing.T) {
	t.Parallel()
	sub := func(id string, kind webhook.Kind, at string) string {
		return fmt.Sprintf(`{"id":%q,"event":"subscription","data":{"id":"sub_1","event_type":%q,"occurred_at":%q}}`, id, kind, at)
	}
	cases := map[string]struct {
		bodies []string
		want   []string
	}{
		"a payment after a part was refunded": {
			[]string{txBody("evt_2", webhook.TransactionRefunded, "tx_1", "partially_refunded"), paid("evt_1", "tx_1")},
			[]string{"transaction.refunded false", "transaction.paid true"},
		},
		"a payment after all was refunded": {
			[]string{txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"), paid("evt_1", "tx_1")},
			[]string{"transaction.refunded false", "transaction.paid true"},
		},
		"a part's refund after the rest's": {
			[]string{
				txBody("evt_2", webhook.TransactionRefunded, "tx_1", "refunded"),
				txBody("evt_1", webhook.TransactionRefunded, "tx_1", "partially_refunded"),
			},
			[]string{"transaction.refunded false", "transaction.refunded true"},
		},
		"a renewal after an update": {
			[]string{
				sub("evt_2", webhook.SubscriptionUpdated, "2027-03-01T12:00:00.000Z"),
				sub("evt_1", webhook.SubscriptionRenewed, "2027-02-01T12:00:00.000Z"),
			},
			[]string{"subscription.updated false", "subscription.renewed true"},
		},
		"a dunning that is over": {
			[]string{
				sub("evt_2", webhook.SubscriptionRenewed, "2027-03-01T12:00:00.000Z"),
				sub("evt_1", webhook.SubscriptionPastDue, "2027-02-26T12:00:00.000Z"),
			},
			[]string{"subscription.renewed false"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rx := receiver(t, signedConfig())
			var got effects
			webhook.OnTransaction(rx, webhook.AnyKind, func(_ context.Context, e *webhook.TransactionEvent) error {
				got.add("%s %v", e.Kind, e.Stale)
				return nil
			})
			webhook.OnSubscription(rx, webhook.AnyKind, func(_ context.Context, e *webhook.SubscriptionEvent) error {
				got.add("%s %v", e.Kind, e.Stale)
				return nil
			})
			for _, body := range c.bodies {
				assert.Equal(t, received, answer(rx, signed(body)))
			}
			assert.Equal(t, c.want, got.all())
		})
	}
}

// Books that leave a payment out and have its refund are wrong for ever.
func TestEveryEventThatMovesMoneyIsHandledOnceHoweverLate(t *testing.T) {
	t.Parallel()
	last := map[webhook.Family]webhook.Kind{
		webhook.FamilyTransaction:  webhook.TransactionChargedback,
		webhook.FamilyTransfer:     webhook.PayoutFailed,
		webhook.FamilySubscription: webhook.SubscriptionCanceled,
	}
	body := func(id string, kind webhook.Kind, at string) string {
		if kind.Family() == webhook.FamilyTransfer {
			return fmt.Sprintf(`{"id":%q,"type":%q,"data":{"object":{"id":"r_1"}}}`, id, kind)
		}
		return fmt.Sprintf(`{"id":%q,"event":%q,"data":{"id":"r_1","event_type":%q,"occurred_at":%q}}`, id, kind.Family(), kind, at)
	}
	for _, kind := range []webhook.Kind{
		webhook.TransactionPaid, webhook.TransactionRefunded, webhook.TransactionPartiallyRefunded, webhook.TransactionChargedback,
		webhook.PayoutCreated, webhook.PayoutTransferred, webhook.PayoutFailed, webhook.PayoutCanceled, webhook.PayoutRejected,
		webhook.SubscriptionStarted, webhook.SubscriptionRenewed, webhook.SubscriptionPaymentFailed, webhook.SubscriptionChargebackReceived,
		webhook.SubscriptionCanceled,
	} {
		rx := receiver(t, signedConfig())
		var got effects
		note := func(e *webhook.Event) error {
			got.add("%s %s", e.ID, e.Kind)
			return nil
		}
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error { return note(e) })
		for _, b := range []string{
			body("evt_2", last[kind.Family()], "2027-03-01T12:00:00.000Z"), body("evt_1", kind, "2027-02-01T12:00:00.000Z"),
			body("evt_1", kind, "2027-02-01T12:00:00.000Z"),
		} {
			assert.Equal(t, received, answer(rx, signed(b)), kind)
		}
		assert.Equal(t, []string{"evt_2 " + string(last[kind.Family()]), "evt_1 " + string(kind)}, got.all(), kind)
	}
}

func TestOneEventOfAResourceAtATime(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	var running, most atomic.Int32
	webhook.OnTransaction(rx, webhook.AnyKind, func(context.Context, *webhook.TransactionEvent) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		for range 100 {
			runtime.Gosched() // let others come in between
		}
		return nil
	})
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			assert.Equal(t, received, answer(rx, signed(paid(fmt.Sprintf("evt_%d", i), "tx_1"))))
		})
	}
	all.Wait()
	assert.Equal(t, int32(1), most.Load())
}

func TestTooManyDeliveriesAtATimeComeBack(t *testing.T) {
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
	go func() { done <- answer(rx, signed(paid("evt_1", "tx_1"))) }()
	<-entered
	w := serve(rx, signed(paid("evt_2", "tx_2")))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	close(leave)
	assert.Equal(t, received, <-done)
}

func TestWhatWasBegunIsFinishedThoughTheSenderHangsUp(t *testing.T) {
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

func TestShutdownFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx, err := webhook.New(signedConfig())
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, e *webhook.TransactionEvent) error {
			wait := time.NewTimer(time.Duration(e.Data.Amount) * time.Millisecond) // 1.99 s
			defer wait.Stop()
			select {
			case <-wait.C:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		done := make(chan string, 1)
		go func() { done <- answer(rx, signed(paid("evt_1", "tx_1"))) }()
		synctest.Wait()

		over, end := make(chan error, 1), make(chan struct{})
		go func() { over <- rx.Shutdown(t.Context()); close(end) }()
		synctest.Wait()
		assert.Equal(t, `503 {"error":"unavailable"}`, answer(rx, signed(paid("evt_2", "tx_2"))))
		require.NoError(t, <-over)
		assert.Equal(t, received, <-done)
	})
}

func TestShutdownReleasesWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := webhook.NewMemoryStore(webhook.MemoryOptions{})
		cfg := signedConfig()
		cfg.Store = store
		rx, err := webhook.New(cfg)
		require.NoError(t, err)
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
			<-ctx.Done()
			assert.Equal(t, webhook.ErrShutdown, context.Cause(ctx))
			return ctx.Err()
		})
		done := make(chan string, 1)
		go func() { done <- answer(rx, signed(paid("evt_1", "tx_1"))) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, rx.Shutdown(ctx), context.DeadlineExceeded)
		assert.Equal(t, `503 {"error":"unavailable"}`, <-done)

		claim, entry, err := store.Claim(t.Context(), "id evt_1", time.Minute)
		require.NoError(t, err)
		require.Equal(t, webhook.StateClaimed, entry.State)
		assert.Equal(t, 1, claim.Attempt, "the attempt that was cut short is not counted")
	})
}

func TestALongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := signedConfig()
		cfg.Lease, cfg.HandlerTimeout = 3*time.Second, time.Hour
		rx := receiver(t, cfg)
		calls := 0
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(context.Context, *webhook.TransactionEvent) error {
			calls++
			time.Sleep(time.Minute)
			return nil
		})
		done := make(chan string, 1)
		go func() { done <- answer(rx, signed(paid("evt_1", "tx_1"))) }()
		time.Sleep(30 * time.Second)
		assert.Equal(t, `503 {"error":"unavailable"}`, answer(rx, signed(paid("evt_1", "tx_1"))))
		assert.Equal(t, received, <-done)
		assert.Equal(t, 1, calls)
	})
}

func TestAHandlerHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rx := receiver(t, signedConfig())
		webhook.OnTransaction(rx, webhook.TransactionPaid, func(ctx context.Context, _ *webhook.TransactionEvent) error {
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		assert.Equal(t, failedNow, answer(rx, signed(paid("evt_1", "tx_1"))))
		assert.Equal(t, 30*time.Second, time.Since(began))
	})
}

func TestTheSecretPath(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.SecretPath = "c0ffee00c0ffee00"
	rx := receiver(t, cfg)
	body := paid("evt_1", "tx_1")
	for path, want := range map[string]string{
		"/webhooks/c0ffee00c0ffee00":  received,
		"/webhooks/c0ffee00c0ffee0":   `404 {"error":"not_found"}`,
		"/webhooks/c0ffee00c0ffee00/": `404 {"error":"not_found"}`,
		"/c0ffee00c0ffee00/webhooks":  `404 {"error":"not_found"}`,
		"/":                           `404 {"error":"not_found"}`,
	} {
		r := signed(body)
		r.URL.Path = path
		assert.Equal(t, want, answer(rx, r), path)
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
	r.Header.Set("Content-Type", "application/json")
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

func TestMisplacedHandlersPanic(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	ok := func(context.Context, *webhook.TransactionEvent) error { return nil }
	webhook.OnTransaction(rx, webhook.TransactionPaid, ok)
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPaid, ok) }, "twice")
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.PayoutFailed, ok) }, "another family")
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPending, nil) }, "nil")
	serve(rx, signed(paid("evt_1", "tx_1")))
	assert.Panics(t, func() { webhook.OnTransaction(rx, webhook.TransactionPending, ok) }, "too late")
}

func TestTheKeyThatVerifiedAnEventIsReported(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	const old = gateway.Secret("whsec_of_last_year")
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
		assert.Equal(t, received, answer(rx, r))
	}
	answer(rx, forged(paid("evt_9", "tx_1")))
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
	answer(rx, signed(paid("evt_1", "tx_1")))
	answer(rx, forged(paid("evt_2", "tx_2")))
	assert.Equal(t, []webhook.Observation{
		{Outcome: webhook.OutcomeUnhandled, EventID: "evt_1", Kind: webhook.TransactionPaid, Resource: "transaction/tx_1", KeyID: "Keys[0]", Attempt: 1},
		{Outcome: webhook.OutcomeRefused, Err: webhook.ErrInvalidSignature},
	}, seen)
}
