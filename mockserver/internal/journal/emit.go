package journal

import (
	"bytes"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver/internal/events"
)

// emit publishes a request, masked as in the journal.
func (j *Journal) emit(rec *record) {
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
		Replayed:   rec.header.Get("Idempotent-Replayed") == "true",
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

// explain adds why a request was rejected, as far as the recorded part of the
// response says so. The list of fields is its last member and may be truncated.
func (m *mask) explain(to *events.RequestEvent, rec *record) {
	dec := jsontext.NewDecoder(bytes.NewReader(rec.response.head))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return
		}
		switch name.String() {
		case "code", "error": // "error" is the other format of errors
			err = json.UnmarshalDecode(dec, &to.Code)
			to.Code = m.text(to.Code)
		case "detail", "message":
			err = json.UnmarshalDecode(dec, &to.Detail)
			to.Detail = m.text(to.Detail)
		case "errors":
			err = m.fields(to, dec)
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return
		}
	}
}

// fields adds the first errors in the list of invalid fields.
func (m *mask) fields(to *events.RequestEvent, dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for len(to.Errors) < events.MaxErrors && dec.PeekKind() == '{' {
		var e gateway.FieldError
		if err := json.UnmarshalDecode(dec, &e); err != nil {
			return err
		}
		to.Errors = append(to.Errors, gateway.FieldError{Field: m.text(e.Field), Message: m.text(e.Message), Code: m.text(e.Code)})
	}
	return io.EOF // the rest of the list may be long, and no member follows it
}
