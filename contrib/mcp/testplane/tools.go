package testplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/docs"
	"github.com/gateway-go/gateway/mockserver"
)

// tools lists the tools, in the order of a session.
func (p *Plane) tools() []tool {
	actions := controls()
	return []tool{
		define("mock_status", "State of the mock gateway",
			"Address, clock, next timers, resources by state, pending faults and webhook endpoints of the mock gateway.", readOnly, p.status),
		define("mock_call", "Call the mock gateway",
			"Makes one call of the gateway's interface with the mock's own key, as the merchant's program would: create a charge, read it, refund it. "+
				"After no response, repeat the create with the same external_ref, never with a new one. gateway://openapi/document describes the calls.",
			additive, p.call, enum("method", "GET", "POST", "PUT", "PATCH", "DELETE")),
		define("mock_act", "Act as payer, bank or issuer",
			"What others do in a live gateway: the buyer pays, the bank settles or rejects, time runs out, a dispute is opened. "+actions.about(),
			additive, p.act, enum("kind", actions.kinds()...), enum("action", actions.names()...)),
		define("mock_advance", "Advance the clock",
			"Moves the virtual clock by a duration, to a time or to the next timer, and returns what happened on the way: timers, changes, webhooks.",
			additive, p.advance),
		define("mock_fault", "Inject a fault",
			"Breaks later requests or webhooks. lose-response executes the request and resets the connection: the test of every create. "+
				"reset-before does not execute it. status needs a value such as 503.", additive, p.fault, enum("fault", mockserver.FaultNames()...)),
		define("mock_fault_clear", "Remove faults", "Removes all faults of requests and of webhooks.", idempotent, p.clearFaults),
		define("mock_endpoint", "Register a webhook receiver",
			"Sends the account's webhooks to a URL on this machine, signed. The secret is written to a file whose name is returned, or read from an "+
				"environment variable of this server: give the program the file or the variable.", additive, p.endpoint),
		define("mock_sample", "Send a sample webhook", "Sends an event about a resource that does not exist, and returns the attempts.", additive, p.sample),
		define("why_webhook", "Why did a webhook arrive, or not",
			"Whether it was emitted, to whom it was sent, each attempt, why the last one failed, when the next one comes. With secret_env, the variable "+
				"that has the receiver's secret, a wrong secret is proven.", readOnly, p.whyWebhook),
		define("diagnose_signature", "Why is a signature rejected",
			"Finds out why a receiver rejects a delivery's signature, from its headers and body as they arrived. The secret is named, never sent.",
			readOnly, p.diagnoseSignature),
		define("explain_rejection", "Why was a request rejected",
			"The rule of each field that was wrong, and what to do, for requests that the merchant's program or mock_call sent; similar requests if none matches.",
			readOnly, p.explain),
		define("story", "What happened to an order or resource",
			"Everything about one resource in order: each change with its cause, the requests, the webhooks and what happens next.", readOnly, p.story),
		define("mock_events", "What happens", "Events after a cursor: requests, changes, timers, webhooks, faults. Waits up to 10 seconds for the first.",
			readOnly, p.listEvents),
		define("mock_snapshot", "Take or restore a snapshot", "Takes a snapshot of the whole mock gateway, or restores one, including the clock.",
			destructive, p.snapshot),
		define("mock_reset", "Clear the account", "Deletes the account's resources, endpoints, deliveries, faults and requests. The clock stays.",
			destructive, p.reset),
		define("run_exam", "Examine the merchant's program",
			"Starts the program that this server was configured with against a mock gateway of its own, plays orders with lost responses, duplicate webhooks "+
				"and crashes, and compares the books. Takes seconds per scenario; name scenarios in only to be quick.", additive, p.runExam),
	}
}

type nothing struct{}

type statusResult struct {
	outcome

	BaseURL     string          `json:"base_url" jsonschema:"where the merchant's program sends its requests"`
	KeyFile     string          `json:"api_key_file" jsonschema:"file with the API key of the program"`
	Dialect     string          `json:"dialect"`
	Environment string          `json:"environment"`
	Now         string          `json:"now" jsonschema:"the virtual clock"`
	Resources   []resourceCount `json:"resources"`
	Timers      []timer         `json:"timers" jsonschema:"the next ones, at most 10"`
	Faults      []faultView     `json:"faults" jsonschema:"faults that can still fire"`
	Endpoints   []endpointView  `json:"endpoints"`
}

type resourceCount struct {
	Resource string `json:"resource"`
	Status   string `json:"status"`
	Count    int    `json:"count"`
}

type timer struct {
	At   string `json:"at"`
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

type faultView struct {
	ID    string `json:"id"`
	Fault string `json:"fault"`
	On    string `json:"on" jsonschema:"empty: every request"`
	Times int    `json:"times" jsonschema:"0: no limit"`
	Nth   int    `json:"nth"`
	Fired int    `json:"fired"`
}

type endpointView struct {
	ID         string   `json:"id"`
	URL        string   `json:"url"`
	Signed     bool     `json:"signed"`
	Events     []string `json:"events" jsonschema:"empty: every kind"`
	Paused     bool     `json:"paused"`
	SecretFile string   `json:"secret_file,omitempty" jsonschema:"file with the signing secret"`
}

const shownTimers = 10

func (p *Plane) status(ctx context.Context, _ nothing) (out statusResult, err error) {
	var health struct {
		Dialect     string `json:"dialect"`
		Environment string `json:"environment"`
		Now         string `json:"now"`
	}
	for path, to := range map[string]any{
		"health": &health, "resources": &out.Resources, "clock/timers": &out.Timers, "faults": &out.Faults, "endpoints": &out.Endpoints,
	} {
		if err := p.mock.control(ctx, http.MethodGet, path, nil, to); err != nil {
			return out, err
		}
	}
	out.BaseURL, out.KeyFile = p.mock.base, p.secretFile("api_key")
	out.Dialect, out.Environment, out.Now = health.Dialect, health.Environment, health.Now
	out.Timers = out.Timers[:min(len(out.Timers), shownTimers)]
	out.Faults = slices.DeleteFunc(out.Faults, func(f faultView) bool { return f.Times > 0 && f.Fired >= f.Times || f.Nth > 0 && f.Fired > 0 })
	for i := range out.Endpoints {
		p.fill(&out.outcome, &out.Endpoints[i])
	}
	for i := range out.Faults {
		out.Faults[i].Fault = out.shaped(fault, "faults.fault", out.Faults[i].Fault)
		out.Faults[i].On = p.shownOn(&out.outcome, out.Faults[i].On)
	}
	return out, nil
}

// shownOn returns what a fault matches: a program may have written it.
func (p *Plane) shownOn(u *outcome, on string) string {
	if method, path, found := strings.Cut(on, " "); found && word.MatchString(method) && templated.MatchString(path) || on == "" {
		return on
	}
	if templated.MatchString(on) {
		return on
	}
	return u.shaped(kind, "faults.on", on)
}

type callInput struct {
	Method string         `json:"method"`
	Path   string         `json:"path" jsonschema:"begins with /v2/, such as /v2/transactions; may have a query"`
	Body   map[string]any `json:"body,omitempty" jsonschema:"JSON body of a POST, PUT or PATCH; amounts are integers in cents"`
}

type callResult struct {
	outcome

	Status    int    `json:"status,omitempty" jsonschema:"HTTP status; absent without a response"`
	RequestID string `json:"request_id,omitempty"`
	Response  any    `json:"response,omitempty" jsonschema:"the response without the texts that are under untrusted"`
}

func (p *Plane) call(ctx context.Context, in callInput) (out callResult, err error) {
	if !strings.HasPrefix(in.Path, "/v2/") || strings.Contains(in.Path, "..") || strings.ContainsAny(in.Path, "\\ #") {
		return out, mistake("path must begin with /v2/ and have no \"..\", \"\\\", \"#\" or spaces; the control plane has tools of its own")
	}
	var body any
	if in.Body != nil {
		body = in.Body
		// The mock would send the webhook to any address, and with it what the caller wrote.
		if to, given := in.Body["notify_url"].(string); given {
			if u, err := url.Parse(to); err == nil && u.Host != "" && !Loopback(u.Hostname()) {
				return out, mistake("notify_url must be a URL on this machine, such as http://127.0.0.1:9000/webhooks")
			}
		}
	}
	r, err := p.mock.send(ctx, in.Method, in.Path, body)
	if errors.Is(err, errBroken) {
		if in.Method == http.MethodGet {
			return out, &ToolError{Detail: err.Error(), DoNext: "Repeat the read."}
		}
		// Something may have been done: not isError.
		out.DoNext = "No response: the outcome is unknown, and money may have moved. Repeat the create with the same reference and the same body; " +
			"before any other write is repeated, read the resource. Never use a new reference."
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if r.status >= http.StatusBadRequest {
		return out, p.rejection(ctx, r)
	}
	out.Status, out.RequestID = r.status, out.shaped(machine, "request_id", r.requestID)
	v := decode(r.body)
	if v == nil && len(r.body) > 0 {
		out.quote("response", string(r.body))
		out.DoNext = "The response is not JSON: a fault broke it. For a write the outcome is unknown: repeat it with the same reference."
		return out, nil
	}
	out.Response = out.separate("response", v)
	return out, nil
}

// rejection explains the rejection of a request that was just made.
func (p *Plane) rejection(ctx context.Context, r reply) error {
	list, err := p.requests(ctx, "")
	if err == nil {
		for _, q := range slices.Backward(list.Data) {
			if q.Rejection != nil && q.requestID() == r.requestID && r.requestID != "" {
				return q.failure()
			}
		}
	}
	f := failureOf(r)
	f.DoNext = "Call explain_rejection."
	return f
}

type actInput struct {
	Kind   string `json:"kind"`
	ID     string `json:"id" jsonschema:"id of the resource; of a checkout link its slug"`
	Action string `json:"action"`
	Number *int64 `json:"number,omitempty" jsonschema:"settle-for: the amount in cents; fail-next: how many charges fail"`
}

type actResult struct {
	outcome

	Resource any `json:"resource,omitempty" jsonschema:"the resource afterwards, without the texts that are under untrusted"`
}

func (p *Plane) act(ctx context.Context, in actInput) (out actResult, err error) {
	actions := controls()
	member, known := actions[in.Kind][in.Action]
	if !known {
		return out, mistake("%s can't %s: use one of %s", in.Kind, in.Action, strings.Join(sortedOf(actions[in.Kind]), ", "))
	}
	if in.ID == "" || in.ID == "." || in.ID == ".." {
		return out, mistake("id must be the id of a resource")
	}
	var body any
	switch {
	case member == "" && in.Number != nil:
		return out, mistake("%s takes no number", in.Action)
	case in.Number != nil:
		body = map[string]any{member: *in.Number}
	}
	var v any
	if err := p.mock.control(ctx, http.MethodPost, in.Kind+"/"+url.PathEscape(in.ID)+"/"+in.Action, body, &v); err != nil {
		return out, err
	}
	out.Resource = out.separate("resource", v)
	out.DoNext = "Call why_webhook with the id to see whether the program was told."
	return out, nil
}

// actions maps a kind of resource to its actions, and those to the member of the body that
// has their number, "" for none.
type actions map[string]map[string]string

// controls reads the actions from the description of the control plane, so that this
// package has no list of its own.
func controls() actions {
	var document struct {
		Paths      map[string]map[string]operation `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(docs.ControlOpenAPI(), &document); err != nil {
		panic("testplane: the control plane's document: " + err.Error()) // embedded, and every test reads it
	}
	list := actions{}
	for path, methods := range document.Paths {
		kind, action, found := strings.Cut(strings.TrimPrefix(path, "/__mock/"), "/{id}/")
		post, isPost := methods["post"]
		// A snapshot has its own tool; a new secret is mock_endpoint's.
		if !found || !isPost || kind == "snapshots" || action == "rotate" || strings.Contains(kind, "/") {
			continue
		}
		if list[kind] == nil {
			list[kind] = map[string]string{}
		}
		list[kind][action] = ""
		for member := range document.Components.Schemas[post.body()].Properties {
			list[kind][action] = member
		}
	}
	return list
}

// operation is the part of an OpenAPI operation that names its body's schema.
type operation struct {
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

func (o operation) body() string {
	ref := o.RequestBody.Content["application/json"].Schema.Ref
	return ref[strings.LastIndex(ref, "/")+1:]
}

func sortedOf[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (a actions) kinds() []string { return sortedOf(a) }

func (a actions) names() []string {
	all := map[string]bool{}
	for _, list := range a {
		for name := range list {
			all[name] = true
		}
	}
	return sortedOf(all)
}

func (a actions) about() string {
	var parts []string
	for _, kind := range a.kinds() {
		parts = append(parts, kind+": "+strings.Join(sortedOf(a[kind]), ", "))
	}
	return strings.Join(parts, "; ") + "."
}

type advanceInput struct {
	By   string `json:"by,omitempty" jsonschema:"a duration, such as 90m or 40d"`
	To   string `json:"to,omitempty" jsonschema:"a time, such as 2027-02-01T00:00:00Z"`
	Next bool   `json:"next,omitempty" jsonschema:"to the next timer"`
}

type advanceResult struct {
	outcome

	Now      string `json:"now" jsonschema:"the virtual clock"`
	Happened []any  `json:"happened" jsonschema:"timers, transitions and deliveries on the way, oldest first, at most 100"`
	Omitted  int    `json:"omitted,omitempty" jsonschema:"how many more happened"`
}

const maxHappened = 100

// echo is how long an advance waits for the events of what it has done.
const echo = 5 * time.Second

func (p *Plane) advance(ctx context.Context, in advanceInput) (out advanceResult, err error) {
	before := p.events.position()
	var clock struct {
		Now string `json:"now"`
	}
	if err := p.mock.control(ctx, http.MethodPost, "clock/advance", in, &clock); err != nil {
		return out, err
	}
	out.Now, out.Happened = clock.Now, []any{}
	ctx, cancel := context.WithTimeout(ctx, echo)
	defer cancel()
	list := p.events.until(ctx, before, func(e entry) bool {
		request, _ := e.data["request"].(map[string]any)
		return e.kind == "control" && request["path"] == "/__mock/clock/advance"
	})
	for _, e := range list {
		if e.kind != "timer" && e.kind != "transition" && e.kind != "delivery" {
			continue
		}
		if len(out.Happened) == maxHappened {
			out.Omitted++
			continue
		}
		out.Happened = append(out.Happened, out.separate(fmt.Sprintf("happened[%d]", len(out.Happened)), e.data))
	}
	return out, nil
}

type faultInput struct {
	Fault string `json:"fault" jsonschema:"what goes wrong"`
	Value string `json:"value,omitempty" jsonschema:"of status a number such as 503, of latency and delay-webhook a duration such as 800ms"`
	More  string `json:"more,omitempty" jsonschema:"further members, such as retry-after=2; applied; code=INSUFFICIENT_FUNDS"`
	On    string `json:"on,omitempty" jsonschema:"an operation such as transactions.create, a method and path, or a kind of webhook; every request if absent"`
	Times int    `json:"times,omitempty" jsonschema:"how often it fires; always if absent"`
	Nth   int    `json:"nth,omitempty" jsonschema:"only at this match, from 1"`
}

type faultResult struct {
	outcome

	Fault *faultView `json:"fault,omitempty"`
}

func (p *Plane) fault(ctx context.Context, in faultInput) (out faultResult, err error) {
	text := in.Fault
	if in.Value != "" {
		text += "=" + in.Value
	}
	if in.More != "" {
		text += "; " + in.More
	}
	body := map[string]any{"fault": text}
	if in.On != "" {
		body["on"] = in.On
	}
	for name, n := range map[string]int{"times": in.Times, "nth": in.Nth} {
		if n != 0 {
			body[name] = n
		}
	}
	var v faultView
	if err := p.mock.control(ctx, http.MethodPost, "faults", body, &v); err != nil {
		return out, err
	}
	out.Fault = &v
	out.DoNext = "Let the program make the call, then check with story or mock_events that exactly one charge exists. mock_fault_clear removes the fault."
	return out, nil
}

type clearResult struct {
	outcome

	Cleared bool `json:"cleared"`
}

func (p *Plane) clearFaults(ctx context.Context, _ nothing) (out clearResult, err error) {
	for _, path := range []string{"faults", "deliveries/faults"} {
		if err := p.mock.control(ctx, http.MethodDelete, path, nil, new(any)); err != nil {
			return out, err
		}
	}
	return clearResult{Cleared: true}, nil
}

type eventsInput struct {
	After string   `json:"after,omitempty" jsonschema:"cursor of an earlier call; all recorded events if absent"`
	Types []string `json:"types,omitempty" jsonschema:"only these: request, control, transition, timer, webhook, delivery, clock, fault, reset, lost"`
	Limit int      `json:"limit,omitempty" jsonschema:"at most this many, up to 200; 50 if absent"`
	Wait  int      `json:"wait_seconds,omitempty" jsonschema:"how long to wait for the first event, up to 10"`
}

type eventsResult struct {
	outcome

	Events   []any  `json:"events" jsonschema:"oldest first"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"pass it as after"`
	Complete bool   `json:"complete" jsonschema:"false if events before the first one are gone"`
}

const (
	defaultEvents = 50
	maxEvents     = 200
	maxWait       = 10 // seconds
)

func (p *Plane) listEvents(ctx context.Context, in eventsInput) (out eventsResult, err error) {
	if in.Limit < 0 || in.Limit > maxEvents {
		return out, mistake("limit must be from 1 to %d", maxEvents)
	}
	if in.Wait < 0 || in.Wait > maxWait {
		return out, mistake("wait_seconds must be from 0 to %d", maxWait)
	}
	if in.Limit == 0 {
		in.Limit = defaultEvents
	}
	p.events.catchUp(ctx)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.Wait)*time.Second)
	defer cancel()
	out.Events, out.Cursor = []any{}, in.After
	for {
		list, complete, wake := p.events.since(out.Cursor)
		if len(out.Events) == 0 {
			out.Complete = complete
		}
		for _, e := range list {
			if len(out.Events) == in.Limit {
				break
			}
			out.Cursor = e.id
			if len(in.Types) == 0 || slices.Contains(in.Types, e.kind) {
				out.Events = append(out.Events, out.separate(fmt.Sprintf("events[%d]", len(out.Events)), e.data))
			}
		}
		if len(out.Events) > 0 {
			return out, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return out, nil
		}
	}
}

type snapshotInput struct {
	Restore string `json:"restore,omitempty" jsonschema:"id of the snapshot to restore; a new one is taken if absent"`
}

type snapshotResult struct {
	outcome

	ID       string `json:"id"`
	At       string `json:"at" jsonschema:"the virtual clock when it was taken"`
	Restored bool   `json:"restored"`
}

func (p *Plane) snapshot(ctx context.Context, in snapshotInput) (out snapshotResult, err error) {
	path := "snapshots"
	if in.Restore != "" {
		path += "/" + url.PathEscape(in.Restore) + "/restore"
	}
	if err := p.mock.control(ctx, http.MethodPost, path, nil, &out); err != nil {
		return snapshotResult{}, err
	}
	out.Restored = in.Restore != ""
	if !out.Restored {
		out.DoNext = "Experiment, then call mock_snapshot with restore to return here."
	}
	return out, nil
}

type resetResult struct {
	outcome

	Reset bool `json:"reset"`
}

func (p *Plane) reset(ctx context.Context, _ nothing) (out resetResult, err error) {
	if err := p.mock.control(ctx, http.MethodPost, "reset", nil, &out); err != nil {
		return resetResult{}, err
	}
	p.mu.Lock()
	clear(p.secrets)
	p.mu.Unlock()
	out.DoNext = "Register the receiver again with mock_endpoint."
	return out, nil
}
