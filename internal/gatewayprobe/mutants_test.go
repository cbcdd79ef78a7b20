package gatewayprobe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

// mutant is a gateway that breaks a row: the mock with other options, responses
// or deliveries.
type mutant struct {
	options  []mockserver.Option
	exchange func(*exchange)                      // changes the response
	instead  map[string]string                    // replaces a string in requests with another
	receiver func(next http.Handler) http.Handler // changes deliveries
}

// exchange is a request and its response, which a mutant changes.
type exchange struct {
	request *http.Request
	sent    string // the request's body
	nth     int    // the number of earlier requests
	status  int
	header  http.Header
	body    any // JSON
}

func (x *exchange) is(methods, path string) bool {
	return strings.Contains(methods, x.request.Method) && regexp.MustCompile("^"+path+"$").MatchString(x.request.URL.Path)
}

func (x *exchange) set(path string, value any) {
	names := strings.Split(path, ".")
	in := x.body
	for i, name := range names {
		switch v := in.(type) {
		case map[string]any:
			if i == len(names)-1 {
				v[name] = value
			}
			in = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(v) {
				return
			}
			in = v[n]
		}
	}
}

// respond replaces the response.
func (x *exchange) respond(status int, body any) { x.status, x.body = status, body }

// made is a success body that fits every request.
func made() any {
	return map[string]any{"data": map[string]any{"id": "01945f2c-0000-7000-8000-0000000000ff", "data": []any{}}}
}

// careless accepts requests that must be rejected.
func careless(path string) mutant {
	return mutant{exchange: func(x *exchange) {
		if x.is("POST PUT PATCH GET", path) && x.status >= 400 && x.status < 500 {
			x.respond(http.StatusCreated, made())
		}
	}}
}

// strict rejects requests that contain a string.
func strict(text string) mutant {
	pattern := regexp.MustCompile(text)
	return mutant{exchange: func(x *exchange) {
		if pattern.MatchString(x.sent) || pattern.MatchString(x.request.URL.RawQuery) {
			x.respond(http.StatusUnprocessableEntity, map[string]any{"title": "Validation Error", "status": 422, "detail": "No."})
		}
	}}
}

// showing sets a member of successful responses.
func showing(methods, path, member string, value any) mutant {
	return mutant{exchange: func(x *exchange) {
		if x.is(methods, path) && x.status < 300 {
			x.set(member, value)
		}
	}}
}

// losing returns an empty list for queries that contain a string.
func losing(text string) mutant {
	return mutant{exchange: func(x *exchange) {
		if strings.Contains(x.request.URL.RawQuery, text) {
			x.set("data.data", []any{})
			if _, flat := x.body.(map[string]any)["metadata"]; flat {
				x.set("data", []any{})
			}
		}
	}}
}

// admitting accepts every credential.
func admitting() mutant {
	return mutant{exchange: func(x *exchange) {
		if x.status == http.StatusUnauthorized {
			x.status = http.StatusOK
		}
	}}
}

// heading sets a header of every response.
func heading(name, value string) mutant {
	return mutant{exchange: func(x *exchange) { x.header.Set(name, value) }}
}

func with(m mutant, options ...mockserver.Option) mutant {
	m.options = options
	return m
}

// delivering changes deliveries before they arrive.
func delivering(change func(r *http.Request, event map[string]any) (status int)) mutant {
	return mutant{receiver: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var event map[string]any
			if json.NewDecoder(r.Body).Decode(&event) != nil {
				return
			}
			if status := change(r, event); status != 0 {
				w.WriteHeader(status)
				return
			}
			b, _ := json.Marshal(event)
			r.Body = io.NopCloser(bytes.NewReader(b))
			next.ServeHTTP(w, r)
		})
	}}
}

const (
	charges = "/v2/transactions"
	charge  = "/v2/transactions/[^/]+"
	plans   = "/v2/subscriptions"
	plan    = "/v2/subscriptions/[^/]+"
	session = "/v2/checkout/[^/]+"
	pix     = "/pix/v1/payment"
)

// mutants returns, for each row, a gateway that the row's experiment must
// detect.
func mutants() map[string]mutant {
	list := map[string]mutant{
		"bare-transaction": {options: []mockserver.Option{mockserver.WithLenient()}},
		"request-id":       heading("X-Request-Id", "another"),
		"unknown-members":  strict("gatewayprobe"),
		"request-id-form":  {exchange: func(x *exchange) { x.header.Set("X-Request-Id", x.request.Header.Get("X-Request-Id")) }},
		"error-code":       {exchange: func(x *exchange) { x.set("code", "") }},
		"error-fields": {exchange: func(x *exchange) {
			if body, ok := x.body.(map[string]any); ok && body["errors"] != nil {
				body["errors"] = body["errors"].([]any)[:1]
			}
		}},
		"error-instance":       {exchange: func(x *exchange) { x.set("instance", "/") }},
		"card-data":            careless(charges),
		"card-data-exceptions": strict(`"external_ref":"4\d{15}"`),
		"check-order": {exchange: func(x *exchange) {
			if x.status == http.StatusBadRequest {
				x.status = http.StatusConflict
			}
		}},
		"timestamps":      showing("POST", charges, "data.created_at", "2027-01-04T12:00:00Z"),
		"number-spelling": strict("1e3"),
		"empty-texts":     showing("POST", "/v2/transfers", "data.description", ""),
		"list-order": {exchange: func(x *exchange) {
			if x.is("GET", charges) {
				slices.Reverse(x.body.(map[string]any)["data"].(map[string]any)["data"].([]any))
			}
		}},
		"list-cursors":    showing("GET", charges, "data.prev_cursor", "first"),
		"list-limit":      careless(charges),
		"list-parameters": losing("status=paid,refused"),
		"list-prev":       losing("direction=prev"),
		"updated-at":      showing("GET", charges+"/[^/]+", "data.updated_at", "2027-01-04T12:00:00Z"),
		"books-listed":    showing("GET", charges, "data.data.0.updated_at", "2027-01-04T12:00:00Z"),
		"lagging-reads": {exchange: func(x *exchange) {
			if x.is("GET", charges+"/[^/]+") && x.status == http.StatusOK {
				x.set("data.status", "pending")
			}
		}},
		"malformed-json": {exchange: func(x *exchange) { x.set("code", "BAD_REQUEST") }},
		"head-options": {exchange: func(x *exchange) {
			if x.is("OPTIONS", charges) {
				x.status = http.StatusNoContent
			}
		}},
		"notify-url":      careless(charges),
		"basic-password":  admitting(),
		"basic-token-x":   {options: []mockserver.Option{mockserver.WithBasicTokenX("sk_test_mock")}},
		"two-credentials": admitting(),
		"v1-credential":   admitting(),
		"environment":     admitting(),
		"idempotency-key": with(mutant{exchange: func(x *exchange) {
			if x.header.Get("Idempotent-Replayed") != "" {
				x.header.Set("X-Request-Id", "of-the-first")
			}
		}}, mockserver.WithDialect(mockserver.Live)),

		"amount-minimum":      strict(`"amount":1,`),
		"no-cross-rules":      strict(`"currency":"USD"`),
		"buyer-required":      careless(charges),
		"buyer-unknown":       careless(charges),
		"empty-reference":     showing("POST", charges, "data.external_ref", ""),
		"voucher-country":     showing("POST", charges, "data.buyer.address.country", "US"),
		"voucher-currency":    showing("POST", charges, "data.voucher.barcode", "1"),
		"voucher-fields":      showing("POST", charges, "data.voucher.number", "1"),
		"boleto-form":         showing("POST", charges, "data.voucher.digitable_line", "00190.50095 40144.816069 06809.350314 3 37370000000100"),
		"waiting-payment":     showing("POST", charges, "data.status", "waiting_payment"),
		"pix-life":            showing("POST", charges, "data.pix.expiration_date", "2027-01-04T12:00:00Z"),
		"transaction-filters": losing("products="),
		"live-list-item": with(mutant{exchange: func(x *exchange) {
			if x.is("GET", charges) {
				x.set("data.0.attempts_count", 2)
			}
		}}, mockserver.WithDialect(mockserver.Live)),
		"live-metadata":   with(showing("POST", charges, "data.metadata", map[string]any{"a": 1}), mockserver.WithDialect(mockserver.Live)),
		"buyer-overrides": showing("POST", charges, "data.buyer.phone", "11987654321"),
		"transaction-fee": {options: []mockserver.Option{mockserver.WithFee(150)}},
		"settled-share":   {options: []mockserver.Option{mockserver.WithDialect(mockserver.Live), mockserver.WithSettledPercent(19.27)}},
		"fee-kept":        with(showing("GET", "/v1/account/balance", "balance", 0), mockserver.WithFee(150)),
		"refund-voucher":  careless(charge + "/refund"),
		"refund-reason":   showing("GET", charge, "data.informations", []any{}),
		"sandbox-status":  showing("GET", charge, "data.refunded_amount", 1000),
		"etag":            heading("Etag", `"1"`),

		"transfer-required":      careless("/v2/transfers"),
		"pix-key-forms":          careless("/v2/transfers"),
		"transfer-maximum":       careless("/v2/transfers"),
		"transfer-status-filter": careless("/v2/transfers"),
		"transfer-fee":           showing("POST", "/v2/transfers", "data.fee", 100),
		"transfer-balance":       strict(`"pix_key_value"`),
		"balance-currency":       showing("GET", "/v1/account/balance", "balance", 0),
		"cancel-reason":          showing("GET", "/v2/transfers/[^/]+", "data.reason", "gatewayprobe"),

		"customer-reference": careless("/v2/customers"),
		"customer-status":    showing("GET", "/v2/customers/[^/]+", "data.status", "new"),
		"customer-record":    showing("POST", "/v2/customers", "data.tags", []any{}),
		"customer-filters":   losing("document_number="),

		"subscription-defaults": showing("POST", plans, "data.retryOffsetsDays", []any{1}),
		"subscription-products": careless(plans),
		"idempotency-body": {exchange: func(x *exchange) {
			if x.is("POST", plans) {
				x.set("data.id", fmt.Sprintf("01945f2c-0000-7000-8000-%012d", x.nth))
			}
		}},
		"subscription-required": careless(plans),
		"subscription-fixed":    careless(plan),
		"subscription-filters":  losing("created_before="),
		"pix-automatic-disabled": {exchange: func(x *exchange) {
			if x.is("POST", plans) {
				x.respond(http.StatusForbidden, map[string]any{"error": "PIX_AUTOMATIC_DISABLED", "message": "No.", "status": 403})
			}
		}},
		"authorisation-life":    showing("POST", plans, "data.recurringAuthorization.expiration_date", "2027-01-04T12:00:00Z"),
		"authorisation-shape":   showing("POST", plans, "data.recurringAuthorization.url", ""),
		"authorisation-journey": showing("POST", plans, "data.authorization.qr_code", "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D"),
		"billing-day":           showing("POST", plans, "data.currentPeriodEnd", "2027-01-04T12:00:00Z"),
		"first-charge-refused":  showing("GET", plan, "data.status", "past_due"),
		"trial-refused":         showing("POST", plans, "data.status", "trialing"),
		"trial-check": {exchange: func(x *exchange) {
			if x.is("GET", "/v1/account/balance") {
				x.set("balance", 100*x.nth)
			}
		}},
		"charge-in-sandbox": showing("GET", plan, "data.status", "incomplete"),
		"cancel-challenge":  showing("GET", charge, "data.status", "pending"),

		"link-products":   careless("/v2/checkout-links"),
		"session-partial": careless(session + "/session"),
		"session-life":    showing("GET", session, "data.expires_at", "2027-01-04T12:00:00Z"),
		"session-resume":  showing("GET", session, "data.resumed", true),
		"link-members":    showing("GET", session, "data.link.max_uses", nil),
		"link-currency":   careless("/v2/checkout-links"),
		"link-catalogue":  showing("GET", session, "data.items.0.name", "Probe"),
		"link-total":      showing("GET", session, "data.link.amount", 100_000_000),
		"hosted-pay":      with(careless(session+"/pay"), mockserver.WithDialect(mockserver.Live)),
		"link-exhausted":  with(showing("GET", charge, "data.status", "pending"), mockserver.WithDialect(mockserver.Live)),
		"payment-token-body": {exchange: func(x *exchange) {
			if data, ok := x.body.(map[string]any)["data"].(map[string]any); ok {
				delete(data, "brand")
			}
		}},
		"v1-payment": showing("POST", pix, "pixQrCode", "aGVsbG8="),
		"v1-reference": {exchange: func(x *exchange) {
			if x.is("POST", pix) && x.nth > 1 {
				x.respond(http.StatusConflict, map[string]any{})
			}
		}},
		"v1-value":      careless(pix),
		"v1-required":   careless(pix),
		"v1-limits":     careless(pix),
		"v1-split-keys": strict("RANDOM"),

		"created-then-pending": delivering(func(_ *http.Request, event map[string]any) int {
			if event["data"].(map[string]any)["event_type"] == "transaction.pending" {
				return http.StatusOK
			}
			return 0
		}),
		"refused-event":  {instead: map[string]string{"refused": "canceled"}},
		"captured-event": {instead: map[string]string{"captured": "chargedback"}},
		"event-id": delivering(func(_ *http.Request, event map[string]any) int {
			event["id"] = time.Now().String()
			return 0
		}),
		"delivery-schedule": {receiver: func(next http.Handler) http.Handler {
			var n atomic.Int32
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) == 3 { // the second attempt: the third comes after 5 minutes
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				next.ServeHTTP(w, r)
			})
		}},
		"delivery-success": {receiver: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(statusOf(w, func(status int) int {
					if status == http.StatusFound {
						return http.StatusOK
					}
					return status
				}), r)
			})
		}},
		"signature": delivering(func(r *http.Request, _ map[string]any) int {
			r.Header.Set("X-Gateway-Signature", "sha256=")
			return 0
		}),
	}
	for _, s := range gatewayprobe.Steps() {
		if strings.Contains(s.Claim, "; live: ") || s.ID == "hosted-routes" {
			if _, own := list[s.ID]; !own {
				list[s.ID] = mutant{options: []mockserver.Option{mockserver.WithDialect(mockserver.Live)}}
			}
		}
	}
	return list
}

// statusWriter changes the status that a handler writes.
type statusWriter struct {
	http.ResponseWriter

	change func(int) int
}

func statusOf(w http.ResponseWriter, change func(int) int) http.ResponseWriter {
	return statusWriter{w, change}
}

func (w statusWriter) WriteHeader(status int) { w.ResponseWriter.WriteHeader(w.change(status)) }

// mutated is a transport whose responses a mutant changes. The preflight is not changed.
type mutated struct {
	next    http.RoundTripper
	change  func(*exchange)
	instead map[string]string
	n       *int
}

func (m mutated) RoundTrip(r *http.Request) (*http.Response, error) {
	x := &exchange{request: r, nth: *m.n}
	*m.n++
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		x.sent = string(b)
	}
	again := r.Clone(r.Context())
	for from, to := range m.instead {
		x.sent = strings.ReplaceAll(x.sent, from, to)
	}
	if x.sent != "" {
		again.Body, again.ContentLength = io.NopCloser(strings.NewReader(x.sent)), int64(len(x.sent))
	}
	res, err := m.next.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	x.status, x.header = res.StatusCode, res.Header
	_ = json.Unmarshal(b, &x.body)
	if x.nth > 0 && m.change != nil {
		m.change(x)
	}
	if x.body != nil {
		if b, err = json.Marshal(x.body); err != nil {
			return nil, err
		}
	}
	res.StatusCode, res.Body = x.status, io.NopCloser(bytes.NewReader(b))
	res.ContentLength = int64(len(b))
	res.Header.Del("Content-Length")
	return res, nil
}

func TestEachExperimentDetectsAGatewayThatBreaksItsRow(t *testing.T) {
	t.Parallel()
	list := mutants()
	for _, step := range gatewayprobe.Steps() {
		if step.Does == "" {
			assert.NotContains(t, list, step.ID, "it has no experiment")
			continue
		}
		t.Run(step.ID, func(t *testing.T) {
			t.Parallel()
			m, found := list[step.ID]
			require.True(t, found, "add to mutants a gateway that this experiment must detect")
			synctest.Test(t, func(t *testing.T) { checkMutant(t, step.ID, m) })
		})
	}
}

// change returns the middleware that turns the mock into the mutant.
func (m mutant) change() func(http.RoundTripper) http.RoundTripper {
	if m.exchange == nil && m.instead == nil {
		return nil
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return mutated{next: next, change: m.exchange, instead: m.instead, n: new(int)}
	}
}

func checkMutant(t *testing.T, id string, m mutant) {
	t.Helper()
	cfg := gatewayprobe.Config{Only: []string{id}}
	report := probeWith(t, cfg, m.change(), m.receiver, m.options...)
	require.Len(t, report.Results, 1)
	result := report.Results[0]
	assert.Equal(t, gatewayprobe.Differs, result.Verdict, result.Summary())
	assert.NotEmpty(t, result.Exchanges)
}
