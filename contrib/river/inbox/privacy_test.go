package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// log is a log that can be read while it is written.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestJobsAndLogsShowNoPersonalData has handlers that fail with everything they
// know in the error, and log it. River shows the errors of jobs to everyone who may
// open its console.
func TestJobsAndLogsShowNoPersonalData(t *testing.T) {
	t.Parallel()
	personal := []string{"maria.oliveira@example.com", "11987654321", "52998224725", "4111111111111111"}
	url := newDatabase(t)
	var logged log
	tee := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	plain := slog.New(slog.NewTextHandler(&logged, nil))
	s := open(t, url, func(s *shop) {
		webhook.OnTransaction(s.rx, webhook.AnyKind, func(ctx context.Context, e *webhook.TransactionEvent) error {
			claim, _ := webhook.ClaimFromContext(ctx)
			for _, to := range []*slog.Logger{tee, plain} {
				to.InfoContext(ctx, "event", slog.Any("event", e), slog.Any("data", e.Data), slog.Any("nested", map[string]any{"in": s.in, "events": []any{e, e.Event}}))
				to.InfoContext(ctx, "claim", slog.String("key", claim.Key), slog.Group("g", "customer", e.Data.Customer))
			}
			text := fmt.Sprintf("%v %+v %#v %s", e, e.Data, e.Data.Customer, e.Event)
			switch e.ResourceID {
			case "panics":
				panic(text)
			case "dead":
				return webhook.Permanent(fmt.Errorf("no order for %s", text))
			}
			if e.Attempt > 1 {
				return inbox.HandleTx(s.in, s.writes)(ctx, e.Event)
			}
			return fmt.Errorf("no order for %s", text)
		})
	}, func(cfg *webhook.Config) { cfg.Logger, cfg.MaxAttempts = tee, 2 })
	for _, id := range []string{"fails", "panics", "dead"} {
		body := webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: id, Data: map[string]any{
			"customer": map[string]any{
				"email": personal[0], "phone": personal[1], "document": personal[2],
			},
			"card": map[string]any{"number": personal[3]},
		}}.Body()
		require.Contains(t, string(body), personal[0])
		d := webhook.Delivery{Header: webhooktest.Sign(webhooktest.Secret(), time.Now(), body), Body: body}
		assert.Equal(t, 200, s.rx.Receive(t.Context(), d).Status)
	}
	s.state("fails", rivertype.JobStateCompleted)
	s.state("panics", rivertype.JobStateDiscarded)
	s.state("dead", rivertype.JobStateDiscarded)

	rows, err := s.pool.Query(t.Context(), `SELECT j::text FROM river_job AS j`)
	require.NoError(t, err)
	jobs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	letters, err := s.rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, letters, 2)
	require.Contains(t, strings.Join(jobs, "\n"), "no order for")
	shown := map[string]string{
		"jobs": strings.Join(jobs, "\n"), "log": logged.String(), "reasons": letters[0].Reason + letters[1].Reason,
		"inbox": fmt.Sprintf("%v %+v %#v", s.in, s.rx, s.job("dead")),
	}
	password := s.pool.Config().ConnConfig.Password
	for where, text := range shown {
		for _, value := range personal {
			assert.NotContains(t, text, value, where)
		}
		if password != "" {
			assert.NotContains(t, text, password, where)
		}
	}
}
