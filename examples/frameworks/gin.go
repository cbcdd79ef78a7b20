package frameworks

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gateway-go/gateway/webhook"
)

// Gin mounts the receiver in a gin engine. Middleware that calls
// ShouldBind or GetRawData on this route leaves no body to verify.
func Gin(rx *webhook.Receiver) http.Handler {
	engine := gin.New()
	engine.POST(Path, gin.WrapH(rx))
	return engine
}
