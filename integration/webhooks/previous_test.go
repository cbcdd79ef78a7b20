package webhooks_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// previousRelease runs the statements of the release before version 3 of the
// table.
type previousRelease struct {
	db  *sql.DB
	sql func(string) string
}

func newPreviousRelease(t *testing.T, db *sql.DB, d database, name string) previousRelease {
	t.Helper()
	now, skip, skipE := `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`, ``, ``
	if d.dialect == sqlstore.Postgres {
		now = `CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)`
		skip, skipE = ` FOR UPDATE SKIP LOCKED`, ` FOR UPDATE OF e SKIP LOCKED`
	}
	return previousRelease{db, strings.NewReplacer("{t}", name, "{now}", now, "{skip}", skip, "{skip_e}", skipE,
		"{rest}", "CASE WHEN aside = '' THEN 1 ELSE 5 END").Replace}
}

// migrate creates version 2 of the table.
func (p previousRelease) migrate(t *testing.T, d database) {
	t.Helper()
	name := p.sql("{t}")
	number := "INTEGER"
	if d.dialect == sqlstore.Postgres {
		number = "BIGINT"
	}
	statements := firstSchema(d, name)
	for _, column := range []string{
		"digest TEXT NOT NULL DEFAULT ''", "arrived " + number + " NOT NULL DEFAULT 0",
		"aside TEXT NOT NULL DEFAULT ''", "key_id TEXT NOT NULL DEFAULT ''",
	} {
		statements = append(statements, "ALTER TABLE "+name+" ADD COLUMN "+column)
	}
	statements = append(statements, "CREATE INDEX IF NOT EXISTS "+name+"_aside ON "+name+" (aside, due, seq) WHERE state = 5",
		p.sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position,
			state, attempts, token, due, lease, since, matched, reason)
			VALUES ('store', '', '', '', '', 0, '', 0, 2, 0, 0, '', 0, 0, {now}, '', '')`))
	for _, statement := range statements {
		_, err := p.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
}

func (p previousRelease) put(ctx context.Context, r webhook.Record) error {
	return p.exec(ctx, `INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position, digest, key_id, body, confirmed,
		state, reason, attempts, token, due, lease, since, arrived, matched)
		VALUES ($1, $2, $3, $4, '', 1, 'delivery', 0, 0, '', '', $5, NULL, 1, '', 0, '', {now}, 0, {now}, {now}, '') ON CONFLICT (key) DO NOTHING`,
		r.Key, r.EventID, string(r.Kind), r.Resource, r.Body)
}

// exec runs a statement, and retries it while the database is locked, as the
// release did.
func (p previousRelease) exec(ctx context.Context, query string, args ...any) error {
	for range 20 {
		_, err := p.db.ExecContext(ctx, p.sql(query), args...)
		if err == nil || !strings.Contains(err.Error(), "locked") {
			return err
		}
	}
	return nil
}

// work claims, handles and completes events until ctx ends. The first attempt
// at an event fails if the event's id starts with "fails".
func (p previousRelease) work(ctx context.Context, token string, handle func(id string)) error {
	failed := map[string]bool{}
	for ctx.Err() == nil {
		if err := p.exec(ctx, `UPDATE {t} SET state = {rest}, token = '', due = {now}, since = {now}
			WHERE seq IN (SELECT seq FROM {t} WHERE state = 2 AND lease <= {now}{skip})`); err != nil && ctx.Err() == nil {
			return err
		}
		var key, id string
		err := p.db.QueryRowContext(ctx, p.sql(`WITH w AS (SELECT seq, due, ROW_NUMBER() OVER (PARTITION BY resource ORDER BY due, seq) AS place
			FROM (SELECT seq, due, resource FROM {t} WHERE state = 1 ORDER BY due, seq LIMIT 80) AS oldest WHERE due <= {now})
			UPDATE {t} SET state = 2, attempts = attempts + 1, token = $1, lease = {now} + 60000, since = {now}
			WHERE seq IN (SELECT e.seq FROM w JOIN {t} AS e ON e.seq = w.seq WHERE w.place = 1 AND e.state = 1
				AND (SELECT b.seq FROM {t} AS b WHERE b.resource = e.resource AND b.state = 2 LIMIT 1) IS NULL
				ORDER BY w.due, w.seq LIMIT 1{skip_e})
			RETURNING key, event_id`), token).Scan(&key, &id)
		if err != nil {
			continue // nothing is due, or another session took it
		}
		if strings.HasPrefix(id, "fails") && !failed[id] {
			failed[id] = true
			err = p.exec(ctx, `UPDATE {t} SET state = {rest}, token = '', since = {now}, due = {now} + 20, reason = 'later'
				WHERE key = $1 AND token = $2 AND state = 2`, key, token)
		} else {
			handle(id)
			err = p.exec(context.WithoutCancel(ctx), `UPDATE {t} SET state = 3, since = {now}, body = NULL, confirmed = NULL, reason = ''
				WHERE key = $1 AND token = $2 AND state = 2`, key, token)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Two releases share a database: each stores events that the other handles, before
// and after the migration. Nothing is lost or duplicated, and the events of a
// resource stay in order.
func TestThePreviousReleaseRunsBesideThisOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		t.Helper()
		db := d.open(t)
		name := table("rolling")
		previous := newPreviousRelease(t, db, d, name)
		previous.migrate(t, d)

		var mu sync.Mutex
		byRelease := map[string]int{}
		runs := map[string]int{}
		order := map[string][]string{}
		handle := func(release, id string) {
			mu.Lock()
			defer mu.Unlock()
			byRelease[release]++
			runs[id]++
			resource, _, _ := strings.Cut(id, ".")
			order[resource] = append(order[resource], id)
		}
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		defer workers.Wait()
		defer stop()
		for i := range 2 {
			workers.Go(func() {
				assert.NoError(t, previous.work(ctx, fmt.Sprint("previous ", i), func(id string) { handle("previous", id) }))
			})
		}

		const resources, each, failing = 60, 6, 20
		event := func(id, resource string) webhook.Record {
			r := record(id, resource)
			r.Body = webhooktest.Event{Kind: webhook.TransactionPaid, ID: id, ResourceID: resource}.Body()
			return r
		}
		for i := range failing {
			id := fmt.Sprintf("fails%d", i)
			require.NoError(t, previous.put(ctx, event(id, id)))
		}
		s := sqlstore.New(db, d.dialect, sqlstore.WithTable(name))
		require.NoError(t, s.Migrate(ctx))
		rx, err := webhook.New(webhook.Config{
			Keys: keys, Account: "shop", Store: s, Logger: quiet, Mode: webhook.Inbox, Workers: 2, PollInterval: 20 * time.Millisecond, HandleStale: true,
		})
		require.NoError(t, err)
		webhook.OnOther(rx, func(_ context.Context, e *webhook.Event) error { handle("this", e.ID); return nil })
		rx.Start()
		for n := range each {
			for i := range resources {
				r := event(fmt.Sprintf("tx%d.%d", i, n), fmt.Sprintf("tx%d", i))
				if (i+n)%2 == 0 {
					require.NoError(t, previous.put(ctx, r))
					continue
				}
				_, err := s.Put(ctx, r)
				require.NoError(t, err)
			}
		}
		const all = resources*each + failing
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(runs) == all
		}, time.Minute, 20*time.Millisecond)
		stop()
		workers.Wait()
		require.NoError(t, rx.Shutdown(t.Context()))

		for id, n := range runs {
			assert.Equal(t, 1, n, id)
		}
		for resource, ids := range order {
			assert.IsIncreasing(t, ids, resource)
		}
		assert.Positive(t, byRelease["previous"])
		assert.Positive(t, byRelease["this"])
		n, err := s.Counts(t.Context())
		require.NoError(t, err)
		assert.Equal(t, webhook.Counts{}, n)
	})
}
