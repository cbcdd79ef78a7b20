package gateway_test

import (
	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// mock returns an in-memory gateway and a client for it, for the examples. For a
// real gateway, create the client with gateway.New or gateway.NewFromEnv.
func mock() (*mockserver.Server, *gateway.Client) {
	gw, err := mockserver.New(mockserver.WithSeed(1))
	if err != nil {
		panic(err)
	}
	return gw, gw.Client()
}
