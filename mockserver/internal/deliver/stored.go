package deliver

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/faults"
	"github.com/gateway-go/gateway/mockserver/internal/stored"
)

func savedRules() stored.Rules {
	return stored.Rules{
		"SavedEndpoint.ID":    stored.Required,
		"Delivery.ID":         stored.Required,
		"Delivery.State":      stored.OneOf(States()...),
		"SavedDelivery.Tries": stored.Between(0, 1+MaxRetries),
		"SavedDelivery.Fault": func(v reflect.Value) string {
			if k := faults.Kind(v.String()); k != "" && !k.Webhook() {
				return fmt.Sprintf("must be a fault of webhooks, not %q", k)
			}
			return ""
		},
	}
}

// Check returns an error that names the first member that the sender does not create.
func (s Saved) Check() error {
	if err := savedRules().Check("Webhooks", s); err != nil {
		return err
	}
	for i, e := range s.Endpoints {
		if err := e.check(); err != nil {
			return fmt.Errorf("Webhooks.Endpoints[%d]: %w", i, err)
		}
	}
	ids := map[string]bool{}
	for i, d := range s.Deliveries {
		switch {
		case ids[d.ID]:
			return fmt.Errorf("Webhooks.Deliveries[%d].ID is not unique: %q", i, d.ID)
		case len(d.Body) == 0:
			return fmt.Errorf("Webhooks.Deliveries[%d].Body is missing", i)
		}
		ids[d.ID] = true
	}
	return nil
}

// check validates an endpoint as [Sender.AddEndpoint] does. A saved one without a URL was
// a handler.
func (e SavedEndpoint) check() error {
	if e.URL != "" {
		if e.Path != "" {
			return errors.New("path requires a handler; without one, put the path in url")
		}
		if err := CheckURL(e.URL); err != nil {
			return err
		}
	}
	if err := CheckSecret(gateway.NewSecret(e.Secret)); err != nil {
		return fmt.Errorf("member Secret: %w", err)
	}
	for i, pattern := range e.Events {
		if pattern == "" {
			return fmt.Errorf("member Events[%d] is empty", i)
		}
	}
	return nil
}

// Check returns an error that names the first member that the sender does not create.
func (d SavedDelivery) Check() error { return savedRules().Check("Deliveries", d) }

// Check returns an error that names the first member that the sender does not create.
func (r Registry) Check() error {
	return Saved{Registered: r.Registered, Endpoints: r.Endpoints}.Check()
}
