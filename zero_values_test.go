package gateway_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
)

// printable are the exported types that have methods which print or encode.
func printable() []any {
	return []any{
		gateway.Error{}, gateway.OutcomeError{}, gateway.ValidationError{}, gateway.FieldError{},
		gateway.Secret(""), gateway.CardToken(""), gateway.Credential{}, gateway.Timestamp{}, gateway.Document{},
		gateway.BuyerID(""), gateway.Opt[int]{}, gateway.Client{}, gateway.Response{},
		gateway.Transaction{}, gateway.TransactionSummary{}, gateway.Refund{}, gateway.Transfer{},
		gateway.Customer{}, gateway.Subscription{}, gateway.CheckoutLink{}, gateway.CheckoutSession{},
		gateway.NextAction{}, gateway.Fee{}, gateway.PixDetails{},
		gateway.TransactionParams{}, gateway.CustomerParams{}, gateway.SubscriptionParams{}, gateway.TransferParams{},
		gateway.CheckoutLinkParams{}, gateway.CheckoutSessionParams{},
	}
}

// A zero value is what a test double or an errors.As gone wrong leaves: to print
// it must not panic.
func TestZeroValuesPrintAndEncode(t *testing.T) {
	t.Parallel()
	for _, v := range printable() {
		p := reflect.New(reflect.TypeOf(v)).Interface()
		for _, v := range []any{v, p} {
			name := fmt.Sprintf("%T", v)
			assert.NotPanics(t, func() {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
					assert.NotContains(t, fmt.Sprintf(verb, v), "PANIC", name+" "+verb)
				}
				_, _ = json.Marshal(v)
				_, _ = jsonv2.Marshal(v)
				if err, ok := v.(error); ok {
					_ = err.Error()
				}
				if l, ok := v.(slog.LogValuer); ok {
					_ = l.LogValue()
				}
			}, name)
		}
	}
}
