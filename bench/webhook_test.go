package bench_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"
	"github.com/PaddleHQ/paddle-go-sdk/v4/pkg/paddlenotification"
	"github.com/google/go-github/v84/github"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/stripe/stripe-go/v85"
	stripewebhook "github.com/stripe/stripe-go/v85/webhook"
	svix "github.com/svix/svix-webhooks/go"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

// receiver verifies and reads a delivery: event reads what routing needs and
// returns the event's id; typed reads every member and returns the resource's
// id.
type receiver struct {
	name         string
	body         []byte
	id, resource string
	header       http.Header // with a fresh signature
	event, typed func(http.Header, []byte) (string, error)
}

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func receivers(now time.Time) []receiver {
	return []receiver{
		gatewayReceiver(now), stripeReceiver(now), paddleReceiver(now), svixReceiver(now), githubReceiver(),
	}
}

func gatewayReceiver(now time.Time) receiver {
	r := receiver{name: "gateway", id: "0198c5a0-9999-7f2a-8d11-aaaa00000000", resource: transactionID}
	r.body = []byte(compact(`{
		"id":"0198c5a0-9999-7f2a-8d11-aaaa00000000","event":"transaction","api_version":"2.0.0","data":{
			"id":"0198c5a0-3c5e-7f2a-8d11-aaaa00000000","event_type":"transaction.paid",
			"correlation_id":"order-2027-0117-k3x9qa","method":"pix","status":"paid","amount":15470,"currency":"BRL",
			"paid_at":"2027-01-04T12:03:41.000Z",
			"customer":{"name":"Maria Oliveira","email":"maria.oliveira@example.com","phone":"11987654321"},
			"products":[{"title":"Café em grãos, torra média, 500 g","unit_price":4290,"quantity":2},
				{"title":"Filtro de papel nº 103","unit_price":890,"quantity":1},
				{"title":"Oficina de métodos de preparo (online)","unit_price":6000,"quantity":1},
				{"title":"Caneca esmaltada","unit_price":0,"quantity":1},{"title":"Cartão de aniversário","unit_price":0,"quantity":1}],
			"informations":[{"key":"channel","value":"web"},{"key":"campaign","value":"verao"},{"key":"cart","value":"8f2c"},
				{"key":"gift","value":"yes"},{"key":"deliver","value":"after 18h, or leave it at the front desk"},
				{"key":"invoice","value":"NF-e 000.117.204"},{"key":"seller","value":"ana"},{"key":"wish","value":"whole beans, a gift wrap, and a call before the delivery"},
				{"key":"card","value":"Feliz aniversário, Joana"}]}}`))
	key := gateway.NewSecret(webhookSecret)
	timestamp, signature := webhook.Sign(key, now, r.body)
	r.header = http.Header{"X-Gateway-Timestamp": {timestamp}, "X-Gateway-Signature": {signature}}
	verify := func(header http.Header, body []byte) (*webhook.Event, error) {
		if err := webhook.Verify(header, body, key); err != nil {
			return nil, err
		}
		return webhook.Parse(body)
	}
	r.event = func(header http.Header, body []byte) (string, error) {
		e, err := verify(header, body)
		if err != nil {
			return "", err
		}
		return e.ID, nil
	}
	r.typed = func(header http.Header, body []byte) (string, error) {
		e, err := verify(header, body)
		if err != nil {
			return "", err
		}
		t, err := e.Transaction()
		if err != nil || len(t.Data.Products) == 0 {
			return "", errors.New("no transaction")
		}
		return t.ResourceID, nil
	}
	return r
}

func stripeReceiver(now time.Time) receiver {
	r := receiver{name: "stripe", id: "evt_1PQrStUvWxYz0000000001", resource: stripeID}
	r.body = []byte(`{"id":"evt_1PQrStUvWxYz0000000001","object":"event","api_version":"` + stripe.APIVersion + `",` + compact(`
		"created":1799064221,"livemode":false,"pending_webhooks":1,
		"request":{"id":"req_0001","idempotency_key":"order-2027-0117-k3x9qa"},"type":"payment_intent.succeeded",
		"data":{"object":{"id":"pi_3PQrStUvWxYz987600000000","object":"payment_intent","amount":15470,
			"amount_details":{"tip":{}},"amount_received":15470,"automatic_payment_methods":{"enabled":true},
			"capture_method":"automatic_async","client_secret":"pi_3PQrStUvWxYz987600000000_secret_Qx7Jm2Lk8Rt4",
			"created":1799064000,"currency":"brl","customer":"cus_QxJm2Lk8Rt4Vn6","description":"order-2027-0117-k3x9qa",
			"latest_charge":"ch_3PQrStUvWxYz000000000001","livemode":false,"metadata":{"order":"2027-0117","cart":"8f2c"},
			"payment_method":"pm_1PQrStUvWxYz0000000001","payment_method_types":["card","boleto"],
			"receipt_email":"maria.oliveira@example.com",
			"shipping":{"address":{"city":"Rio de Janeiro","country":"BR","line1":"Rua das Laranjeiras, 210","line2":"apto 31",
				"postal_code":"22240-003","state":"RJ"},"name":"Maria Oliveira","phone":"+5511987654321"},
			"status":"succeeded","transfer_group":"order-2027-0117"}}}`))
	signed := stripewebhook.GenerateTestSignedPayload(&stripewebhook.UnsignedPayload{
		Payload: r.body, Secret: webhookSecret, Timestamp: now,
	})
	r.header = http.Header{"Stripe-Signature": {signed.Header}}
	r.event = func(header http.Header, body []byte) (string, error) {
		e, err := stripewebhook.ConstructEvent(body, header.Get("Stripe-Signature"), webhookSecret)
		return e.ID, err
	}
	r.typed = func(header http.Header, body []byte) (string, error) {
		e, err := stripewebhook.ConstructEvent(body, header.Get("Stripe-Signature"), webhookSecret)
		if err != nil {
			return "", err
		}
		var p stripe.PaymentIntent
		err = json.Unmarshal(e.Data.Raw, &p)
		return p.ID, err
	}
	return r
}

func paddleReceiver(now time.Time) receiver {
	r := receiver{name: "paddle", id: "evt_01hsdn97563968dy0szkmgjwh3", resource: paddleID}
	r.body = []byte(compact(`{
		"event_id":"evt_01hsdn97563968dy0szkmgjwh3","event_type":"transaction.completed","occurred_at":"2027-01-04T12:03:41.000000Z",
		"notification_id":"ntf_01hsdn977e920kbgzt6r6c9rqc","data":{"id":"txn_01hv8x29kz0t586x00000000","status":"completed",
			"customer_id":"ctm_01hv6y1jedq4p1n0yqn5ba3ky4","address_id":"add_01hv8gq3318ktkfengj2r75gfx","business_id":null,
			"custom_data":{"order":"2027-0117","reference":"order-2027-0117-k3x9qa"},"currency_code":"BRL","origin":"api",
			"subscription_id":null,"invoice_id":"inv_01hv8x2acma2gz7he8kg11s0rj","invoice_number":"325-10566",
			"collection_mode":"automatic","discount_id":null,"billing_details":null,"billing_period":null,
			"items":[{"price":{"id":"pri_01gsz8x8sawmvhz1pv30nge1ke","product_id":"pro_01gsz4t5hdjse780zja8vvr7jg",
				"description":"Café em grãos","type":"custom","name":"Café","billing_cycle":null,"trial_period":null,
				"tax_mode":"account_setting","unit_price":{"amount":"4290","currency_code":"BRL"},"unit_price_overrides":[],
				"quantity":{"minimum":1,"maximum":99},"status":"active","custom_data":null},"quantity":2}],
			"payments":[],"checkout":{"url":"https://shop.example.com/pay"},
			"created_at":"2027-01-04T12:00:00.000Z","updated_at":"2027-01-04T12:03:41.000Z","billed_at":null,"revised_at":null}}`))
	timestamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	_, _ = fmt.Fprintf(mac, "%s:%s", timestamp, r.body)
	r.header = http.Header{"Paddle-Signature": {"ts=" + timestamp + ";h1=" + hex.EncodeToString(mac.Sum(nil))}}

	verifier := paddle.NewWebhookVerifier(webhookSecret, paddle.VerifierWithTimestampTolerance(5*time.Minute))
	read := func(header http.Header, body []byte, into any) error {
		req := http.Request{Header: header, Body: io.NopCloser(bytes.NewReader(body))}
		switch ok, err := verifier.Verify(&req); {
		case err != nil:
			return err
		case !ok:
			return errors.New("wrong signature")
		}
		return json.Unmarshal(body, into)
	}
	r.event = func(header http.Header, body []byte) (string, error) {
		var e paddlenotification.GenericNotificationEvent
		err := read(header, body, &e)
		return e.EventID, err
	}
	r.typed = func(header http.Header, body []byte) (string, error) {
		var e paddlenotification.TransactionCompleted
		err := read(header, body, &e)
		return e.Data.ID, err
	}
	return r
}

// svix only verifies; the event is parsed with encoding/json.
func svixReceiver(now time.Time) receiver {
	r := gatewayReceiver(now)
	r.name = "svix"
	verifier, err := svix.NewWebhook(webhookSecret)
	if err != nil {
		panic(err) // the secret does not have svix's format
	}
	signature, err := verifier.Sign("msg_1", now, r.body)
	if err != nil {
		panic(err)
	}
	r.header = http.Header{
		"Svix-Id": {"msg_1"}, "Svix-Timestamp": {strconv.FormatInt(now.Unix(), 10)}, "Svix-Signature": {signature},
	}
	type event struct {
		ID    string          `json:"id"`
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	type transactionEvent struct {
		ID   string `json:"id"`
		Data struct {
			ID            string    `json:"id"`
			EventType     string    `json:"event_type"`
			CorrelationID string    `json:"correlation_id"`
			Method        string    `json:"method"`
			Status        string    `json:"status"`
			Amount        int64     `json:"amount"`
			Currency      string    `json:"currency"`
			PaidAt        time.Time `json:"paid_at"`
			Customer      handBuyer `json:"customer"`
			Products      []struct {
				Title     string `json:"title"`
				UnitPrice int64  `json:"unit_price"`
				Quantity  int    `json:"quantity"`
			} `json:"products"`
			Informations []struct {
				Key   string `json:"key"`
				Value string `json:"value"`
			} `json:"informations"`
		} `json:"data"`
	}
	r.event = func(header http.Header, body []byte) (string, error) {
		var e event
		if err := verifier.Verify(body, header); err != nil {
			return "", err
		}
		err := json.Unmarshal(body, &e)
		return e.ID, err
	}
	r.typed = func(header http.Header, body []byte) (string, error) {
		var e transactionEvent
		if err := verifier.Verify(body, header); err != nil {
			return "", err
		}
		err := json.Unmarshal(body, &e)
		return e.Data.ID, err
	}
	return r
}

// githubReceiver gets the event's id from a header: GitHub does not send it in the body.
// Its signature has no timestamp.
func githubReceiver() receiver {
	r := receiver{name: "github", id: "0198c5a0-9999", resource: githubID}
	r.body = []byte(`{"action":"opened","issue":` + compact(`{"id":1700000000,"number":1347,"state":"open","title":"Order 2027-0117",
		"url":"https://api.example.com/repos/shop/orders/issues/1347","html_url":"https://example.com/shop/orders/issues/1347",
		"body":"Café em grãos, torra média, 500 g: 2 at 42.90. Filtro de papel nº 103: 1 at 8.90.",
		"user":{"login":"maria","id":1,"node_id":"MDQ6VXNlcjE=","url":"https://api.example.com/users/maria","type":"User"},
		"labels":[{"id":208045946,"name":"paid","description":"The payment has arrived","color":"f29513","default":true}],
		"locked":false,"comments":0,"created_at":"2027-01-04T12:00:00Z","updated_at":"2027-01-04T12:03:41Z",
		"author_association":"COLLABORATOR"},
		"repository":{"id":35129377,"name":"orders","full_name":"shop/orders","private":true,
			"owner":{"login":"shop","id":6752317,"type":"Organization"},"html_url":"https://example.com/shop/orders",
			"description":"Orders of the shop","fork":false,"created_at":"2026-05-05T23:40:12Z","default_branch":"main"},
		"sender":{"login":"maria","id":1,"node_id":"MDQ6VXNlcjE=","url":"https://api.example.com/users/maria","type":"User"},
		"installation":{"id":234,"node_id":"MDIzOkludGVncmF0aW9uSW5zdGFsbGF0aW9uMjM0"}}`))
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	_, _ = mac.Write(r.body)
	r.header = http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"issues"}, "X-Github-Delivery": {"0198c5a0-9999"},
		"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
	}
	verify := func(header http.Header, body []byte) ([]byte, error) {
		return github.ValidatePayloadFromBody("application/json", bytes.NewReader(body),
			header.Get(github.SHA256SignatureHeader), []byte(webhookSecret))
	}
	r.event = func(header http.Header, body []byte) (string, error) {
		payload, err := verify(header, body)
		if err != nil {
			return "", err
		}
		var e struct {
			Action string          `json:"action"`
			Issue  json.RawMessage `json:"issue"`
		}
		err = json.Unmarshal(payload, &e)
		return header.Get(github.DeliveryIDHeader), err
	}
	r.typed = func(header http.Header, body []byte) (string, error) {
		payload, err := verify(header, body)
		if err != nil {
			return "", err
		}
		e, err := github.ParseWebHook(header.Get(github.EventTypeHeader), payload)
		if err != nil {
			return "", err
		}
		opened, ok := e.(*github.IssuesEvent)
		if !ok {
			return "", errors.New("no issue")
		}
		return strconv.FormatInt(opened.GetIssue().GetID(), 10), nil
	}
	return r
}

// Every receiver reads its event, all events have a similar size, and every
// receiver rejects a modified body.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, r := range receivers(time.Now()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			assert.InDelta(t, 1200, len(r.body), 60, "bytes of the body")
			id, err := r.event(r.header, r.body)
			require.NoError(t, err)
			assert.Equal(t, r.id, id)
			id, err = r.typed(r.header, r.body)
			require.NoError(t, err)
			assert.Equal(t, r.resource, id)

			forged := bytes.Replace(r.body, []byte("Maria"), []byte("Mario"), 1)
			if bytes.Equal(forged, r.body) {
				forged = bytes.Replace(r.body, []byte("0"), []byte("1"), 1)
			}
			_, err = r.event(r.header, forged)
			require.Error(t, err)
			_, err = r.typed(r.header, forged)
			require.Error(t, err)
		})
	}
}

// BenchmarkWebhook verifies a delivery and reads what routing needs.
func BenchmarkWebhook(b *testing.B) {
	eachReceiver(b, func(r receiver) func(http.Header, []byte) (string, error) { return r.event })
}

// BenchmarkWebhookTyped verifies a delivery and reads all of it.
func BenchmarkWebhookTyped(b *testing.B) {
	eachReceiver(b, func(r receiver) func(http.Header, []byte) (string, error) { return r.typed })
}

func eachReceiver(b *testing.B, work func(receiver) func(http.Header, []byte) (string, error)) {
	b.Helper()
	for _, i := range rand.Perm(len(receivers(time.Now()))) { // in random order: see each
		r := receivers(time.Now())[i] // signed now: a signature lasts five minutes
		do := work(r)
		b.Run("memory/"+r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := do(r.header, r.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
