package gateway_test

import (
	"os"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// liveExamples is the environment variable that runs the examples in the live dialect.
const liveExamples = "GATEWAY_TEST_LIVE_EXAMPLES"

// mock returns an in-memory gateway and a client for it, for the examples. For a
// real gateway, create the client with gateway.New or gateway.NewFromEnv.
func mock() (*mockserver.Server, *gateway.Client) {
	options := []mockserver.Option{mockserver.WithSeed(1)}
	if os.Getenv(liveExamples) != "" {
		options = append(options, mockserver.WithDialect(mockserver.Live))
	}
	gw, err := mockserver.New(options...)
	if err != nil {
		panic(err)
	}
	return gw, gw.Client()
}
