package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
)

// config is the configuration of a deployment. GATEWAY_BASE_URL and
// GATEWAY_API_KEY are read by gateway.NewFromEnv.
type config struct {
	listen        string
	database      string
	webhookSecret gateway.Secret
	adminToken    gateway.Secret

	// Tests shorten these.
	backoff        func(attempt int) time.Duration // of the receiver; nil means its default
	reconcileAfter time.Duration                   // how long to wait for webhooks before reading a resource
	compareEvery   time.Duration                   // how often a paid order is compared with its transaction
}

// configFromEnv reads the configuration. Its error names every missing variable.
func configFromEnv(getenv func(string) string) (config, error) {
	var missing []string
	required := func(name string) string {
		value := getenv(name)
		if value == "" {
			missing = append(missing, name)
		}
		return value
	}
	c := config{
		listen:         cmp.Or(getenv("LISTEN"), ":8080"),
		database:       required("DATABASE_URL"),
		webhookSecret:  gateway.NewSecret(required("GATEWAY_WEBHOOK_SECRET")),
		adminToken:     gateway.NewSecret(required("ADMIN_TOKEN")),
		reconcileAfter: 2 * time.Minute,
		compareEvery:   24 * time.Hour,
	}
	if len(missing) > 0 {
		return config{}, fmt.Errorf("not set: %s", strings.Join(missing, ", "))
	}
	return c, nil
}
