package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver"
)

// limit is a boundary in a row of the interface document's Limits table: the
// last allowed value and the first rejected one, as JSON.
type limit struct {
	row      string
	request  string // a golden request, valid except for the value
	field    string
	allowed  string
	rejected string
	code     string
}

const (
	pixRequest      = "transactions/create.request.json"
	cardRequest     = "transactions/create_card.request.json"
	subscribe       = "subscriptions/create.request.json"
	linkRequest     = "checkout_links/create.request.json"
	bareLinkRequest = "checkout_links/create_amount.request.json"
)

// limits returns all rows of the table except those for paths and queries, which
// have their own tests below.
func limits() []limit {
	return []limit{
		{"transaction amount", pixRequest, "amount", "1", "0", "too_small"},
		{"transaction amount", pixRequest, "amount", "100000000", "100000001", "too_big"},
		{"products per transaction", pixRequest, "products", products(1), products(0), "too_small"},
		{"products per transaction", pixRequest, "products", products(100), products(101), "too_big"},
		{"product name", pixRequest, "products[0].name", letters(1), letters(0), "too_small"},
		{"product name", pixRequest, "products[0].name", letters(255), letters(256), "too_big"},
		{"product price", pixRequest, "products[0].price", "0", "-1", "too_small"},
		{"product price", pixRequest, "products[0].price", "100000000", "100000001", "too_big"},
		{"product quantity", pixRequest, "products[0].quantity", "1", "0", "too_small"},
		{"product quantity", pixRequest, "products[0].quantity", "999999", "1000000", "too_big"},
		{"sku", pixRequest, "products[0].sku", letters(255), letters(256), "too_big"},
		{"installments", cardRequest, "installments", "1", "0", "too_small"},
		{"installments", cardRequest, "installments", "12", "13", "too_big"},
		{"interest_rate", cardRequest, "interest_rate", "0", "-0.01", "too_small"},
		{"interest_rate", cardRequest, "interest_rate", "100", "100.01", "too_big"},
		{"notify_url", pixRequest, "notify_url", longURL(2048), longURL(2049), "too_big"},
		{"state", pixRequest, "buyer.address.state", `"SP"`, `"S"`, "too_small"},
		{"state", pixRequest, "buyer.address.state", `"SPX"`, `"SPXY"`, "too_big"},
		{"subscription amount", subscribe, "amount", "1", "0", "too_small"},
		{"subscription amount", subscribe, "amount", "100000000", "100000001", "too_big"},
		{"subscription token", subscribe, "token", `"pgct_1"`, `"pgct_"`, "too_small"},
		{"interval_count", subscribe, "interval_count", "1", "0", "too_small"},
		{"interval_count", subscribe, "interval_count", "365", "366", "too_big"},
		{"retry_offsets_days", subscribe, "retry_offsets_days", numbers(1), numbers(0), "too_small"},
		{"retry_offsets_days", subscribe, "retry_offsets_days", numbers(10), numbers(11), "too_big"},
		{"retry_offsets_days", subscribe, "retry_offsets_days[0]", "1", "0", "too_small"},
		{"retry_offsets_days", subscribe, "retry_offsets_days[0]", "30", "31", "too_big"},
		{"informations", subscribe, "informations", pairs(50), pairs(51), "too_big"},
		{"subscription products", subscribe, "products", products(100), products(101), "too_big"},
		{"idempotency_key", subscribe, "idempotency_key", letters(1), letters(0), "too_small"},
		{"idempotency_key", subscribe, "idempotency_key", letters(255), letters(256), "too_big"},
		{"checkout link amount", bareLinkRequest, "amount", "1", "0", "too_small"},
		{"checkout link amount", bareLinkRequest, "amount", "100000000", "100000001", "too_big"},
		{"checkout link title", bareLinkRequest, "title", letters(1), letters(0), "too_small"},
		{"checkout link title", bareLinkRequest, "title", letters(255), letters(256), "too_big"},
		{"checkout link products", linkRequest, "products", linkProducts(1), linkProducts(0), "too_small"},
		{"checkout link products", linkRequest, "products", linkProducts(25), linkProducts(26), "too_big"},
	}
}

func TestLimitsInTheClient(t *testing.T) {
	t.Parallel()
	for _, l := range limits() {
		t.Run(l.row+" "+l.code, func(t *testing.T) {
			t.Parallel()
			base := string(golden(t, l.request))
			require.NoError(t, decodeParams(t, l.request, files.Edit(t, base, l.field, l.allowed)).Validate())

			params := decodeParams(t, l.request, files.Edit(t, base, l.field, l.rejected))
			err := params.Validate()
			if !sends(t, params, l.field, l.rejected) {
				return // a zero value is not sent, so the client can't break this limit
			}
			var invalid *gateway.ValidationError
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Fields, 1)
			assert.Equal(t, l.field, invalid.Fields[0].Field)
			assert.Equal(t, l.code, invalid.Fields[0].Code)
		})
	}
}

// The mock gateway accepts the last allowed value of each row and names the
// field of the first rejected one. Client.Do does not validate.
func TestLimitsInTheMock(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		client := mockserver.Run(t, mockserver.WithDialect(dialect)).Client()
		customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(t, err)
		for i, l := range limits() {
			base := files.Edit(t, string(golden(t, l.request)), uniqueField(l.request), fmt.Sprintf(`"limit-%d"`, i))
			if l.request == subscribe || l.request == cardRequest {
				base = files.Edit(t, base, "token", fmt.Sprintf(`"pgct_ok_%d"`, i))
			}
			if l.request == subscribe {
				base = files.Edit(t, base, "customer_id", `"`+customer.ID+`"`)
			}
			rejected := json.RawMessage(files.Edit(t, base, l.field, l.rejected))
			err := client.Do(t.Context(), http.MethodPost, "/v2/"+resource(l.request), rejected, nil)
			var e *gateway.Error
			require.ErrorAs(t, err, &e, "%s %s", l.row, l.code)
			require.ErrorIs(t, err, gateway.ErrValidation, l.row)
			assert.Equal(t, rejectionStatus(dialect, l.request), e.StatusCode, l.row)
			assert.Equal(t, "VALIDATION_ERROR", e.Code, l.row)
			if resource(l.request) == "checkout-links" {
				assert.Contains(t, err.Error(), l.field, l.row)
			} else if assert.Len(t, e.Fields, 1, l.row) {
				assert.Equal(t, "Validation Error", e.Title, l.row)
				assert.Equal(t, l.field, e.Fields[0].Field, l.row)
				assert.Equal(t, l.code, e.Fields[0].Code, l.row)
			}

			allowed := json.RawMessage(files.Edit(t, base, l.field, l.allowed))
			require.NoError(t, client.Do(t.Context(), http.MethodPost, "/v2/"+resource(l.request), allowed, nil), "%s %s", l.row, l.code)
		}
	}
}

// rejectionStatus returns a dialect's status for a request that breaks a rule.
func rejectionStatus(dialect mockserver.Dialect, request string) int {
	if dialect == mockserver.Live || resource(request) == "checkout-links" {
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// resource returns the path of a golden request.
func resource(request string) string {
	return strings.ReplaceAll(strings.SplitN(request, "/", 2)[0], "_", "-")
}

// uniqueField returns the field that makes each request different.
func uniqueField(request string) string {
	switch resource(request) {
	case "transactions":
		return "external_ref"
	case "subscriptions":
		return "idempotency_key"
	default:
		return "title"
	}
}

type validator interface{ Validate() error }

// decodeParams reads a body into the params of the golden request's operation.
func decodeParams(t *testing.T, request, body string) validator {
	t.Helper()
	switch strings.SplitN(request, "/", 2)[0] {
	case "transactions":
		return decodeAs[gateway.TransactionParams](t, body)
	case "subscriptions":
		return decodeAs[gateway.SubscriptionParams](t, body)
	default:
		return decodeAs[gateway.CheckoutLinkParams](t, body)
	}
}

func decodeAs[T validator](t *testing.T, body string) validator {
	t.Helper()
	var params T
	require.NoError(t, jsonv2.Unmarshal([]byte(body), &params))
	return params
}

// sends reports whether params would be sent with the value at the field.
func sends(t *testing.T, params validator, field, value string) bool {
	t.Helper()
	body, err := jsonv2.Marshal(params)
	require.NoError(t, err)
	var sent, edited any
	require.NoError(t, jsonv2.Unmarshal(body, &sent))
	require.NoError(t, jsonv2.Unmarshal([]byte(files.Edit(t, string(body), field, value)), &edited))
	return assert.ObjectsAreEqual(sent, edited)
}

func TestLimitsOfPathAndQueryInTheClient(t *testing.T) {
	t.Parallel()
	response := &files.Exchange{Status: http.StatusNotFound, Body: []byte(problem(http.StatusNotFound))}
	client := clientFor(t, "GET /v2/customers", response, gateway.WithMaxAttempts(1))
	short := clientFor(t, "GET /v2/checkout/sss", response)
	long := clientFor(t, "GET /v2/checkout/"+strings.Repeat("s", 255), response)
	for _, l := range []struct {
		row      string
		allowed  error
		rejected error
	}{
		{"customer list page parameter", listCustomers(t, client, 1, 0), listCustomers(t, client, -1, 0)},
		{"customer list page parameter", listCustomers(t, client, 1_000_000, 0), listCustomers(t, client, 1_000_001, 0)},
		{"customer list size parameter", listCustomers(t, client, 0, 1), listCustomers(t, client, 0, -1)},
		{"customer list size parameter", listCustomers(t, client, 0, 100), listCustomers(t, client, 0, 101)},
		{"checkout slug", openSession(t, short, 3), openSession(t, short, 2)},
		{"checkout slug", openSession(t, long, 255), openSession(t, long, 256)},
	} {
		require.ErrorIs(t, l.allowed, gateway.ErrNotFound, l.row)
		require.ErrorIs(t, l.rejected, gateway.ErrValidation, l.row)
	}
}

func listCustomers(t *testing.T, client *gateway.Client, page, size int) error {
	t.Helper()
	_, err := client.Customers.List(t.Context(), gateway.CustomerListParams{Page: page, Limit: size})
	return err
}

func openSession(t *testing.T, client *gateway.Client, n int) error {
	t.Helper()
	_, err := client.CheckoutSessions.Open(t.Context(), strings.Repeat("s", n))
	return err
}

// letters returns a JSON string of n characters of two bytes each.
func letters(n int) string { return `"` + strings.Repeat("é", n) + `"` }

func longURL(n int) string {
	const base = "https://shop.example/"
	return `"` + base + strings.Repeat("x", n-len(base)) + `"`
}

func products(n int) string { return repeat(n, `{"name":"n","price":1}`) }

// linkProducts is like products, but for a checkout link, whose products need an
// external_id in the live dialect.
func linkProducts(n int) string { return repeat(n, `{"external_id":"e","name":"n","price":1}`) }

func numbers(n int) string { return repeat(n, "3") }

func pairs(n int) string { return repeat(n, `{"key":"k","value":"v"}`) }

func repeat(n int, element string) string {
	return fmt.Sprintf("[%s]", strings.TrimSuffix(strings.Repeat(element+",", n), ","))
}

func TestLimitsOfPathAndQueryInTheMock(t *testing.T) {
	t.Parallel()
	slug := func(n int) string { return "/v2/checkout/" + strings.Repeat("s", n) }
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		client := mockserver.Run(t, mockserver.WithDialect(dialect)).Client()
		for _, l := range []struct{ path, allowed, rejected, field, code string }{
			{"/v2/customers", "1", "0", "page", "too_small"},
			{"/v2/customers", "1000000", "1000001", "page", "too_big"},
			{"/v2/customers", "1", "0", "limit", "too_small"},
			{"/v2/customers", "100", "101", "limit", "too_big"},
			{"", slug(3), slug(2), "slug", "too_small"},
			{"", slug(255), slug(256), "slug", "too_big"},
		} {
			get := func(value string) error {
				if l.path == "" {
					return client.Do(t.Context(), http.MethodGet, value, nil, nil)
				}
				return client.Do(t.Context(), http.MethodGet, l.path, nil, nil, gateway.Query(l.field, value))
			}
			if err := get(l.allowed); l.path == "" {
				require.ErrorIs(t, err, gateway.ErrNotFound, l.code)
			} else {
				require.NoError(t, err, l.field)
			}
			var e *gateway.Error
			require.ErrorAs(t, get(l.rejected), &e, l.field)
			assert.Equal(t, http.StatusUnprocessableEntity, e.StatusCode, l.field)
			require.Len(t, e.Fields, 1, l.field)
			assert.Equal(t, l.field, e.Fields[0].Field)
			assert.Equal(t, l.code, e.Fields[0].Code, l.field)
		}
	}
}
