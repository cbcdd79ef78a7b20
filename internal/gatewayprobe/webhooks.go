package gatewayprobe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Receiver receives the webhooks of a run. Serve it at [Config.WebhookURL]; each
// experiment appends its own path to that URL. The zero value is ready to use.
type Receiver struct {
	mu    sync.Mutex
	hooks map[string]*hook
}

// hook is one path of a receiver.
type hook struct {
	receiver   *Receiver
	responses  []int // statuses of the first deliveries; then 200
	location   string
	deliveries []delivery
	arrived    chan struct{}
}

// delivery is one request that arrived.
type delivery struct {
	at     time.Time
	header http.Header
	event  response
	status int // the status that was returned
}

// ServeHTTP receives a delivery. A path that no experiment uses returns 404.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	status, location := r.take(path.Base(q.URL.Path), delivery{at: time.Now(), header: q.Header, event: response{body: body}})
	if location != "" {
		w.Header().Set("Location", location)
	}
	w.WriteHeader(status)
}

// take records a delivery and returns its status.
func (r *Receiver) take(name string, d delivery) (status int, location string) {
	_ = json.Unmarshal(d.event.body, &d.event.value, jsontext.AllowDuplicateNames(true))
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hooks[name]
	if h == nil {
		return http.StatusNotFound, ""
	}
	d.status = http.StatusOK
	if n := len(h.deliveries); n < len(h.responses) {
		d.status = h.responses[n]
	}
	h.deliveries = append(h.deliveries, d)
	select {
	case h.arrived <- struct{}{}:
	default:
	}
	return d.status, h.location
}

// needsReceiver ends an experiment if the run has no receiver.
func (t *trial) needsReceiver() {
	if t.probe.cfg.Receiver == nil {
		t.cannotTell("it needs a receiver of webhooks: set -webhook-url and -listen")
	}
}

// hook opens a path of the receiver for one experiment and returns its URL.
func (t *trial) hook(responses ...int) (string, *hook) {
	name := t.uuid()
	r := t.probe.cfg.Receiver
	h := &hook{receiver: r, responses: responses, arrived: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hooks == nil {
		r.hooks = map[string]*hook{}
	}
	r.hooks[name] = h
	t.undo = append(t.undo, func(context.Context) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.hooks, name)
	})
	return strings.TrimRight(t.probe.cfg.WebhookURL, "/") + "/" + name, h
}

func (h *hook) list() []delivery {
	h.receiver.mu.Lock()
	defer h.receiver.mu.Unlock()
	return slices.Clone(h.deliveries)
}

// await returns the deliveries when there are n of them, or after the timeout.
func (t *trial) await(h *hook, n int) []delivery {
	deadline := time.Now().Add(t.probe.cfg.WebhookWait)
	for len(h.list()) < n && time.Now().Before(deadline) {
		if err := t.arrival(h, time.Until(deadline)); err != nil {
			t.cannotTell("%v", err)
		}
	}
	list := h.list()
	for _, d := range list {
		t.exchanges = append(t.exchanges, Exchange{Method: http.MethodPost, Path: "(webhook)", Status: d.status, request: d.event.body})
	}
	return list
}

// events is await for an experiment that needs at least one delivery.
func (t *trial) events(h *hook, n int) []delivery {
	list := t.await(h, n)
	if len(list) == 0 {
		t.cannotTell("no webhook arrived within %v", t.probe.cfg.WebhookWait)
	}
	return list
}

func kinds(list []delivery) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.event.text("data.event_type"))
	}
	return names
}

// webhookExperiments test the rows of "Webhooks", and those whose effect only a
// webhook shows, with deliveries to a notify_url.
func webhookExperiments() map[string]experiment {
	tests := map[string]experiment{
		"created-then-pending": {does: "creates a transaction and receives its webhooks", check: func(t *trial) {
			url, h := t.hook()
			t.make(t.charge("notify_url", url))
			got := kinds(t.events(h, 2))
			t.want(slices.Equal(got, []string{"transaction.created", "transaction.pending"}), "it sends %v", got)
		}},
		"refused-event": {does: "sets a transaction to refused and to expired, and receives its webhooks", check: func(t *trial) {
			url, h := t.hook()
			path, _ := t.make(t.charge("notify_url", url))
			before := len(t.events(h, 2))
			t.set(path, "refused")
			t.set(path, "expired")
			got := kinds(t.await(h, before+1))[before:]
			t.want(len(got) == 0, "it sends %v", got)
		}},
		"captured-event": {does: "sets a transaction to captured and receives its webhooks", check: func(t *trial) {
			url, h := t.hook()
			path, _ := t.make(t.charge("notify_url", url))
			before := len(t.events(h, 2))
			t.set(path, "captured")
			got := kinds(t.await(h, before+1))[before:]
			t.want(slices.Equal(got, []string{"transaction.paid"}), "it sends %v", got)
		}},
		"event-id": {does: "fails the first delivery of an event and compares it with the second", check: func(t *trial) {
			list := t.retried(http.StatusServiceUnavailable)
			first, second := list[0].event, list[1].event
			t.want(first.text("id") != "", "an event has no id")
			t.want(first.text("id") == second.text("id"), "the second delivery has a different id")
			t.want(string(first.body) == string(second.body), "the second delivery has a different body")
		}},
		"delivery-schedule": {does: "fails the first delivery of an event and waits for the second", check: func(t *trial) {
			list := t.retried(http.StatusServiceUnavailable)
			pause := list[1].at.Sub(list[0].at)
			t.want(pause > 3*time.Second && pause < 10*time.Second, "the second attempt arrives after %v", pause.Round(time.Second))
		}},
		"delivery-success": {does: "acknowledges a delivery with 202, and redirects one", check: func(t *trial) {
			url, taken := t.hook(http.StatusAccepted, http.StatusNoContent)
			t.make(t.charge("notify_url", url))
			n := len(t.await(taken, 3))
			if n == 0 {
				t.cannotTell("no webhook arrived within %v", t.probe.cfg.WebhookWait)
			}
			t.want(n == 2, "%d deliveries arrive although the first two were acknowledged with 202 and 204", n)
			target, followed := t.hook()
			url, redirecting := t.hook(http.StatusFound, http.StatusOK)
			redirecting.location = target
			t.make(t.charge("notify_url", url))
			n = len(t.await(redirecting, 3))
			t.want(len(followed.list()) == 0, "a redirect is followed")
			t.want(n == 3, "a redirect counts as acknowledged")
		}},
		"signature": {does: "checks the headers of deliveries to a notify_url", check: func(t *trial) {
			url, h := t.hook()
			t.make(t.charge("notify_url", url))
			for name := range t.events(h, 1)[0].header {
				t.want(!strings.Contains(strings.ToLower(name), "signature"), "a delivery to a notify_url is signed, in %s", name)
			}
		}},
		"api-version": {does: "checks the api_version of an event", dialect: true, run: func(t *trial) string {
			url, h := t.hook()
			t.make(t.charge("notify_url", url))
			event := t.events(h, 1)[0].event
			switch version := event.text("api_version"); version {
			case "2.0.0":
				return document
			case "v1", "v2":
				return live
			default:
				return fmt.Sprintf("api_version is %q", version)
			}
		}},
		"sandbox-pays": {does: "creates a transaction of 7300 cents and waits for its payment", dialect: true, run: func(t *trial) string {
			url, h := t.hook()
			path, _ := t.make(t.charge("amount", 7300, "notify_url", url))
			for range 2 { // its payment takes as long as the probe waits for a delivery
				t.await(h, 3)
			}
			r := t.setup(t.get(path))
			return either(r, r.text("data.status") == "pending", r.text("data.status") == "paid")
		}},
		"partial-refund-event": {does: "refunds a part of a paid transaction and checks the kind of its event", dialect: true, run: func(t *trial) string {
			url, h := t.hook()
			path, _ := t.make(t.charge("notify_url", url))
			t.set(path, "paid")
			t.setup(t.put(path+"/refund", object{"amount": 1}))
			for _, d := range t.events(h, 4) {
				switch d.event.text("data.event_type") {
				case "transaction.partially_refunded":
					return live
				case "transaction.refunded":
					return document
				}
			}
			t.cannotTell("no webhook about the refund arrived")
			return ""
		}},
		"absent-phone": {does: "checks the phone in an event of a buyer without one", dialect: true, run: func(t *trial) string {
			url, h := t.hook()
			t.make(t.charge("notify_url", url, "buyer.phone", absent{}))
			event := t.events(h, 1)[0].event
			switch phone := event.text("data.customer.phone"); {
			case phone == "null":
				return live
			case event.null("data.customer.phone"), event.at("data.customer.phone") == nil:
				return document
			default:
				return fmt.Sprintf("phone is %s", shape(phone))
			}
		}},
	}
	for id, test := range tests {
		test.webhook = true
		tests[id] = test
	}
	return tests
}

// retried fails the first delivery of a new transaction and returns both attempts of
// its event.
func (t *trial) retried(status int) []delivery {
	url, h := t.hook(status)
	t.make(t.charge("notify_url", url))
	list := t.events(h, 3)
	first := list[0]
	for _, d := range list[1:] {
		if d.event.text("data.event_type") == first.event.text("data.event_type") {
			return []delivery{first, d}
		}
	}
	t.want(false, "a delivery with the response %d is not repeated within %v", status, t.probe.cfg.WebhookWait)
	return nil
}
