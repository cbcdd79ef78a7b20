package gateway_test

import (
	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// mock returns a gateway in memory and its client, for examples. For the real
// gateway, create the client with gateway.New or gateway.NewFromEnv.
func mock() (*mockserver.Server, *gateway.Client) {
	gw, err := mockserver.New(mockserver.WithSeed(1))
	if err != nil {
		panic(err)
	}
	return gw, gw.Client()
}
