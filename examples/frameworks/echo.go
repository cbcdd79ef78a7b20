package frameworks

import (
	"net/http"

	"github.com/gateway-go/gateway/webhook"
	"github.com/labstack/echo/v5"
)

// Echo mounts the receiver in an echo instance. Keep the Decompress and
// BodyDump middlewares away from this route.
func Echo(rx *webhook.Receiver) http.Handler {
	e := echo.New()
	e.POST(Path, echo.WrapHandler(rx))
	return e
}
