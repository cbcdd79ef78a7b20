package operations_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/operations"
)

// insertNaive stores the operations as rows for the naive loop.
func (s *outboxStorm) insertNaive() {
	var rows [][]any
	for i, op := range s.ops {
		params, err := json.Marshal(op)
		require.NoError(s, err)
		rows = append(rows, []any{i, fmt.Sprintf("%T", op), keyOf(op), string(params)})
	}
	_, err := s.db.pool.CopyFrom(s.Context(), pgx.Identifier{"todo"}, []string{"n", "kind", "key", "op"}, pgx.CopyFromRows(rows))
	require.NoError(s, err)
}

// naiveLoop is the loop that merchants write by hand: take a row, call the
// gateway, mark the row, commit. A failed call is tried five times. Creates
// have references, and a duplicate counts as done.
func naiveLoop(ctx context.Context, pool *pgxpool.Pool, client *gateway.Client, d *death) error {
	client, err := client.With(gateway.WithAttemptTimeout(stormSendTimeout), gateway.WithBackoff(50*time.Millisecond, time.Second))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for ctx.Err() == nil {
				worked, err := naiveStep(ctx, pool, client, d)
				if err != nil || !worked {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

func naiveStep(ctx context.Context, pool *pgxpool.Pool, client *gateway.Client, d *death) (worked bool, err error) {
	err = pgx.BeginFunc(context.WithoutCancel(ctx), pool, func(tx pgx.Tx) error {
		var id int64
		var attempts int
		var kind, key string
		var op []byte
		err := tx.QueryRow(ctx, `SELECT id, attempts, kind, key, op FROM todo WHERE state = 'new' AND due <= now() ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`).
			Scan(&id, &attempts, &kind, &key, &op)
		if err != nil {
			return err
		}
		worked = true
		value, err := naiveCall(ctx, client, kind, op)
		if err != nil && attempts < 5 && !errors.Is(err, gateway.ErrValidation) && !errors.Is(err, gateway.ErrConflict) && !errors.Is(err, gateway.ErrNotFound) {
			_, err := tx.Exec(ctx, `UPDATE todo SET attempts = attempts + 1, due = now() + interval '200 milliseconds' WHERE id = $1`, id)
			return err
		}
		text := ""
		if err != nil && !errors.Is(err, gateway.ErrDuplicate) {
			text = err.Error()
		}
		if _, err := tx.Exec(ctx, `INSERT INTO results (kind, key, error, value, account) VALUES ($1, $2, $3, $4, 'shop')`, kind, key, text, value); err != nil {
			return err
		}
		d.at("before the commit")
		_, err = tx.Exec(ctx, `UPDATE todo SET state = 'done' WHERE id = $1`, id)
		return err
	})
	return worked, err
}

func naiveCall(ctx context.Context, client *gateway.Client, kind string, params []byte) (string, error) {
	switch kind {
	case "operations.CreateTransaction":
		var p gateway.TransactionParams
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
		_, err := client.Transactions.Create(ctx, p)
		return "", err
	case "operations.CreateTransfer":
		var p gateway.TransferParams
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
		_, err := client.Transfers.Create(ctx, p)
		return "", err
	case "operations.CreateCustomer":
		var p gateway.CustomerParams
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
		_, err := client.Customers.Create(ctx, p)
		return "", err
	case "operations.CreateSubscription":
		var p gateway.SubscriptionParams
		if err := json.Unmarshal(params, &p); err != nil {
			return "", err
		}
		_, err := client.Subscriptions.Create(ctx, p)
		return "", err
	case "operations.Refund":
		return naiveRefund(ctx, client, params)
	case "operations.CancelTransfer":
		var o operations.CancelTransfer
		if err := json.Unmarshal(params, &o); err != nil {
			return "", err
		}
		_, err := client.Transfers.Cancel(ctx, o.TransferID, gateway.TransferCancelParams{})
		return "", err
	case "operations.UpdateSubscription":
		var o operations.UpdateSubscription
		if err := json.Unmarshal(params, &o); err != nil {
			return "", err
		}
		_, err := client.Subscriptions.Update(ctx, o.SubscriptionID, o.Params)
		return "", err
	default:
		var o operations.CancelSubscription
		if err := json.Unmarshal(params, &o); err != nil {
			return "", err
		}
		_, err := client.Subscriptions.Cancel(ctx, o.SubscriptionID, gateway.SubscriptionCancelParams{})
		return "", err
	}
}

func naiveRefund(ctx context.Context, client *gateway.Client, params []byte) (string, error) {
	var o operations.Refund
	if err := json.Unmarshal(params, &o); err != nil {
		return "0", err
	}
	amount := o.Amount
	if o.UpTo > 0 {
		tx, err := client.Transactions.Get(ctx, o.TransactionID)
		if err != nil {
			return "0", err
		}
		if amount = o.UpTo - tx.RefundedAmount; amount <= 0 {
			return "0", nil
		}
	}
	refund, err := client.Transactions.Refund(ctx, o.TransactionID, gateway.RefundParams{Amount: amount, Full: o.Full})
	if err != nil {
		return "0", err
	}
	return fmt.Sprint(refund.AmountRefunded), nil
}
