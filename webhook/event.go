package webhook

import (
	"bytes"
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Event is one webhook. Its ID, its Kind and the ResourceID may be relied on;
// all else is what the gateway happened to send with it.
type Event struct {
	ID            string // unique per event, the same on every redelivery
	Family        Family // unknown ones are kept as they came
	Kind          Kind   // likewise; "" where there is none
	ResourceID    string // of the transaction, transfer or subscription
	CorrelationID string // the external_ref of your own system, where the event has it
	Status        string // the resource's state as the event has it
	APIVersion    string

	// What follows is set by a [Receiver], not by [Parse].

	Signed  bool   // the gateway's signature was verified
	KeyID   string // the ID of the [SigningKey] that verified it
	Source  Source // how it came in
	Attempt int    // of handling it, from 1
	Stale   bool   // the resource is further on already; see [Config.HandleStale]

	// ConfirmedStatus is the resource's state as the API had it when the event
	// was accepted, "" where the API was not asked. The typed events have the
	// whole resource.
	ConfirmedStatus string

	confirmed *resource

	// Raw is the body as it arrived.
	Raw []byte

	// Extra holds the members beside id, event, type, api_version and data.
	Extra map[string]json.RawMessage
}

// maxName bounds ids and kinds. Real ones are a few dozen bytes; a store has
// to index them.
const maxName = 255

// Parse reads the body of a delivery of any family. Kinds and families that
// this version does not know are events too. Members of the envelope are
// matched by their exact names and every name may stand only once: in
// {"id":"real","ID":"evil"} the event is "real", and a second "id" is an
// error. The event's Raw is body itself, not a copy.
//
// The error is [ErrInvalidJSON] or [ErrMissingEventID]. Parse proves nothing
// about where the body came from: see [Verify].
func Parse(body []byte) (*Event, error) {
	var env envelope
	if err := jsonv2.Unmarshal(body, &env); err != nil {
		return nil, ErrInvalidJSON
	}
	if !usable(env.id) || env.id == "" {
		return nil, ErrMissingEventID
	}
	e := env.toEvent()
	if !usable(string(e.Family)) || !usable(string(e.Kind)) || !usable(e.ResourceID) {
		return nil, ErrInvalidJSON
	}
	e.Raw = body
	return e, nil
}

// usable reports whether s can be a key: not too long, no control characters.
func usable(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// envelope is what the routing of an event needs, read in one pass.
type envelope struct {
	id, event, kind, apiVersion string
	data                        payload
	extra                       map[string]json.RawMessage
}

// payload is the same of the envelope's data, and of a transfer's object
// inside it.
type payload struct {
	id, kind, status, correlation string
	object                        *payload
}

func (env *envelope) toEvent() *Event {
	e := &Event{ID: env.id, APIVersion: env.apiVersion, Extra: env.extra}
	data := &env.data
	switch {
	case env.event != "":
		e.Family, e.Kind = Family(env.event), Kind(data.kind)
		if e.Kind == "" {
			e.Kind = Kind(env.kind)
		}
	case env.kind != "":
		e.Kind = Kind(env.kind)
		e.Family = e.Kind.Family()
		if e.Family == "" {
			prefix, _, _ := strings.Cut(env.kind, ".")
			e.Family = Family(prefix)
		}
	default:
		e.Kind = Kind(data.kind)
	}
	if data.object != nil && data.object.id != "" {
		data = data.object
	}
	e.ResourceID, e.Status = data.id, data.status
	e.CorrelationID = data.correlation
	if e.CorrelationID == "" {
		e.CorrelationID = env.data.correlation
	}
	return e
}

// UnmarshalJSONFrom reads the envelope.
func (env *envelope) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return ErrInvalidJSON
	}
	return eachMember(dec, func(name []byte) error {
		switch string(name) {
		case "id":
			return readText(dec, &env.id)
		case "event":
			return readText(dec, &env.event)
		case "type":
			return readText(dec, &env.kind)
		case "api_version":
			return readText(dec, &env.apiVersion)
		case "data":
			return env.data.read(dec, true)
		default:
			return env.keep(string(name), dec)
		}
	})
}

func (env *envelope) keep(name string, dec *jsontext.Decoder) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if env.extra == nil {
		env.extra = make(map[string]json.RawMessage)
	}
	env.extra[name] = bytes.Clone(value)
	return nil
}

// read takes the members of an object in either spelling; where both are sent
// the interface's own, snake_case, wins. A value that is no object is skipped.
func (p *payload) read(dec *jsontext.Decoder, nested bool) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	var camelKind, camelCorrelation, reference string
	err := eachMember(dec, func(name []byte) error {
		switch string(name) {
		case "id":
			return readText(dec, &p.id)
		case "status":
			return readText(dec, &p.status)
		case "event_type":
			return readText(dec, &p.kind)
		case "eventType":
			return readText(dec, &camelKind)
		case "correlation_id":
			return readText(dec, &p.correlation)
		case "correlationId":
			return readText(dec, &camelCorrelation)
		case "external_ref":
			return readText(dec, &reference)
		case "object":
			if !nested {
				return dec.SkipValue()
			}
			p.object = new(payload)
			return p.object.read(dec, false)
		default:
			return dec.SkipValue()
		}
	})
	p.kind = firstOf(p.kind, camelKind)
	p.correlation = firstOf(p.correlation, camelCorrelation, reference)
	return err
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// eachMember calls read for every member of the object that comes next; read
// must consume the value. The name is valid only until then.
func eachMember(dec *jsontext.Decoder, read func(name []byte) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = jsontext.AppendUnquote(nil, quoted); err != nil {
				return err
			}
		}
		if err := read(name); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// readText takes a string, or a number as its digits; any other value is
// skipped, since only ids and kinds may be relied on.
func readText(dec *jsontext.Decoder, into *string) error {
	switch dec.PeekKind() {
	case '"', '0':
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		*into = tok.String()
		return nil
	default:
		return dec.SkipValue()
	}
}
