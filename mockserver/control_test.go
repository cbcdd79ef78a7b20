package mockserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
)

// plane calls the control plane of a server.
type plane struct {
	t      *testing.T
	gw     *mockserver.Server
	key    string // "" sends no credential
	header map[string]string
}

// call returns the status and the body.
func (p plane) call(method, path, body string) (int, map[string]any) {
	p.t.Helper()
	resp := p.raw(method, path, body) //nolint:bodyclose // closed by its Cleanup
	text, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	var v map[string]any
	require.NoError(p.t, json.Unmarshal(text, &v), string(text))
	return resp.StatusCode, v
}

func (p plane) raw(method, path, body string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://localhost/__mock"+path, strings.NewReader(body))
	require.NoError(p.t, err)
	if p.key != "" {
		r.Header.Set("Authorization", "Bearer "+p.key)
	}
	for name, value := range p.header {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	resp, err := p.gw.Transport().RoundTrip(r)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// do returns the data of a call that must succeed.
func do[T any](p plane, method, path, body string) T {
	p.t.Helper()
	status, v := p.call(method, path, body)
	require.Equal(p.t, http.StatusOK, status, v)
	data, ok := v["data"].(T)
	require.True(p.t, ok, v)
	return data
}

type object = map[string]any

func TestControlsOfEachResource(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p, client := plane{t: t, gw: gw}, gw.Client()
	card := func(token string) string {
		params := order("")
		params.Method, params.Token = gateway.CreditCard, gateway.CardToken(token)
		tx, err := client.Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		return tx.ID
	}
	pix := func() string {
		tx, err := client.Transactions.Create(t.Context(), order(""))
		require.NoError(t, err)
		return tx.ID
	}
	transfer := func() string {
		tr, err := client.Transfers.Create(t.Context(), gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test", Amount: 500,
		})
		require.NoError(t, err)
		return tr.ID
	}
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@shop.test"})
	require.NoError(t, err)
	automatic := func() string {
		s, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 500, PaymentMethod: gateway.SubscriptionPixAutomatic, Interval: gateway.IntervalMonth,
		})
		require.NoError(t, err)
		return s.ID
	}
	for _, tc := range []struct{ id, resource, actions, want string }{
		{pix(), "transactions", "pay", "paid"},
		{pix(), "transactions", "expire", "expired"},
		{pix(), "transactions", "cancel", "canceled"},
		{card("pgct_1"), "transactions", "refuse", "refused"},
		{card("pgct_paid1"), "transactions", "chargeback", "chargedback"},
		{card("pgct_3ds1"), "transactions", "challenge/pass", "paid"},
		{card("pgct_3ds2"), "transactions", "challenge/fail", "refused"},
		{transfer(), "transfers", "analyse", "in_analysis"},
		{transfer(), "transfers", "process", "processing"},
		{transfer(), "transfers", "process settle", "paid"},
		{transfer(), "transfers", "process fail", "error"},
		{automatic(), "subscriptions", "authorize", "active"},
		{automatic(), "subscriptions", "reject", "canceled"},
		{automatic(), "subscriptions", "authorize revoke", "canceled"},
		{automatic(), "subscriptions", "authorize cancel-debit", "active"},
		{automatic(), "subscriptions", "fail-next", "incomplete"},
	} {
		var data object
		for action := range strings.FieldsSeq(tc.actions) {
			data = do[object](p, http.MethodPost, "/"+tc.resource+"/"+tc.id+"/"+action, "")
		}
		assert.Equal(t, tc.id, data["id"], tc.actions)
		assert.Equal(t, tc.want, data["status"], tc.actions)
	}
	live := plane{t: t, gw: disputes(t)}
	listed, err := live.gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{Statuses: []gateway.TransactionStatus{gateway.TransactionMED}})
	require.NoError(t, err)
	require.Len(t, listed.Items, 1)
	for _, step := range [][2]string{{"contest", "in_protest"}, {"win", "paid"}, {"open", "med"}, {"lose", "pre_chargedback"}} {
		data := do[object](live, http.MethodPost, "/transactions/"+listed.Items[0].ID+"/dispute/"+step[0], "")
		assert.Equal(t, step[1], data["status"], step[0])
	}
	id := automatic()
	do[object](p, http.MethodPost, "/subscriptions/"+id+"/fail-next", `{"count":2}`)
	for _, want := range []string{"incomplete", "incomplete", "active"} {
		assert.Equal(t, want, do[object](p, http.MethodPost, "/subscriptions/"+id+"/authorize", "")["status"])
	}
	for path, body := range map[string]string{
		"/subscriptions/" + id + "/fail-next": `{"count":-1}`,
		"/subscriptions/" + id + "/revoke":    `{"count":1}`,
		"/transactions/" + pix() + "/pay":     `{"count":1}`,
	} {
		status, v := p.call(http.MethodPost, path, body)
		assert.Equal(t, http.StatusBadRequest, status, path)
		assert.Contains(t, v["detail"], "count")
	}
	status, v := p.call(http.MethodPost, "/transactions/"+pix()+"/refuse", "")
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "INVALID_STATE", v["code"])
	status, v = p.call(http.MethodPost, "/transactions/nobody/pay", "")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "NOT_FOUND", v["code"])
}

func TestControlOfCheckoutAndV1(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p, client := plane{t: t, gw: gw}, gw.Client()
	link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 500, Currency: gateway.BRL, Title: "Book"})
	require.NoError(t, err)
	slug := link.URL[strings.LastIndex(link.URL, "/")+1:]
	status, v := p.call(http.MethodPost, "/checkout/"+slug+"/pay", "")
	assert.Equal(t, http.StatusConflict, status, v)
	data := do[object](p, http.MethodPost, "/checkout/"+slug+"/expire", "")
	assert.Equal(t, slug, data["slug"])
	assert.Equal(t, "expired", data["status"])

	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/pix/v1/payment",
		strings.NewReader(`{"type":"PIX","payer":{"fullName":"Ana"},"transaction":{"value":500}}`))
	require.NoError(t, err)
	r.Header.Set("Apikey", gw.Key())
	r.Header.Set("Content-Type", "application/json")
	resp, err := gw.Transport().RoundTrip(r)
	require.NoError(t, err)
	var payment struct {
		TransactionID string `json:"transactionId"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&payment))
	require.NoError(t, resp.Body.Close())
	data = do[object](p, http.MethodPost, "/legacy/payments/"+payment.TransactionID+"/status", `{"status":"IN_ANALYSIS"}`)
	assert.Equal(t, object{"transactionId": payment.TransactionID, "status": "IN_ANALYSIS"}, data)
	status, _ = p.call(http.MethodPost, "/legacy/payments/"+payment.TransactionID+"/status", "")
	assert.Equal(t, http.StatusBadRequest, status)
	data = do[object](p, http.MethodPost, "/transactions/"+payment.TransactionID+"/pay", "")
	assert.Equal(t, "paid", data["status"], "a v1 payment is a transaction")
}

func TestACheckoutByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p, client := plane{t: t, gw: gw}, gw.Client()
	link, err := client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 500, Currency: gateway.BRL, Title: "Book"})
	require.NoError(t, err)
	slug := link.Slug()
	status, v := p.call(http.MethodPost, "/checkout/"+slug+"/begin", "")
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "INVALID_STATE", v["code"], "it has not been filled in")
	opened, err := client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	_, err = client.CheckoutSessions.Update(t.Context(), slug, opened.SessionToken, gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{Name: "Ana", Email: "ana@example.com"}, PaymentMethod: gateway.Pix,
	})
	require.NoError(t, err)
	data := do[object](p, http.MethodPost, "/checkout/"+slug+"/begin", "")
	session, _ := data["sessions"].([]any)[0].(object)
	assert.Equal(t, "processing", session["status"])
	assert.Len(t, session["id"], 36)
	tx, err := client.Transactions.Get(t.Context(), session["transaction_id"].(string))
	require.NoError(t, err)
	assert.Equal(t, gateway.TransactionPending, tx.Status)

	data = do[object](p, http.MethodPost, "/checkout/"+slug+"/deactivate", "")
	assert.Equal(t, "inactive", data["status"])
	for _, action := range []string{"begin", "deactivate"} {
		status, v = p.call(http.MethodPost, "/checkout/"+slug+"/"+action, "")
		assert.Equal(t, http.StatusConflict, status)
		assert.Equal(t, "INVALID_STATE", v["code"])
		status, v = p.call(http.MethodPost, "/checkout/nobody/"+action, "")
		assert.Equal(t, http.StatusNotFound, status)
		assert.Equal(t, "NOT_FOUND", v["code"])
	}
}

func TestDownAndUpByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	list := func() error {
		_, err := gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{}, gateway.MaxAttempts(1))
		return err
	}
	assert.Equal(t, object{"reachable": false}, do[object](p, http.MethodPost, "/down", ""))
	require.ErrorIs(t, list(), syscall.ECONNREFUSED)
	assert.Equal(t, object{"reachable": true}, do[object](p, http.MethodPost, "/up", ""))
	require.NoError(t, list())
}

// A test can wait for its receiver before it checks the results.
func TestDeliveriesAreWaitedForByCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		gw.Webhooks.ServeHost("shop.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }))
		p := plane{t: t, gw: gw}
		do[object](p, http.MethodPost, "/endpoints", `{"url":"https://shop.test/","events":["transaction.created"]}`)
		_, err := gw.Client().Transactions.Create(t.Context(), order(""))
		require.NoError(t, err)
		assert.Len(t, do[[]any](p, http.MethodGet, "/deliveries?status=pending", ""), 1)
		list := do[[]any](p, http.MethodPost, "/deliveries/wait?kind=transaction.created", "")
		require.Len(t, list, 1)
		assert.Equal(t, "delivered", list[0].(object)["status"])
	})
}

func TestTheClockByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	_, err := gw.Client().Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	timers := do[[]any](p, http.MethodGet, "/clock/timers", "")
	require.Len(t, timers, 1)
	assert.Equal(t, "transaction.expire", timers[0].(object)["kind"])
	assert.Empty(t, do[[]any](plane{t: t, gw: gw, key: "sk_test_other"}, http.MethodGet, "/clock/timers", ""))

	for _, step := range []struct{ body, now string }{
		{`{"by":"90m"}`, "2027-01-04T13:30:00.000Z"},
		{`{"to":"2027-01-05T00:00:00Z"}`, "2027-01-05T00:00:00.000Z"},
		{`{"next":true}`, "2027-01-05T12:00:00.000Z"},
	} {
		assert.Equal(t, object{"now": step.now}, do[object](p, http.MethodPost, "/clock/advance", step.body))
		assert.Equal(t, object{"now": step.now}, do[object](p, http.MethodGet, "/clock", ""))
	}
	for _, body := range []string{
		"", "{}", `{"by":"1 day"}`, `{"to":"tomorrow"}`, `{"by":"1h","next":true}`, `{"by":1}`, `{"By":"1h"}`, `[]`, `{"by"`,
		`{"by":"-1h"}`, `{"to":"2020-01-01T00:00:00Z"}`, `{"to":"9999-12-31T23:59:59-03:00"}`, `{"by":"1h","by":"2h"}`,
	} {
		status, v := p.call(http.MethodPost, "/clock/advance", body)
		assert.Equal(t, http.StatusBadRequest, status, body)
		assert.NotEmpty(t, v["detail"])
		assert.Equal(t, "/__mock/clock/advance", v["instance"])
	}
}

func TestWebhooksByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p, client, shop := plane{t: t, gw: gw}, gw.Client(), &shop{}
	gw.Webhooks.ServeHost("shop.test", shop)
	ep := do[object](p, http.MethodPost, "/endpoints", `{"url":"https://shop.test/hook","secret":"whsec_mock","events":["transaction.*"]}`)
	assert.Equal(t, object{"id": "ep_1", "url": "https://shop.test/hook", "signed": true, "events": []any{"transaction.*"}, "paused": false}, ep)
	assert.Equal(t, []any{ep}, do[[]any](p, http.MethodGet, "/endpoints", ""))
	status, v := p.call(http.MethodPost, "/endpoints", `{"url":"shop"}`)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, v["detail"], "http or https")

	assert.Equal(t, object{"holding": true, "held": []any{}}, do[object](p, http.MethodPost, "/deliveries/hold", ""))
	made, err := client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(made.ID))
	released := do[object](p, http.MethodPost, "/deliveries/release", `{"ids":["dlv_3","dlv_1"]}`)
	assert.Equal(t, object{"holding": true, "held": []any{"dlv_2"}}, released)
	assert.Len(t, shop.got(), 2, "release returns when they are delivered")
	assert.Equal(t, object{"holding": false, "held": []any{}}, do[object](p, http.MethodPost, "/deliveries/release", ""))

	one := do[object](p, http.MethodGet, "/deliveries/dlv_1", "")
	assert.Equal(t, "transaction.created", one["kind"])
	attempt := one["attempts"].([]any)[0].(object)
	assert.Equal(t, "2027-01-04T12:00:00.000Z", attempt["at"])
	assert.EqualValues(t, http.StatusOK, attempt["response_status"])
	assert.Equal(t, true, attempt["signed"])
	assert.Contains(t, one["body"], `"event_type":"transaction.created"`)
	again := do[object](p, http.MethodPost, "/deliveries/dlv_1/redeliver", "")
	assert.Equal(t, "delivered", again["status"])
	assert.EqualValues(t, 2, again["attempt"])
	assert.Len(t, again["attempts"], 2)
	assert.Len(t, do[[]any](p, http.MethodGet, "/deliveries?kind=transaction.paid", ""), 1)
	assert.Empty(t, do[[]any](p, http.MethodGet, "/deliveries?status=failed", ""))
	assert.Len(t, do[[]any](p, http.MethodGet, "/deliveries?resource_id="+made.ID, ""), 3)
	assert.Empty(t, do[[]any](p, http.MethodGet, "/deliveries?resource_id=another", ""))
	for query, want := range map[string]string{
		"kind=transaction.payed": `kind: there is no event kind "transaction.payed"; openapi.json lists them as webhooks`,
		"status=sent":            `status: there is no delivery status "sent"; use one of [pending delivered failed held dropped no_endpoint]`,
	} {
		status, problem := p.call(http.MethodPost, "/deliveries/wait?"+query, "")
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, want, problem["detail"])
		status, _ = p.call(http.MethodGet, "/deliveries?"+query, "")
		assert.Equal(t, http.StatusBadRequest, status)
	}
	for _, path := range []string{"/deliveries/dlv_9/redeliver", "/endpoints/ep_9/rotate"} {
		status, _ = p.call(http.MethodPost, path, "")
		assert.Equal(t, http.StatusNotFound, status)
	}
	status, _ = p.call(http.MethodPost, "/deliveries/release", `{"ids":["dlv_1"]}`)
	assert.Equal(t, http.StatusConflict, status)

	assert.Equal(t, true, do[object](p, http.MethodPost, "/endpoints/ep_1/rotate", `{"secret":"whsec_new_0001"}`)["signed"])
	assert.Equal(t, "ep_1", do[object](p, http.MethodDelete, "/endpoints/ep_1", "")["id"])
	status, _ = p.call(http.MethodDelete, "/endpoints/ep_1", "")
	assert.Equal(t, http.StatusNotFound, status)
	status, _ = p.call(http.MethodGet, "/deliveries/dlv_9", "")
	assert.Equal(t, http.StatusNotFound, status)
	gw.Webhooks.Send(shop)
	assert.Len(t, do[[]any](p, http.MethodGet, "/endpoints", ""), 1, "those of all accounts include this account's")
}

func TestARejectedSignatureIsDiagnosedByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	var header http.Header
	var body []byte
	hook := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
	})
	gw.Webhooks.ServeHost("shop.test", hook)
	const secret, other = "whsec_of_the_endpoint", "whsec_of_another_place"
	do[object](p, http.MethodPost, "/endpoints", `{"url":"http://shop.test/hooks","secret":"`+secret+`"}`)
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	require.NotEmpty(t, body)

	diagnose := func(body, secret string, headers http.Header) (text string, causes []any) {
		in := object{"headers": object{}, "body": body, "secret": secret}
		for name, values := range headers {
			in["headers"].(object)[strings.ToLower(name)] = strings.Join(values, ",")
		}
		b, err := json.Marshal(in)
		require.NoError(t, err)
		d := do[object](p, http.MethodPost, "/deliveries/diagnose", string(b))
		for _, f := range d["findings"].([]any) {
			causes = append(causes, f.(object)["cause"])
		}
		out, err := json.Marshal(d)
		require.NoError(t, err)
		assert.NotContains(t, string(out), "whsec_", "no secret is returned")
		return string(out), causes
	}
	text, causes := diagnose(string(body), secret, header)
	assert.Contains(t, text, `"valid":true`)
	assert.Empty(t, causes)
	text, causes = diagnose(string(body), "", header)
	assert.Contains(t, text, `"key_id":"ep_1"`, "without a secret, those of the endpoints are used")
	assert.Empty(t, causes)
	text, causes = diagnose(string(body), other, header)
	assert.Equal(t, []any{"wrong_secret"}, causes)
	assert.Contains(t, text, "secret of the endpoint ep_1")
	text, causes = diagnose(strings.Replace(string(body), `"paid_at":null,`, "", 1), secret, header)
	assert.Equal(t, []any{"reencoded_body"}, causes, "the server knows what it sent")
	assert.Contains(t, text, "bytes from number")
	_, causes = diagnose(strings.Replace(string(body), `"id":"evt_`, `"id":"evt_x`, 1), secret, header)
	assert.Equal(t, []any{"other_event"}, causes)
	_, causes = diagnose(string(body), secret, http.Header{"X-Other": {"1"}})
	assert.Equal(t, []any{"missing_header", "missing_header"}, causes)

	for body, want := range map[string]string{
		`{"headers":{},"body":"a","body_base64":"YQ=="}`: "only one of body and body_base64",
		`{"body_base64":"%"}`:                            "body_base64 is not base64",
		`{"received_at":"yesterday"}`:                    "received_at must be a timestamp",
		`{"secret":["` + secret + `"]}`:                  "/secret has the wrong type",
	} {
		status, v := p.call(http.MethodPost, "/deliveries/diagnose", body)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, v["detail"], want)
		assert.NotContains(t, v["detail"], secret)
	}
	old := do[object](p, http.MethodPost, "/deliveries/diagnose", `{"received_at":"2023-11-14T22:13:20Z","secret":"test_security_token",
		"headers":{"X-Op-Time":"1700000000","X-Op-Sign":"sha256=2383a820c0197edf7e137a8aa980bae35abdfe9973055bdc7fdd40a54a18cf19"},
		"timestamp_header":"X-Op-Time","signature_header":"x-op-sign",
		"body_base64":"eyJpZCI6ImV2dF8xIiwiZXZlbnQiOiJ0cmFuc2FjdGlvbiIsImRhdGEiOnsiaWQiOiJ0eF8xIiwiZXZlbnRfdHlwZSI6InRyYW5zYWN0aW9uLnBhaWQifX0="}`)
	assert.Equal(t, true, old["valid"], old)

	for _, r := range gw.Requests.All() {
		assert.NotContains(t, r.Body+r.Path, "whsec_", "the journal has no secret")
	}
	snapshot, err := gw.Snapshot()
	require.NoError(t, err)
	assert.NotContains(t, string(snapshot), other, "nothing is stored")
}

func TestFaultsAndRequestsByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p, client := plane{t: t, gw: gw}, gw.Client()
	f := do[object](p, http.MethodPost, "/faults", `{"fault":"status=429; retry-after=2","on":"POST /v2/transactions","times":1}`)
	assert.Equal(t, object{
		"id": "fault_1", "fault": "status=429; retry-after=2", "on": "POST /v2/transactions", "times": 1.0, "nth": 0.0,
		"probability": 1.0, "seen": 0.0, "fired": 0.0,
	}, f)
	_, err := client.Transactions.Create(t.Context(), order(""), gateway.MaxAttempts(1))
	require.ErrorIs(t, err, gateway.ErrRateLimited)
	assert.EqualValues(t, 1, do[[]any](p, http.MethodGet, "/faults", "")[0].(object)["fired"])
	for _, body := range []string{
		"", `{"fault":"explode"}`, `{"fault":"truncate","times":0}`, `{"fault":"truncate","nth":-1}`,
		`{"fault":"truncate","probability":2}`, `{"fault":"truncate","on":"transaction.create"}`, `{"fault":"truncate","time":1}`,
	} {
		status, _ := p.call(http.MethodPost, "/faults", body)
		assert.Equal(t, http.StatusBadRequest, status, body)
	}
	status, _ := plane{t: t, gw: gw, key: "sk_test_other"}.call(http.MethodDelete, "/faults/fault_1", "")
	assert.Equal(t, http.StatusNotFound, status, "it is another account's")
	assert.Equal(t, "fault_1", do[object](p, http.MethodDelete, "/faults/fault_1", "")["id"])
	assert.EqualValues(t, 2, do[object](p, http.MethodPost, "/faults", `{"fault":"truncate","nth":2,"on":"transfers.create"}`)["nth"])
	do[object](p, http.MethodPost, "/faults", `{"fault":"truncate","probability":0}`)
	assert.Empty(t, do[[]any](p, http.MethodDelete, "/faults", ""))
	assert.Empty(t, gw.Faults.Reports())

	status, v := p.call(http.MethodGet, "/requests?match=transactions.create", "")
	assert.Equal(t, http.StatusOK, status)
	assert.EqualValues(t, 1, v["count"])
	request := v["data"].([]any)[0].(object)
	assert.EqualValues(t, http.StatusTooManyRequests, request["status"])
	assert.Equal(t, "POST", request["method"])
	assert.Equal(t, "2027-01-04T12:00:00.000Z", request["at"])
	assert.Equal(t, []any{"2"}, request["response_header"].(object)["Retry-After"])
	assert.Equal(t, "status=429; retry-after=2", request["fault"])
	_, v = p.call(http.MethodGet, "/requests?match=transactions.created", "")
	assert.EqualValues(t, 0, v["count"])
	assert.Len(t, v["near_misses"], 1)
	assert.Empty(t, do[[]any](p, http.MethodDelete, "/requests", ""))
	assert.Empty(t, gw.Requests.All())
}

func TestSnapshotsByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(1))
	p, client := plane{t: t, gw: gw}, gw.Client()
	snap := do[object](p, http.MethodPost, "/snapshots", "")
	assert.Equal(t, "snap_1", snap["id"])
	first, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	do[object](p, http.MethodPost, "/clock/advance", `{"by":"1h"}`)
	assert.Equal(t, []any{snap}, do[[]any](p, http.MethodGet, "/snapshots", ""))
	do[object](p, http.MethodPost, "/snapshots/snap_1/restore", "")
	assert.Equal(t, "2027-01-04T12:00:00.000Z", do[object](p, http.MethodGet, "/clock", "")["now"])
	second, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	assert.Equal(t, first.ID, second.ID, "the same seed continues at the same place")
	do[object](p, http.MethodDelete, "/snapshots/snap_1", "")
	for method, path := range map[string]string{http.MethodDelete: "/snapshots/snap_1", http.MethodPost: "/snapshots/snap_1/restore"} {
		status, _ := p.call(method, path, "")
		assert.Equal(t, http.StatusNotFound, status)
	}
	for range 16 {
		do[object](p, http.MethodPost, "/snapshots", "")
	}
	status, _ := p.call(http.MethodPost, "/snapshots", "")
	assert.Equal(t, http.StatusConflict, status)
}

func TestSnapshotFilesByCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(1), mockserver.WithMemoryLimit(8<<20))
	p := plane{t: t, gw: gw}
	fetch := func(path string) (string, http.Header) {
		resp := p.raw(http.MethodGet, path, "") //nolint:bodyclose // closed by its Cleanup
		require.Equal(t, http.StatusOK, resp.StatusCode)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(b), resp.Header
	}
	for range 400 { // more than the 1 MiB limit of other bodies
		_, err := gw.Client().Transactions.Create(t.Context(), large(4000))
		require.NoError(t, err)
	}
	do[object](p, http.MethodPost, "/snapshots", "")
	file, header := fetch("/snapshot")
	require.Greater(t, len(file), 1<<20)
	assert.Equal(t, `attachment; filename="mockgateway-20270104T120000Z.json"`, header.Get("Content-Disposition"))
	assert.Equal(t, "no-store", header.Get("Cache-Control"))
	saved, header := fetch("/snapshots/snap_1")
	assert.Equal(t, file, saved)
	assert.Contains(t, header.Get("Content-Disposition"), "snap_1.json")
	fromGo, err := gw.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, string(fromGo), file, "Go and the control plane write the same file")

	do[object](p, http.MethodPost, "/reset", "")
	do[object](p, http.MethodPost, "/clock/advance", `{"by":"1h"}`)
	loaded := do[object](p, http.MethodPut, "/snapshot", file)
	assert.Equal(t, "2027-01-04T12:00:00.000Z", loaded["now"])
	again, err := gw.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, file, string(again))

	for body, want := range map[string]string{
		"":            "it is empty",
		`{"a":1}`:     `it has no \"format\"`,
		file[:100000]: "it is truncated after 100000 bytes",
		strings.Replace(file, `"sandbox"`, `"production"`, 1): `its environment is \"production\", and this server's is \"sandbox\"`,
	} {
		status, v := p.call(http.MethodPut, "/snapshot", body)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Equal(t, "SNAPSHOT_REJECTED", v["code"])
		assert.Contains(t, strings.ReplaceAll(v["detail"].(string), `"`, `\"`), want)
	}
	status, v := p.call(http.MethodPut, "/snapshot", strings.Repeat(" ", 8<<20)+"{}")
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
	assert.Contains(t, v["detail"], "8192 KiB")
	status, _ = p.call(http.MethodGet, "/snapshots/snap_9", "")
	assert.Equal(t, http.StatusNotFound, status)
	unchanged, err := gw.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, file, string(unchanged))
}

// A snapshot of a large server can't be restored into a small one.
func TestASnapshotBeyondTheMemoryLimitIsRejected(t *testing.T) {
	t.Parallel()
	gw, small := mockserver.Run(t), mockserver.Run(t, mockserver.WithMemoryLimit(1<<20))
	for range 400 {
		_, err := gw.Client().Transactions.Create(t.Context(), large(4000))
		require.NoError(t, err)
	}
	file, err := gw.Snapshot()
	require.NoError(t, err)
	before, err := small.Snapshot()
	require.NoError(t, err)
	err = small.Restore(file)
	require.ErrorIs(t, err, mockserver.ErrSnapshot)
	require.ErrorContains(t, err, "does not fit into the memory limit")
	after, err := small.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	_, err = small.Client().Transactions.Create(t.Context(), large(4000))
	require.NoError(t, err, "its memory is free again")
}

func TestResetEmptiesOneAccount(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	other := gw.Account("sk_test_other")
	for _, client := range []*gateway.Client{gw.Client(), other.Client()} {
		_, err := client.Transactions.Create(t.Context(), order("order-1"))
		require.NoError(t, err)
	}
	do[object](p, http.MethodPost, "/endpoints", `{"url":"https://shop.test/"}`)
	do[object](p, http.MethodPost, "/faults", `{"fault":"reset-before"}`)
	do[object](p, http.MethodPost, "/reset", "")

	assert.Empty(t, do[[]any](p, http.MethodGet, "/endpoints", ""))
	assert.Empty(t, do[[]any](p, http.MethodGet, "/deliveries", ""))
	assert.Empty(t, do[[]any](p, http.MethodGet, "/faults", ""))
	assert.Empty(t, gw.Account(gw.Key()).Requests.All())
	assert.Len(t, other.Requests.All(), 1)
	assert.Len(t, other.Webhooks.Deliveries(), 2)
	_, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err, "the reference is free again")
	_, err = other.Client().Transactions.Create(t.Context(), order("order-1"))
	require.ErrorIs(t, err, gateway.ErrDuplicate)
}

func TestAuthenticationOfTheControlPlane(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithAllowedHosts("gateway.test"))
	for name, tc := range map[string]struct {
		plane  plane
		method string
		want   int
	}{
		"no credential":          {plane{}, http.MethodPost, 200},
		"credential":             {plane{key: "sk_test_x"}, http.MethodPost, 200},
		"of production":          {plane{key: "sk_live_x"}, http.MethodPost, 401},
		"revoked":                {plane{key: "sk_test_revoked"}, http.MethodPost, 401},
		"foreign host":           {plane{header: header("Host", "evil.test")}, http.MethodPost, 421},
		"rebound name":           {plane{header: header("Host", "localhost.evil.test:4010")}, http.MethodPost, 421},
		"allowed host":           {plane{header: header("Host", "Gateway.test:4010")}, http.MethodPost, 200},
		"loopback v6":            {plane{header: header("Host", "[::1]:4010")}, http.MethodPost, 200},
		"loopback v4":            {plane{header: header("Host", "127.0.0.9")}, http.MethodPost, 200},
		"cross origin":           {plane{header: header("Origin", "https://evil.test")}, http.MethodPost, 403},
		"cross site":             {plane{header: header("Sec-Fetch-Site", "cross-site")}, http.MethodPost, 403},
		"same origin":            {plane{header: header("Origin", "http://localhost")}, http.MethodPost, 200},
		"method":                 {plane{}, http.MethodPut, 405},
		"safe and cross site":    {plane{header: header("Sec-Fetch-Site", "cross-site")}, http.MethodGet, 405},
		"unsupported credential": {plane{header: header("Authorization", "Digest x")}, http.MethodPost, 401},
	} {
		tc.plane.t, tc.plane.gw = t, gw
		status, v := tc.plane.call(tc.method, "/reset", "")
		assert.Equal(t, tc.want, status, "%s: %v", name, v)
		if status >= 400 {
			assert.NotEmpty(t, v["code"], name)
		}
	}
	for _, path := range []string{"/health", "/assumptions", "/metrics"} {
		resp := plane{t: t, gw: gw, key: "sk_live_x"}.raw(http.MethodGet, path, "") //nolint:bodyclose // closed by its Cleanup
		assert.Equal(t, http.StatusOK, resp.StatusCode, "%s needs no credential", path)
	}
	resp := plane{t: t, gw: gw}.raw(http.MethodPut, "/endpoints", "") //nolint:bodyclose // closed by its Cleanup
	assert.Equal(t, "GET, HEAD, POST", resp.Header.Get("Allow"))
	status, v := plane{t: t, gw: gw}.call(http.MethodGet, "/", "")
	assert.Equal(t, http.StatusNotFound, status)
	assert.Contains(t, v["detail"], "/__mock/openapi-control.json", "it says where the calls are described")
	status, v = plane{t: t, gw: gw, key: "my-key"}.call(http.MethodPost, "/reset", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Contains(t, v["detail"], "begin with sk_test_", "it says which keys are accepted")
	status, _ = plane{t: t, gw: gw}.call(http.MethodPost, "/faults", `{"fault":"`+strings.Repeat("x", 1<<20)+`"}`)
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
}

func header(name, value string) map[string]string { return map[string]string{name: value} }

func TestHealthAssumptionsMetrics(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	p := plane{t: t, gw: gw}
	assert.Equal(t, "live", do[object](p, http.MethodGet, "/health", "")["dialect"])
	assumptions := do[[]any](p, http.MethodGet, "/assumptions", "")
	assert.Greater(t, len(assumptions), 50)
	assert.NotEmpty(t, assumptions[0].(object)["text"])

	_, err := gw.Client().Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	resp := p.raw(http.MethodGet, "/metrics", "") //nolint:bodyclose // closed by its Cleanup
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, resp.Header.Get("Content-Type"), "text/plain; version=0.0.4")
	for _, line := range []string{
		`mockgateway_requests_total{status="201"} 1`, `mockgateway_records{kind="transaction"} 1`,
		`mockgateway_deliveries{state="no_endpoint"} 2`, "# TYPE mockgateway_timers gauge", "mockgateway_accounts 1",
		"# TYPE mockgateway_records gauge", "# TYPE mockgateway_requests_total counter",
	} {
		assert.Contains(t, string(text), line+"\n")
	}
}

// controlCalls lists the calls of the control plane: "POST /__mock/reset".
func controlCalls() (list []string) {
	for _, s := range admin.Shapes() {
		list = append(list, s.Method+" "+s.Path)
	}
	return list
}

// The guide's table has exactly one line for each call, with a description.
func TestTheGuideHasEveryControlCall(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/mockgateway.md")
	require.NoError(t, err)
	var shown []string
	row := regexp.MustCompile("(?m)^\\| `([A-Z]+ /__mock/[^`]*)` \\| [^|]+ \\|$")
	for _, row := range row.FindAllStringSubmatch(string(guide), -1) {
		shown = append(shown, row[1])
	}
	assert.ElementsMatch(t, controlCalls(), shown)
}

// A health check by HEAD, and any other HEAD, gets what GET would.
func TestHeadOfEachCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	for _, call := range controlCalls() {
		method, path, _ := strings.Cut(call, " /__mock")
		resp := p.raw(http.MethodHead, strings.NewReplacer("{", "", "}", "").Replace(path), "") //nolint:bodyclose // closed by its Cleanup
		if method == http.MethodGet {
			assert.NotEqual(t, http.StatusMethodNotAllowed, resp.StatusCode, path)
		}
	}
	resp := p.raw(http.MethodHead, "/health", "") //nolint:bodyclose // closed by its Cleanup
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Empty(t, text)
	resp = p.raw(http.MethodPut, "/health", "") //nolint:bodyclose // closed by its Cleanup
	assert.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
}
