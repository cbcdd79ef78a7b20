package operations_test

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
)

// One process serves the accounts of several companies.
func ExampleOutbox_Configure() {
	_ = serve // needs PostgreSQL
}

func serve(ctx context.Context, pool *pgxpool.Pool, keys map[string]gateway.Secret) (map[string]*operations.Outbox, error) {
	config := &river.Config{}
	outboxes := make(map[string]*operations.Outbox)
	for account, key := range keys {
		client, err := gateway.New("https://api.gateway.example", gateway.BearerToken(key.Reveal()), gateway.WithAccount(account))
		if err != nil {
			return nil, err
		}
		outbox, err := operations.New(pool, operations.Config{Client: client})
		if err != nil {
			return nil, err
		}
		if err := outbox.Migrate(ctx); err != nil {
			return nil, err
		}
		operations.OnResult(outbox, refunded)
		if err := outbox.Configure(config); err != nil {
			return nil, err
		}
		outboxes[account] = outbox
	}
	riverClient, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return nil, err
	}
	return outboxes, riverClient.Start(ctx)
}

// refunded records the outcome of a refund; Entry.Account says whose it is.
func refunded(ctx context.Context, tx pgx.Tx, r operations.RefundResult) error {
	_, err := tx.Exec(ctx, `UPDATE returns SET done = true WHERE company = $1 AND id = $2`, r.Entry.Account, r.Operation.Key)
	return err
}
