package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

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
		answer := answerOf(t, http.StatusCreated, "checkout_links/create.response.json")
		client := answering(t, "POST "+linksRoute, answer)
		got, err := client.CheckoutLinks.Create(t.Context(), params)
		require.NoError(t, err)
		assertSent(t, answer.Only(t), file)
		assert.Equal(t, slug, got.Slug())
	}
}

func TestCheckoutSessionsOpen(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "checkout_sessions/open.response.json")
	client := answering(t, "GET "+slugRoute, answer)
	got, err := client.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	sent := answer.Only(t)
	assertSent(t, sent, "")
	assert.Empty(t, sent.Header.Values(tokenHeader))
	assert.False(t, got.Resumed)
	assert.Equal(t, sessionToken, got.SessionToken)
	assert.Equal(t, int64(7980), got.Link.Amount)
}

func TestCheckoutSessionsResume(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "checkout_sessions/resume.response.json")
	client := answering(t, "GET "+slugRoute, answer)
	got, err := client.CheckoutSessions.Resume(t.Context(), slug, sessionToken)
	require.NoError(t, err)
	sent := answer.Only(t)
	assertSent(t, sent, "")
	assert.Equal(t, []string{sessionToken.Reveal()}, sent.Header.Values(tokenHeader))
	assert.True(t, got.Resumed)
}

func TestCheckoutSessionsUpdate(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "checkout_sessions/update.response.json")
	client := answering(t, "PATCH "+sessionRoute, answer)
	// A header of the caller's own does not stand beside the token.
	got, err := client.CheckoutSessions.Update(t.Context(), slug, sessionToken, sessionUpdate(),
		gateway.Header("x-checkout-session-token", "other"))
	require.NoError(t, err)
	sent := answer.Only(t)
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

func TestCheckoutSendsNothingWrong(t *testing.T) {
	t.Parallel()
	answer := answerOf(t, http.StatusOK, "checkout_sessions/open.response.json")
	client := answering(t, "GET "+slugRoute, answer)
	for _, bad := range []string{"", "..", "ab", "a/b/c", strings.Repeat("s", 256), "a\x00b"} {
		_, err := client.CheckoutSessions.Open(t.Context(), bad)
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
		_, err = client.CheckoutSessions.Resume(t.Context(), bad, sessionToken)
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
		_, err = client.CheckoutSessions.Update(t.Context(), bad, sessionToken, sessionUpdate())
		require.ErrorIs(t, err, gateway.ErrValidation, bad)
	}
	for token, words := range map[gateway.Secret]string{"": "session_token is required", "tok\nen-of-mine": "control character"} {
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
	assert.Empty(t, answer.Requests())
}

func TestCheckoutNeverLogsTheSessionToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	answer := answerOf(t, http.StatusUnauthorized, "checkout_sessions/update.response.json")
	client := answering(t, "PATCH "+sessionRoute, answer, gateway.WithLogger(logger))
	_, err := client.CheckoutSessions.Update(t.Context(), slug, sessionToken, sessionUpdate())
	require.ErrorIs(t, err, gateway.ErrUnauthorized)
	logger.ErrorContext(t.Context(), "update failed", slog.Any("error", err), slog.Any("token", sessionToken))

	open := answering(t, "GET "+slugRoute, answerOf(t, http.StatusOK, "checkout_sessions/open.response.json"), gateway.WithLogger(logger))
	session, err := open.CheckoutSessions.Open(t.Context(), slug)
	require.NoError(t, err)
	logger.InfoContext(t.Context(), "session", slog.Any("session", session))

	assert.Contains(t, log.String(), "checkout_sessions.update")
	assert.NotContains(t, log.String(), sessionToken.Reveal())
	assert.NotContains(t, log.String(), "39053344705")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", session, session, session), sessionToken.Reveal())
}
