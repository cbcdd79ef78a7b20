package deliver

import "github.com/gateway-go/gateway/mockserver/internal/engine"

// CheckAddress and CheckName are what stands between a webhook and the network.
func CheckAddress(address string) error { return checkAddress(address) }

// CheckName is CheckAddress for names.
func CheckName(host string) error { return checkName(host) }

// Post is what becomes of a commit's events where nothing is kept.
func (s *Sender) Post(account string, events []engine.Event, v1 *engine.Integration) {
	s.Prepare(account, events, v1).Send()
}

// Render returns the body of an event.
func Render(e engine.Event) ([]byte, error) { return render(&e) }
