package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

func newFuzzed(tb testing.TB, cfg webhook.Config) *webhook.Receiver {
	tb.Helper()
	cfg.Logger = quiet
	rx, err := webhook.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return rx
}

// Every request gets a response, and a 2xx only if it is a signed event.
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
			t.Fatalf("status %d for %s %q", w.Code, method, body)
		}
		if w.Code < 200 || w.Code > 599 || w.Body.Len() == 0 {
			t.Fatalf("status %d, body %q", w.Code, w.Body)
		}

		r = httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
		if w := serve(readBack, r); w.Code/100 == 2 && (wrong != nil || e.ResourceID != "tx_pending") {
			t.Fatalf("believed %q", body)
		}
	})
}

// For every unsigned body, the handler sees only data from the API.
func FuzzForgedBodies(f *testing.F) {
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid", "external_ref", "order-1")
	api.set("transfers/po_1", map[string]any{"id": "po_1", "status": "paid", "amount": "1200", "external_ref": "payout-1"})
	client, err := newClient(api)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(paid("evt_1", "tx_1"))
	f.Add(`{"id":"x","event":"transaction","data":{"id":"tx_1","event_type":"transaction.paid","correlationId":"order-1","amount":1990.0}}`)
	f.Add(`{"id":"x","event":"transaction","evil":1,"data":{"id":"tx_2","event_type":"transaction.created","object":{"id":"tx_1"}}}`)
	f.Add(`{"id":"x","type":"payout.transferred","data":{"id":"po_1","amount":1200,"object":{"id":"po_1","external_ref":"payout-1"}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		rx := newFuzzed(t, webhook.Config{API: client, ReadBack: webhook.ReadBack{PerSecond: 1e9}})
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error {
			said := fmt.Sprint(e.ResourceID, e.CorrelationID, e.Status, e.ConfirmedStatus, e.APIVersion)
			if said != "tx_1order-1paidpaid" && said != "po_1payout-1paidpaid" || !strings.HasPrefix(e.ID, "fact-") {
				t.Errorf("%q became %q %s", body, e.ID, said)
			}
			tx, txErr := e.Transaction()
			tr, trErr := e.Transfer()
			if txErr == nil && tx.Data.Amount != 1990 || trErr == nil && tr.Data.Amount != 1200 || txErr != nil && trErr != nil {
				t.Errorf("%q became %s", body, e.Raw)
			}
			return nil
		})
		serve(rx, request(body))
	})
}
