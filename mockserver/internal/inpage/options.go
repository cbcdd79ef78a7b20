package inpage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/deliver"
	"github.com/gateway-go/gateway/mockserver/internal/duration"
	"github.com/gateway-go/gateway/webhook"
)

// options are flags of mockgateway in camel case, with the same defaults. Those of sockets,
// files and logs are missing.
type options struct {
	Environment       string          `json:"environment"`
	Dialect           string          `json:"dialect"`
	Profile           json.RawMessage `json:"profile"` // the report itself
	Lenient           bool            `json:"lenient"`
	Clock             string          `json:"clock"`
	Speed             *float64        `json:"speed"`
	Start             *time.Time      `json:"start"`
	Seed              *uint64         `json:"seed"`
	AutoPay           string          `json:"autoPay"`
	Fee               int64           `json:"fee"`
	OpeningBalance    int64           `json:"openingBalance"`
	SettledPercent    float64         `json:"settledPercent"`
	BasicTokenX       string          `json:"basicTokenX"`
	Webhook           string          `json:"webhook"`
	WebhookSecret     *string         `json:"webhookSecret"`
	WebhookTimeout    string          `json:"webhookTimeout"`
	WebhookRetries    string          `json:"webhookRetries"`
	WebhookPauseAfter int             `json:"webhookPauseAfter"`
	TimestampHeader   string          `json:"timestampHeader"`
	SignatureHeader   string          `json:"signatureHeader"`
	PublicURL         string          `json:"publicUrl"`
	Memory            int64           `json:"memory"` // in MiB
}

// defaultMemory is the limit in MiB. WebAssembly can address 4 GiB, and a page gets less.
const defaultMemory = 256

// parse reads the options.
func parse(text string) (o options, err error) {
	o = options{
		Environment: "sandbox", Dialect: "document", Clock: "realtime", Webhook: "http://localhost/webhooks", Memory: defaultMemory,
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return o, fmt.Errorf("the option %s can't be a JSON %s", wrong.Field, wrong.Value)
		}
		if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
			return o, fmt.Errorf("there is no option %s", name)
		}
		return o, fmt.Errorf("the options: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("the options must be one JSON object")
	}
	return o, nil
}

// server returns the options of the gateway; those that package mockserver checks itself
// are not checked here.
func (o *options) server() (list []mockserver.Option, err error) {
	add := func(option mockserver.Option) { list = append(list, option) }
	for _, one := range []struct{ name, value, standard, other string }{
		{"environment", o.Environment, "sandbox", "production"},
		{"dialect", o.Dialect, "document", "live"},
		{"clock", o.Clock, "realtime", "manual"},
	} {
		if one.value != one.standard && one.value != one.other {
			return nil, fmt.Errorf("%s must be %q or %q, not %q", one.name, one.standard, one.other, one.value)
		}
	}
	if o.Environment == "production" {
		add(mockserver.WithProduction())
	}
	if o.Dialect == "live" {
		add(mockserver.WithDialect(mockserver.Live))
	}
	if o.Lenient {
		add(mockserver.WithLenient())
	}
	if len(o.Profile) > 0 && !bytes.Equal(o.Profile, []byte("null")) {
		if o.Dialect != "document" || o.Lenient || o.Fee != 0 || o.SettledPercent != 0 {
			return nil, errors.New("profile sets dialect, lenient, fee and settledPercent: remove them")
		}
		add(mockserver.WithProfile(o.Profile))
	} else {
		add(mockserver.WithFee(o.Fee))
	}
	if o.SettledPercent != 0 {
		add(mockserver.WithSettledPercent(o.SettledPercent))
	}
	add(mockserver.WithOpeningBalance(o.OpeningBalance))
	if o.BasicTokenX != "" {
		add(mockserver.WithBasicTokenX(o.BasicTokenX))
	}
	if o.PublicURL != "" {
		add(mockserver.WithPublicURL(o.PublicURL))
	}
	if o.Memory < 1 || o.Memory > math.MaxInt64>>20 {
		return nil, fmt.Errorf("memory must be at least 1 MiB, not %d", o.Memory)
	}
	add(mockserver.WithMemoryLimit(o.Memory << 20))
	if err := o.time(add); err != nil {
		return nil, err
	}
	return list, o.webhooks(add)
}

func (o *options) time(add func(mockserver.Option)) error {
	start := time.Now()
	if o.Start != nil {
		start = *o.Start
	}
	add(mockserver.WithStart(start))
	switch {
	case o.Clock == "manual" && o.Speed != nil:
		return errors.New("speed has no effect with a manual clock: remove one of them")
	case o.Speed != nil && *o.Speed <= 0:
		return fmt.Errorf("speed must be above 0, not %v", *o.Speed)
	case o.Speed != nil:
		add(mockserver.WithRealtime(*o.Speed))
	case o.Clock == "realtime":
		add(mockserver.WithRealtime(1))
	}
	if o.Seed != nil {
		add(mockserver.WithSeed(*o.Seed))
	}
	if o.AutoPay == "" {
		return nil
	}
	after, err := duration.Parse(o.AutoPay)
	if err != nil {
		return fmt.Errorf("autoPay: %w", err)
	}
	add(mockserver.WithAutoPay(after))
	return nil
}

func (o *options) webhooks(add func(mockserver.Option)) error {
	if err := deliver.CheckURL(o.Webhook); err != nil {
		return fmt.Errorf("webhook must be an http or https URL: %w", err)
	}
	if o.WebhookSecret != nil {
		add(mockserver.WithWebhookSecret(gateway.NewSecret(*o.WebhookSecret)))
	}
	add(mockserver.WithSignatureHeaders(webhook.HeaderNames{Timestamp: o.TimestampHeader, Signature: o.SignatureHeader}))
	add(mockserver.WithEndpointPause(o.WebhookPauseAfter))
	if o.WebhookTimeout != "" {
		limit, err := duration.Parse(o.WebhookTimeout)
		if err != nil {
			return fmt.Errorf("webhookTimeout: %w", err)
		}
		add(mockserver.WithWebhookTimeout(limit))
	}
	if o.WebhookRetries == "" {
		return nil
	}
	var after []time.Duration
	if o.WebhookRetries != "none" {
		for text := range strings.SplitSeq(o.WebhookRetries, ",") {
			at, err := duration.Parse(strings.TrimSpace(text))
			if err != nil {
				return fmt.Errorf("webhookRetries must be durations such as 5s,5m,1h, or none: %w", err)
			}
			after = append(after, at)
		}
	}
	add(mockserver.WithWebhookRetries(after...))
	return nil
}
