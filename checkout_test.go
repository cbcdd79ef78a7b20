package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/spec"
)

var sessionToken = gateway.NewSecret("cst_5b3d9f7e1a2c4680")

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
		body, err := jsonv2.Marshal(params, jsonv2.Deterministic(true))
		require.NoError(t, err)
		assert.Equal(t, goldenBody(t, file), string(body), file)
	}
}

func TestCheckoutSessionResponse(t *testing.T) {
	t.Parallel()
	var got gateway.CheckoutSession
	require.NoError(t, jsonv2.Unmarshal(goldenData(t, "checkout_sessions/open.response.json"), &got))

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

func TestCheckoutResponsesKeepEveryField(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"open", "resume"} {
		data := goldenData(t, "checkout_sessions/"+operation+".response.json")
		var got gateway.CheckoutSession
		require.NoError(t, jsonv2.Unmarshal(data, &got))
		assert.Equal(t, operation == "resume", got.Resumed)
		assert.Equal(t, sessionToken, got.SessionToken)

		encoded, err := jsonv2.Marshal(got)
		require.NoError(t, err)
		assert.NotContains(t, string(encoded), sessionToken.Reveal(), "the secret is not encoded")
		assertKeepsFields(t, redacted(t, data), got)
	}

	data := goldenData(t, "checkout_links/create.response.json")
	var link gateway.CheckoutLink
	require.NoError(t, jsonv2.Unmarshal(data, &link))
	assert.Equal(t, "https://checkout.example/pay/order-17-k3f9", link.URL)
	assert.Equal(t, "order-17-k3f9", link.Slug())
	assertKeepsFields(t, data, link)

	data = goldenData(t, "checkout_sessions/update.response.json")
	var state gateway.CheckoutSessionState
	require.NoError(t, jsonv2.Unmarshal(data, &state))
	assert.Equal(t, gateway.CheckoutSessionState{
		ExpiresAt: at(t, "2027-01-04T12:30:00Z"), Status: gateway.SessionReady, UpdatedAt: at(t, "2027-01-04T12:01:00Z"),
		SelectedPaymentMethod: gateway.Pix, SelectedPaymentMethodAt: at(t, "2027-01-04T12:01:00Z"),
	}, state)
	assertKeepsFields(t, data, state)
}

// redacted replaces the session token, as encoding the response does.
func redacted(t *testing.T, data []byte) []byte {
	t.Helper()
	var fields map[string]any
	require.NoError(t, jsonv2.Unmarshal(data, &fields))
	fields["session_token"] = "[redacted]"
	b, err := jsonv2.Marshal(fields)
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
	assert.True(t, spec.ItemTypes.Has(string(gateway.PhysicalItem)))
	assert.True(t, spec.ItemTypes.Has(string(gateway.DigitalItem)))
	assert.False(t, spec.ItemTypes.Has("service"))
	for _, s := range []gateway.LinkStatus{gateway.LinkActive, gateway.LinkExhausted, gateway.LinkExpired, gateway.LinkInactive} {
		assert.True(t, spec.LinkStatuses.Has(string(s)), s)
	}
	assert.False(t, spec.LinkStatuses.Has("paused"))
	for _, s := range []gateway.SessionStatus{
		gateway.SessionOpen, gateway.SessionReady, gateway.SessionProcessing, gateway.SessionCompleted, gateway.SessionExpired,
	} {
		assert.True(t, spec.SessionStatuses.Has(string(s)), s)
	}
	assert.False(t, spec.SessionStatuses.Has("lost"))
}

const (
	linksRoute   = "/v2/checkout-links"
	slug         = "order-17-k3f9"
	slugRoute    = "/v2/checkout/" + slug
	sessionRoute = slugRoute + "/session"
	tokenHeader  = "X-Checkout-Session-Token"
)

func TestCheckoutLinksCreate(t *testing.T) {
	t.Parallel()
	for file, params := range map[string]gateway.CheckoutLinkParams{
		"checkout_links/create.request.json":        productLink(),
		"checkout_links/create_amount.request.json": {Amount: 4990, Currency: gateway.BRL, Title: "Order 18"},
	} {
		response := responseOf(t, http.StatusCreated, "checkout_links/create.response.json")
		client := clientFor(t, "POST "+linksRoute, response)
		got, err := client.CheckoutLinks.Create(t.Context(), params)
		require.NoError(t, err)
		assertSent(t, response.Only(t), file)
		assert.Equal(t, slug, got.Slug())
		assert.Contains(t, string(got.Raw), slug, "as it was received")
	}
}

func TestCheckoutSessionsOpen(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "checkout_sessions/open.response.json")
	client := clientFor(t, "GET "+slugRoute, response)
	got, err := client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	sent := response.Only(t)
	assertSent(t, sent, "")
	assert.Empty(t, sent.Header.Values(tokenHeader))
	assert.False(t, got.Resumed)
	assert.Equal(t, sessionToken, got.SessionToken)
	assert.Equal(t, int64(7980), got.Link.Amount)
}

func TestCheckoutSessionsResume(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "checkout_sessions/resume.response.json")
	client := clientFor(t, "GET "+slugRoute, response)
	got, err := client.CheckoutSessions.Resume(t.Context(), slug, sessionToken)
	require.NoError(t, err)
	sent := response.Only(t)
	assertSent(t, sent, "")
	assert.Equal(t, []string{sessionToken.Reveal()}, sent.Header.Values(tokenHeader))
	assert.True(t, got.Resumed)
}

func TestCheckoutSessionsUpdate(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "checkout_sessions/update.response.json")
	client := clientFor(t, "PATCH "+sessionRoute, response)
	// The session token replaces a header of the same name set by the caller.
	got, err := client.CheckoutSessions.Update(t.Context(), slug, sessionToken, sessionUpdate(),
		gateway.Header("x-checkout-session-token", "other"))
	require.NoError(t, err)
	sent := response.Only(t)
	assertSent(t, sent, "checkout_sessions/update.request.json")
	assert.Equal(t, []string{sessionToken.Reveal()}, sent.Header.Values(tokenHeader))
	assert.Equal(t, gateway.SessionReady, got.Status)
	assert.Equal(t, gateway.Pix, got.SelectedPaymentMethod)
}

func TestCheckoutFailures(t *testing.T) {
	t.Parallel()
	checkFailures(t, "checkout_links.create", "POST "+linksRoute, true, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.CheckoutLinks.Create(ctx, productLink())
		return err
	})
	checkFailures(t, "checkout_sessions.open", "GET "+slugRoute, false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.CheckoutSessions.Open(ctx, slug)
		return err
	})
	checkFailures(t, "checkout_sessions.resume", "GET "+slugRoute, false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.CheckoutSessions.Resume(ctx, slug, sessionToken)
		return err
	})
	checkFailures(t, "checkout_sessions.update", "PATCH "+sessionRoute, true, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.CheckoutSessions.Update(ctx, slug, sessionToken, sessionUpdate())
		return err
	})
}

func TestInvalidCheckoutParamsAreNotSent(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "checkout_sessions/open.response.json")
	client := clientFor(t, "GET "+slugRoute, response)
	for _, bad := range []string{"", "..", "ab", "a/b/c", strings.Repeat("s", 256), "a\x00b"} {
		_, err := client.CheckoutSessions.Open(t.Context(), bad)
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
		_, err = client.CheckoutSessions.Resume(t.Context(), bad, sessionToken)
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
		_, err = client.CheckoutSessions.Update(t.Context(), bad, sessionToken, sessionUpdate())
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
	}
	for token, words := range map[gateway.Secret]string{{}: "session_token is required", gateway.NewSecret("tok\nen-of-mine"): "control character"} {
		_, err := client.CheckoutSessions.Resume(t.Context(), slug, token)
		require.ErrorIs(t, err, gateway.ErrValidation)
		require.ErrorContains(t, err, words)
		assert.NotContains(t, err.Error(), "en-of-mine")
		_, err = client.CheckoutSessions.Update(t.Context(), slug, token, sessionUpdate())
		require.ErrorIs(t, err, gateway.ErrValidation)
	}
	params := productLink()
	params.Amount = 1
	_, err := client.CheckoutLinks.Create(t.Context(), params)
	require.ErrorContains(t, err, "amount must not be sent together with products")
	_, err = client.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Title: "Nothing"})
	require.ErrorContains(t, err, "products is required")
	assert.Empty(t, response.Requests())
}

func TestCheckoutNeverLogsTheSessionToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	response := responseOf(t, http.StatusUnauthorized, "checkout_sessions/update.response.json")
	client := clientFor(t, "PATCH "+sessionRoute, response, gateway.WithLogger(logger))
	_, err := client.CheckoutSessions.Update(t.Context(), slug, sessionToken, sessionUpdate())
	require.ErrorIs(t, err, gateway.ErrUnauthorized)
	logger.ErrorContext(t.Context(), "update failed", slog.Any("error", err), slog.Any("token", sessionToken))

	open := clientFor(t, "GET "+slugRoute, responseOf(t, http.StatusOK, "checkout_sessions/open.response.json"), gateway.WithLogger(logger))
	session, err := open.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	logger.InfoContext(t.Context(), "session", slog.Any("session", session))

	assert.Contains(t, log.String(), "checkout_sessions.update")
	assert.NotContains(t, log.String(), sessionToken.Reveal())
	assert.NotContains(t, log.String(), "39053344705")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", session, session, session), sessionToken.Reveal())
}
