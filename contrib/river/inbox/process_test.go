package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/internal/storm"
	"github.com/gateway-go/gateway/webhook"
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
	var receivers shops
	for i, account := range stormAccounts {
		receivers[i], err = webhook.New(webhook.Config{
			Keys: keys, Account: account, Store: in, Mode: webhook.Inbox, Workers: -1, Logger: quiet, HandleStale: true,
			Lease: 3 * time.Second, Backoff: func(int) time.Duration { return 100 * time.Millisecond },
		})
		if err != nil {
			return err
		}
		webhook.OnOther(receivers[i], inbox.HandleTx(in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
			return spec.handle(ctx, tx, e, i)
		}))
	}
	config := &river.Config{Logger: quiet, FetchCooldown: 20 * time.Millisecond, FetchPollInterval: 200 * time.Millisecond}
	if err := in.Configure(config, receivers[:]...); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	err = errors.Join(storm.Serve(ctx, receivers), client.Stop(context.WithoutCancel(ctx)))
	for _, rx := range receivers {
		err = errors.Join(err, rx.Shutdown(context.WithoutCancel(ctx)))
	}
	return err
}

func (p *processSpec) handle(ctx context.Context, tx pgx.Tx, e *webhook.Event, account int) error {
	id := e.ID
	if accountOf(e.ResourceID) != account {
		id = "of another account: " + id
	}
	_, err := tx.Exec(ctx, `INSERT INTO effects (event_id, resource) VALUES ($1, $2)`, id, e.ResourceID)
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

// stormAccounts are the accounts of a process, each with a receiver of its own.
var stormAccounts = [2]string{"shop-br", "shop-mx"}

// accountOf returns the index of the account that a resource belongs to.
func accountOf(resource string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(resource)) // never fails
	return int(h.Sum32() % uint32(len(stormAccounts)))
}

// shops passes each delivery to the receiver of its account.
type shops [len(stormAccounts)]*webhook.Receiver

func (s shops) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	i := 0
	if e, err := webhook.Parse(body); err == nil { // anything else is a forgery
		i = accountOf(e.ResourceID)
	}
	s[i].ServeHTTP(w, r)
}
