package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

func TestPrivateFieldsOfAResource(t *testing.T) {
	t.Parallel()
	buyer := engine.Buyer{Name: "Ana Souza", Document: &engine.Document{Type: "CPF", Number: "52998224725"}}
	card := &engine.Card{Token: "pgct_ok_1", Last4: "4242"}
	for name, tc := range map[string]struct {
		resource interface{ Private() []string }
		want     []string
	}{
		"a transaction by Pix": {&engine.Transaction{Buyer: &buyer}, []string{"52998224725"}},
		"a transaction by card": {
			&engine.Transaction{Buyer: &buyer, Card: card, NextAction: &engine.NextAction{ClientSecret: "cs_1"}},
			[]string{"52998224725", "pgct_ok_1", "cs_1"},
		},
		"a transaction whose buyer has no document": {&engine.Transaction{Buyer: &engine.Buyer{}, Card: card}, []string{"pgct_ok_1"}},
		"a transaction without a buyer":             {&engine.Transaction{}, nil},
		"a transfer":                                {&engine.Transfer{PixKey: "ana@example.com"}, []string{"ana@example.com"}},
		"a subscription by Pix":                     {&engine.Subscription{Customer: &buyer}, []string{"52998224725"}},
		"a subscription by card":                    {&engine.Subscription{Customer: &buyer, Card: card}, []string{"52998224725", "pgct_ok_1"}},
		"a customer":                                {&engine.Customer{Buyer: buyer}, []string{"52998224725"}},
		"a session":                                 {&engine.Session{Buyer: &buyer, Token: "cst_1"}, []string{"52998224725", "cst_1"}},
	} {
		assert.Equal(t, tc.want, tc.resource.Private(), name)
	}
}
