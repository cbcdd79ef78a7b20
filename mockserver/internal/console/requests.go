package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gateway-go/gateway/mockserver/internal/admin"
	"github.com/gateway-go/gateway/mockserver/internal/journal"
)

type requestsData struct {
	Filters    []field
	Filtered   bool
	InFlight   []journal.Entry
	Requests   []journal.Entry
	NearMisses []journal.Entry
	Older      string
	Clear      action
}

const requestsShown = 50

func (rq *request) requests() (*view, error) {
	q := rq.r.URL.Query()
	match, status := strings.TrimSpace(q.Get("match")), q.Get("status")
	data := &requestsData{
		Filtered: match != "" || status != "",
		Filters: []field{
			{Name: "match", Label: "Operation, or method and path", Type: "text", Value: match, Placeholder: "POST /v2/transactions"},
			{Name: "status", Label: "Response", Type: "select", Value: status, Options: []string{"", "2xx", "4xx", "5xx", "broken"}},
		},
		Clear: action{Call: "DELETE " + admin.Prefix + "/requests", Label: "Clear", Danger: true, Back: rq.to("requests")},
	}
	before, err := strconv.ParseUint(q.Get("before"), 10, 64)
	if err != nil {
		before = ^uint64(0)
	}
	data.InFlight = rq.core.Journal.InFlight(rq.key, match)
	var more bool
	data.Requests, more = rq.core.Journal.Latest(rq.key, requestsShown, func(e *journal.Entry) bool {
		return e.ID < before && e.Matches(match) && hasStatus(e, status)
	})
	if more {
		q.Del("note")
		q.Set("before", strconv.FormatUint(data.Requests[len(data.Requests)-1].ID, 10))
		data.Older = "?" + q.Encode()
	}
	if len(data.Requests) == 0 && match != "" {
		data.NearMisses = rq.core.Journal.NearMisses(rq.key, match)
	}
	return &view{Title: "Requests", Section: "/requests", Template: "requests", Data: data}, nil
}

func hasStatus(e *journal.Entry, class string) bool {
	switch class {
	case "":
		return true
	case "broken":
		return e.Broken || e.Status == 0
	default:
		return e.Status/100 == int(class[0]-'0')
	}
}

type requestData struct {
	journal.Entry

	Body     string
	Response string
	Detail   string
	Broken   []brokenRule
	Curl     string
}

// brokenRule is a reason why a request was rejected: the member, its value, and
// the rule.
type brokenRule struct{ Field, Sent, Rule, Code string }

func (rq *request) request() (*view, error) {
	id, err := strconv.ParseUint(rq.args[0], 10, 64)
	if err != nil {
		return nil, notFound()
	}
	e, ok := rq.core.Journal.Entry(rq.key, id)
	if !ok {
		return nil, notFound()
	}
	path := e.Path
	if e.Query != "" {
		path += "?" + e.Query
	}
	data := &requestData{
		Entry: e, Body: indented(e.Body), Response: indented(e.Response), Curl: rq.curl(e.Method, path, e.Body),
	}
	if e.Status >= http.StatusBadRequest {
		data.Detail = detailOf([]byte(e.Response))
		data.Broken = brokenRules(e)
	}
	return &view{Title: fmt.Sprintf("Request %d", e.ID), Section: "/requests", Template: "request", Data: data}, nil
}

// codeOf returns the code of an error response, "" if it has none.
func codeOf(e journal.Entry) string {
	if e.Status < http.StatusBadRequest {
		return ""
	}
	var body struct {
		Code  string `json:"code"`
		Error string `json:"error"` // of a coded body
	}
	_ = json.Unmarshal([]byte(e.Response), &body) // a proxy's page is no JSON
	return cmp.Or(body.Code, body.Error)
}

// brokenRules pairs the errors of a response with the values in the request.
func brokenRules(e journal.Entry) (list []brokenRule) {
	var problem struct {
		Errors []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
			Code    string `json:"code"`
		} `json:"errors"`
	}
	if json.Unmarshal([]byte(e.Response), &problem) != nil {
		return nil
	}
	var sent any
	_ = json.Unmarshal([]byte(e.Body), &sent) // a body that is no JSON has no members
	for _, wrong := range problem.Errors {
		list = append(list, brokenRule{wrong.Field, sentIn(sent, wrong.Field), wrong.Message, wrong.Code})
	}
	return list
}

// sentIn returns the value in a body at a path such as "products[0].price".
func sentIn(body any, path string) string {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch v := body.(type) {
		case map[string]any:
			inner, found := v[name]
			if !found {
				return "(not sent)"
			}
			body = inner
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return "(not sent)"
			}
			body = v[i]
		default:
			return "(not sent)"
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	return string(text)
}
