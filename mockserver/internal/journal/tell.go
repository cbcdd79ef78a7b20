package journal

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// tell publishes a request, masked as in the journal.
func (j *Journal) tell(rec *record) {
	m := maskFor(rec, j.keys)
	request := events.RequestEvent{
		ID:         m.text(rec.header.Get("X-Request-Id")),
		Operation:  j.cfg.Operation(&rec.request),
		Method:     rec.request.Method,
		Path:       m.path(rec.request.URL),
		Query:      m.query(rec.request.URL.RawQuery),
		Status:     rec.status,
		DurationMS: events.Milliseconds(rec.duration),
		Fault:      rec.fault,
		Broken:     rec.broken,
	}
	if rec.status >= http.StatusBadRequest {
		m.explain(&request, rec)
	}
	account := j.cfg.Account(&rec.request)
	if rec.status == http.StatusUnauthorized {
		account = "" // no account has this key
	}
	j.cfg.Events.Publish(account, events.Event{Type: events.TypeRequest, Request: &request})
}

// explain adds why a request was rejected, as far as the response says so.
func (m *mask) explain(to *events.RequestEvent, rec *record) {
	var body struct {
		Code    string               `json:"code"`
		Detail  string               `json:"detail"`
		Error   string               `json:"error"` // of the other form of errors
		Message string               `json:"message"`
		Errors  []gateway.FieldError `json:"errors"`
	}
	if !rec.response.whole() || json.Unmarshal(rec.response.kept, &body) != nil {
		return
	}
	if body.Code == "" {
		body.Code, body.Detail = body.Error, body.Message
	}
	to.Code, to.Detail, to.Errors = m.text(body.Code), m.text(body.Detail), body.Errors
	for i := range to.Errors {
		e := &to.Errors[i]
		e.Field, e.Message, e.Code = m.text(e.Field), m.text(e.Message), m.text(e.Code)
	}
}
