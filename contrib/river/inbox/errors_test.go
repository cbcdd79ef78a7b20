package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/river/inbox"
	"github.com/gateway-go/gateway/webhook"
)

// TestErrorsThatPostgreSQLCantStore has handlers fail with texts that no database
// stores, beside events that succeed. River completes jobs in batches, so one error
// that can't be stored would keep all jobs of the client running.
func TestErrorsThatPostgreSQLCantStore(t *testing.T) {
	t.Parallel()
	const odd = "no order \x00 \xff \xed\xa0\x80 \\u0000"
	failures := map[string]func() error{
		"error":       func() error { return errors.New(odd) },
		"wrapped":     func() error { return fmt.Errorf("%s: %w", odd, context.DeadlineExceeded) },
		"retry after": func() error { return fmt.Errorf("%s: %w", odd, webhook.RetryAfter(time.Millisecond)) },
		"permanent":   func() error { return webhook.Permanent(errors.New(odd)) },
		"panic":       func() error { panic(odd) },
		"panic error": func() error { panic(errors.New(odd)) },
		"no error":    func() error { return nil },
	}
	s := open(t, newDatabase(t), func(s *shop) {
		webhook.OnOther(s.rx, inbox.HandleTx(s.in, func(ctx context.Context, tx pgx.Tx, e *webhook.Event) error {
			what, _, _ := strings.Cut(e.ResourceID, ", ")
			if e.Attempt > 1 {
				what = "no error"
			}
			if err := failures[what](); err != nil {
				return err
			}
			return s.writes(ctx, tx, e)
		}))
	}, nil)
	const copies = 5
	for i := range copies {
		for what := range failures {
			s.deliver(webhook.TransactionPaid, fmt.Sprintf("%s %d", what, i), fmt.Sprintf("%s, %d", what, i))
		}
	}
	for i := range copies {
		for what := range failures {
			id, want := fmt.Sprintf("%s %d", what, i), rivertype.JobStateCompleted
			if what == "permanent" {
				want = rivertype.JobStateDiscarded
			}
			s.state(id, want)
			job := s.job(id)
			if what == "no error" {
				assert.Empty(t, job.Errors)
				continue
			}
			require.Len(t, job.Errors, 1, id)
			assert.Contains(t, job.Errors[0].Error, "no order \uFFFD", id)
		}
	}
	assert.Len(t, s.effects(), copies*(len(failures)-1))
	letters, err := s.rx.DeadLetters(t.Context(), webhook.DeadLetterQuery{})
	require.NoError(t, err)
	require.Len(t, letters, copies)
	for _, l := range letters {
		assert.True(t, utf8.ValidString(l.Reason))
		assert.Contains(t, l.Reason, "no order \uFFFD")
	}
	running, err := s.client.JobList(t.Context(), river.NewJobListParams().States(rivertype.JobStateRunning).Kinds("gateway_webhook"))
	require.NoError(t, err)
	assert.Empty(t, running.Jobs)
}
