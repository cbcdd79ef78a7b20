package mockserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver"
)

// An error never repeats a long or deep part of the body. Positions in a deep seed file
// took time that grows with the square of its depth.
func TestErrorsAboutHostileBodiesAreShort(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	deep := func(open, inside, closed string, n int) string {
		return strings.Repeat(open, n) + inside + strings.Repeat(closed, n)
	}
	long := strings.Repeat("x", 100_000)
	for name, body := range map[string]string{
		"deep objects":        deep(`{"a":`, "1", "}", 20_000),
		"deep arrays":         deep("[", "1", "]", 20_000),
		"a deep member":       `{"buyer":` + deep(`{"name":`, "1", "}", 9000) + `}`,
		"a deep element":      `{"products":` + deep("[", "1", "]", 9000) + `}`,
		"a deep card":         `{"metadata":` + deep(`{"card":`, `{"number":"4111111111111111"}`, "}", 5000) + `}`,
		"a long name":         `{"` + long + `":1}`,
		"a long name, broken": `{"amount":1,"` + long + `":tru}`,
		"a long name twice":   `{"` + long + `":1,"` + long + `":1}`,
		"a card's long name":  `{"metadata":{"` + long + `":"4111111111111111"}}`,
		"a long name inside":  `{"customers":[{"` + long + `":1}]}`,
		"a long id":           `{"id":"` + long + `","fault":"` + long + `","url":"` + long + `","kind":"` + long + `"}`,
	} {
		for _, call := range []string{
			"POST /v2/transactions", "POST /v2/customers", "POST /v2/subscriptions", "POST /v2/transfers", "POST /v2/checkout-links",
			"POST /__mock/endpoints", "POST /__mock/seed", "POST /__mock/faults", "POST /__mock/clock/advance",
			"POST /__mock/deliveries/sample", "PUT /__mock/snapshot",
		} {
			method, path, _ := strings.Cut(call, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("Apikey", "sk_test_mock")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			gw.Handler().ServeHTTP(w, r)
			assert.Equal(t, 4, w.Code/100, "%s: %s: %d", name, call, w.Code)
			assert.Less(t, w.Body.Len(), 4096, "%s: %s: %.300s", name, call, w.Body)
			assert.NotEqual(t, http.StatusNotFound, w.Code, call)
		}
	}
}
