package mockserver_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// Whoever debugs prints what is at hand: no verb, and no logger, shows a secret
// that a value of this module holds, however deep.
func TestNoVerbShowsASecret(t *testing.T) {
	t.Parallel()
	const key, secret, path = "sk_test_printedkey", "whsec_printedsecret", "printed-path-0123456789"
	gw := mockserver.Run(t, mockserver.WithWebhookSecret(secret), mockserver.WithEndpoint("https://shop.test/hook", secret))
	client, err := gateway.New("https://api.test", gateway.BearerToken(key))
	require.NoError(t, err)
	config := webhook.Config{Keys: []webhook.SigningKey{{Key: secret}}, SecretPath: path, API: client}
	receiver, err := webhook.New(config)
	require.NoError(t, err)
	account := gw.Account(key)
	for _, v := range []any{
		client, gw, account, account.Transactions, account.Transfers, account.Subscriptions, account.Checkout, account.Legacy,
		account.Webhooks, account.Faults, account.Requests, gw.Webhooks, gw.Webhooks.Endpoints(), *account,
		config, &config, receiver,
		webhook.Verifier{Keys: config.Keys},
		&webhook.Verifier{Keys: config.Keys}, config.Keys,
		gateway.BearerToken(key), gateway.Secret(secret),
		struct{ C gateway.Credential }{gateway.BasicToken(key)},
		struct{ held *gateway.Secret }{new(gateway.Secret(secret))},
		struct{ rx *webhook.Receiver }{receiver},
		struct{ gw *mockserver.Server }{gw},
		struct{ hooks mockserver.Webhooks }{gw.Webhooks},
		struct{ client *gateway.Client }{client},
		&struct{ rx any }{receiver},
		gateway.CheckoutSession{SessionToken: secret},
		gateway.Transaction{NextAction: &gateway.NextAction{ClientSecret: secret}},
		gateway.NextAction{ClientSecret: secret},
		gateway.TransactionParams{Token: "pgct_printedsecret"},
		gateway.Document{Number: "printedsecret"},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			assertHidden(t, fmt.Sprintf(verb, v), fmt.Sprintf("%T under %s", v, verb))
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).LogAttrs(context.Background(), slog.LevelInfo, "x", slog.Any("v", v))
		assertHidden(t, log.String(), fmt.Sprintf("%T in slog", v))
	}
	for _, v := range []any{gw, account, receiver, config.Keys, client} {
		text, _ := json.Marshal(v) //nolint:errchkjson // an error shows nothing either
		assertHidden(t, string(text), fmt.Sprintf("%T as JSON", v))
	}
}

func assertHidden(t *testing.T, text, where string) {
	t.Helper()
	for _, secret := range []string{"printedkey", "printedsecret", "printed-path"} {
		assert.NotContains(t, text, secret, where)
		assert.NotContains(t, text, hex.EncodeToString([]byte(secret)), where)
		assert.NotContains(t, text, fmt.Sprintf("%X", secret), where)
	}
}

func TestTheClientSecretOfAChallengeStaysInItsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(gateway.NextAction{ClientSecret: "cs_1"})
	require.NoError(t, err)
	assert.Contains(t, string(text), `"client_secret":"cs_1"`)
}
