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

	exam bool // serve the hooks of docs/exam.md; production must not

	// Tests and exams shorten these.
	backoff        func(attempt int) time.Duration // of the receiver; nil means its default
	lease          time.Duration                   // of an event whose process was killed; 0 means the receiver's default
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
	if c.exam = getenv("EXAM") == "1"; c.exam { // the gateway's clock jumps, this process's doesn't
		c.backoff = func(int) time.Duration { return 100 * time.Millisecond }
		c.lease, c.reconcileAfter, c.compareEvery = time.Second, 0, 0
	}
	if len(missing) > 0 {
		return config{}, fmt.Errorf("not set: %s", strings.Join(missing, ", "))
	}
	return c, nil
}
