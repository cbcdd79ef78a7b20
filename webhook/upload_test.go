package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/upload"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// The receiver never reads a large file, whatever the method.
func TestTheReceiverReadsNoFile(t *testing.T) {
	t.Parallel()
	rx, err := webhook.New(webhook.Config{Keys: []webhook.SigningKey{{Key: webhooktest.Secret()}}})
	require.NoError(t, err)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		r, file, err := upload.Request(t.Context(), method, "http://shop.test/webhooks")
		require.NoError(t, err)
		rx.ServeHTTP(httptest.NewRecorder(), r)
		assert.LessOrEqual(t, file.Read, int64(2<<20), method)
		assert.Nil(t, r.MultipartForm, method)
	}
}
