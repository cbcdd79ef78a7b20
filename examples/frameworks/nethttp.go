package frameworks

import (
	"net/http"

	"github.com/gateway-go/gateway/webhook"
)

// NetHTTP mounts the receiver in the standard library's router.
func NetHTTP(rx *webhook.Receiver) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+Path, rx)
	return mux
}
