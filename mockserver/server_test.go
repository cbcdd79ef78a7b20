package mockserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

func TestCreateAndGet(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithSeed(1))
	r := httptest.NewRequest(http.MethodPost, "/v2/transactions", strings.NewReader(`{"amount":1000,"method":"pix",
		"external_ref":"order-1",
		"buyer":{"name":"Ana","email":"ana@example.com"},"products":[{"name":"Book","price":1000}]}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("apiKey", gw.Key())
	w := httptest.NewRecorder()
	gw.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Contains(t, w.Body.String(), `"status":"pending"`)
}
