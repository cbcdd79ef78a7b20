package frameworks

import (
	"bytes"

	"github.com/gofiber/fiber/v3"

	"github.com/gateway-go/gateway/webhook"
)

// Fiber mounts the receiver in a fiber app, which does not use net/http: the
// receiver gets a [webhook.Delivery].
func Fiber(rx *webhook.Receiver) *fiber.App {
	app := fiber.New()
	app.Post(Path, func(c fiber.Ctx) error {
		response := rx.Receive(c.Context(), webhook.Delivery{
			Path:   c.Path(),
			Header: c.GetReqHeaders(),
			Body:   bytes.Clone(c.BodyRaw()), // fiber reuses its buffer; Body would decompress it
		})
		for name, values := range response.Header() {
			c.Set(name, values[0])
		}
		return c.Status(response.Status).Send(response.Body)
	})
	return app
}
