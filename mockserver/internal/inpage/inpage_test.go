package inpage_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/inpage"
	"github.com/gateway-go/gateway/webhook"
)

const charge = `{"external_ref":"order-1","amount":1990,"method":"pix","products":[{"name":"Book","price":1990}],
	"buyer":{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"52998224725"}}}`

func start(t *testing.T, options string) *inpage.Gateway {
	t.Helper()
	g, err := inpage.New(options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

func request(t *testing.T, g *inpage.Gateway, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://gateway.shop.test"+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+g.Key())
	r.Header.Set("Content-Type", "application/json")
	return r
}

// call returns the member data of a response with the expected status.
func call(t *testing.T, g *inpage.Gateway, method, path, body string, status int) map[string]any {
	t.Helper()
	resp, err := g.Fetch(request(t, g, method, path, body), true)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, status, resp.StatusCode, "%s", text)
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal(text, &envelope))
	var data map[string]any
	_ = json.Unmarshal(envelope.Data, &data) // some are lists
	return data
}

func create(t *testing.T, g *inpage.Gateway, body string) (id string) {
	t.Helper()
	id, _ = call(t, g, http.MethodPost, "/v2/transactions", body, http.StatusCreated)["id"].(string)
	require.NotEmpty(t, id)
	return id
}

// received is a webhook that a receiver got.
type received struct {
	kind, url string
	verified  error
}

// record responds to webhooks with the given statuses, the last one to all further ones,
// and remembers the webhooks.
func record(g *inpage.Gateway, statuses ...int) (receiver inpage.Receiver, list func() []received) {
	var mu sync.Mutex
	var got []received
	verifier := webhook.Verifier{Keys: []webhook.SigningKey{{Key: gateway.NewSecret(g.Secret())}}}
	receiver = func(_ context.Context, r *http.Request, body []byte) (int, http.Header, []byte, error) {
		mu.Lock()
		defer mu.Unlock()
		var event struct {
			Data struct {
				Kind string `json:"event_type"`
			} `json:"data"`
		}
		err := json.Unmarshal(body, &event)
		got = append(got, received{event.Data.Kind, r.Host + r.URL.Path, errors.Join(err, verifier.Verify(r.Header, body))})
		return statuses[min(len(got), len(statuses))-1], http.Header{"x-shop": {"1"}}, []byte("ok"), nil
	}
	return receiver, func() []received {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// wait returns when the deliveries that are due are made.
func wait(t *testing.T, g *inpage.Gateway) {
	t.Helper()
	call(t, g, http.MethodPost, "/__mock/deliveries/wait", "{}", http.StatusOK)
}

const manual = `{"clock":"manual","start":"2027-01-04T12:00:00Z","seed":1}`

func TestTheReceiversStatusDecidesTheRetry(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	receiver, got := record(g, http.StatusInternalServerError, http.StatusOK)
	require.NoError(t, g.Receive(receiver))
	require.NoError(t, g.Receive(receiver), "there is still one endpoint")
	create(t, g, charge)
	wait(t, g)
	created := received{"transaction.created", "localhost/webhooks", nil}
	pending := received{"transaction.pending", "localhost/webhooks", nil}
	assert.Equal(t, []received{created, pending}, got())
	call(t, g, http.MethodPost, "/__mock/clock/advance", `{"by":"5s"}`, http.StatusOK)
	assert.Equal(t, []received{created, pending, created}, got())
	call(t, g, http.MethodPost, "/__mock/clock/advance", `{"by":"10m"}`, http.StatusOK)
	assert.Len(t, got(), 3, "the second attempt succeeded")

	require.NoError(t, g.Receive(nil))
	create(t, g, strings.Replace(charge, "order-1", "order-2", 1))
	wait(t, g)
	assert.Len(t, got(), 3)
}

// Nothing is sent over the network: a notify_url and the URL of an endpoint lead to the
// receiver too. Without one, an attempt fails.
func TestEveryURLLeadsToTheReceiver(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	notified := strings.Replace(charge, "{", `{"notify_url":"https://shop.test/notified",`, 1)
	create(t, g, notified)
	wait(t, g)
	resp, err := g.Fetch(request(t, g, http.MethodGet, "/__mock/deliveries", ""), true)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Contains(t, string(text), "the connection was closed without a response")

	receiver, got := record(g, http.StatusOK)
	require.NoError(t, g.Receive(receiver))
	call(t, g, http.MethodPost, "/__mock/clock/advance", `{"by":"1h"}`, http.StatusOK)
	for _, one := range got() {
		assert.Equal(t, "shop.test/notified", one.url)
		require.ErrorIs(t, one.verified, webhook.ErrMissingSignature)
	}
	assert.Len(t, got(), 2)
}

func TestAReceiverThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	attempts := make(chan struct{}, 8)
	require.NoError(t, g.Receive(func(context.Context, *http.Request, []byte) (int, http.Header, []byte, error) {
		attempts <- struct{}{}
		return 0, nil, nil, errors.New("closed")
	}))
	create(t, g, charge)
	wait(t, g)
	assert.Len(t, attempts, 2)
	call(t, g, http.MethodPost, "/__mock/clock/advance", `{"by":"5s"}`, http.StatusOK)
	assert.Len(t, attempts, 4)
}

func TestAFaultBreaksTheConnection(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	r := request(t, g, http.MethodPost, "/v2/transactions", charge)
	r.Header.Set("X-Mock-Fault", "lose-response")
	_, err := g.Fetch(r, true) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NotContains(t, err.Error(), "Post ", "the caller knows its request")
	call(t, g, http.MethodPost, "/v2/transactions", charge, http.StatusConflict)

	r = request(t, g, http.MethodGet, "/v2/transactions", "")
	r.Header.Set("X-Mock-Fault", "truncate")
	resp, err := g.Fetch(r, true)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.NotEmpty(t, text)
	require.NoError(t, resp.Body.Close())

	ctx, cancel := context.WithCancel(t.Context())
	r = request(t, g, http.MethodGet, "/v2/transactions", "").WithContext(ctx)
	r.Header.Set("X-Mock-Fault", "hang-until-timeout")
	cancel()
	_, err = g.Fetch(r, true) //nolint:bodyclose // there is none
	require.ErrorIs(t, err, context.Canceled)
}

// A page may be served from any host, and its requests have an Origin.
func TestTheHostAndTheOriginDoNotMatter(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	r := request(t, g, http.MethodPost, "/__mock/clock/advance", `{"by":"1h"}`)
	r.Header.Set("Origin", "https://elsewhere.test")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	resp, err := g.Fetch(r, true)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestRedirectsAreFollowedIfAsked(t *testing.T) {
	t.Parallel()
	g := start(t, manual)
	id := create(t, g, charge)
	for follow, status := range map[bool]int{true: http.StatusOK, false: http.StatusSeeOther} {
		r := request(t, g, http.MethodGet, "/__mock/console/find?q="+id, "")
		r.Header.Set("Accept", "text/html")
		resp, err := g.Fetch(r, follow)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, status, resp.StatusCode)
		assert.Equal(t, follow, strings.Contains(resp.Request.URL.Path, id), resp.Request.URL)
	}
}

func TestASnapshotMovesToAnotherGateway(t *testing.T) {
	t.Parallel()
	first, second := start(t, manual), start(t, manual)
	receiver, got := record(second, http.StatusOK)
	require.NoError(t, second.Receive(receiver))
	id := create(t, first, charge)
	file, err := first.Snapshot()
	require.NoError(t, err)
	require.NoError(t, second.Restore(file))
	assert.Equal(t, "pending", call(t, second, http.MethodGet, "/v2/transactions/"+id, "", http.StatusOK)["status"])
	call(t, second, http.MethodPost, "/__mock/transactions/"+id+"/pay", "", http.StatusOK)
	wait(t, second)
	assert.Equal(t, []received{{"transaction.paid", "localhost/webhooks", nil}}, got(), "the receiver stays, and the endpoint that the file doesn't have")
	require.Error(t, second.Restore([]byte("{}")))
}

func TestOptions(t *testing.T) {
	t.Parallel()
	start(t, `{}`)
	g := start(t, `{"environment":"production","dialect":"live","clock":"realtime","speed":2,"start":"2027-01-04T12:00:00.000Z","seed":1,
		"autoPay":"5s","fee":10,"openingBalance":5000,"settledPercent":90,"lenient":true,"basicTokenX":"sk_live_x","webhook":"https://shop.test/hooks",
		"webhookSecret":"whsec_of_the_shop","webhookTimeout":"2s","webhookRetries":"1s, 1m","webhookPauseAfter":3,"timestampHeader":"X-T",
		"signatureHeader":"X-S","publicUrl":"https://pay.shop.test","memory":64}`)
	assert.Equal(t, "sk_live_mock", g.Key())
	assert.Equal(t, "whsec_of_the_shop", g.Secret())
	for options, want := range map[string]string{
		`{"colck":"manual"}`:             `there is no option "colck"`,
		`{"fee":"1"}`:                    `the option fee can't be a JSON string`,
		`{} {}`:                          `must be one JSON object`,
		`[]`:                             `the options: json: cannot unmarshal array`,
		`{"clock":"slow"}`:               `clock must be "realtime" or "manual", not "slow"`,
		`{"dialect":"v1"}`:               `dialect must be`,
		`{"environment":"test"}`:         `environment must be`,
		`{"clock":"manual","speed":2}`:   `speed has no effect`,
		`{"speed":0}`:                    `speed must be above 0`,
		`{"speed":1e9}`:                  `WithRealtime`,
		`{"start":"yesterday"}`:          `the options: `,
		`{"autoPay":"soon"}`:             `autoPay: "soon" is not a duration`,
		`{"fee":-1}`:                     `a fee can't be negative`,
		`{"settledPercent":90}`:          `live dialect`,
		`{"memory":0}`:                   `memory must be at least 1 MiB`,
		`{"webhook":"shop"}`:             `webhook must be an http or https URL`,
		`{"webhookSecret":"x"}`:          `WithWebhookSecret`,
		`{"webhookTimeout":"x"}`:         `webhookTimeout: `,
		`{"webhookRetries":"1m,1s"}`:     `WithWebhookRetries`,
		`{"webhookRetries":"x"}`:         `webhookRetries must be durations`,
		`{"webhookPauseAfter":-1}`:       `can't be negative`,
		`{"timestampHeader":"a b"}`:      `WithSignatureHeaders`,
		`{"publicUrl":"x"}`:              `WithPublicURL`,
		`{"profile":{},"lenient":true}`:  `profile sets dialect`,
		`{"profile":{"format":"other"}}`: `WithProfile`,
	} {
		_, err := inpage.New(options)
		require.ErrorContains(t, err, want, options)
	}
	one := start(t, `{"clock":"manual","webhookRetries":"none","profile":null}`)
	receiver, got := record(one, http.StatusInternalServerError)
	require.NoError(t, one.Receive(receiver))
	create(t, one, charge)
	call(t, one, http.MethodPost, "/__mock/clock/advance", `{"by":"1h"}`, http.StatusOK)
	kinds := map[string]int{}
	for _, event := range got() {
		kinds[event.kind]++
	}
	assert.Equal(t, map[string]int{"transaction.created": 1, "transaction.pending": 1}, kinds)
}
