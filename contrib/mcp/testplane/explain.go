package testplane

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// journalRequest is a request as the control plane returns it.
type journalRequest struct {
	ID             uint64      `json:"id"`
	At             string      `json:"at"`
	Operation      string      `json:"operation"`
	Method         string      `json:"method"`
	Path           string      `json:"path"`
	Body           string      `json:"body"`
	Status         int         `json:"status"`
	ResponseHeader http.Header `json:"response_header"`
	Fault          string      `json:"fault"`
	Rejection      *struct {
		Code     string       `json:"code"`
		Detail   string       `json:"detail"`
		Errors   []fieldError `json:"errors"`
		Injected bool         `json:"injected"`
		DoNext   string       `json:"do_next"`
	} `json:"rejection"`
}

func (r *journalRequest) requestID() string { return r.ResponseHeader.Get("X-Request-Id") }

// failure says why the mock rejected the request. The rules are the gateway's own words:
// they never quote a value.
func (r *journalRequest) failure() *ToolError {
	j := r.Rejection
	f := &ToolError{Status: r.Status, Code: j.Code, Detail: j.Detail, Fields: rulesOf(j.Errors), DoNext: j.DoNext, Docs: docsOf(j.Code)}
	if !word.MatchString(f.Code) {
		f.Code = ""
	}
	return f
}

type journalReply struct {
	Data       []journalRequest `json:"data"`
	NearMisses []journalRequest `json:"near_misses"`
}

func (p *Plane) requests(ctx context.Context, match string) (found journalReply, err error) {
	path := "requests"
	if match != "" {
		path += "?match=" + url.QueryEscape(match)
	}
	return found, p.mock.controlWhole(ctx, http.MethodGet, path, nil, &found)
}

type explainInput struct {
	RequestID string `json:"request_id,omitempty" jsonschema:"X-Request-Id of the response"`
	Match     string `json:"match,omitempty" jsonschema:"an operation such as transactions.create, or a method and path; every rejected request if absent"`
}

type explainResult struct {
	outcome

	Rejected []rejectedView `json:"rejected" jsonschema:"newest first, at most 5"`
	Similar  []rejectedView `json:"similar,omitempty" jsonschema:"if no request matches: those that almost do"`
	Matching int            `json:"matching" jsonschema:"how many requests match, rejected or not"`
}

type rejectedView struct {
	Request   uint64     `json:"request" jsonschema:"its number in the journal"`
	RequestID string     `json:"request_id,omitempty"`
	At        string     `json:"at"`
	Operation string     `json:"operation,omitempty" jsonschema:"empty: the interface has no such call"`
	Method    string     `json:"method"`
	Status    int        `json:"status" jsonschema:"0 without a response"`
	Fault     string     `json:"fault,omitempty" jsonschema:"the injected fault that made the response"`
	Why       *ToolError `json:"why,omitempty"`
}

const maxRejected = 5

func (p *Plane) explain(ctx context.Context, in explainInput) (out explainResult, err error) {
	found, err := p.requests(ctx, in.Match)
	if err != nil {
		return out, err
	}
	out.Matching, out.Rejected = len(found.Data), []rejectedView{}
	for _, r := range slices.Backward(found.Data) {
		if in.RequestID != "" && r.requestID() != in.RequestID || r.Rejection == nil {
			continue
		}
		if len(out.Rejected) == maxRejected {
			break
		}
		out.Rejected = append(out.Rejected, out.rejected(fmt.Sprintf("rejected[%d]", len(out.Rejected)), r))
	}
	for i, r := range found.NearMisses {
		out.Similar = append(out.Similar, out.rejected(fmt.Sprintf("similar[%d]", i), r))
	}
	switch {
	case len(out.Rejected) > 0:
		out.DoNext = out.Rejected[0].Why.DoNext
	case out.Matching > 0 && in.RequestID == "":
		out.DoNext = "Requests match, but none was rejected. story shows what they did."
	case len(out.Similar) > 0:
		out.DoNext = "No request matches: compare with similar. The program may call another path, or another account's key."
	default:
		out.DoNext = "No such request arrived: check that the program uses base_url and api_key_file of mock_status, and that the request was sent."
	}
	return out, nil
}

// rejected separates a request from what its sender wrote.
func (u *outcome) rejected(at string, r journalRequest) rejectedView {
	v := rejectedView{
		Request: r.ID, RequestID: u.shaped(machine, at+".request_id", r.requestID()), At: r.At, Operation: r.Operation,
		Method: u.shaped(word, at+".method", r.Method), Status: r.Status, Fault: u.shaped(fault, at+".fault", r.Fault),
	}
	u.quote(at+".path", r.Path)
	u.quote(at+".body", r.Body)
	if r.Rejection != nil {
		v.Why = r.failure()
	}
	return v
}

type storyInput struct {
	ID string `json:"id" jsonschema:"id of a resource, its reference (external_ref), or the slug of a checkout link"`
}

type storyReply struct {
	Resource   string           `json:"resource"`
	ID         string           `json:"id"`
	Reference  string           `json:"reference"`
	Status     string           `json:"status"`
	Parts      []part           `json:"parts"`
	Steps      []step           `json:"steps"`
	Requests   []journalRequest `json:"requests"`
	Deliveries []delivery       `json:"deliveries"`
	Timers     []timer          `json:"timers"`
}

// silent reports whether the latest change was reported by no webhook.
func (s *storyReply) silent() bool {
	for _, st := range slices.Backward(s.Steps) {
		if st.ID == s.ID {
			return st.From != "" && len(st.Events) == 0
		}
	}
	return false
}

type part struct {
	Resource string `json:"resource"`
	ID       string `json:"id"`
	Status   string `json:"status"`
}

type step struct {
	At        string   `json:"at"`
	ID        string   `json:"id"`
	From      string   `json:"from" jsonschema:"empty: created"`
	To        string   `json:"to"`
	Amount    int64    `json:"amount" jsonschema:"what was paid or refunded, in cents"`
	Cause     string   `json:"cause"`
	RequestID string   `json:"request_id,omitempty"`
	Events    []string `json:"events" jsonschema:"ids of the webhooks"`
}

type storyResult struct {
	outcome

	Resource   string         `json:"resource"`
	ID         string         `json:"id"`
	Status     string         `json:"status"`
	Parts      []part         `json:"parts" jsonschema:"resources that belong to it"`
	Steps      []step         `json:"steps" jsonschema:"oldest first"`
	Requests   []rejectedView `json:"requests" jsonschema:"that name it, oldest first, at most 20"`
	Deliveries []deliveryView `json:"deliveries" jsonschema:"oldest first, at most 20"`
	Timers     []timer        `json:"timers" jsonschema:"what happens next, if nothing else does"`
	Told       string         `json:"told" jsonschema:"whether the program's receiver got the latest event"`
}

const maxParts = 20

func (p *Plane) story(ctx context.Context, in storyInput) (out storyResult, err error) {
	var s storyReply
	if err := p.mock.control(ctx, http.MethodGet, "story?id="+url.QueryEscape(in.ID), nil, &s); err != nil {
		return out, err
	}
	out.Resource, out.ID, out.Status, out.Parts, out.Steps, out.Timers = s.Resource, s.ID, s.Status, s.Parts, s.Steps, s.Timers
	out.Requests, out.Deliveries = []rejectedView{}, []deliveryView{}
	out.quote("reference", s.Reference)
	for i := range out.Steps {
		st := &out.Steps[i]
		st.Cause = out.shaped(cause, fmt.Sprintf("steps[%d].cause", i), st.Cause)
		st.RequestID = out.shaped(machine, fmt.Sprintf("steps[%d].request_id", i), st.RequestID)
	}
	for i, d := range s.Deliveries[max(0, len(s.Deliveries)-maxParts):] {
		out.Deliveries = append(out.Deliveries, out.view(fmt.Sprintf("deliveries[%d]", i), d, false))
	}
	for i, r := range s.Requests[max(0, len(s.Requests)-maxParts):] {
		out.Requests = append(out.Requests, out.rejected(fmt.Sprintf("requests[%d]", i), r))
	}
	out.Told = s.told()
	if strings.HasPrefix(out.Told, "no") {
		out.DoNext = "Call why_webhook with the id."
	}
	return out, nil
}

// told says what became of the latest event.
func (s *storyReply) told() string {
	if s.silent() {
		return "no: no webhook reports this state"
	}
	if len(s.Deliveries) == 0 {
		return "no: nothing was sent"
	}
	event := s.Deliveries[len(s.Deliveries)-1].EventID
	for _, d := range s.Deliveries {
		if d.EventID == event && d.Status != "delivered" {
			return "no: " + d.Kind + " is " + d.Status
		}
	}
	return "yes"
}
