package merchant_test

import (
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// The tests in money_*_test.go are about what a merchant loses or never hears of: a gateway
// that lags, amounts with two readings, and one bad row that stops everything else.

// onPostgres runs a test where several transactions can write at once.
func onPostgres(t *testing.T, test func(w *world), opts ...mockserver.Option) {
	t.Helper()
	for _, k := range kinds() {
		if k == sqlite {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, k, opts...))
		})
	}
}

// soon waits until a condition holds that becomes true within seconds, or in hours or never.
func (w *world) soon(what string, holds func() bool) {
	w.Helper()
	if !w.within(30*time.Second, holds) {
		require.Fail(w, "not soon: "+what)
	}
}

// within reports whether a condition holds before a time has passed.
func (*world) within(d time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return false
}

// scheduled says where the time of a record's next comparison is: in its own table, or in
// that of all comparisons.
func (w *world) scheduled(table string) (query, update string) {
	w.Helper()
	var one int
	switch err := w.reader.QueryRowContext(w.Context(), `SELECT 1 FROM gateway_checks LIMIT 1`).Scan(&one); {
	case err == nil, errors.Is(err, sql.ErrNoRows):
		return `SELECT check_at FROM gateway_checks WHERE id = ?`, `UPDATE gateway_checks SET lease_until = NULL, check_at = ? WHERE id = ?`
	default:
		return `SELECT check_at FROM ` + table + ` WHERE id = ?`, `UPDATE ` + table + ` SET check_at = ? WHERE id = ?`
	}
}

// comparedIn returns in which time a record is compared with the gateway; planned is false if
// it never is.
func (w *world) comparedIn(table, id string) (wait time.Duration, planned bool) {
	w.Helper()
	query, _ := w.scheduled(table)
	var at sql.NullInt64
	err := w.reader.QueryRowContext(w.Context(), w.sql(query), id).Scan(&at)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(w, err)
	}
	return time.Until(time.UnixMilli(at.Int64)), at.Valid
}

// due makes the comparison of a record due since a time.
func (w *world) due(table, id string, since time.Duration) {
	w.Helper()
	_, update := w.scheduled(table)
	require.NoError(w, merchant.One(w.db.ExecContext(w.Context(), w.sql(update), time.Now().Add(-since).UnixMilli(), id)))
}

// ages makes a record older than it is.
func (w *world) ages(table, id string, by time.Duration) {
	w.Helper()
	require.NoError(w, merchant.One(w.db.ExecContext(w.Context(), w.sql(`UPDATE `+table+` SET created_at = created_at - ? WHERE id = ?`), by.Milliseconds(), id)))
}

// records changes what is stored about a record.
func (w *world) records(table, id string, change func(record map[string]any)) {
	w.Helper()
	var text string
	require.NoError(w, w.db.QueryRowContext(w.Context(), w.sql(`SELECT record FROM `+table+` WHERE id = ?`), id).Scan(&text))
	record := make(map[string]any)
	require.NoError(w, json.Unmarshal([]byte(text), &record))
	change(record)
	changed, err := json.Marshal(record)
	require.NoError(w, err)
	w.exec(`UPDATE `+table+` SET record = ? WHERE id = ?`, string(changed), id)
}

// event is the state of a webhook event.
type event struct {
	state, attempts int
	reason          string
}

// handled reports whether the event was handled for good.
func (e event) handled() bool { return e.state == 3 }

// tried reports whether the event was handled, or was tried and waits.
func (e event) tried() bool { return e.handled() || e.state == 1 && e.attempts > 0 }

// event returns the newest event of a kind; it is zero before it arrives.
func (w *world) event(kind string) (e event) {
	w.Helper()
	err := w.db.QueryRowContext(w.Context(), w.sql(`SELECT state, attempts, reason FROM gateway_webhook_events WHERE kind = ? ORDER BY seq DESC LIMIT 1`), kind).
		Scan(&e.state, &e.attempts, &e.reason)
	if !errors.Is(err, sql.ErrNoRows) {
		require.NoError(w, err)
	}
	return e
}

// retried makes an event that waits due now, as one that was tried ten times and arrived
// some time ago, and waits until it was tried again.
func (w *world) retried(kind string, ago time.Duration) event {
	w.Helper()
	w.eventually("the event waits", func() bool {
		result, err := w.db.ExecContext(w.Context(), w.sql(`UPDATE gateway_webhook_events SET attempts = 10, due = ?, arrived = arrived - ?, since = since - ?
			WHERE kind = ? AND state = 1 AND token = '' AND attempts > 0 AND seq = (SELECT MAX(seq) FROM gateway_webhook_events WHERE kind = ?)`),
			time.Now().UnixMilli(), ago.Milliseconds(), ago.Milliseconds(), kind, kind)
		return merchant.One(result, err) == nil
	})
	w.eventually("the event is tried again", func() bool { e := w.event(kind); return e.handled() || e.state == 1 && e.attempts > 10 })
	return w.event(kind)
}

// listed returns the open problems of a kind and record.
func (w *world) listed(kind merchant.ProblemKind, record string) (list []*merchant.Problem) {
	w.Helper()
	for _, p := range w.problems() {
		if p.Kind == kind && p.Record == record {
			list = append(list, p)
		}
	}
	return list
}

// sales returns how many sales by link are in the books.
func (w *world) sales() int {
	w.Helper()
	return w.count(`SELECT COUNT(*) FROM gateway_charges WHERE subject LIKE 'link/%'`)
}

// newest returns the ID of the gateway's newest transaction.
func (w *world) newest() string {
	w.Helper()
	page, err := w.gw.Client().Transactions.List(w.Context(), gateway.TransactionListParams{Limit: 1})
	require.NoError(w, err)
	require.Len(w, page.Items, 1)
	return page.Items[0].ID
}

// becomes puts a transaction into a state, as a sandbox allows.
func (w *world) becomes(id string, status gateway.TransactionStatus) {
	w.Helper()
	_, err := w.gw.Client().Transactions.SetSandboxStatus(w.Context(), id, gateway.SandboxStatusParams{Status: status})
	require.NoError(w, err)
}

// refresh reads a record now.
func (w *world) refresh(id string) {
	w.Helper()
	require.NoError(w, w.m.Refresh(w.Context(), id))
}

// rewritten makes the gateway's responses about transactions contain other texts.
func (w *world) rewritten(oldnew ...string) {
	w.through(roundTripper(func(r *http.Request) (*http.Response, error) {
		return replaced(w.gw.Transport(), r, "/v2/transactions/", oldnew...)
	}))
}
