package gateway_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/pages"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
)

// effect is the class of a call in the retry table.
type effect int

const (
	reads       effect = iota
	sets               // a write that may be repeated freely
	keyed              // a create with a reference that can be searched for
	opaque             // a create with a reference that can't be searched for
	adds               // a write that must not be repeated
	addsUnkeyed        // the same, of a kind that has no idempotency keys: PATCH, DELETE, and v1
)

type testCall struct {
	name   string
	effect effect
	run    func(context.Context, *gateway.Client, ...gateway.RequestOption) error
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// allCalls returns a call of every method that makes requests, except the
// iterators over lists.
func allCalls() []testCall {
	type ctx = context.Context
	const id = orderID
	token := gateway.NewSecret("session-token")
	v1 := func(c *gateway.Client) *legacy.Client {
		client, err := legacy.New(c, gateway.NewSecret(testKey))
		if err != nil {
			panic(err)
		}
		return client
	}
	customer := gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"}
	referred := customer
	referred.ExternalRef = "customer-1"
	payout := gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: 1000, ExternalRef: "payout-1"}
	subscription := gateway.SubscriptionParams{CustomerID: id, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth, IdempotencyKey: "s-1"}
	return []testCall{
		{"transactions.create", keyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.Create(x, pixOrder(), o...))
		}},
		{"transactions.get", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.Get(x, id, o...))
		}},
		{"transactions.list", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.List(x, gateway.TransactionListParams{}, o...))
		}},
		{"transactions.refund", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.Refund(x, id, gateway.RefundParams{Amount: 500}, o...))
		}},
		{"transactions.update_delivery", sets, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.UpdateDelivery(x, id, gateway.DeliveryParams{TrackingCode: "BR1"}, o...))
		}},
		{"transactions.update_delivery if it matches", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.UpdateDelivery(x, id, gateway.DeliveryParams{TrackingCode: "BR1", IfMatch: `"1"`}, o...))
		}},
		{"transactions.set_sandbox_status", sets, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transactions.SetSandboxStatus(x, id, gateway.SandboxStatusParams{Status: gateway.TransactionPaid}, o...))
		}},
		{"transfers.create", keyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transfers.Create(x, payout, o...))
		}},
		{"transfers.get", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transfers.Get(x, id, o...))
		}},
		{"transfers.list", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transfers.List(x, gateway.TransferListParams{}, o...))
		}},
		{"transfers.cancel", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Transfers.Cancel(x, id, gateway.TransferCancelParams{}, o...))
		}},
		{"customers.create", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Customers.Create(x, customer, o...))
		}},
		{"customers.create with a reference", keyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Customers.Create(x, referred, o...))
		}},
		{"customers.get", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Customers.Get(x, id, o...))
		}},
		{"customers.list", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Customers.List(x, gateway.CustomerListParams{}, o...))
		}},
		{"subscriptions.create", opaque, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.Create(x, subscription, o...))
		}},
		{"subscriptions.get", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.Get(x, id, o...))
		}},
		{"subscriptions.list", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.List(x, gateway.SubscriptionListParams{}, o...))
		}},
		{"subscriptions.update", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.Update(x, id, gateway.SubscriptionUpdateParams{FailurePolicy: gateway.ImmediateCancel}, o...))
		}},
		{"subscriptions.cancel", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.Cancel(x, id, gateway.SubscriptionCancelParams{}, o...))
		}},
		{"subscriptions.pending_challenge", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.Subscriptions.PendingChallenge(x, id, o...))
		}},
		{"checkout_links.create", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.CheckoutLinks.Create(x, gateway.CheckoutLinkParams{Amount: 4990}, o...))
		}},
		{"checkout_sessions.open", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.CheckoutSessions.Open(x, "mugs", o...))
		}},
		{"checkout_sessions.resume", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.CheckoutSessions.Resume(x, "mugs", token, o...))
		}},
		{"checkout_sessions.update", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(c.CheckoutSessions.Update(x, "mugs", token, gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix}, o...))
		}},
		{"do GET", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			var out map[string]any
			return c.Do(x, http.MethodGet, "/v2/x", nil, &out, o...)
		}},
		{"do PATCH", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			var out map[string]any
			return c.Do(x, http.MethodPatch, "/v2/x", map[string]int{"a": 1}, &out, o...)
		}},
		{"do DELETE", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			var out map[string]any
			return c.Do(x, http.MethodDelete, "/v2/x", nil, &out, o...)
		}},
		{"do POST", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			var out map[string]any
			return c.Do(x, http.MethodPost, "/v2/x", map[string]int{"a": 1}, &out, o...)
		}},
		{"legacy.configure_integration", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(v1(c).ConfigureIntegration(x, legacy.IntegrationParams{PixWebhookURL: "https://shop.example/pix"}, o...))
		}},
		{"legacy.balance", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(v1(c).Balance(x, o...))
		}},
		{"legacy.create_pix_payment", addsUnkeyed, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(v1(c).CreatePixPayment(x, legacy.PixPaymentParams{Transaction: legacy.PixCharge{Value: 4990}}, o...))
		}},
		{"legacy.payment_token", reads, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(v1(c).PaymentToken(x, "public", o...))
		}},
		{"legacy.create_payment_token", adds, func(x ctx, c *gateway.Client, o ...gateway.RequestOption) error {
			return errorOf(v1(c).CreatePaymentToken(x, "public", nil, o...)) //nolint:staticcheck // it still exists
		}},
	}
}

// success is a response that every call accepts.
const success = `{"success":true,"requestId":"r","data":{"id":"x","status":"paid","url":"https://pay.example/mugs","session_token":"t",
	"amount_refunded":500,"transaction":{"id":"x"},"token":"pgct_x","data":[]},"transactionId":"x","id":"x","balance":5}`

// verdict says what the end of an attempt means for the call.
type verdict int

const (
	unreached  verdict = iota // nothing was sent, and the next attempt may work
	permanent                 // nothing was sent, and the next attempt would fail too
	limited                   // rate limited: the gateway did nothing
	lost                      // the request may have been applied
	rejected                  // the gateway rejected the request
	unreadable                // a 2xx whose body can't be read
)

type ending struct {
	name    string
	respond roundTrip
	verdict verdict
	is      error // the sentinel of a rejection
}

// neverConnected is an attempt for which net/http got no connection.
func neverConnected(err error) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GetConn("api.gateway.example:443")
		return nil, err
	}
}

func allEndings() []ending {
	ends := []ending{
		{"dial", fail(errDial), unreached, nil},
		{"DNS", fail(errDNS), unreached, nil},
		{"TLS handshake timeout", fail(errors.New("net/http: TLS handshake timeout")), unreached, nil},
		{"TLS handshake cut", neverConnected(io.EOF), unreached, nil},
		{"certificate", fail(x509.UnknownAuthorityError{}), permanent, nil},
		{"TLS alert", neverConnected(errors.New("remote error: tls: handshake failure")), permanent, nil},
		{"refused CONNECT", neverConnected(errors.New("Forbidden")), permanent, nil},
		{"429", reply(429, problem(429)), limited, nil},
		{"reset", fail(errReset), lost, nil},
		{"EOF", fail(io.EOF), lost, nil},
		{"attempt timeout", hang, lost, nil},
		{"cut body", cut(200, `{"success":true,"data":{"id":"`), lost, nil},
		{"success:false", reply(200, `{"success":false}`), unreadable, nil},
		{"success:false, INTERNAL_ERROR", reply(200, `{"success":false,"error":"INTERNAL_ERROR"}`), unreadable, nil},
		{"success:false, 409 in progress", reply(200, `{"success":false,"status":409,"code":"IDEMPOTENCY_KEY_LOCKED"}`), unreadable, nil},
		{"success:false, 422", reply(200, `{"success":false,"status":422}`), rejected, gateway.ErrValidation},
		{"success:false, token used", reply(200, `{"success":false,"status":400,"code":"TOKEN_ALREADY_USED"}`), rejected, gateway.ErrValidation},
		{"TOKEN_ALREADY_USED", reply(422, `{"code":"TOKEN_ALREADY_USED"}`), rejected, gateway.ErrValidation},
		{"422 with a cut body", cut(422, `{"code":"TOKEN_ALREADY_USED","detail":"The tok`), rejected, gateway.ErrValidation},
		{"422 whose body is cut too early", cut(422, "{"), lost, nil},
		{"HTML 2xx", reply(200, "<html>ok</html>"), unreadable, nil},
		{"empty 2xx", reply(200, ""), unreadable, nil},
	}
	// Statuses with which the gateway does not reject a request, whatever the body.
	for _, status := range []int{
		300, 301, 302, 303, 304, 307, 308, 402, 405, 406, 407, 408, 411, 413, 414, 415, 416, 417, 418, 421, 423, 424, 425, 426, 428, 431,
		451, 499, 500, 501, 502, 503, 504, 520, 599,
	} {
		ends = append(ends, ending{"empty " + strconv.Itoa(status), reply(status, ""), lost, nil},
			ending{"a problem with " + strconv.Itoa(status), reply(status, problem(status)), lost, nil})
	}
	for _, status := range []int{408, 500, 503, 504} {
		ends = append(ends, ending{"success:false, " + strconv.Itoa(status), reply(200, fmt.Sprintf(`{"success":false,"status":%d}`, status)), unreadable, nil})
	}
	for _, code := range []string{"IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_IN_PROGRESS", "IDEMPOTENCY_KEY_LOCKED", "IDEMPOTENCY_CONCURRENT_REQUEST"} {
		for _, code := range []string{code, strings.ToLower(code)} {
			for _, member := range []string{"code", "error", "title"} {
				ends = append(ends, ending{"409 " + member + " " + code, reply(409, fmt.Sprintf(`{"%s":"%s","status":409}`, member, code)), lost, nil})
			}
		}
	}
	for status, is := range map[int]error{
		400: gateway.ErrValidation, 401: gateway.ErrUnauthorized, 403: gateway.ErrForbidden, 404: gateway.ErrNotFound,
		409: gateway.ErrConflict, 410: gateway.ErrRetired, 412: gateway.ErrConflict, 422: gateway.ErrValidation,
	} {
		ends = append(ends, ending{http.StatusText(status), reply(status, problem(status)), rejected, is})
	}
	// The same statuses, and 429, from something between client and gateway.
	for _, status := range []int{400, 401, 403, 404, 409, 410, 412, 422, 429} {
		for _, page := range pages.All() {
			ends = append(ends, ending{fmt.Sprintf("%d from a proxy: %s", status, page.Name), reply(status, page.Body), lost, nil})
		}
	}
	return ends
}

// problem is an error body of the gateway.
func problem(status int) string {
	return fmt.Sprintf(`{"type":"about:blank","title":"%s","status":%d}`, http.StatusText(status), status)
}

// onlySentinel returns the only sentinel that err matches, or ErrConflict for a
// duplicate.
func onlySentinel(t *testing.T, err error) error {
	t.Helper()
	require.Error(t, err)
	names := kinds(err)
	if slices.Contains(names, "duplicate") {
		require.Contains(t, names, "conflict", "a duplicate is a conflict")
		return gateway.ErrConflict
	}
	require.Len(t, names, 1, "%v", err)
	return sentinels()[names[0]]
}

// want returns the number of attempts and the error that the retry table lists for a
// call of class e whose attempts end like this. after means that the response to
// an earlier attempt was lost.
func (v verdict) want(e effect, after bool, is error) (attempts int, err error) {
	before := 0
	if after {
		before = 1
	}
	switch {
	case after && e == adds:
		return 1, gateway.ErrOutcomeUnknown // no further attempt was made
	case v == unreached:
		attempts, err = 3, gateway.ErrNotSent
	case v == permanent:
		attempts, err = 1+before, gateway.ErrNotSent
	case v == limited:
		attempts, err = 3, gateway.ErrRateLimited
	case v == rejected:
		attempts, err = 1+before, is
	case v == lost && e == adds:
		return 1, gateway.ErrOutcomeUnknown
	case v == lost:
		attempts, err = 3, gateway.ErrOutcomeUnknown
	default:
		attempts, err = 1+before, gateway.ErrOutcomeUnknown
	}
	switch {
	case e != reads && after:
		err = gateway.ErrOutcomeUnknown
	case e == reads && (after && err == gateway.ErrNotSent || err == gateway.ErrOutcomeUnknown): //nolint:errorlint // not wrapped
		err = gateway.ErrServer
	}
	return attempts, err
}

func TestEveryOperationIsInAllCalls(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, call := range allCalls() {
		listed[call.name] = true
	}
	for op := range spec.Operations() {
		assert.True(t, listed[op.Name], "allCalls in outcomes_test.go has no call named %s", op.Name)
	}
}

// TestEveryCallWithEveryOutcomeOfAnAttempt covers every cell of the retry
// table: each call with each outcome of an attempt, on the first attempt and
// after a lost response, with and without idempotency keys.
func TestEveryCallWithEveryOutcomeOfAnAttempt(t *testing.T) {
	t.Parallel()
	for _, call := range allCalls() {
		t.Run(call.name, func(t *testing.T) {
			t.Parallel()
			for _, end := range allEndings() {
				for _, after := range []bool{false, true} {
					for _, keys := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) {
							call.check(t, end, after, keys)
						})
					}
				}
			}
		})
	}
}

func (c testCall) check(t *testing.T, end ending, after, keys bool) {
	t.Helper()
	e, hasKey := c.effect, keys && c.effect == adds
	var opts []gateway.Option
	if keys {
		opts = append(opts, gateway.WithIdempotencyKeys())
	}
	switch {
	case hasKey:
		e = opaque
	case e == addsUnkeyed:
		e = adds
	}
	s := play(end.respond, end.respond, end.respond)
	if after {
		s = play(fail(errReset), end.respond, end.respond)
	}
	attempts, want := end.verdict.want(e, after, end.is)
	s.steps = s.steps[:min(len(s.steps), attempts)]
	searches := e == keyed && after && (end.verdict == rejected || end.verdict == unreadable)
	if searches {
		s.steps = append(s.steps, reply(200, `{"success":true,"data":[]}`))
		attempts++
	}
	err := c.run(t.Context(), clientOf(t, s, opts...))
	cell := end.name
	if after {
		cell += " after a lost response"
	}
	require.ErrorIs(t, onlySentinel(t, err), want, "%s, keys %v: %v", cell, keys, err)
	assert.Len(t, s.at, attempts, "%s, keys %v: %v", cell, keys, err)
	checkKeys(t, s, hasKey, err)
}

// checkKeys checks that every attempt has the same key, or none.
func checkKeys(t *testing.T, s *fakeTransport, want bool, err error) {
	t.Helper()
	key := s.requests[0].Header.Get("Idempotency-Key")
	assert.Equal(t, want, key != "")
	for _, r := range s.requests {
		assert.Equal(t, key, r.Header.Get("Idempotency-Key"))
	}
	if outcome, ok := errors.AsType[*gateway.OutcomeError](err); ok {
		assert.Equal(t, key, outcome.IdempotencyKey)
	}
}

// TestEveryRetriedCallSucceeds: calls that are retried after a lost response
// succeed with a later attempt; the others fail.
func TestEveryRetriedCallSucceeds(t *testing.T) {
	t.Parallel()
	for _, call := range allCalls() {
		for _, keys := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var opts []gateway.Option
				if keys {
					opts = append(opts, gateway.WithIdempotencyKeys())
				}
				s := play(fail(errReset), reply(501, ""), reply(200, success))
				err := call.run(t.Context(), clientOf(t, s, opts...))
				if call.effect == addsUnkeyed || call.effect == adds && !keys {
					require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, call.name)
					return
				}
				require.NoError(t, err, call.name)
				assert.Equal(t, s.bodies[0], s.bodies[2])
			})
		}
	}
}

// TestEveryCallWhoseContextEnds: if the context ends before the request is sent,
// nothing was done; if it ends later, the outcome of a write is unknown.
func TestEveryCallWhoseContextEnds(t *testing.T) {
	t.Parallel()
	for _, call := range allCalls() {
		synctest.Test(t, func(t *testing.T) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			err := call.run(ended, clientOf(t, play()))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, onlySentinel(t, err), gateway.ErrNotSent, call.name)

			ending, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = call.run(ending, clientOf(t, play(func(r *http.Request) (*http.Response, error) {
				httptrace.ContextClientTrace(r.Context()).GetConn("api.gateway.example:443")
				return hang(r)
			})))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, onlySentinel(t, err), gateway.ErrNotSent, "%s: the context ended while dialing", call.name)

			ending, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = call.run(ending, clientOf(t, play(hang)))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			want := error(gateway.ErrOutcomeUnknown)
			if call.effect == reads {
				want = gateway.ErrServer
			}
			require.ErrorIs(t, onlySentinel(t, err), want, call.name)
		})
	}
}

// TestEveryCallThatCannotBeSent: nothing is sent if an option is invalid or the
// credential can't be obtained.
func TestEveryCallThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for _, call := range allCalls() {
		for name, option := range map[string]gateway.RequestOption{
			"nil option":  nil,
			"no attempts": gateway.MaxAttempts(0),
			"own header":  gateway.Header("Content-Type", "text/plain"),
			"no key":      gateway.IdempotencyKey(""),
			"public key":  gateway.UseCredential(gateway.BearerToken("pk_test_1")),
		} {
			s := play()
			err := call.run(t.Context(), clientOf(t, s), option)
			require.ErrorIs(t, onlySentinel(t, err), gateway.ErrValidation, "%s, %s: %v", call.name, name, err)
			assert.Empty(t, s.at)
		}
		broken := gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) {
			return gateway.Credential{}, errors.New("the vault is sealed")
		})
		s := play()
		client := clientOf(t, s, gateway.WithCredential(broken))
		if len(call.name) > 6 && call.name[:6] == "legacy" {
			continue // it has its own credential
		}
		err := call.run(t.Context(), client)
		require.ErrorIs(t, onlySentinel(t, err), gateway.ErrNotSent, "%s: %v", call.name, err)
		assert.Empty(t, s.at)
	}
}

// TestNoCallAcceptsAnEmptyResource: a 2xx response without the field that
// identifies the resource is an error.
func TestNoCallAcceptsAnEmptyResource(t *testing.T) {
	t.Parallel()
	for _, call := range allCalls() {
		if strings.HasPrefix(call.name, "do ") {
			continue // the caller must check the result
		}
		for _, body := range []string{
			`{"success":true,"data":{}}`, `{"success":true,"data":null}`, `{"success":true,"data":[null]}`, `{"success":true,"data":[{}]}`,
			`{"success":true,"data":{"data":[null]}}`, `{"success":true,"data":{"data":[{"id":""}]}}`,
			`{"success":true,"data":{"id":null,"status":null,"url":null,"session_token":null,"transaction":{},"token":""}}`,
			`{"success":true,"data":{"id":""},"id":"","token":"","transactionId":"","balance":null}`,
		} {
			s := play(reply(200, body))
			err := call.run(t.Context(), clientOf(t, s))
			want := error(gateway.ErrOutcomeUnknown)
			if call.effect == reads {
				want = gateway.ErrServer
			}
			require.Error(t, err, "%s accepted %s: give its result an identity in call.go", call.name, body)
			require.ErrorIs(t, onlySentinel(t, err), want, "%s accepted %s", call.name, body)
			assert.Len(t, s.at, 1)
		}
	}
}
