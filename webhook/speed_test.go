package webhook_test

import (
	"testing"
	"time"

	"github.com/gateway-go/gateway/webhook"
)

const typical = `{"id":"0198c5a0-9999-7f2a-8d11-aaaa00000000","event":"transaction","api_version":"2.0.0","data":{"id":"0198c5a0-3c5e-7f2a-8d11-aaaa00000000","event_type":"transaction.paid","correlation_id":"order-2027-0117-k3x9qa","method":"pix","status":"paid","amount":15470,"currency":"BRL","paid_at":"2027-01-04T12:03:41.000Z","customer":{"name":"Maria Oliveira","email":"maria.oliveira@example.com","phone":"11987654321"},"products":[{"title":"Café em grãos, torra média, 500 g","unit_price":4290,"quantity":2},{"title":"Filtro de papel nº 103","unit_price":890,"quantity":1},{"title":"Oficina","unit_price":6000,"quantity":1},{"title":"Caneca esmaltada","unit_price":0,"quantity":1}],"informations":[{"key":"channel","value":"web"},{"key":"campaign","value":"verao"},{"key":"cart","value":"8f2c"},{"key":"gift","value":"yes"}]}}`

func BenchmarkVerify(b *testing.B) {
	header := headers(webhook.Sign(secret, time.Now(), []byte(typical)))
	b.ReportAllocs()
	for b.Loop() {
		if err := webhook.Verify(header, []byte(typical), secret); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte(typical)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := webhook.Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTyped(b *testing.B) {
	e, err := webhook.Parse([]byte(typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if tx, _ := e.Transaction(); len(tx.Data.Products) != 4 {
			b.Fatal("products are missing")
		}
	}
}
