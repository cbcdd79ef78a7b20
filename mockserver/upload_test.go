package mockserver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/upload"
	"github.com/gateway-go/gateway/mockserver"
)

// The console, the checkout page, the control plane and the API never read a large file that
// was not asked for. The console's form for a snapshot does.
func TestNoPageReadsAFile(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithConsole(true))
	link, err := gw.Client().CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
	require.NoError(t, err)
	page, err := url.Parse(link.URL)
	require.NoError(t, err)
	paths := []string{
		"/__mock/console", "/__mock/console/requests", "/__mock/console/find?q=1", "/__mock/console/do", "/__mock/console/none", page.Path,
		"/__mock/transactions", "/__mock/clock", "/__mock/clock/advance", "/v2/transactions", "/v2/transfers", "/v1/balance", "/none",
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		for _, path := range paths {
			if method == http.MethodPost && path == "/__mock/console/do" {
				continue
			}
			r, file, err := upload.Request(t.Context(), method, "http://gateway.test"+path)
			require.NoError(t, err)
			r.Header.Set("Authorization", "Bearer "+gw.Key())
			gw.Handler().ServeHTTP(httptest.NewRecorder(), r)
			assert.LessOrEqual(t, file.Read, int64(2<<20), "%s %s", method, path)
			assert.Nil(t, r.MultipartForm, "%s %s", method, path)
		}
	}
}
