package doubt_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/doubt"
	"github.com/gateway-go/gateway/mockserver"
)

func charge() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: "order-1", Amount: 500, Method: gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 500}},
	}
}

// TestKinds has the rejections of a first request and of its repeat.
func TestKinds(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ first, repeat string }{
		422: {"validation", "validation"},
		400: {"validation", "validation"},
		404: {"not_found", "not_found"},
		409: {"duplicate", "conflict"},
		410: {"retired", "retired"},
		401: {},
		403: {},
		429: {},
		503: {},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t)
			client := gw.Client(gateway.WithMaxAttempts(1))
			if err := gw.Faults.Add(mockserver.Status(status).On("transactions.create")); err != nil {
				t.Fatal(err)
			}
			_, err := client.Transactions.Create(t.Context(), charge())
			if got := doubt.Kind(err); got != want.first {
				t.Errorf("the first request: %q, want %q: %v", got, want.first, err)
			}
			_, err = client.Transactions.Create(t.Context(), charge(), gateway.FirstSent(time.Now()))
			if !errors.Is(err, gateway.ErrOutcomeUnknown) || doubt.Kind(err) != "" || doubt.KindOfRepeat(err) != want.repeat {
				t.Errorf("the repeat: %q and %q, want %q: %v", doubt.Kind(err), doubt.KindOfRepeat(err), want.repeat, err)
			}
		})
	}
	for _, err := range []error{nil, errors.New("reset"), fmt.Errorf("%w: lost", gateway.ErrOutcomeUnknown)} {
		if doubt.Kind(err)+doubt.KindOfRepeat(err) != "" {
			t.Errorf("%v is a rejection", err)
		}
	}
}

// A reference that belongs to something else is a duplicate, with both ways in which
// gateways respond to one.
func TestAReferenceOfAnotherChargeIsADuplicate(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		client := mockserver.Run(t, mockserver.WithDialect(dialect)).Client()
		order := charge()
		if _, err := client.Transactions.Create(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		order.Amount, order.Products[0].Price = 600, 600
		for name, opts := range map[string][]gateway.RequestOption{"first": nil, "repeat": {gateway.FirstSent(time.Now())}} {
			_, err := client.Transactions.Create(t.Context(), order, opts...)
			if got := doubt.Kind(err); got != "duplicate" {
				t.Errorf("%v, %s: %q, want duplicate: %v", dialect, name, got, err)
			}
		}
	}
}

// A proxy's response is no rejection, and neither is an idempotency key that is in use.
func TestAProxyDoesNotReject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		``:                               false,
		`<html>Bad Request</html>`:       false,
		`{"message":"no route"}`:         false,
		`{"error":"Bad Request"}`:        false,
		`{"error":"INVALID_DOCUMENT"}`:   true,
		`{"title":"Invalid document"}`:   true,
		`{"error":{"code":"INVALID"}}`:   true,
		`{"code":"IDEMPOTENCY_KEY_BUSY"`: false,
	} {
		e := &gateway.Error{StatusCode: http.StatusUnprocessableEntity, Body: []byte(body)}
		if body == `{"code":"IDEMPOTENCY_KEY_BUSY"` {
			e.Code = "IDEMPOTENCY_KEY_BUSY"
		}
		if got := doubt.ByGateway(e); got != want {
			t.Errorf("%s: %t, want %t", body, got, want)
		}
	}
	if !doubt.ByGateway(&gateway.Error{StatusCode: http.StatusOK, Body: []byte(`{"success":false,"error":{"status":409,"code":"X"}}`)}) {
		t.Error("a rejection with the status in its body does not count")
	}
}

func TestTooOld(t *testing.T) {
	t.Parallel()
	newest := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		newest, created time.Time
		ago             time.Duration
		want            bool
	}{
		{newest, newest.Add(-70 * time.Minute), 10 * time.Minute, false},
		{newest, newest.Add(-71 * time.Minute), 10 * time.Minute, true},
		{newest, newest.Add(-1000 * time.Hour), -time.Second, false}, // the clock was set back
		{newest, time.Time{}, time.Minute, false},
		{time.Time{}, newest, time.Minute, false},
	} {
		if got := doubt.TooOld(c.newest, c.created, c.ago); got != c.want {
			t.Errorf("created at %v, sent %v ago: %t, want %t", c.created, c.ago, got, c.want)
		}
	}
}

func TestWhatDiffers(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t, mockserver.WithOpeningBalance(1e6)).Client()
	payout := gateway.TransferParams{PixKeyType: gateway.PixKeyPhone, PixKeyValue: "+5511987654321", Amount: 900, ExternalRef: "payout-1"}
	transfer, err := client.Transfers.Create(t.Context(), payout)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*gateway.TransferParams){
		"":           func(p *gateway.TransferParams) { p.PixKeyValue = "11987654321" },
		"reference":  func(p *gateway.TransferParams) { p.ExternalRef = "payout-2" },
		"amount":     func(p *gateway.TransferParams) { p.Amount = 901 },
		"Pix key":    func(p *gateway.TransferParams) { p.PixKeyValue = "+5511987654322" },
		"to another": func(p *gateway.TransferParams) { p.PixKeyType, p.PixKeyValue = gateway.PixKeyEmail, "ana@example.com" },
	} {
		other := payout
		change(&other)
		check(t, name, doubt.TransferDiffers(&other, transfer))
	}
	order := charge()
	transaction, err := client.Transactions.Create(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*gateway.TransactionParams){
		"":          func(p *gateway.TransactionParams) { p.Currency = gateway.BRL },
		"reference": func(p *gateway.TransactionParams) { p.ExternalRef = "order-2" },
		"amount":    func(p *gateway.TransactionParams) { p.Amount = 501 },
		"method":    func(p *gateway.TransactionParams) { p.Method = gateway.Voucher },
		"currency":  func(p *gateway.TransactionParams) { p.Currency = gateway.USD },
	} {
		other := order
		change(&other)
		check(t, name, doubt.TransactionDiffers(&other, transaction))
	}
}

// check compares what a test calls a difference with what was found; "" is none.
func check(t *testing.T, name, found string) {
	t.Helper()
	if (name == "") != (found == "") || !strings.Contains(found, name) {
		t.Errorf("the difference %q is %q", name, found)
	}
}
