package webhooktest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// Target is a handler under test. It must have an effect for the kinds
// transaction.paid and transaction.refunded, even if they are late, and
// acknowledge all others.
type Target struct {
	Handler http.Handler

	// Secret is the signing key of the handler. Without one the handler is
	// expected to call the API; see SetAPI.
	Secret gateway.Secret

	// Effects returns the effects of the handler so far, with repetitions.
	Effects func() []Effect

	// FailNext makes the next effect fail with the error, as if the database
	// were down. If it is nil, the checks of failures are skipped.
	FailNext func(error)

	// SetAPI makes the handler's API return a transaction in that state, with any
	// amount and reference. If it is nil, the only check of unsigned deliveries
	// is that they are rejected.
	SetAPI func(id, status string)

	// Path is the URL path; default "/webhooks/gateway".
	Path string

	// EffectTimeout is how long the effect may take if the handler responds
	// first; default 5 s.
	EffectTimeout time.Duration
}

// Effect is one effect of a handler.
type Effect struct {
	EventID  string
	Kind     webhook.Kind
	Resource string // the resource's id
}

// Run checks that a handler loses no event, applies no effect twice, and
// ignores everything that the gateway did not send.
func Run(t TB, target Target) {
	t.Helper()
	if target.EffectTimeout <= 0 {
		target.EffectTimeout = 5 * time.Second
	}
	if target.Handler == nil || target.Effects == nil || (target.Secret.IsZero() && target.SetAPI == nil) {
		t.Errorf("webhooktest: a Target needs Handler, Effects, and Secret or SetAPI")
		return
	}
	target.Path = cmp.Or(target.Path, "/webhooks/gateway")
	always, signed, readBack := true, !target.Secret.IsZero(), target.SetAPI != nil
	for _, one := range []struct {
		name    string
		do      func(*battery)
		applies bool
	}{
		{"invalid bodies", (*battery).garbage, always},
		{"an unsigned delivery", (*battery).unsigned, always},
		{"every kind is acknowledged", (*battery).everyKind, signed},
		{"an event has its effect", (*battery).effective, signed},
		{"a redelivered event", (*battery).duplicates, signed},
		{"concurrent deliveries of one event", (*battery).concurrentDuplicates, signed},
		{"several events of one resource", (*battery).twoOfAResource, signed},
		{"a failing effect", (*battery).failure, signed && target.FailNext != nil},
		{"a forged delivery", (*battery).forged, signed},
		{"a forged delivery before the real one", (*battery).shadow, signed},
		{"an old signature", (*battery).stale, signed},
		{"the signature covers the exact bytes", (*battery).exactBytes, signed},
		{"a changed body", (*battery).tampered, signed},
		{"an unsigned delivery that the API confirms", (*battery).confirmed, readBack},
		{"an unsigned delivery that the API does not confirm", (*battery).unconfirmed, readBack},
		{"an unsigned delivery that also names a paid transaction", (*battery).payingForger, readBack},
	} {
		if one.applies {
			check(t, one.name, func(c *checker) {
				c.t.Helper()
				one.do(&battery{checker: c, Target: target})
			})
		}
	}
}

type battery struct {
	*checker
	Target
}

// recorder records the parts of a response that the checks use.
type recorder struct {
	header http.Header
	status int
}

// Header is as in [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader is as in [http.ResponseWriter].
func (r *recorder) WriteHeader(status int) { r.status = cmp.Or(r.status, status) }

// Write is as in [http.ResponseWriter].
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return len(b), nil
}

// send makes one delivery and returns the status.
func (b *battery) send(r *http.Request) int {
	status, _ := b.deliver(r)
	return status
}

// deliver makes one delivery and returns the response's status and
// Retry-After, if any.
func (b *battery) deliver(r *http.Request) (status int, retryAfter time.Duration) {
	r = Again(r)
	r.URL.Path = b.Path
	w := &recorder{header: http.Header{}}
	b.Handler.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	seconds, _ := strconv.Atoi(w.header.Get("Retry-After"))
	return w.status, time.Duration(seconds) * time.Second
}

func ok(status int) bool { return status >= 200 && status <= 299 }

// longestRetryAfter limits how long the battery waits before it redelivers.
// The receiver's backoff starts with up to 5 s.
const longestRetryAfter = 10 * time.Second

// sendUntilTaken redelivers as the gateway does, until the response is 2xx.
func (b *battery) sendUntilTaken(r *http.Request) {
	b.t.Helper()
	status := 0
	for range 10 {
		var retryAfter time.Duration
		if status, retryAfter = b.deliver(r); ok(status) {
			return
		}
		<-time.After(min(max(retryAfter, 20*time.Millisecond), longestRetryAfter))
	}
	b.errorf("the handler returned status %d to every delivery of an event; it must accept the event eventually", status)
	panic(b.checker)
}

// count returns the number of effects for a resource.
func (b *battery) count(resource string) (n int) {
	for _, e := range b.Effects() {
		if e.Resource == resource {
			n++
		}
	}
	return n
}

// expect waits for n effects for the resource, then sends another event to
// make sure that no more follow.
func (b *battery) expect(resource string, n int, what string) {
	b.t.Helper()
	b.wait(func() bool { return b.count(resource) >= n })
	b.barrier()
	got := b.count(resource)
	b.need(got == n, "%s: %d effects, want %d", what, got, n)
}

func (b *battery) wait(done func() bool) {
	for giveUp := time.Now().Add(b.EffectTimeout); !done() && time.Now().Before(giveUp); {
		<-time.After(2 * time.Millisecond)
	}
}

// barrier sends an unrelated event and waits for its effect.
func (b *battery) barrier() {
	b.t.Helper()
	id := NewID()
	if !b.Secret.IsZero() {
		b.sendUntilTaken(Signed(b.Secret, paidBody(NewID(), id)))
	} else {
		b.SetAPI(id, "paid")
		b.sendUntilTaken(Unsigned(barePaidBody(NewID(), id)))
	}
	b.wait(func() bool { return b.count(id) > 0 })
	b.need(b.count(id) == 1, "an ordinary event had %d effects, want 1", b.count(id))
}

func paidBody(event, resource string) []byte {
	return Event{Kind: webhook.TransactionPaid, ID: event, ResourceID: resource}.Body()
}

// barePaidBody has only the reliable members, so it can't contradict the API.
func barePaidBody(event, resource string) []byte {
	return []byte(`{"id":"` + event + `","event":"transaction","data":{"id":"` + resource + `","event_type":"transaction.paid"}}`)
}

func (b *battery) everyKind() {
	for _, e := range append(Every(), Event{Kind: "transaction.brand_new"}, Event{Kind: webhook.TransactionPartiallyRefunded}) {
		status := b.send(Signed(b.Secret, e.Body()))
		b.that(ok(status), "%s: status %d, want 2xx", e.Kind, status)
	}
	unknown := []byte(`{"id":"` + NewID() + `","event":"brand_new","data":{"id":"x","event_type":"brand_new.thing"}}`)
	status := b.send(Signed(b.Secret, unknown))
	b.that(ok(status), "an event of an unknown family: status %d, want 2xx", status)
}

func (b *battery) effective() {
	event, resource := NewID(), NewID()
	status := b.send(Signed(b.Secret, paidBody(event, resource)))
	b.that(ok(status), "status %d, want 2xx", status)
	b.expect(resource, 1, "one event")
	for _, e := range b.Effects() {
		if e.Resource == resource {
			b.that(e == Effect{EventID: event, Kind: webhook.TransactionPaid, Resource: resource}, "got the effect %+v", e)
		}
	}
}

func (b *battery) duplicates() {
	resource := NewID()
	r := Signed(b.Secret, paidBody(NewID(), resource))
	for range 4 {
		b.sendUntilTaken(r)
	}
	b.expect(resource, 1, "one event, delivered four times")
}

func (b *battery) concurrentDuplicates() {
	resource := NewID()
	r := Signed(b.Secret, paidBody(NewID(), resource))
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { b.send(r) })
	}
	all.Wait()
	b.sendUntilTaken(r)
	b.expect(resource, 1, "one event, delivered ten times concurrently")
}

func (b *battery) twoOfAResource() {
	resource := NewID()
	refund := Event{Kind: webhook.TransactionRefunded, ResourceID: resource, Status: string(gateway.TransactionPartiallyRefunded)}
	if b.SetAPI != nil {
		b.SetAPI(resource, refund.Status)
	}
	b.sendUntilTaken(Signed(b.Secret, paidBody(NewID(), resource)))
	b.sendUntilTaken(Signed(b.Secret, refund.Body()))
	b.sendUntilTaken(Signed(b.Secret, refund.Body())) // with its own id: the second partial refund
	b.expect(resource, 3, "a payment and two partial refunds of one transaction")
}

func (b *battery) failure() {
	resource := NewID()
	r := Signed(b.Secret, paidBody(NewID(), resource))
	b.FailNext(errors.New("webhooktest: the database is down"))
	if status := b.send(r); ok(status) {
		// The handler has an inbox, which must retry: no redelivery follows.
		b.wait(func() bool { return b.count(resource) > 0 })
		b.need(b.count(resource) == 1, "the handler acknowledged an event whose effect failed, and did not retry it")
		return
	}
	b.need(b.count(resource) == 0, "a failed effect was counted as done")
	b.sendUntilTaken(r)
	b.expect(resource, 1, "an event that failed once, redelivered")
	b.sendUntilTaken(r)
	b.expect(resource, 1, "the same event, redelivered after its effect")
}

// refuses sends deliveries that must be rejected.
func (b *battery) refuses(r *http.Request, resource, what string) {
	b.t.Helper()
	status := b.send(r)
	b.that(!ok(status), "%s: status %d, want an error", what, status)
	b.barrier()
	b.that(b.count(resource) == 0, "%s had an effect, want none", what)
}

func (b *battery) forged() {
	resource := NewID()
	body := paidBody(NewID(), resource)
	b.refuses(Signed(gateway.NewSecret("a guess"), body), resource, "a delivery signed with another key")
	r := Signed(b.Secret, body)
	r.Header.Set(webhook.DefaultSignatureHeader, "sha256=")
	b.refuses(r, resource, "a delivery with an empty signature")
	r = Signed(b.Secret, body)
	r.Header.Del(webhook.DefaultTimestampHeader)
	b.refuses(r, resource, "a delivery without a timestamp")
	r = Signed(b.Secret, body)
	r.Header.Set(webhook.DefaultSignatureHeader, strings.Repeat("0", 64))
	b.refuses(r, resource, "a delivery with zeros for a signature")
}

func (b *battery) shadow() {
	event, resource, evil := NewID(), NewID(), NewID()
	for range 3 {
		b.send(Signed(gateway.NewSecret("a guess"), paidBody(event, evil)))
		b.send(Unsigned(paidBody(event, evil)))
	}
	b.sendUntilTaken(Signed(b.Secret, paidBody(event, resource)))
	b.expect(resource, 1, "an event whose id was used by a forged delivery")
	b.expect(evil, 0, "the forged delivery")
}

func (b *battery) stale() {
	resource := NewID()
	body := paidBody(NewID(), resource)
	b.refuses(Stale(b.Secret, body), resource, "a delivery that was signed more than five minutes ago")
	b.refuses(SignedAt(b.Secret, time.Now().Add(webhook.Tolerance+5*time.Second), body), resource, "a delivery signed in the future")
	b.sendUntilTaken(SignedAt(b.Secret, time.Now().Add(-webhook.Tolerance+5*time.Second), body))
	b.expect(resource, 1, "a delivery signed less than five minutes ago")
}

// exactBytes sends JSON as other encoders write it.
func (b *battery) exactBytes() {
	for _, body := range []struct {
		what    string
		rewrite func([]byte) []byte
	}{
		{"with spaces", indent},
		{"with escapes", func(body []byte) []byte {
			return bytes.ReplaceAll(body, []byte("Ana Souza"), []byte(`\u0041na \u2028 Souza \/`))
		}},
		{"with a large number", func(body []byte) []byte {
			return bytes.Replace(body, []byte("{"), []byte(`{"n":12345678901234567890,`), 1)
		}},
		{"with a trailing newline", func(body []byte) []byte { return append(body, '\n') }},
	} {
		resource := NewID()
		if status := b.send(Signed(b.Secret, body.rewrite(paidBody(NewID(), resource)))); !ok(status) {
			b.errorf("a body %s: status %d, want 2xx", body.what, status)
			continue
		}
		b.expect(resource, 1, "a body "+body.what)
	}
}

func indent(body []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, body, "", "  ") != nil {
		return body
	}
	return out.Bytes()
}

func (b *battery) tampered() {
	resource := NewID()
	body := paidBody(NewID(), resource)
	b.refuses(Tampered(b.Secret, body, indent(body)), resource, "a signed body with spaces that were not there")
	b.refuses(Tampered(b.Secret, body, append(bytes.Clone(body), ' ')), resource, "a signed body with one byte more")
	b.refuses(Tampered(b.Secret, body, body[:len(body)-1]), resource, "a signed body with one byte less")
	evil := NewID()
	b.refuses(Tampered(b.Secret, body, paidBody(NewID(), evil)), evil, "a signature of another body")
}

func (b *battery) garbage() {
	huge := []byte(`{"id":"` + NewID() + `","pad":"` + strings.Repeat("x", 2<<20) + `"}`)
	for what, body := range map[string][]byte{
		"an empty body": {}, "text": []byte("hello"), "a number": []byte("1"), "null": []byte("null"), "a list": []byte("[]"),
		"half an object": []byte(`{"id":"x"`), "an event without an id": []byte(`{"event":"transaction"}`),
		"bytes": []byte("\x00\xff\xfe"), "two megabytes": huge,
	} {
		r := Unsigned(body)
		if !b.Secret.IsZero() {
			r = Signed(b.Secret, body)
		}
		status := b.send(r)
		b.that(!ok(status), "%s: status %d, want an error", what, status)
	}
	r := Unsigned(nil)
	r.Method = http.MethodGet
	status := b.send(r)
	b.that(!ok(status), "a GET: status %d, want an error", status)
}

func (b *battery) unsigned() {
	resource := NewID()
	b.refuses(Unsigned(paidBody(NewID(), resource)), resource, "an unsigned delivery about an unknown resource")
}

func (b *battery) confirmed() {
	resource := NewID()
	b.SetAPI(resource, "paid")
	b.sendUntilTaken(Unsigned(barePaidBody(NewID(), resource)))
	b.expect(resource, 1, "an unsigned delivery that the API confirms")
	b.sendUntilTaken(Unsigned(barePaidBody(NewID(), resource)))
	b.expect(resource, 1, "the same event under another id")
	if !b.Secret.IsZero() {
		b.sendUntilTaken(Signed(b.Secret, barePaidBody(NewID(), resource)))
		b.expect(resource, 1, "the same event with a signature")
	}
}

func (b *battery) unconfirmed() {
	resource := NewID()
	r := Unsigned(barePaidBody(NewID(), resource))
	b.SetAPI(resource, "pending")
	b.refuses(r, resource, "an unsigned delivery that the API does not confirm yet")
	b.SetAPI(resource, "refused")
	b.refuses(r, resource, "an unsigned delivery that the API denies")
	b.SetAPI(resource, "paid")
	b.sendUntilTaken(r)
	b.expect(resource, 1, "once the API confirms it")
}

func (b *battery) payingForger() {
	mine, victim := NewID(), NewID()
	b.SetAPI(mine, "paid")
	b.SetAPI(victim, "pending")
	for _, data := range []string{
		`"id":"` + victim + `","object":{"id":"` + mine + `"}`,
		`"id":"` + mine + `","id":"` + victim + `"`,
		`"id":"` + victim + `","id":"` + mine + `"`,
	} {
		body := `{"id":"` + NewID() + `","event":"transaction","data":{"event_type":"transaction.paid",` + data + `}}`
		b.send(Unsigned([]byte(body)))
	}
	b.barrier()
	b.that(b.count(victim) == 0, "an unsigned body that also names a paid transaction had an effect on an unpaid one")
}
