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
	matchAgain     time.Duration // until an event is retried whose record does not exist yet
	reconcileAfter time.Duration // for which only webhooks update a record
}

// configFromEnv names every variable that is missing.
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
	}
	if len(missing) > 0 {
		return config{}, fmt.Errorf("not set: %s", strings.Join(missing, ", "))
	}
	return c, nil
}
