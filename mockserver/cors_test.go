package mockserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver"
)

// Pages of other origins can use the gateway only if it allows their origin, and the
// control plane only if it is listed.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	const page, stranger = "http://localhost:5173", "https://evil.test"
	for name, tc := range map[string]struct {
		allowed               []string
		origin                string
		preflight, read, plan int // statuses
		header                string
	}{
		"by default":       {nil, page, 405, 200, 403, ""},
		"listed":           {[]string{page}, page, 204, 200, 200, page},
		"not listed":       {[]string{page}, stranger, 405, 200, 403, ""},
		"any":              {[]string{"*"}, stranger, 204, 200, 403, stranger},
		"listed, and any":  {[]string{"*", page}, page, 204, 200, 200, page},
		"a sandboxed page": {[]string{page}, "null", 405, 200, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t, mockserver.WithCORS(tc.allowed...))
			call := func(method, path string, header ...string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
				r.Header.Set("Origin", tc.origin)
				for i := 0; i < len(header); i += 2 {
					r.Header.Set(header[i], header[i+1])
				}
				w := httptest.NewRecorder()
				gw.Handler().ServeHTTP(w, r)
				assert.Equal(t, tc.header, w.Header().Get("Access-Control-Allow-Origin"), path)
				assert.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"), "there are no cookies")
				return w
			}
			asked := call(http.MethodOptions, "/v2/transactions",
				"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "apikey,content-type")
			assert.Equal(t, tc.preflight, asked.Code)
			if tc.preflight == http.StatusNoContent {
				assert.Equal(t, "POST", asked.Header().Get("Access-Control-Allow-Methods"))
				assert.Equal(t, "apikey,content-type", asked.Header().Get("Access-Control-Allow-Headers"))
			}
			assert.Equal(t, tc.read, call(http.MethodGet, "/v2/transactions", "Apikey", gw.Key()).Code)
			assert.Equal(t, tc.plan, call(http.MethodPost, "/__mock/reset", "Sec-Fetch-Site", "cross-site").Code)
		})
	}
}
