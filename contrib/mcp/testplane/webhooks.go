package testplane

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// fill completes an endpoint of the mock: where its secret is, and its URL if it has no
// room for instructions.
func (p *Plane) fill(u *outcome, e *endpointView) {
	e.URL = u.shaped(hostURL, "endpoint.url", e.URL)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.secrets[e.ID]; known {
		e.SecretFile = p.secretFile(e.ID)
	}
}

type endpointInput struct {
	URL       string   `json:"url" jsonschema:"of the receiver, such as http://127.0.0.1:9000/webhooks"`
	Events    []string `json:"events,omitempty" jsonschema:"kinds or families, such as transaction.paid or payout.*; every kind if absent"`
	SecretEnv string   `json:"secret_env,omitempty" jsonschema:"name of an environment variable of this server with the receiver's secret; a new secret in a file if absent"`
}

type endpointResult struct {
	outcome

	Endpoint *endpointView `json:"endpoint,omitempty"`
}

// secretOf returns the secret in an environment variable. No message has its value.
func secretOf(variable string) (gateway.Secret, error) {
	value := os.Getenv(variable)
	if value == "" {
		return gateway.Secret{}, mistake("secret_env: this server has no environment variable of that name, or it is empty; set it where the server is configured, " +
			"or omit secret_env")
	}
	return gateway.NewSecret(value), nil
}

func (p *Plane) endpoint(ctx context.Context, in endpointInput) (out endpointResult, err error) {
	if u, err := url.Parse(in.URL); err != nil || !Loopback(u.Hostname()) {
		return out, mistake("url must be a URL on this machine, such as http://127.0.0.1:9000/webhooks")
	}
	var secret gateway.Secret
	if in.SecretEnv != "" {
		if secret, err = secretOf(in.SecretEnv); err != nil {
			return out, err
		}
	} else {
		var b [24]byte
		_, _ = rand.Read(b[:]) // never fails
		secret = gateway.NewSecret("whsec_" + hex.EncodeToString(b[:]))
	}
	body := map[string]any{"url": in.URL, "secret": secret.Reveal()}
	if len(in.Events) > 0 {
		body["events"] = in.Events
	}
	var e endpointView
	if err := p.mock.control(ctx, http.MethodPost, "endpoints", body, &e); err != nil {
		return out, err
	}
	if err := p.writeSecret(e.ID, secret); err != nil {
		return out, fmt.Errorf("the endpoint is registered, but its secret can't be written: %w", err)
	}
	p.mu.Lock()
	p.secrets[e.ID] = secret
	p.mu.Unlock()
	p.fill(&out.outcome, &e)
	out.Endpoint = &e
	out.DoNext = "Start the program with this secret: read secret_file into its environment without printing it. Then call mock_sample."
	return out, nil
}

// delivery is a delivery as the control plane returns it.
type delivery struct {
	ID            string    `json:"id"`
	EventID       string    `json:"event_id"`
	Kind          string    `json:"kind"`
	ResourceID    string    `json:"resource_id"`
	Endpoint      string    `json:"endpoint"`
	URL           string    `json:"url"`
	Status        string    `json:"status"`
	CreatedAt     string    `json:"created_at"`
	NextAttemptAt *string   `json:"next_attempt_at"`
	Body          string    `json:"body"`
	Attempts      []attempt `json:"attempts"`
}

type attempt struct {
	Attempt        int     `json:"attempt"`
	At             string  `json:"at"`
	ResponseStatus int     `json:"response_status"`
	Response       string  `json:"response"`
	Error          string  `json:"error"`
	DurationMS     float64 `json:"duration_ms"`
	Signed         bool    `json:"signed"`
	Fault          string  `json:"fault"`
}

// deliveryView is a delivery in a result.
type deliveryView struct {
	ID            string        `json:"id"`
	EventID       string        `json:"event_id"`
	Kind          string        `json:"kind"`
	ResourceID    string        `json:"resource_id"`
	Endpoint      string        `json:"endpoint" jsonschema:"id of the endpoint, or notify_url; empty if there is none"`
	Status        string        `json:"status" jsonschema:"pending, delivered, failed, held, dropped or no_endpoint"`
	CreatedAt     string        `json:"created_at"`
	NextAttemptAt string        `json:"next_attempt_at,omitempty" jsonschema:"on the virtual clock"`
	Attempts      []attemptView `json:"attempts"`
}

type attemptView struct {
	Attempt  int     `json:"attempt"`
	At       string  `json:"at"`
	Status   int     `json:"response_status" jsonschema:"0 without a response"`
	Failure  string  `json:"failure,omitempty" jsonschema:"why there was no response"`
	Signed   bool    `json:"signed"`
	Fault    string  `json:"fault,omitempty"`
	Duration float64 `json:"duration_ms"`
}

// view separates a delivery from the texts of others: its body, its URL, what its receiver
// responded.
func (u *outcome) view(at string, d delivery, withBody bool) deliveryView {
	v := deliveryView{
		ID: d.ID, EventID: d.EventID, Kind: d.Kind, ResourceID: d.ResourceID, Endpoint: d.Endpoint, Status: d.Status, CreatedAt: d.CreatedAt,
		Attempts: []attemptView{},
	}
	if d.NextAttemptAt != nil && d.Status == "pending" {
		v.NextAttemptAt = *d.NextAttemptAt
	}
	u.quote(at+".url", d.URL)
	if withBody {
		u.quote(at+".body", d.Body)
	}
	for i, a := range d.Attempts {
		v.Attempts = append(v.Attempts, attemptView{
			Attempt: a.Attempt, At: a.At, Status: a.ResponseStatus, Failure: failureName(a), Signed: a.Signed,
			Fault: u.shaped(fault, at+".fault", a.Fault), Duration: a.DurationMS,
		})
		u.quote(fmt.Sprintf("%s.attempts[%d].response", at, i), a.Response)
		u.quote(fmt.Sprintf("%s.attempts[%d].error", at, i), a.Error)
	}
	return v
}

// failureName classifies why an attempt had no response: the mock's text has the
// receiver's address.
func failureName(a attempt) string {
	text := strings.ToLower(a.Error)
	switch {
	case a.ResponseStatus != 0 || a.Error == "":
		return ""
	case strings.Contains(text, "refused"):
		return "connection refused"
	case strings.Contains(text, "timeout"), strings.Contains(text, "deadline"), strings.Contains(text, "not respond"):
		return "timeout"
	case strings.Contains(text, "no such host"):
		return "unknown host name"
	case strings.Contains(text, "certificate"), strings.Contains(text, "tls"):
		return "TLS"
	case strings.Contains(text, "reset"), strings.Contains(text, "eof"):
		return "connection closed"
	}
	return "other"
}

type sampleInput struct {
	Kind string `json:"kind" jsonschema:"of the event, such as transaction.paid"`
}

type deliveriesResult struct {
	outcome

	Deliveries []deliveryView `json:"deliveries"`
}

func (p *Plane) sample(ctx context.Context, in sampleInput) (out deliveriesResult, err error) {
	var list []delivery
	if err := p.mock.control(ctx, http.MethodPost, "deliveries/sample", in, &list); err != nil {
		return out, err
	}
	out.Deliveries = []deliveryView{}
	for i, d := range list {
		out.Deliveries = append(out.Deliveries, out.view(fmt.Sprintf("deliveries[%d]", i), d, true))
		if d.Status != "delivered" {
			out.DoNext = "Call why_webhook with event_id " + d.EventID + "."
		}
	}
	if len(list) == 0 {
		out.DoNext = "No endpoint receives this kind: register one with mock_endpoint."
	}
	return out, nil
}

type whyInput struct {
	ResourceID string `json:"resource_id,omitempty" jsonschema:"id, reference or slug of the resource"`
	EventID    string `json:"event_id,omitempty" jsonschema:"evt_…"`
	Kind       string `json:"kind,omitempty" jsonschema:"such as transaction.paid"`
	SecretEnv  string `json:"secret_env,omitempty" jsonschema:"name of an environment variable of this server that has the secret which the receiver uses"`
}

type whyResult struct {
	outcome

	Emitted    bool           `json:"emitted" jsonschema:"whether the gateway sent such an event"`
	Resource   string         `json:"resource,omitempty" jsonschema:"kind and state of the resource"`
	Deliveries []deliveryView `json:"deliveries" jsonschema:"newest last, at most 20"`
	Endpoints  []endpointView `json:"endpoints"`
	Diagnosis  []Cause        `json:"diagnosis" jsonschema:"why the latest delivery failed, in the order in which to fix it"`
}

// Cause is one reason, and what to change.
type Cause struct {
	Cause  string `json:"cause"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
	Proven bool   `json:"proven" jsonschema:"false: the most likely explanation"`
}

const maxDeliveries = 20

// deliveries lists the deliveries that a query selects.
func (p *Plane) deliveries(ctx context.Context, query url.Values) (list []delivery, err error) {
	// An attempt that is under way ends first, unless the receiver is slow.
	err = p.mock.control(ctx, http.MethodPost, "deliveries/wait?timeout=2s&"+query.Encode(), nil, &list)
	if failed, ok := errors.AsType[*ToolError](err); ok && failed.Code == "STILL_DELIVERING" {
		err = p.mock.control(ctx, http.MethodGet, "deliveries?"+query.Encode(), nil, &list)
	}
	return list, err
}

func (p *Plane) whyWebhook(ctx context.Context, in whyInput) (out whyResult, err error) {
	if in.ResourceID == "" && in.EventID == "" && in.Kind == "" {
		return out, mistake("name at least one of resource_id, event_id and kind")
	}
	var secret gateway.Secret
	if in.SecretEnv != "" {
		if secret, err = secretOf(in.SecretEnv); err != nil {
			return out, err
		}
	}
	query, silent := url.Values{}, false
	if in.Kind != "" {
		query.Set("kind", in.Kind)
	}
	if in.ResourceID != "" {
		var s storyReply
		if err := p.mock.control(ctx, http.MethodGet, "story?id="+url.QueryEscape(in.ResourceID), nil, &s); err != nil {
			return out, err
		}
		query.Set("resource_id", s.ID)
		out.Resource, silent = s.Resource+" "+s.Status, s.silent()
	}
	list, err := p.deliveries(ctx, query)
	if err != nil {
		return out, err
	}
	if err := p.mock.control(ctx, http.MethodGet, "endpoints", nil, &out.Endpoints); err != nil {
		return out, err
	}
	for i := range out.Endpoints {
		p.fill(&out.outcome, &out.Endpoints[i])
	}
	list = slices.DeleteFunc(list, func(d delivery) bool { return in.EventID != "" && d.EventID != in.EventID })
	list = list[max(0, len(list)-maxDeliveries):]
	out.Emitted, out.Deliveries = len(list) > 0, []deliveryView{}
	for i, d := range list {
		out.Deliveries = append(out.Deliveries, out.view(fmt.Sprintf("deliveries[%d]", i), d, i == len(list)-1))
	}
	if len(list) == 0 {
		out.Diagnosis = []Cause{notEmitted(silent)}
	} else {
		out.Diagnosis = p.judge(ctx, worst(list), out.Endpoints, secret)
	}
	out.DoNext = out.Diagnosis[0].Fix
	return out, nil
}

// worst returns the latest delivery that was not made, or else the latest one.
func worst(list []delivery) delivery {
	for _, d := range slices.Backward(list) {
		if d.Status != "delivered" {
			return d
		}
	}
	return list[len(list)-1]
}

func notEmitted(silent bool) Cause {
	if silent {
		return Cause{
			"no_webhook_for_this_state", "The interface has no webhook for the change to this state, such as a Pix that expires.",
			"The program must find such changes itself: read gateway://docs/webhooks on missed webhooks and reconciliation.", true,
		}
	}
	return Cause{
		"not_emitted", "The gateway has sent no such event.",
		"Call story to see what happened to the resource. If it is still pending, let the payer act with mock_act, or check the spelling of the kind.", true,
	}
}

// judge explains the latest attempt of a delivery.
func (p *Plane) judge(ctx context.Context, d delivery, endpoints []endpointView, secret gateway.Secret) []Cause {
	one := func(cause, detail, fix string, proven bool) []Cause { return []Cause{{cause, detail, fix, proven}} }
	switch d.Status {
	case "no_endpoint":
		return one("no_endpoint", "No endpoint receives this kind of event.", "Register the receiver with mock_endpoint, with this kind or without events.", true)
	case "held":
		return one("held", "Deliveries are held back by the control plane's call deliveries/hold.", "Release them: POST /__mock/deliveries/release.", true)
	case "dropped":
		return one("dropped", "An injected fault dropped the webhook.", "Nothing to fix: the program must find the change by reconciliation. mock_fault_clear ends the fault.", true)
	case "delivered":
		return one("delivered", "The receiver responded with 2xx.", "If the program did nothing, look at its handler and log: it accepted the event.", true)
	}
	if len(d.Attempts) == 0 {
		if slices.ContainsFunc(endpoints, func(e endpointView) bool { return e.ID == d.Endpoint && e.Paused }) {
			return one("paused", "The endpoint is paused.", "Resume it with mock_act: kind endpoints, action resume.", true)
		}
		return one("pending", "No attempt was made yet.", "Call why_webhook again, or mock_advance with next.", true)
	}
	last := d.Attempts[len(d.Attempts)-1]
	if last.Fault != "" && last.Fault != "duplicate-webhook" {
		return one("injected_fault", "A fault was injected into this attempt.", "Nothing to fix if the receiver rejected it: that is right. mock_advance with next makes the next attempt.", true)
	}
	switch s := last.ResponseStatus; {
	case s == 0:
		return one("no_response", "The receiver did not respond: "+failureName(last)+".",
			"Start the receiver and check that it listens at the endpoint's URL. mock_advance with next makes the next attempt.", true)
	case s == http.StatusBadRequest, s == http.StatusUnauthorized, s == http.StatusForbidden:
		return p.judgeSignature(ctx, d, secret)
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return one("wrong_path", fmt.Sprintf("The receiver responded with %d.", s), "Compare the path of the endpoint's URL with the route of the receiver, which must accept POST.", false)
	case s >= http.StatusMultipleChoices && s < http.StatusBadRequest:
		return one("redirect", fmt.Sprintf("The receiver responded with %d; redirects are not followed.", s), "Register the URL to which it redirects.", true)
	default:
		return one("handler_failed", fmt.Sprintf("The receiver responded with %d.", s),
			"Look at the program's log for the time of the attempt. If a failure of its own was right, mock_advance with next makes the next attempt.", false)
	}
}

// judgeSignature finds out whether the receiver's secret is wrong. The delivery is signed
// again as the mock signed it, if this plane made the endpoint.
func (p *Plane) judgeSignature(ctx context.Context, d delivery, secret gateway.Secret) []Cause {
	guess := Cause{
		"signature_rejected", "The receiver rejected the delivery, probably its signature.",
		"Compare the receiver's secret with that of the endpoint: call why_webhook again with secret_env, or diagnose_signature with the headers and the body as they arrived.", false,
	}
	p.mu.Lock()
	own, known := p.secrets[d.Endpoint]
	p.mu.Unlock()
	if !known || secret.IsZero() {
		return []Cause{guess}
	}
	timestamp, signature := webhook.Sign(own, time.Now(), []byte(d.Body))
	var found webhook.Diagnosis
	err := p.mock.control(ctx, http.MethodPost, "deliveries/diagnose", map[string]any{
		"headers": map[string]string{"X-Gateway-Timestamp": timestamp, "X-Gateway-Signature": signature}, "body": d.Body, "secret": secret.Reveal(),
		"timestamp_header": "X-Gateway-Timestamp", "signature_header": "X-Gateway-Signature",
	}, &found)
	if err != nil {
		return []Cause{guess}
	}
	if found.Valid {
		return []Cause{{
			"secret_is_right", "The secret in the variable is that of the endpoint, so the receiver uses another one, or changes the body before it verifies it.",
			"Check that the program was started with this variable, and that it verifies the bytes as they arrived. Then call diagnose_signature with them.", true,
		}}
	}
	return causesOf(found)
}

func causesOf(d webhook.Diagnosis) []Cause {
	list := []Cause{}
	for _, f := range d.Findings {
		list = append(list, Cause{f.Cause, f.Detail, f.Fix, f.Proven})
	}
	return list
}

type diagnoseInput struct {
	Headers    map[string]string `json:"headers" jsonschema:"of the rejected request; repeated ones separated by commas"`
	Body       string            `json:"body,omitempty" jsonschema:"as it arrived"`
	BodyBase64 string            `json:"body_base64,omitempty" jsonschema:"instead of body, for exact bytes"`
	ReceivedAt string            `json:"received_at,omitempty" jsonschema:"wall time, such as 2027-02-01T00:00:00Z; now if absent"`
	SecretEnv  string            `json:"secret_env,omitempty" jsonschema:"name of an environment variable of this server with the receiver's secret; those of the endpoints if absent"`
}

type diagnoseResult struct {
	outcome

	Valid     bool    `json:"valid"`
	Diagnosis []Cause `json:"diagnosis" jsonschema:"in the order in which to fix them"`
}

func (p *Plane) diagnoseSignature(ctx context.Context, in diagnoseInput) (out diagnoseResult, err error) {
	body := map[string]any{"headers": in.Headers}
	for name, value := range map[string]string{"body": in.Body, "body_base64": in.BodyBase64, "received_at": in.ReceivedAt} {
		if value != "" {
			body[name] = value
		}
	}
	if in.SecretEnv != "" {
		secret, err := secretOf(in.SecretEnv)
		if err != nil {
			return out, err
		}
		body["secret"] = secret.Reveal()
	}
	var found webhook.Diagnosis
	if err := p.mock.control(ctx, http.MethodPost, "deliveries/diagnose", body, &found); err != nil {
		return out, err
	}
	out.Valid, out.Diagnosis = found.Valid, causesOf(found)
	if len(out.Diagnosis) > 0 {
		out.DoNext = out.Diagnosis[0].Fix
	}
	return out, nil
}
