package gateway_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

const sessionToken = gateway.Secret("cst_5b3d9f7e1a2c4680")

func productLink() gateway.CheckoutLinkParams {
	return gateway.CheckoutLinkParams{
		Currency: gateway.BRL,
		Title:    "Order 17",
		Products: []gateway.CheckoutProduct{
			{
				ExternalID: "MUG-1", Name: "Mug", Price: 3990, Quantity: 2, Description: "Blue, 300 ml",
				ImageURL: "https://shop.example/mug.png", ComparePrice: 4990, Type: gateway.PhysicalItem, Currency: gateway.BRL,
			},
			{ExternalID: "EBOOK-1", Name: "E-book", Price: 0, Type: gateway.DigitalItem},
		},
	}
}

func sessionUpdate() gateway.CheckoutSessionParams {
	return gateway.CheckoutSessionParams{
		Buyer: gateway.CheckoutBuyer{
			Name: "Ana Souza", Email: "ana@example.com", Phone: "11999999999", BirthDate: "1990-01-31",
			Document: &gateway.Document{Type: gateway.CPF, Number: "39053344705"},
			Address: &gateway.Address{
				Street: "Rua das Flores", Number: "10", Complement: "ap 3", Neighborhood: "Centro",
				City: "São Paulo", State: "SP", ZipCode: "01310100", Country: gateway.Brazil,
			},
		},
		PaymentMethod: gateway.Pix,
	}
}

func TestCheckoutBodies(t *testing.T) {
	t.Parallel()
	for file, params := range map[string]interface{ Validate() error }{
		"checkout_links/create.request.json":        productLink(),
		"checkout_links/create_amount.request.json": gateway.CheckoutLinkParams{Amount: 4990, Currency: gateway.BRL, Title: "Order 18"},
		"checkout_sessions/update.request.json":     sessionUpdate(),
	} {
		require.NoError(t, params.Validate(), file)
		body, err := json.Marshal(params, json.Deterministic(true))
		require.NoError(t, err)
		assert.Equal(t, goldenBody(t, file), string(body), file)
	}
}

func TestCheckoutSessionAnswer(t *testing.T) {
	t.Parallel()
	var got gateway.CheckoutSession
	require.NoError(t, json.Unmarshal(goldenData(t, "checkout_sessions/open.response.json"), &got))

	var metadata struct{ Order int }
	require.NoError(t, got.Link.Metadata.Decode(&metadata))
	assert.Equal(t, 17, metadata.Order)
	want := gateway.CheckoutSession{
		Link: gateway.CheckoutLinkDetails{
			ID: 17, Slug: "order-17-k3f9", Status: gateway.LinkActive, Title: "Order 17", Description: "Two mugs",
			Currency: gateway.BRL, Amount: 7980, ExpiresAt: at(t, "2027-02-04T12:00:00Z"), MaxUses: 1, UsedCount: 0,
			SuccessURL: "https://shop.example/thanks", CancelURL: "https://shop.example/cart",
			PaymentMethods: []gateway.Method{gateway.Pix, gateway.CreditCard},
			Metadata:       got.Link.Metadata, PublicToken: "pk_test_link17",
		},
		Items: []gateway.CheckoutItem{{
			ID: 31, ProductID: 12, Name: "Mug", Description: "Blue, 300 ml", Quantity: 2, Currency: gateway.BRL,
			Type: gateway.PhysicalItem, Price: 3990, ComparePrice: 4990, Metadata: got.Items[0].Metadata,
			ImageURL: "https://shop.example/mug.png",
		}},
		SessionToken: sessionToken,
		ExpiresAt:    at(t, "2027-01-04T12:30:00Z"),
	}
	assert.Equal(t, want, got)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", got, got, got), sessionToken.Reveal())
}

func TestCheckoutAnswersKeepEveryMember(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"open", "resume"} {
		data := goldenData(t, "checkout_sessions/"+operation+".response.json")
		var got gateway.CheckoutSession
		require.NoError(t, json.Unmarshal(data, &got))
		assert.Equal(t, operation == "resume", got.Resumed)
		assert.Equal(t, sessionToken, got.SessionToken)
		assert.Empty(t, got.Extra)
		assert.Empty(t, got.Link.Extra)

		encoded, err := json.Marshal(got)
		require.NoError(t, err)
		assert.NotContains(t, string(encoded), sessionToken.Reveal(), "a secret is not written back")
		assertKeepsMembers(t, redacted(t, data), got)
	}

	data := goldenData(t, "checkout_links/create.response.json")
	var link gateway.CheckoutLink
	require.NoError(t, json.Unmarshal(data, &link))
	assert.Equal(t, "https://checkout.example/pay/order-17-k3f9", link.URL)
	assert.Equal(t, "order-17-k3f9", link.Slug())
	assertKeepsMembers(t, data, link)

	data = goldenData(t, "checkout_sessions/update.response.json")
	var state gateway.CheckoutSessionState
	require.NoError(t, json.Unmarshal(data, &state))
	assert.Equal(t, gateway.CheckoutSessionState{
		ExpiresAt: at(t, "2027-01-04T12:30:00Z"), Status: gateway.SessionReady, UpdatedAt: at(t, "2027-01-04T12:01:00Z"),
		SelectedPaymentMethod: gateway.Pix, SelectedPaymentMethodAt: at(t, "2027-01-04T12:01:00Z"),
	}, state)
	assertKeepsMembers(t, data, state)
}

// redacted replaces the session token as the answer's encoding does.
func redacted(t *testing.T, data []byte) []byte {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal(data, &members))
	members["session_token"] = "[redacted]"
	b, err := json.Marshal(members)
	require.NoError(t, err)
	return b
}

func TestCheckoutLinkSlug(t *testing.T) {
	t.Parallel()
	for url, slug := range map[string]string{
		"https://checkout.example/abc":           "abc",
		"https://checkout.example/a/b/abc/?x=1#": "abc",
		"https://checkout.example/a%20b":         "a b",
		"https://checkout.example/":              "",
		"https://checkout.example//":             "",
		"https://checkout.example":               "",
		"":                                       "",
		"::":                                     "",
	} {
		assert.Equal(t, slug, (&gateway.CheckoutLink{URL: url}).Slug(), url)
	}
}

func TestCheckoutEnums(t *testing.T) {
	t.Parallel()
	assert.True(t, gateway.PhysicalItem.Known())
	assert.True(t, gateway.DigitalItem.Known())
	assert.False(t, gateway.ItemType("service").Known())
	for _, s := range []gateway.LinkStatus{gateway.LinkActive, gateway.LinkExhausted, gateway.LinkExpired, gateway.LinkInactive} {
		assert.True(t, s.Known(), s)
	}
	assert.False(t, gateway.LinkStatus("paused").Known())
	for _, s := range []gateway.SessionStatus{
		gateway.SessionOpen, gateway.SessionReady, gateway.SessionProcessing, gateway.SessionCompleted, gateway.SessionExpired,
	} {
		assert.True(t, s.Known(), s)
	}
	assert.False(t, gateway.SessionStatus("lost").Known())
}
