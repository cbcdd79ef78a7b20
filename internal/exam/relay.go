package exam

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Delivery is one attempt of the gateway to deliver an event.
type Delivery struct {
	Kind     string // transaction.paid
	EventID  string
	Resource string
	Header   http.Header
	Body     []byte

	relay *Relay
}

// Treatment says what happens to deliveries.
type Treatment struct {
	Kind  string // "" is every kind
	Times int    // how many deliveries; 0 means all until the settling

	// Do delivers the event in its own way, and returns the status that the gateway
	// sees.
	Do func(d *Delivery) int

	fired int
}

// Relay stands between the gateway and the program. It is the gateway's only
// receiver.
type Relay struct {
	stage  Stage
	path   string
	secret gateway.Secret
	act    *activity
	log    func(Message)

	choices *choices

	mu         sync.Mutex
	treatments []*Treatment
	acked      map[string]bool // the genuine events of the scenario, and whether they were acknowledged
	kinds      map[string]string
	warn       map[string]bool
}

func newRelay(stage Stage, path string, secret gateway.Secret, act *activity, log func(Message)) *Relay {
	return &Relay{
		stage: stage, path: path, secret: secret, act: act, log: log,
		acked: map[string]bool{}, kinds: map[string]string{}, warn: map[string]bool{},
	}
}

func (x *Relay) add(t *Treatment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.treatments = append(x.treatments, t)
}

func (x *Relay) clear() (unused []*Treatment) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.treatments {
		if t.fired == 0 {
			unused = append(unused, t)
		}
	}
	x.treatments = nil
	return unused
}

// begin forgets the last scenario's events. It returns its warnings.
func (x *Relay) begin() (warnings []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for w := range x.warn {
		warnings = append(warnings, w)
	}
	x.acked, x.kinds, x.warn = map[string]bool{}, map[string]string{}, map[string]bool{}
	return warnings
}

// unacknowledged returns the kinds of the genuine events of the scenario that the
// program has not acknowledged.
func (x *Relay) unacknowledged() (kinds []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, ok := range x.acked {
		if !ok {
			kinds = append(kinds, x.kinds[id])
		}
	}
	return sorted(kinds)
}

func (x *Relay) warning(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.warn[text] = true
}

// ServeHTTP implements http.Handler for the gateway's deliveries.
func (x *Relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	end := x.act.begin(true)
	defer end()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	d := &Delivery{Header: r.Header.Clone(), Body: body, relay: x}
	d.read()
	x.choices.hold("<- " + d.Kind + " " + d.Resource)
	x.mu.Lock()
	if _, known := x.acked[d.EventID]; !known {
		x.acked[d.EventID], x.kinds[d.EventID] = false, d.Kind
	}
	var chosen *Treatment
	for i := len(x.treatments) - 1; i >= 0 && chosen == nil; i-- {
		t := x.treatments[i]
		if (t.Kind == "" || t.Kind == d.Kind) && (t.Times == 0 || t.fired < t.Times) {
			t.fired++
			chosen = t
		}
	}
	x.mu.Unlock()
	var status int
	if chosen != nil {
		status = chosen.Do(d)
	} else {
		status = x.choices.deliver(d)
	}
	if status == 0 {
		panic(http.ErrAbortHandler) // the program is down: no response
	}
	w.WriteHeader(status)
}

// read reads what the exam needs of the body.
func (d *Delivery) read() {
	var e struct {
		ID    string `json:"id"`
		Event string `json:"event"`
		Type  string `json:"type"`
		Data  struct {
			ID        string `json:"id"`
			EventType string `json:"event_type"`
		} `json:"data"`
	}
	_ = json.Unmarshal(d.Body, &e) // an event of the mock gateway
	d.EventID, d.Resource, d.Kind = e.ID, e.Data.ID, e.Type
	if d.Kind == "" {
		d.Kind = e.Event + "." + strings.TrimPrefix(e.Data.EventType, e.Event+".")
	}
}

// Send delivers the event to the program and returns its status; 0 means that it
// gave none. what describes the delivery if it is not the first: "again".
func (d *Delivery) Send(what string) int {
	status := d.send(what, d.Header, d.Body)
	if ok(status) {
		d.relay.acknowledge(d.EventID)
	}
	return status
}

// Swallow acknowledges the event without delivering it.
func (d *Delivery) Swallow() int {
	d.relay.log(Message{Direction: ToShop, What: d.Kind, Fault: "never arrives"})
	d.relay.acknowledge(d.EventID)
	return http.StatusOK
}

func (x *Relay) acknowledge(event string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.acked[event] = true
}

func ok(status int) bool { return status/100 == 2 }

func (d *Delivery) send(what string, header http.Header, body []byte) int {
	end := d.relay.act.begin(true)
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), deliveryTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop"+d.relay.path, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header = header.Clone()
	message := Message{Direction: ToShop, What: d.Kind, Fault: what, began: time.Now()}
	resp, err := d.relay.stage.Shop(r)
	if err != nil {
		message.Answer = "no response"
		d.relay.log(message)
		return 0
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close()
	message.Answer = strconv.Itoa(resp.StatusCode)
	d.relay.log(message)
	return resp.StatusCode
}

const deliveryTimeout = 10 * time.Second

// sign returns the headers of the delivery with another signature. An empty
// secret's signature is computed with no key.
func (d *Delivery) sign(secret string, at time.Time, body []byte) http.Header {
	h := d.Header.Clone()
	timestamp, signature := webhook.Sign(gateway.NewSecret(secret), at, body)
	h.Set(webhook.DefaultTimestampHeader, timestamp)
	h.Set(webhook.DefaultSignatureHeader, signature)
	return h
}

// Forge delivers forgeries of the event, and warns of each one that is acknowledged.
func (d *Delivery) Forge() {
	unsigned := d.Header.Clone()
	unsigned.Del(webhook.DefaultTimestampHeader)
	unsigned.Del(webhook.DefaultSignatureHeader)
	now := time.Now()
	for _, f := range []struct {
		name   string
		header http.Header
	}{
		{"unsigned", unsigned},
		{"signed with another secret", d.sign("whsec_another", now, d.Body)},
		{"signed with the empty secret", d.sign("", now, d.Body)},
		{"with another body's signature", d.sign(d.relay.secret.Reveal(), now, append([]byte(" "), d.Body...))},
	} {
		if ok(d.send("forged, "+f.name, f.header, d.Body)) {
			d.relay.warning("a forged event was acknowledged with 2xx (" + f.name + ")")
		}
	}
}

// Stale delivers the event with a signature of ten minutes ago.
func (d *Delivery) Stale() {
	if ok(d.send("signed ten minutes ago", d.sign(d.relay.secret.Reveal(), time.Now().Add(-10*time.Minute), d.Body), d.Body)) {
		d.relay.warning("a delivery that was signed ten minutes ago was acknowledged with 2xx")
	}
}

// About returns an event that no one has sent: that another charge is paid.
func (d *Delivery) About(from, to *Charge, id string) *Delivery {
	body := d.Body
	for old, replaced := range map[string]string{
		strconv.Quote(d.EventID):                 strconv.Quote(id),
		strconv.Quote(from.ID):                   strconv.Quote(to.ID),
		strconv.Quote(from.Ref):                  strconv.Quote(to.Ref),
		":" + strconv.FormatInt(from.Amount, 10): ":" + strconv.FormatInt(to.Amount, 10),
	} {
		body = bytes.ReplaceAll(body, []byte(old), []byte(replaced))
	}
	return &Delivery{Kind: d.Kind, EventID: id, Resource: to.ID, Header: d.Header, Body: body, relay: d.relay}
}

// Rerendered delivers the event as another encoder writes it, with a signature.
func (d *Delivery) Rerendered() int {
	body := rerender(d.Body)
	return d.send("as another encoder writes it", d.sign(d.relay.secret.Reveal(), time.Now(), body), body)
}

// Renamed delivers the event with another id, with a signature.
func (d *Delivery) Renamed(id string) int {
	body := bytes.Replace(d.Body, []byte(strconv.Quote(d.EventID)), []byte(strconv.Quote(id)), 1)
	return d.send("with a new event id", d.sign(d.relay.secret.Reveal(), time.Now(), body), body)
}

// rerender reverses the order of members, adds white space and escapes letters.
func rerender(body []byte) []byte {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return body
	}
	var b bytes.Buffer
	write(&b, v, 1)
	return b.Bytes()
}

func write(b *bytes.Buffer, v any, depth int) {
	indent := "\n" + strings.Repeat(" ", 3*depth)
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		names = sorted(names)
		b.WriteByte('{')
		for i := len(names) - 1; i >= 0; i-- {
			fmt.Fprintf(b, "%s%q : ", indent, names[i])
			write(b, v[names[i]], depth+1)
			if i > 0 {
				b.WriteByte(',')
			}
		}
		b.WriteString("\n}")
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(" , ")
			}
			write(b, e, depth+1)
		}
		b.WriteByte(']')
	case string:
		escape(b, v)
	default:
		text, _ := json.Marshal(v) //nolint:errchkjson // a scalar of a JSON text
		b.Write(text)
	}
}

// escape writes a string with an escape for its first letter and for everything
// that is not ASCII.
func escape(b *bytes.Buffer, s string) {
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case i == 0 && r < 0x80 || r >= 0x80 && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		case r == '/':
			b.WriteString(`\/`)
		default:
			quoted, _ := jsontext.AppendQuote(nil, string(r)) // a rune is valid UTF-8
			b.Write(quoted[1 : len(quoted)-1])
		}
	}
	b.WriteByte('"')
}
