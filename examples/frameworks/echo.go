package frameworks

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/gateway-go/gateway/webhook"
)

// Echo mounts the receiver in an echo instance. Don't use the Decompress
// or BodyDump middleware on this route.
func Echo(rx *webhook.Receiver) http.Handler {
	e := echo.New()
	e.POST(Path, echo.WrapHandler(rx))
	return e
}
