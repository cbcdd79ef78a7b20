package gatewayprobe_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/gatewayprobe"
	"github.com/gateway-go/gateway/mockserver"
)

func ExampleRun() {
	gw, err := mockserver.New(mockserver.WithDialect(mockserver.Live)) // in place of a sandbox
	if err != nil {
		panic(err)
	}
	defer func() { _ = gw.Close() }()

	report, err := gatewayprobe.Run(context.Background(), gatewayprobe.Config{
		BaseURL:    mockserver.BaseURL,
		Key:        gateway.NewSecret(gw.Key()),
		HTTPClient: &http.Client{Transport: gw.Transport()},
		Only:       []string{"validation-status", "amount-minimum", "client-texts"},
	})
	if err != nil {
		panic(err)
	}
	for _, result := range report.Results {
		fmt.Printf("%s %s: %s\n", result.ID, result.Verdict, result.Summary())
	}

	// Output:
	// validation-status differs: live (expected: document)
	// amount-minimum agrees: assumed
	// client-texts can't tell: it is about this project's client, not about the gateway
}
