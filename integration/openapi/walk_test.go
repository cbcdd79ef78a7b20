package openapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// Documented errors that the walk doesn't reach, and why.
var unreached = map[string]string{
	"408 BODY_TIMEOUT":           "needs a slow connection",
	"507 MEMORY_LIMIT":           "needs a full server",
	"409 IDEMPOTENCY_KEY_REUSED": "is checked before the handler, in the same way for every operation: one is enough",
}

// walker makes requests and checks every response against the document.
type walker struct {
	t             *testing.T
	gw            *mockserver.Server
	api, control  *document
	key           string
	mu            sync.Mutex
	seen          map[string]bool // "transactions_create 201", "… 400 VALIDATION_ERROR"
	states, kinds map[string]bool
	order         int
	followed      chan struct{} // closed when every event is checked
}

func newWalker(t *testing.T, dialect mockserver.Dialect) *walker {
	t.Helper()
	live := dialect == mockserver.Live
	w := &walker{
		t: t, api: open(t, docs.OpenAPI(live), true), control: open(t, docs.ControlOpenAPI(), true),
		seen: map[string]bool{}, states: map[string]bool{}, kinds: map[string]bool{},
	}
	w.gw = mockserver.Run(t, mockserver.WithDialect(dialect),
		mockserver.WithStart(time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC))) // before tokenization was retired
	w.key = w.gw.Key()
	w.gw.Webhooks.Send(http.HandlerFunc(w.receive))
	events := w.gw.Events(t.Context())
	w.followed = make(chan struct{})
	go w.follow(events)
	return w
}

// follow checks every event of the walk.
func (w *walker) follow(events iter.Seq[mockserver.Event]) {
	defer close(w.followed)
	o, ok := w.control.find(http.MethodGet, "/__mock/events")
	assert.True(w.t, ok)
	types := map[mockserver.EventType]bool{}
	for e := range events {
		types[e.Type] = true
		text, err := e.MarshalJSON()
		w.mu.Lock()
		if err = errors.Join(err, w.control.checkResponse(w.t, o, http.StatusOK, "text/event-stream", text)); err != nil {
			w.t.Error(err)
		}
		w.seen[o.id+" OK"] = true
		w.mu.Unlock()
	}
	for _, kind := range []mockserver.EventType{
		mockserver.EventRequest, mockserver.EventControl, mockserver.EventTransition, mockserver.EventTimer, mockserver.EventWebhook,
		mockserver.EventDelivery, mockserver.EventClock, mockserver.EventFault, mockserver.EventReset,
	} {
		assert.True(w.t, types[kind], "the walk saw no %s", kind)
	}
}

// receive checks a webhook.
func (w *walker) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	assert.NoError(w.t, err)
	event, err := webhook.Parse(body)
	if assert.NoError(w.t, err) {
		w.mu.Lock()
		w.kinds[string(event.Kind)] = true
		s := w.api.schema(w.t, "webhooks", string(event.Kind), "post", "requestBody", "content", "application/json", "schema")
		w.mu.Unlock()
		if assert.NotNil(w.t, s, "no webhook is called %s", event.Kind) {
			assert.NoError(w.t, s.Validate(decode(w.t, body)), "%s: %s", event.Kind, body)
		}
		for i, name := range []string{webhook.DefaultTimestampHeader, webhook.DefaultSignatureHeader} {
			parameters, _ := w.api.object("webhooks", string(event.Kind), "post")["parameters"].([]any)
			parameter, _ := parameters[i].(map[string]any)
			assert.Equal(w.t, parameter["name"], name)
			assert.NotEmpty(w.t, r.Header.Get(name))
		}
	}
	_, _ = io.WriteString(rw, `{"received":true}`)
}

// response is the body of a response.
type response struct {
	status int
	body   map[string]any
}

// text returns the string at a path of fields.
func (r response) text(path string) string {
	var v any = r.body
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	s, _ := v.(string)
	return s
}

// call makes a request; headers are name and value pairs.
func (w *walker) call(method, target, body string, headers ...string) response {
	w.t.Helper()
	var reader io.Reader = http.NoBody
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, mockserver.BaseURL+target, reader)
	require.NoError(w.t, err)
	r.Header.Set("Apikey", w.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.gw.Transport().RoundTrip(r)
	require.NoError(w.t, err)
	content, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	out := response{status: resp.StatusCode}
	if err := json.Unmarshal(content, &out.body); err != nil && bytes.HasPrefix(content, []byte("{")) {
		require.NoError(w.t, err)
	}
	w.check(r, out, resp.Header.Get("Content-Type"), content)
	return out
}

func (w *walker) check(r *http.Request, got response, mediaType string, content []byte) {
	w.t.Helper()
	d := w.api
	if strings.HasPrefix(r.URL.Path, "/__mock") {
		d = w.control
	}
	o, ok := d.find(r.Method, r.URL.Path)
	if !ok {
		w.t.Errorf("%s %s is not documented", r.Method, r.URL.Path)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := d.checkResponse(w.t, o, got.status, mediaType, content); err != nil {
		w.t.Error(err)
	}
	code := got.text("code")
	if code == "" {
		code = got.text("error")
	}
	w.seen[strings.TrimSpace(o.id+" "+http.StatusText(got.status)+" "+code)] = true
	for _, path := range []string{"data.status", "data.transaction.status", "data.link.status"} {
		if status := got.text(path); status != "" {
			resource, _, _ := strings.Cut(o.id, "_")
			if path != "data.status" || !strings.HasPrefix(o.id, "transactions_update") {
				w.states[strings.TrimSuffix(resource, "s")+" "+status] = true
			}
		}
	}
}

// do makes a control call without a body.
func (w *walker) do(what string) {
	w.t.Helper()
	w.call(http.MethodPost, "/__mock/"+what, "")
}

func (w *walker) advance(by string) {
	w.t.Helper()
	w.call(http.MethodPost, "/__mock/clock/advance?timeout=5m", `{"by":"`+by+`"}`)
}

// golden returns the request in a golden file, with some fields replaced and
// without its reference, so that none is used twice.
func (w *walker) golden(file string, members ...any) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(file)+".request.json"))
	require.NoError(w.t, err)
	var body map[string]any
	require.NoError(w.t, json.Unmarshal(content, &body))
	for _, name := range []string{"external_ref", "idempotency_key", "externalRef"} {
		delete(body, name)
	}
	delete(body, "notify_url")
	for i := 0; i < len(members); i += 2 {
		if members[i+1] == nil {
			delete(body, members[i].(string))
			continue
		}
		body[members[i].(string)] = members[i+1]
	}
	return encode(w.t, body)
}

func (w *walker) pay(members ...any) string {
	w.t.Helper()
	return w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create", members...)).text("data.id")
}

func (w *walker) card(token string) string {
	w.t.Helper()
	return w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create_card", "token", token)).text("data.id")
}

func (w *walker) read(resource, id string) response {
	w.t.Helper()
	return w.call(http.MethodGet, "/v2/"+resource+"/"+id, "")
}

const unknown = "01945f2c-0000-7000-8000-00000000ffff"

// TestEveryResponseAndWebhookFits takes every operation through every state.
func TestEveryResponseAndWebhookFits(t *testing.T) {
	t.Parallel()
	for name, dialect := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, dialect)
			w.legacy()
			w.rejections()
			w.transactions()
			w.customersAndTransfers()
			w.subscriptions()
			w.checkout()
			w.call(http.MethodPost, "/v2/payment_token/pk_1", `{}`) // retired by then
			w.controlPlane()
			require.NoError(t, w.gw.Wait(t.Context()))
			require.NoError(t, w.gw.Close())
			<-w.followed
			w.complete()
		})
	}
}

func (w *walker) transactions() {
	id := w.pay("external_ref", "walk-1")
	w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create", "external_ref", "walk-1"))
	w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create", "buyer", map[string]any{"id": unknown}))
	small := w.pay("amount", 1)
	w.call(http.MethodPut, "/v2/transactions/"+small, `{"status":"partially_refunded"}`)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/refund", `{}`)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/delivery", `{"tracking_code":"BR1"}`)
	w.do("transactions/" + id + "/pay")
	w.do("transactions/" + id + "/pay")
	etag := `"0-0"`
	w.read("transactions", id)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/delivery", `{"tracking_code":"BR1"}`, "If-Match", etag)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/delivery", w.golden("transactions/update_delivery"))
	w.call(http.MethodPut, "/v2/transactions/"+id+"/delivery", `{"tracking_code":"BR1","delivery_status":"delivered"}`)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/delivery", `{"tracking_code":"BR1","delivery_status":"waiting"}`)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/refund", `{"amount":90}`)
	w.read("transactions", id)
	w.call(http.MethodPut, "/v2/transactions/"+id+"/refund", "")
	w.read("transactions", id)

	expired := w.pay()
	w.do("transactions/" + expired + "/expire")
	w.read("transactions", expired)
	canceled := w.pay()
	w.do("transactions/" + canceled + "/cancel")
	w.read("transactions", canceled)

	settled := w.pay()
	w.call(http.MethodPost, "/__mock/transactions/"+settled+"/settle-for", `{"amount":3815}`) // rejected in the document dialect
	w.read("transactions", settled)

	disputed := w.pay()
	w.do("transactions/" + disputed + "/pay")
	for _, step := range []string{"open", "contest", "win", "open", "lose"} { // rejected in the document dialect
		w.do("transactions/" + disputed + "/dispute/" + step)
		w.read("transactions", disputed)
	}

	w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create_voucher"))
	w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create_voucher", "currency", "MXN"))

	for _, action := range []string{"challenge/pass", "challenge/fail"} {
		challenged := w.card("pgct_3ds_" + action[10:])
		w.read("transactions", challenged)
		w.do("transactions/" + challenged + "/" + action)
		w.read("transactions", challenged)
		if action == "challenge/pass" {
			w.do("transactions/" + challenged + "/chargeback")
			w.read("transactions", challenged)
		}
	}
	w.card("pgct_refused_walk")
	w.card("pgct_once")
	w.card("pgct_once")
	w.card("pgct_expired_walk")

	states := spec.TransactionStatuses
	if w.api.root["x-dialect"] == "live" {
		states = spec.LiveTransactionStatuses
	}
	for state := range states.All() {
		id := w.pay()
		w.call(http.MethodPut, "/v2/transactions/"+id, encode(w.t, map[string]string{"status": state}))
		w.read("transactions", id)
	}
	for _, query := range []string{"", "?limit=2", "?limit=2&direction=prev", "?status=paid,captured&paymentMethods=pix", "?limit=0", "?cursor=x"} {
		w.call(http.MethodGet, "/v2/transactions"+query, "")
	}
}

func (w *walker) customersAndTransfers() {
	w.call(http.MethodPost, "/v2/customers", w.golden("customers/create"))
	w.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com","externalRef":"c-1"}`)
	id := w.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com","externalRef":"c-2"}`).text("data.id")
	w.call(http.MethodPost, "/v2/customers", `{"name":"Ana","email":"ana@example.com","externalRef":"c-1"}`)
	w.read("customers", id)
	w.call(http.MethodGet, "/v2/customers?limit=2", "")
	w.call(http.MethodGet, "/v2/customers?page=0", "")
	w.call(http.MethodPost, "/v2/transactions", w.golden("transactions/create_buyer_id", "buyer", map[string]any{"id": id}))

	transfer := func(members ...any) string {
		return w.call(http.MethodPost, "/v2/transfers", w.golden("transfers/create", members...)).text("data.id")
	}
	for _, actions := range [][]string{{"analyse", "process", "settle", "settle"}, {"analyse", "fail"}, {"process"}} {
		id := transfer()
		for _, action := range actions {
			w.do("transfers/" + id + "/" + action)
			w.read("transfers", id)
		}
		w.call(http.MethodPost, "/v2/transfers/"+id+"/cancel", "")
	}
	first := transfer("external_ref", "t-1")
	transfer("external_ref", "t-1")
	w.call(http.MethodPost, "/v2/transfers/"+first+"/cancel", w.golden("transfers/cancel"))
	w.call(http.MethodGet, "/v2/transfers?limit=2", "")
	w.call(http.MethodGet, "/v2/transfers?status=nope", "")
}

func (w *walker) subscriptions() {
	customer := w.call(http.MethodPost, "/v2/customers", `{"name":"Rui","email":"rui@example.com"}`).text("data.id")
	subscribe := func(file string, members ...any) string {
		w.order++
		token := "pgct_walk_" + strings.Repeat("x", w.order)
		if strings.HasSuffix(file, "automatic") {
			return w.call(http.MethodPost, "/v2/subscriptions",
				w.golden(file, append([]any{"customer_id", customer}, members...)...)).text("data.id")
		}
		return w.call(http.MethodPost, "/v2/subscriptions",
			w.golden(file, append([]any{"customer_id", customer, "token", token}, members...)...)).text("data.id")
	}
	now := w.gw.Clock.Now()
	active := subscribe("subscriptions/create", "trial_end", nil, "retry_offsets_days", []int{1, 2})
	trial := subscribe("subscriptions/create", "trial_end", now.AddDate(0, 0, 10).Format("2006-01-02T15:04:05Z"))
	failing := subscribe("subscriptions/create", "trial_end", nil, "retry_offsets_days", []int{1, 2})
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", customer, "trial_end", nil, "idempotency_key", "k", "token", "pgct_first_k"))
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", customer, "trial_end", nil, "idempotency_key", "k", "token", "pgct_second_k"))
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", customer, "trial_end", nil, "token", "pgct_first_k"))
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", customer, "trial_end", nil, "token", "pgct_expired_s"))
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", unknown, "trial_end", nil))
	w.call(http.MethodPost, "/v2/subscriptions", w.golden("subscriptions/create", "customer_id", customer, "trial_end", "2001-01-01T00:00:00Z"))
	subscribe("subscriptions/create", "trial_end", nil, "token", "pgct_refused_s")
	subscribe("subscriptions/create", "trial_end", nil, "token", "pgct_3ds_s")
	for _, action := range []string{"authorize", "reject"} {
		id := subscribe("subscriptions/create_pix_automatic")
		w.read("subscriptions", id)
		w.do("subscriptions/" + id + "/" + action)
		w.read("subscriptions", id)
		if action == "authorize" {
			w.advance("1h")
			w.do("subscriptions/" + id + "/cancel-debit")
			w.do("subscriptions/" + id + "/revoke")
			w.read("subscriptions", id)
		}
	}
	w.call(http.MethodPatch, "/v2/subscriptions/"+active, w.golden("subscriptions/update"))
	w.call(http.MethodPatch, "/v2/subscriptions/"+active, w.golden("subscriptions/update_clear"))
	w.call(http.MethodPost, "/__mock/subscriptions/"+failing+"/cancel-debit", "")
	w.call(http.MethodPost, "/__mock/subscriptions/"+failing+"/fail-next", `{"count":9}`)
	for range 12 {
		w.advance("3d12h")
		for _, id := range []string{active, trial, failing} {
			w.read("subscriptions", id)
		}
	}
	charged := w.read("subscriptions", active)
	data, _ := charged.body["data"].(map[string]any)
	charges, _ := data["transactions"].([]any)
	require.NotEmpty(w.t, charges)
	charge, _ := charges[0].(map[string]any)
	w.call(http.MethodPost, "/v2/subscriptions/"+trial+"/cancel", `{"reason":"user_requested"}`)
	w.read("subscriptions", trial)
	w.do("transactions/" + charge["id"].(string) + "/chargeback")
	w.read("subscriptions", active)
	w.call(http.MethodPatch, "/v2/subscriptions/"+failing, `{"failure_policy":"immediate_cancel"}`)
	w.call(http.MethodPost, "/v2/subscriptions/"+failing+"/cancel", "")
	w.call(http.MethodPatch, "/v2/subscriptions/"+unknown, `{"metadata":null}`)
	w.call(http.MethodGet, "/v2/subscriptions?limit=2", "")
	w.call(http.MethodGet, "/v2/subscriptions?created_after=x", "")
}

func (w *walker) checkout() {
	link := func(file string, members ...any) string {
		url := w.call(http.MethodPost, "/v2/checkout-links", w.golden(file, members...)).text("data.url")
		return url[strings.LastIndexByte(url, '/')+1:]
	}
	slug := link("checkout_links/create", "products", []map[string]any{
		{"external_id": "sku-1", "name": "T-shirt", "price": 4990, "quantity": 2, "type": "physical"},
		{"external_id": "sku-2", "name": "Sticker", "price": 100, "compare_price": 200},
	})
	opened := w.call(http.MethodGet, "/v2/checkout/"+slug, "")
	token := opened.text("data.session_token")
	w.call(http.MethodGet, "/v2/checkout/"+slug, "", "x-checkout-session-token", token)
	update := w.golden("checkout_sessions/update")
	w.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", update, "x-checkout-session-token", token)
	w.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", update)
	w.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", `{"payment_method":"cash"}`, "x-checkout-session-token", token)
	w.do("checkout/" + slug + "/begin")
	w.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", update, "x-checkout-session-token", token)
	w.do("checkout/" + slug + "/pay")
	late := w.call(http.MethodGet, "/v2/checkout/"+slug, "").text("data.session_token")
	w.advance("2h")
	w.call(http.MethodPatch, "/v2/checkout/"+slug+"/session", update, "x-checkout-session-token", late)
	for _, action := range []string{"expire", "deactivate"} {
		slug := link("checkout_links/create_amount")
		w.do("checkout/" + slug + "/" + action)
		w.call(http.MethodGet, "/v2/checkout/"+slug, "")
	}
	w.call(http.MethodGet, "/v2/checkout/nosuchlink", "")
	w.call(http.MethodPatch, "/v2/checkout/nosuchlink/session", update, "x-checkout-session-token", token)
	w.call(http.MethodGet, "/v2/checkout/x", "")
	w.call(http.MethodPost, "/v2/checkout-links", `{}`)
}

func (w *walker) legacy() {
	w.call(http.MethodPost, "/v1/business/integration", w.golden("legacy/configure_integration"))
	w.call(http.MethodPost, "/v1/business/integration", `{"pixWebhookUrl":"http://example.com"}`)
	w.call(http.MethodPost, "/v1/business/integration", w.golden("legacy/configure_integration_pix"))
	w.call(http.MethodPost, "/v1/business/integration", `{"webhookUrl":"","pixWebhookUrl":""}`)
	w.call(http.MethodGet, "/v1/account/balance", "")
	id := w.call(http.MethodPost, "/pix/v1/payment", w.golden("legacy/create_pix_payment")).text("transactionId")
	w.call(http.MethodPost, "/__mock/legacy/payments/"+id+"/status", `{"status":"PAID"}`)
	w.call(http.MethodPost, "/__mock/legacy/payments/"+id+"/status", `{"status":"NOPE"}`)
	w.read("transactions", id)
	w.call(http.MethodGet, "/v2/payment_token/pk_1", "")
	w.call(http.MethodPost, "/v2/payment_token/pk_1", `{"card_number":"4111111111111111"}`)
	w.call(http.MethodPost, "/v2/payment_token/pk_1", `{}`)
}

// rejections sends each operation the requests that every operation rejects.
func (w *walker) rejections() {
	for _, o := range w.api.operations() {
		path := strings.NewReplacer("{id}", unknown, "{slug}", "nosuchlink", "{public_token}", "pk_1").Replace(o.path)
		method := strings.ToUpper(o.method)
		body := ""
		if method != http.MethodGet {
			body = `{"tracking_code":"1","status":"paid"}`
			w.call(method, path, `{`)
			w.call(method, path, `{"amount":"x","reason":1,"payment_method":1,"type":1,"webhookUrl":1,"card_number":"4111111111111111"}`)
			w.call(method, path, `{}`, "Content-Type", "text/plain")
			w.call(method, path, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
		}
		w.call(method, path, body)
		w.call(method, path, body, "Apikey", "nonsense")
		w.call(method, path, body, "Apikey", "sk_test_forbidden_1")
		for range 6 {
			w.call(method, path, body, "Apikey", "sk_test_limited_"+o.id)
		}
		if w.api.root["x-dialect"] == "live" {
			w.call(method, strings.Replace(path, unknown, "1", 1), body)
			if o.method == "post" || o.method == "put" {
				w.call(method, path, body, "Idempotency-Key", "walk-"+o.id)
			}
		}
	}
	w.call(http.MethodPost, "/v2/customers", `{"name":"A","email":"a@example.com"}`, "Idempotency-Key", "one")
	w.call(http.MethodPost, "/v2/customers", `{"name":"A","email":"a@example.com"}`, "Idempotency-Key", "one")
	w.call(http.MethodPost, "/v2/customers", `{"name":"B","email":"a@example.com"}`, "Idempotency-Key", "one")
}

// controlPlane makes the control calls that the walk does not need.
func (w *walker) controlPlane() {
	get, post, remove := http.MethodGet, http.MethodPost, http.MethodDelete
	endpoint := w.call(post, "/__mock/endpoints", `{"url":"http://127.0.0.1:1/hook","secret":"whsec_s_0001","events":["payout.*"]}`).text("data.id")
	w.call(post, "/__mock/endpoints", `{"url":"nope"}`)
	w.call(post, "/__mock/endpoints/"+endpoint+"/rotate", `{"secret":"whsec_t_0001"}`)
	w.call(post, "/__mock/endpoints/"+endpoint+"/pause", "")
	w.call(post, "/__mock/endpoints/"+endpoint+"/resume", "")
	w.call(post, "/__mock/deliveries/sample", `{"kind":"payout.transferred"}`)
	w.call(post, "/__mock/deliveries/sample", `{"kind":"nothing"}`)
	w.call(get, "/__mock/endpoints", "")
	w.call(remove, "/__mock/endpoints/"+endpoint, "")
	w.call(post, "/__mock/deliveries/hold", "")
	w.pay()
	w.call(post, "/__mock/deliveries/release", `{}`)
	w.call(post, "/__mock/deliveries/wait", "")
	w.call(get, "/__mock/deliveries?kind=transaction.paid", "")
	delivery := w.gw.Webhooks.Deliveries()[0].ID
	w.call(get, "/__mock/deliveries/"+delivery, "")
	w.call(post, "/__mock/deliveries/"+delivery+"/redeliver", "")
	fault := w.call(post, "/__mock/faults", `{"fault":"status=503","on":"transfers.get","times":1}`).text("data.id")
	w.call(post, "/__mock/faults", `{"fault":"nope"}`)
	w.call(get, "/__mock/faults", "")
	w.call(remove, "/__mock/faults/"+fault, "")
	w.call(remove, "/__mock/faults", "")
	w.call(remove, "/__mock/deliveries/faults", "")
	w.call(get, "/__mock/requests?match=transactions.create", "")
	w.call(get, "/__mock/requests?match=transactions.creat", "")
	w.call(get, "/__mock/requests", "") // with rejected ones
	w.call(get, "/__mock/resources", "")
	pix := w.call(post, "/v2/transactions", `{"external_ref":"story-1","amount":500,"method":"pix","buyer":{"name":"Ana","email":"ana@shop.test",`+
		`"document":{"type":"CPF","number":"52998224725"}},"products":[{"name":"Pen","price":500}]}`).text("data.id")
	w.do("transactions/" + pix + "/pay")
	w.call(get, "/__mock/story?id=story-1", "")
	w.call(get, "/__mock/story?id=nothing", "")
	w.call(get, "/__mock/story", "")
	w.call(post, "/__mock/requests/wait?match=transactions.create&count=1", "")
	w.call(post, "/__mock/requests/wait?match=transactions.create&timeout=0s&count=900", "")
	w.call(post, "/__mock/requests/wait?count=0", "")
	w.call(remove, "/__mock/requests", "")
	snapshot := w.call(post, "/__mock/snapshots", "").text("data.id")
	w.call(get, "/__mock/snapshots", "")
	w.call(post, "/__mock/snapshots/"+snapshot+"/restore", "")
	w.call(get, "/__mock/snapshots/"+snapshot, "")
	w.call(remove, "/__mock/snapshots/"+snapshot, "")
	w.call(get, "/__mock/snapshot", "")
	file, err := w.gw.Snapshot()
	require.NoError(w.t, err)
	w.call(http.MethodPut, "/__mock/snapshot", string(file))
	w.call(http.MethodPut, "/__mock/snapshot", "{}")
	w.call(post, "/__mock/seed", `{"customers":[{"as":"ana","name":"Ana","email":"ana@shop.test"}]}`)
	w.call(post, "/__mock/seed", `{"customers":[{}]}`)
	w.call(get, "/__mock/seed", "")
	w.call(post, "/__mock/deliveries/diagnose", `{"headers":{"X-Gateway-Timestamp":"1700000000"},"body":"{}","secret":"whsec_s_0001"}`)
	w.call(post, "/__mock/deliveries/diagnose", `{"headers":{},"received_at":"soon"}`)
	w.do("transactions/" + w.card("pgct_3ds_refused") + "/refuse")
	for _, path := range []string{"health", "assumptions", "metrics", "clock", "clock/timers", "openapi.json", "openapi-control.json"} {
		w.call(get, "/__mock/"+path, "")
	}
	w.do("key/revoke")
	w.call(get, "/v2/transactions", "")
	w.do("key/restore")
	w.call(post, "/__mock/key/replace", `{"key":"sk_test_another"}`)
	w.call(post, "/__mock/key/replace", `{"key":"sk_live_another"}`)
	w.do("down")
	w.do("up")
	w.do("reset")
}

// complete checks that the walk covered everything: every operation and status,
// every state and every kind of webhook.
func (w *walker) complete() {
	for _, o := range w.api.operations() {
		for _, status := range sorted(w.api.object("paths", o.path, o.method, "responses")) {
			w.reached(o, status)
		}
	}
	for _, o := range w.control.operations() {
		want := " OK"
		if (strings.Contains(o.path, "/dispute/") || strings.HasSuffix(o.path, "/settle-for")) && w.api.root["x-dialect"] != "live" {
			want = " Conflict INVALID_STATE" // the document has no states for a dispute, and one amount
		}
		assert.True(w.t, w.seen[o.id+want], "the walk never called %s %s", o.method, o.path)
	}
	for resource, set := range map[string]spec.Set{
		"transaction": spec.TransactionStatuses, "transfer": spec.TransferStatuses, "subscription": spec.SubscriptionStatuses,
	} {
		for state := range set.All() {
			assert.True(w.t, w.states[resource+" "+state], "the walk never saw a %s that is %s", resource, state)
		}
	}
	for _, kind := range webhook.DocumentedKinds() {
		assert.True(w.t, w.kinds[string(kind)], "the walk got no %s", kind)
	}
}

// reached checks that the walk saw each code of a status.
func (w *walker) reached(o operation, status string) {
	w.t.Helper()
	if status == "default" {
		return
	}
	code, err := strconv.Atoi(status)
	require.NoError(w.t, err)
	var codes []string
	for _, content := range w.api.object("paths", o.path, o.method, "responses", status, "content") {
		m, _ := content.(map[string]any)
		codes = append(codes, codesOf(m["schema"])...)
	}
	if len(codes) == 0 {
		assert.True(w.t, w.seen[o.id+" "+http.StatusText(code)], "the walk never saw %s return %s", o.id, status)
	}
	for _, c := range codes {
		row := status + " " + c
		// These have keys of their own; in the live dialect a subscription's returns the
		// first one.
		own := o.name() == spec.Customers.Create.Name || o.name() == spec.Subscriptions.Create.Name && w.api.root["x-dialect"] != "live"
		if unreached[row] != "" && (c != "IDEMPOTENCY_KEY_REUSED" || !own) {
			continue
		}
		assert.True(w.t, w.seen[o.id+" "+http.StatusText(code)+" "+c], "the walk never saw %s return %s %s", o.id, status, c)
	}
}

func codesOf(schema any) []string {
	m, _ := schema.(map[string]any)
	all, _ := m["allOf"].([]any)
	var list []string
	for _, part := range all {
		p, _ := part.(map[string]any)
		properties, _ := p["properties"].(map[string]any)
		for _, name := range []string{"code", "error"} {
			code, _ := properties[name].(map[string]any)
			values, _ := code["enum"].([]any)
			for _, v := range values {
				list = append(list, v.(string))
			}
		}
	}
	return list
}

func sorted(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
