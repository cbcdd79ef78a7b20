package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/version"
	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/webhook"
)

// The results of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warning or failed
	Detail string `json:"detail"`
}

// checkup runs the checks of doctor. Each returns findings, or an error if the gateway
// does not respond.
type checkup struct {
	*session

	secret string
	failed int
}

// doctor is the command doctor.
func doctor(set *flag.FlagSet) action {
	secret := set.String("secret", "", "`secret` with which your receiver verifies webhooks: check whether an endpoint signs with it")
	return func(ctx context.Context, s *session, args []string) error {
		if len(args) > 0 {
			return wrongUsage("unexpected argument %q", args[0])
		}
		c := &checkup{session: s, secret: *secret}
		for _, check := range []func(context.Context) error{c.reachable, c.clock, c.injected, c.receivers, c.signature} {
			if err := check(ctx); err != nil {
				return err
			}
		}
		if c.failed > 0 {
			return fmt.Errorf("failed checks: %d", c.failed)
		}
		return nil
	}
}

// report writes a finding.
func (c *checkup) report(check, result, format string, args ...any) error {
	if result == checkFailed {
		c.failed++
	}
	f := finding{check, result, fmt.Sprintf(format, args...)}
	if c.json {
		text, err := json.Marshal(f)
		return errors.Join(err, c.print(text, ""))
	}
	color := map[string]string{checkOK: green, checkWarning: yellow, checkFailed: red}[result]
	return c.print(nil, "%s  %-9s %s", c.log.paint(color, fmt.Sprintf("%-7s", result)), check, f.Detail)
}

// reachable checks that a gateway responds, and that the host name in the address is
// allowed: the health check accepts every name, the other calls do not. It compares the
// versions of both, too.
func (c *checkup) reachable(ctx context.Context) error {
	health, _, err := admin.Call[admin.HealthView](ctx, c.Client, http.MethodGet, "health", nil)
	if err != nil {
		return err
	}
	result, detail := checkOK, ", as this command"
	if own := version.Module(); health.Version != own {
		result, detail = checkWarning, "; this command has "+own+": use one version of both"
	}
	has := "version " + plain(health.Version) + detail
	dialect := health.Dialect
	if dialect == "document" {
		dialect += " (live gateways reject more: -dialect live)"
	}
	if err := c.report("gateway", result, "%s, %s, dialect %s, %s", c.Base, health.Environment, dialect, has); err != nil {
		return err
	}
	_, _, err = admin.Call[admin.ClockView](ctx, c.Client, http.MethodGet, "clock", nil)
	var refused *admin.RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusMisdirectedRequest {
		return fmt.Errorf("the gateway rejects this host name: start it with -allow-host, or MOCKGATEWAY_ALLOW_HOST (%w)", err)
	}
	return err
}

// sampling is how far apart two readings of a clock are at least, in wall time. Its
// timestamps have milliseconds.
const sampling = 20 * time.Millisecond

// clock checks whether the clock moves. A manual one has to be advanced for anything
// that takes time.
func (c *checkup) clock(ctx context.Context) error {
	first, _, err := admin.Call[admin.ClockView](ctx, c.Client, http.MethodGet, "clock", nil)
	if err != nil {
		return err
	}
	next := "no timer is pending"
	timers, _, err := admin.Call[[]admin.TimerView](ctx, c.Client, http.MethodGet, "clock/timers", nil)
	if err != nil {
		return err
	}
	if len(timers) > 0 {
		next = "the next timer is " + timers[0].Kind + ", due " + stamp(time.Time(timers[0].At))
	}
	for began := time.Now(); time.Since(began) < sampling; {
		last, _, err := admin.Call[admin.ClockView](ctx, c.Client, http.MethodGet, "clock", nil)
		if err != nil {
			return err
		}
		if last != first {
			return c.report("clock", checkOK, "%s, runs by itself; %s", stamp(time.Time(last.Now)), next)
		}
	}
	result := checkOK
	if len(timers) > 0 {
		result, next = checkWarning, next+": mockgateway advance next"
	}
	return c.report("clock", result, "%s, moves only when it is advanced; %s", stamp(time.Time(first.Now)), next)
}

// injected reports faults that may be left over from a test.
func (c *checkup) injected(ctx context.Context) error {
	list, _, err := admin.Call[[]admin.FaultView](ctx, c.Client, http.MethodGet, "faults", nil)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(f admin.FaultView) bool { return f.Times > 0 && f.Fired >= f.Times })
	for _, f := range list {
		if err := c.report("fault", checkWarning, "%s; mockgateway fault clear %s removes it", describe(f), f.ID); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return nil
	}
	return c.report("fault", checkOK, "none is active")
}

// receivers checks the latest delivery to each endpoint.
func (c *checkup) receivers(ctx context.Context) error {
	endpoints, _, err := admin.Call[[]admin.EndpointView](ctx, c.Client, http.MethodGet, "endpoints", nil)
	if err != nil {
		return err
	}
	deliveries, _, err := admin.Call[[]admin.DeliveryView](ctx, c.Client, http.MethodGet, "deliveries", nil)
	if err != nil {
		return err
	}
	if len(endpoints) == 0 {
		return c.report("endpoint", checkWarning, "none is registered: mockgateway listen -forward-to URL")
	}
	slices.Reverse(deliveries)
	for _, e := range endpoints {
		i := slices.IndexFunc(deliveries, func(d admin.DeliveryView) bool { return d.Endpoint == e.ID && len(d.Attempts) > 0 })
		var last *admin.DeliveryView
		if i >= 0 {
			last = &deliveries[i]
		}
		result, detail := receiver(e, last)
		if err := c.report("endpoint", result, "%s %s: %s", e.ID, plain(e.URL), detail); err != nil {
			return err
		}
	}
	return nil
}

// receiver judges an endpoint by the latest delivery to it, which may be nil.
func receiver(e admin.EndpointView, last *admin.DeliveryView) (result, detail string) {
	switch {
	case e.Paused:
		return checkWarning, "it is paused and gets no event"
	case last == nil:
		return checkOK, "no event has been sent to it; mockgateway trigger transaction.paid sends a sample"
	}
	attempt := last.Attempts[len(last.Attempts)-1]
	switch status := attempt.ResponseStatus; {
	case status == 0:
		return checkFailed, "it did not respond to " + last.Kind + ": " + plain(attempt.Error)
	case status >= 200 && status < 300:
		return checkOK, fmt.Sprintf("it returned %d for %s", status, last.Kind)
	case (status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden) && !e.Signed:
		return checkFailed, fmt.Sprintf("it returned %d for %s, which was not signed: register it with a secret", status, last.Kind)
	case status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden:
		return checkFailed, fmt.Sprintf("it returned %d for %s, as for a wrong signature: doctor -secret checks its secret, and "+
			"POST /__mock/deliveries/diagnose explains the headers and the body that it got", status, last.Kind)
	default:
		return checkFailed, fmt.Sprintf("it returned %d for %s", status, last.Kind)
	}
}

// signature checks whether an endpoint signs with the secret of the receiver. Only a
// signature goes to the gateway, not the secret.
func (c *checkup) signature(ctx context.Context) error {
	if c.secret == "" {
		return nil
	}
	if trimmed := strings.TrimSpace(c.secret); trimmed != c.secret {
		return c.report("secret", checkFailed, "it begins or ends with white space")
	}
	const body = "{}"
	timestamp, mac := webhook.Sign(gateway.NewSecret(c.secret), time.Now(), []byte(body))
	d, _, err := admin.Call[webhook.Diagnosis](ctx, c.Client, http.MethodPost, "deliveries/diagnose", admin.DiagnoseBody{
		Headers: map[string]string{webhook.DefaultTimestampHeader: timestamp, webhook.DefaultSignatureHeader: mac}, Body: body,
		TimestampHeader: webhook.DefaultTimestampHeader, SignatureHeader: webhook.DefaultSignatureHeader,
	})
	if err != nil {
		return err
	}
	if d.KeyID == "" {
		return c.report("secret", checkFailed, "no endpoint signs with it")
	}
	return c.report("secret", checkOK, "%s signs with it", d.KeyID)
}
