package inbox_test

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
)

// A service that already runs River receives the gateway's webhooks.
func Example() {
	_ = run // it needs a database
}

func run(ctx context.Context, pool *pgxpool.Pool, secret gateway.Secret) error {
	in, err := inbox.New(inbox.Config{Pool: pool})
	if err != nil {
		return err
	}
	if err := in.Migrate(ctx); err != nil { // River's own migrations ran before
		return err
	}
	rx, err := webhook.New(webhook.Config{
		Keys: []webhook.SigningKey{{Key: secret}}, Account: "shop", Store: in, Mode: webhook.Inbox, Workers: -1,
	})
	if err != nil {
		return err
	}
	webhook.OnTransaction(rx, webhook.TransactionPaid, inbox.HandleTx(in, markPaid))
	webhook.Ignore(rx, webhook.TransactionCreated, webhook.TransactionPending)

	config := &river.Config{} // with your own workers and queues
	if err := in.Configure(config, rx); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/gateway", rx)
	err = serveUntilDone(ctx, mux)
	return errors.Join(err, client.Stop(context.WithoutCancel(ctx)), rx.Shutdown(context.WithoutCancel(ctx)))
}

// markPaid runs in the transaction that completes the event and its River job.
func markPaid(ctx context.Context, tx pgx.Tx, e *webhook.TransactionEvent) error {
	changed, err := tx.Exec(ctx, `UPDATE orders SET state = CASE state WHEN 'new' THEN 'paid' ELSE state END
		WHERE ref = $1 AND amount = $2 AND currency = $3`,
		e.CorrelationID, e.Data.Charged(), string(e.Data.Currency))
	if err == nil && changed.RowsAffected() != 1 {
		err = errors.New("no such order yet: the webhook may have arrived first") // it is retried
	}
	return err
}

func serveUntilDone(ctx context.Context, handler http.Handler) error {
	srv := &http.Server{Addr: "127.0.0.1:8080", Handler: handler}
	context.AfterFunc(ctx, func() { _ = srv.Shutdown(context.WithoutCancel(ctx)) })
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
