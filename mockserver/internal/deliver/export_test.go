package deliver

import (
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// CheckAddress rejects addresses that no webhook may be sent to.
func CheckAddress(address string) error { return checkAddress(address) }

// CheckName rejects host names that no webhook may be sent to.
func CheckName(host string) error { return checkName(host) }

// Post sends the events of a commit without a data file.
func (s *Sender) Post(account string, events []engine.Event, v1 *engine.Integration) {
	s.Prepare(account, events, v1).Send()
}

// RenderDocument returns the body of an event in the document dialect.
func RenderDocument(e engine.Event) ([]byte, error) { return Render(&e, spec.DocumentDialect) }
