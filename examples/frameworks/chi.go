package frameworks

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/gateway-go/gateway/webhook"
)

// Chi mounts the receiver in a chi router.
func Chi(rx *webhook.Receiver) http.Handler {
	r := chi.NewRouter()
	r.Method(http.MethodPost, Path, rx)
	return r
}
