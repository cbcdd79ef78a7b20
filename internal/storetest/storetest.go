// Package storetest has a store for tests of the modes that need a durable one. Only
// tests import it.
package storetest

import (
	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Durable simulates a store that survives restarts: the receivers of a test share it.
type Durable struct{ webhook.Store }

// Durable reports true, whatever the wrapped store is.
func (Durable) Durable() bool { return true }

// For returns the account's view of the store.
func (s Durable) For(a gateway.Account) webhook.Store { return Durable{s.Store.For(a)} }
