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
	matchAgain     time.Duration // the delay before an event whose record does not exist yet is retried
	reconcileAfter time.Duration // how long to wait for webhooks before reading a resource
	compareEvery   time.Duration // how often a paid order is compared with its transaction
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
		matchAgain:     5 * time.Second,
		reconcileAfter: 2 * time.Minute,
		compareEvery:   24 * time.Hour,
	}
	if len(missing) > 0 {
		return config{}, fmt.Errorf("not set: %s", strings.Join(missing, ", "))
	}
	return c, nil
}
