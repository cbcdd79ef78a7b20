package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

func newFuzzed(f *testing.F, cfg webhook.Config) *webhook.Receiver {
	f.Helper()
	cfg.Logger = quiet
	rx, err := webhook.New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	return rx
}

// Whatever arrives, there is an answer, and it is 2xx only for a signed event.
func FuzzServeHTTP(f *testing.F) {
	api := &fakeAPI{}
	api.setTransaction("tx_pending", "pending")
	client, err := newClient(api)
	if err != nil {
		f.Fatal(err)
	}
	signedOnly := newFuzzed(f, webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}, MaxBody: 1 << 12})
	readBack := newFuzzed(f, webhook.Config{
		API: client, MaxBody: 1 << 12, ReadBack: webhook.ReadBack{PerSecond: 1e9},
	})
	f.Add("POST", "application/json", "", "", paid("evt_1", "tx_pending"), true)
	f.Add("POST", "application/json", "1700000000", vectorSignature, vectorBody, false)
	f.Add("GET", "", "", "", "", false)
	f.Add("POST", "application/json", "", "", `{"id":"e","event":"transaction","data":{"id":"../x","event_type":"transaction.paid"}}`, false)
	f.Add("POST", "application/x+json", "-1", "sha256=", `{"id":1,"type":"payout.failed","data":{"object":[]}}`, true)
	f.Add("POST", "", "", "", strings.Repeat("[", 5000), true)
	f.Fuzz(func(t *testing.T, method, contentType, timestamp, signature, body string, sign bool) {
		r := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
		r.Method = method
		r.Header.Set("Content-Type", contentType)
		r.Header.Set(webhook.DefaultTimestampHeader, timestamp)
		r.Header.Set(webhook.DefaultSignatureHeader, signature)
		if sign {
			timestamp, signature = webhook.Sign(secret, time.Now(), []byte(body))
			r.Header.Set(webhook.DefaultTimestampHeader, timestamp)
			r.Header.Set(webhook.DefaultSignatureHeader, signature)
		}
		e, wrong := webhook.Parse([]byte(body))
		w := serve(signedOnly, r)
		if accepted := w.Code/100 == 2; accepted && (!sign || wrong != nil || method != http.MethodPost) {
			t.Fatalf("answered %d to %s %q", w.Code, method, body)
		}
		if w.Code < 200 || w.Code > 599 || w.Body.Len() == 0 {
			t.Fatalf("answered %d %q", w.Code, w.Body)
		}

		r = httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
		if w := serve(readBack, r); w.Code/100 == 2 && (wrong != nil || e.ResourceID != "tx_pending") {
			t.Fatalf("believed %q", body)
		}
	})
}
