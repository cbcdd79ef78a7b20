package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// A gateway may repeat what was sent. The client knows these values, so it masks
// them in every form, and leaves references as they are.
func TestErrorsDoNotRepeatPersonalData(t *testing.T) {
	t.Parallel()
	const reference = "17324928000001234" // digits that could be a document
	for _, document := range []gateway.Document{
		{Type: gateway.CNPJ, Number: "12ABC34501DE35"},
		{Type: gateway.CNPJ, Number: "12.ABC.345/01DE-35"},
		{Type: gateway.RFC, Number: "GODE561231GR8"},
		{Type: gateway.CURP, Number: "GODE561231HDFRRN04"},
		{Type: gateway.RUT, Number: "12345678-K"},
		{Type: gateway.DNI, Number: "30123456"},
		{Type: gateway.CPF, Number: "529.982.247-25"},
		{Type: gateway.PP, Number: "AB12345"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			var sent struct {
				Ref   string `json:"external_ref"`
				Buyer struct {
					Email    string `json:"email"`
					Phone    string `json:"phone"`
					Document struct {
						Number string `json:"number"`
					} `json:"document"`
				} `json:"buyer"`
			}
			assert.NoError(t, json.Unmarshal(body, &sent))
			assert.Equal(t, document.Number, sent.Buyer.Document.Number, "the request has the real value")
			said := fmt.Sprintf("%s %s %s of order %s", sent.Buyer.Document.Number, sent.Buyer.Email, sent.Buyer.Phone, sent.Ref)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			text, err := json.Marshal(map[string]any{
				"title": "Bad Request", "detail": "invalid: " + said, "code": "VALIDATION_ERROR",
				"errors": []any{map[string]any{"field": "buyer.document.number", "message": "is unknown: " + said, "code": "invalid"}},
			})
			assert.NoError(t, err)
			_, _ = w.Write(text)
		}))
		client, err := gateway.New(server.URL, gateway.BearerToken("sk_test_1"), gateway.WithMaxAttempts(1))
		require.NoError(t, err)
		params := gateway.TransactionParams{
			ExternalRef: reference, Amount: 1000, Method: gateway.Pix, Products: []gateway.Product{{Name: "Book", Price: 1000}},
			Buyer: gateway.BuyerParams{Name: "Ana", Email: "Ana.Souza@mail.example", Phone: "(11) 98765-4321", Document: &document},
		}
		_, err = client.Transactions.Create(t.Context(), params)
		server.Close()
		var failed *gateway.Error
		require.ErrorAs(t, err, &failed)
		require.Len(t, failed.Fields, 1)
		for _, text := range []string{err.Error(), failed.Detail, failed.Fields[0].Message} {
			for _, secret := range []string{document.Number, "Ana.Souza", "mail.example", "98765"} {
				assert.NotContains(t, text, secret)
			}
			assert.Contains(t, text, reference, "a reference stays readable")
		}
	}
}

// So it is with the filters of a list, which are in the query.
func TestErrorsDoNotRepeatFilters(t *testing.T) {
	t.Parallel()
	const search = "Joaquim Xavier"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, search, r.URL.Query().Get("search"), "the request has the real value")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"title":"Bad Request","detail":"there is no customer with `+search+`","code":"VALIDATION_ERROR"}`)
	}))
	defer server.Close()
	client, err := gateway.New(server.URL, gateway.BearerToken("sk_test_1"), gateway.WithMaxAttempts(1))
	require.NoError(t, err)
	_, err = client.Customers.List(t.Context(), gateway.CustomerListParams{Search: search})
	require.ErrorIs(t, err, gateway.ErrValidation)
	assert.NotContains(t, err.Error(), search)
	assert.Contains(t, err.Error(), "there is no customer with ***")
}

// Errors print their text, whatever the verb, also without a pointer.
func TestErrorsPrintTheirText(t *testing.T) {
	t.Parallel()
	failed := gateway.Error{Op: "transactions.get", StatusCode: 404, Title: `Not "Found"`}
	for _, e := range []any{failed, &failed} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			assert.Equal(t, failed.Error(), fmt.Sprintf(verb, e), verb)
		}
		assert.Equal(t, strconv.Quote(failed.Error()), fmt.Sprintf("%q", e))
	}
}

// Only a response that could be a proxy's rejection is said to be one.
func TestAFailureOfTheServerIsNotSaidToComeFromAProxy(t *testing.T) {
	t.Parallel()
	for status, said := range map[int]bool{400: true, 404: true, 499: true, 500: false, 502: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html><title>no</title></html>")
		}))
		client, err := gateway.New(server.URL, gateway.BearerToken("sk_test_1"), gateway.WithMaxAttempts(1))
		require.NoError(t, err)
		_, err = client.Customers.List(t.Context(), gateway.CustomerListParams{})
		server.Close()
		require.Error(t, err)
		assert.Equal(t, said, strings.Contains(err.Error(), "may come from a proxy"), "%d: %v", status, err)
	}
}
