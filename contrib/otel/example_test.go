package otelgateway_test

import (
	"context"
	"database/sql"
	"net/http"

	"github.com/gateway-go/gateway"
	otelgateway "github.com/gateway-go/gateway/contrib/otel"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// A service that takes payments and receives webhooks.
func Example() {
	_, _, _ = serve, send, sell // they need a gateway
}

func serve(mux *http.ServeMux, keys []webhook.SigningKey, store webhook.Store, baseURL string, credential gateway.Credential) (*gateway.Client, error) {
	telemetry, err := otelgateway.New(otelgateway.Config{}) // the global providers
	if err != nil {
		return nil, err
	}
	client, err := gateway.New(baseURL, credential, gateway.WithObserver(telemetry.Observer()))
	if err != nil {
		return nil, err
	}
	rx, err := webhook.New(telemetry.Instrument(webhook.Config{Keys: keys, Account: "shop", Store: store, Mode: webhook.Inbox}))
	if err != nil {
		return nil, err
	}
	if _, err := telemetry.Watch(rx); err != nil { // waiting, dead and unhandled events
		return nil, err
	}
	mux.Handle("POST /webhooks/gateway", rx)
	return client, nil
}

func send(telemetry *otelgateway.Telemetry, db *sql.DB, client *gateway.Client) (*operations.Outbox[*sql.Tx], error) {
	outbox, err := operations.New(database.Postgres(db), operations.Config{Client: client, Observe: telemetry.OutboxObserver()})
	if err != nil {
		return nil, err
	}
	if _, err := telemetry.WatchOutbox(outbox); err != nil { // ambiguous and dead operations
		return nil, err
	}
	return outbox, nil
}

func sell(ctx context.Context, telemetry *otelgateway.Telemetry, db *sql.DB, config merchant.Config, on merchant.Callbacks[*sql.Tx]) (*merchant.Merchant[*sql.Tx], error) {
	config.Observe = telemetry.OutboxObserver()
	m, err := merchant.Open(ctx, database.Postgres(db), config, on)
	if err != nil {
		return nil, err
	}
	if _, err := telemetry.WatchMerchant(m); err != nil { // problems, callbacks, comparisons, operations, events
		return nil, err
	}
	return m, nil
}
