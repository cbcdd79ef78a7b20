package webhook

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/jsonread"
)

// Event is one webhook. Rely only on its ID, Kind and ResourceID: the gateway
// may omit or vary everything else. An event without a signature contains only
// data from the API: it is rebuilt from the resource, see [ReadBackOnly].
type Event struct {
	// ID is unique per event and the same on every redelivery. A signed event
	// has the gateway's id. The id in an unsigned body can't be trusted, so an
	// event that the API confirmed gets an id derived from the fact that it
	// reports, "fact-…", which is the same for every delivery and
	// reconciliation of it.
	ID            string
	Family        Family // "" if there is none; unknown families are kept unchanged
	Kind          Kind   // "" if there is none; unknown kinds are kept unchanged
	ResourceID    string // of the transaction, transfer or subscription
	CorrelationID string // the external_ref, if the event has one
	Status        string // the resource's state according to the event
	APIVersion    string

	// The following fields are set by a [Receiver], not by [Parse].

	Signed bool   // the gateway's signature was verified
	KeyID  string // the ID of the [SigningKey] that verified it
	Source Source // how the event was received
	// Attempt is 1 if the handler has not begun before, except when it was shut
	// down. It counts failed attempts, and those since then whose process died.
	Attempt int
	Stale   bool // the event is late; see [Config.HandleStale]
	// Age is for how long the event has been stored, by the store's clock: what it
	// reports was so that long ago at least.
	Age time.Duration

	// ConfirmedStatus is the resource's state according to the API when the event
	// was accepted. It is "" for a signed event. The typed events have the whole
	// resource.
	ConfirmedStatus string

	confirmed *resource
	receiver  *Receiver // reports what of the data could not be read; or nil

	// Raw is the body: the received bytes if the signature was valid, without a
	// byte order mark, or the body rebuilt from the API's resource. It has the
	// members for which there is no field.
	Raw []byte
}

// maxName limits the length of ids and kinds, because stores index them. Real
// ones are a few dozen bytes.
const maxName = 255

// Parse reads the body of a delivery of any family, known or not. It is as
// lenient as the client: invalid UTF-8 becomes U+FFFD, and duplicate names
// inside data are allowed. The members that identify the event are strict:
// names are matched exactly, so {"id":"real","ID":"evil"} is the event "real",
// and a duplicate name in the envelope, or a duplicate id, kind, status,
// reference or object in its data, is an error. The data may be under "object"
// only for a transfer or an unknown family. The event's Raw is body itself, not
// a copy, without the byte order mark that it may begin with.
//
// The kind is in data.event_type, in "type" or, from some gateways, in "event", as in
// {"event": "transaction.paid"}. If an event has only a state, its kind is the one that
// reports this state. If two members name different kinds, Kind is "": read the resource.
//
// The error is [ErrInvalidJSON], also for more than 131,072 values, or
// [ErrMissingEventID]. Parse proves nothing about the sender: see [Verify].
func Parse(body []byte) (*Event, error) {
	p, err := parse(body)
	return p.Event, err
}

// parsed is an event with all that a receiver needs of its body to identify it, so
// that a delivery is read once.
type parsed struct {
	*Event

	content   []byte            // the part of the body that identifies it; see digest
	ambiguous bool              // the body names more than one resource, or hides one if the family has none
	occurred  gateway.Timestamp // the time of a subscription's event
	occasion  gateway.Timestamp // see kindRow.occasionMember
}

func parse(body []byte) (p parsed, err error) {
	body = jsonread.WithoutMark(body)
	err = jsonread.Read(body, func(d *jsonread.Document) {
		if env := (envelope{doc: d}); env.read() {
			p = env.parsed(body)
		}
	})
	switch e := p.Event; {
	case err != nil || e == nil:
		return parsed{}, ErrInvalidJSON
	case !usable(e.ID) || e.ID == "":
		return parsed{}, ErrMissingEventID
	case !usable(string(e.Family)) || !usable(e.ResourceID):
		return parsed{}, ErrInvalidJSON
	}
	if !usable(string(p.Kind)) {
		p.Kind = "" // the event is kept without a kind
	}
	p.Raw = body
	return p, nil
}

// usable reports whether s can be a key: not too long, without control
// characters, and without U+FFFD, to which all invalid bytes are mapped.
func usable(s string) bool {
	return len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError })
}

// envelope has the members needed to route an event, as nodes of its document;
// 0 means absent.
type envelope struct {
	doc *jsonread.Document

	id, family, kind, version, data int

	outer  payload // of data
	inner  payload // of the object inside data
	nested bool    // data contains an object member
}

// payload has the members of the data needed to route an event. Both spellings
// are read; if both are present, the documented snake_case takes precedence.
type payload struct {
	id, kind, camelKind, status              int
	correlation, camelCorrelation, reference int
	object                                   int
}

// read reports false for a duplicate name.
func (env *envelope) read() bool {
	others := map[string]bool{}
	for i := range env.doc.Children(0) {
		name := env.doc.Name(i)
		into := env.member(name)
		switch {
		case into == nil:
			if others[name] {
				return false
			}
			others[name] = true
		case *into != 0:
			return false
		default:
			*into = i
		}
	}
	if !env.outer.read(env.doc, env.data) {
		return false
	}
	env.nested = env.outer.object != 0 && env.doc.Kind(env.outer.object) == '{'
	return !env.nested || env.inner.read(env.doc, env.outer.object)
}

func (env *envelope) member(name string) *int {
	switch name {
	case "id":
		return &env.id
	case "event":
		return &env.family
	case "type":
		return &env.kind
	case "api_version":
		return &env.version
	case "data":
		return &env.data
	default:
		return nil
	}
}

// read reports false for a duplicate name. A value that is not an object has
// none.
func (p *payload) read(doc *jsonread.Document, object int) bool {
	if object == 0 || doc.Kind(object) != '{' {
		return true
	}
	for i := range doc.Children(object) {
		if into := p.member(doc.Name(i)); into != nil {
			if *into != 0 {
				return false
			}
			*into = i
		}
	}
	return true
}

func (p *payload) member(name string) *int {
	switch name {
	case "id":
		return &p.id
	case "status":
		return &p.status
	case "event_type":
		return &p.kind
	case "eventType":
		return &p.camelKind
	case "correlation_id":
		return &p.correlation
	case "correlationId":
		return &p.camelCorrelation
	case "external_ref":
		return &p.reference
	case "object":
		return &p.object
	default:
		return nil
	}
}

func (env *envelope) parsed(body []byte) parsed {
	e := env.event()
	p := parsed{Event: e, content: body}
	if env.doc.Strict() && env.data != 0 { // stored digests of other bodies cover the whole body
		from, to := env.doc.Place(env.data)
		p.content = body[from:to]
	}
	if env.nested {
		beside, inside := env.firstOf(env.outer.id), env.firstOf(env.inner.id)
		p.ambiguous = !e.Family.mayNest() || env.inner.object != 0 || (beside != "" && inside != "" && beside != inside)
	}
	if row := rowOf(e.Kind); row != nil && (e.Family == FamilySubscription || row.occasionMember != nil) && env.data != 0 {
		data := (&reading{doc: env.doc, members: make([]member, 0, typicalMembers)}).open(env.data)
		p.occurred, p.occasion = data.timestamp("occurred_at", "occurredAt"), data.timestamp(row.occasionMember...)
	}
	return p
}

func (env *envelope) event() *Event {
	e := &Event{ID: env.firstOf(env.id), APIVersion: env.firstOf(env.version)}
	kind, inData := env.firstOf(env.kind), env.firstOf(env.outer.kind, env.outer.camelKind)
	switch family := env.firstOf(env.family); {
	case Kind(family).Family() != "" && strings.Contains(family, "."): // {"event": "transaction.paid"}
		e.Family, e.Kind = Kind(family).Family(), Kind(family)
		if inData != "" && inData != family || Kind(kind).Family() != "" && strings.Contains(kind, ".") && kind != family {
			e.Kind = "" // which of the two it is, only the resource can tell
		}
	case family != "":
		e.Family, e.Kind = Family(family), Kind(cmp.Or(inData, kind))
	case kind != "":
		e.Kind = Kind(kind)
		e.Family = e.Kind.Family()
		if e.Family == "" {
			prefix, _, _ := strings.Cut(kind, ".")
			e.Family = Family(prefix)
		}
	default:
		e.Kind = Kind(inData)
	}
	p, outer := env.outer, env.outer
	if e.Family.mayNest() && env.firstOf(env.inner.id) != "" {
		p = env.inner
	}
	e.ResourceID, e.Status = env.firstOf(p.id), env.firstOf(p.status)
	if e.Kind == "" && !env.present(env.kind, env.outer.kind, env.outer.camelKind) && Kind(env.firstOf(env.family)).Family() == e.Family {
		e.Kind = kindOf(e.Family, e.Status) // {"event": "transaction", "data": {"status": "paid"}}
	}
	e.CorrelationID = env.firstOf(p.correlation, p.camelCorrelation, p.reference,
		outer.correlation, outer.camelCorrelation, outer.reference)
	return e
}

// present reports whether one of the nodes has a value, readable or not.
func (env *envelope) present(nodes ...int) bool {
	return slices.ContainsFunc(nodes, func(i int) bool { return i != 0 && env.doc.Kind(i) != 'n' })
}

// mayNest reports whether the family's data may be under "object".
func (f Family) mayNest() bool { return f != FamilyTransaction && f != FamilySubscription }

// firstOf returns a copy of the first of the nodes that is a non-empty string or a
// number. All others are skipped.
func (env *envelope) firstOf(nodes ...int) string {
	for _, i := range nodes {
		if s, _ := env.doc.Scalar(i); s != "" {
			return strings.Clone(s)
		}
	}
	return ""
}
