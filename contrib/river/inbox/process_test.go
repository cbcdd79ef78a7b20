package inbox_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/webhook"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gateway-go/gateway/contrib/river/inbox"
)

func TestMain(m *testing.M) { storm.Main(m, runProcess) }

// processSpec configures a process.
type processSpec struct {
	URL      string  `json:"url"`
	Deaths   float64 `json:"deaths"`   // how often a handler kills its process between its effect and the commit
	Failures float64 `json:"failures"` // how often a handler fails after its effect
}

func runProcess(ctx context.Context, spec processSpec) error {
	pool, err := pgxpool.New(ctx, spec.URL+"&pool_max_conns=12")
	if err != nil {
		return err
	}
	in, err := inbox.New(inbox.Config{Pool: pool, Logger: quiet, SweepInterval: time.Second, StuckAfter: 3 * time.Second})
	if err != nil {
		return err
	}
	rx, err := webhook.New(webhook.Config{
		Keys: keys, Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet, HandleStale: true,
		Lease: 3 * time.Second, Backoff: func(int) time.Duration { return 100 * time.Millisecond },
	})
	if err != nil {
		return err
	}
	webhook.OnOther(rx, inbox.HandleTx(in, spec.handle))
	config := &river.Config{
		Logger: quiet, FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 200 * time.Millisecond,
		Queues: map[string]river.QueueConfig{inbox.Queue: {MaxWorkers: 8}},
	}
	if err := in.Configure(config, rx); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return errors.Join(storm.Serve(ctx, rx), client.Stop(context.WithoutCancel(ctx)), rx.Shutdown(context.WithoutCancel(ctx)))
}

func (p *processSpec) handle(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (event_id, resource) VALUES ($1, $2)`, e.ID, e.ResourceID)
	switch {
	case err != nil:
		return err
	case rand.Float64() < p.Deaths:
		storm.Die()
	case rand.Float64() < p.Failures:
		return errors.New("a failure after the effect")
	}
	return nil
}
