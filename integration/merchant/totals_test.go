package merchant_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant"
)

// fact is an entry of an account. A number is that of the fact, 0 the next one.
type fact struct {
	number                         int64
	account, month, currency, kind string
	amount                         int64
}

var facts atomic.Int64

// storing returns the statement that stores entries, as they are stored with a number.
func (w *world) storing(entries ...fact) string {
	var rows []string
	for _, f := range entries {
		n := facts.Add(1)
		seq := ""
		if f.number != 0 {
			seq = fmt.Sprint(f.number, ", ")
		}
		amount := fmt.Sprint(f.amount)
		if f.amount == 0 {
			amount = "NULL"
		}
		rows = append(rows, fmt.Sprintf(`(%s'key/%d', '%s', 'shop', 'order/T%d', '', 'T%d', '', '%s', CAST(%s AS bigint), '%s', 0, 1, '%s', '', 1, '', 1, 1, 0, '')`,
			seq, n, f.account, n, n, f.kind, amount, f.currency, f.month))
	}
	into, overriding := `(`, ``
	if entries[0].number != 0 {
		into = `(seq, `
		if w.dialect == database.DialectPostgres {
			overriding = `OVERRIDING SYSTEM VALUE `
		}
	}
	return `INSERT INTO gateway_facts ` + into + `key, account, book, subject, stream, record, charge, kind, amount, currency, about, at, month, source,
		created_at, callback, delivered_at, due_at, attempts, error) ` + overriding + `VALUES ` + strings.Join(rows, ", ")
}

// paidIn is an entry of the account "shop" in BRL.
func paidIn(month string, amount int64) fact {
	return fact{account: "shop", month: month, currency: "BRL", kind: "paid", amount: amount}
}

var entryKinds = []string{"paid", "fee", "refunded", "disputed", "paid_out", "adjusted"}

// random returns entries, and facts without an amount, of two accounts, currencies and three
// months.
func random(n int) []fact {
	list := make([]fact, n)
	for i := range list {
		list[i] = fact{
			account: []string{"shop", "other"}[rand.N(2)], currency: []string{"BRL", "MXN"}[rand.N(2)], kind: entryKinds[rand.N(len(entryKinds))],
			month: []string{"2026-08", "2026-09", "2026-11"}[rand.N(3)], amount: rand.Int64N(2000) - 500,
		}
	}
	return list
}

// statement reads an account's month from all its facts.
func (w *world) statement(account, month string) *merchant.Statement {
	w.Helper()
	main := &merchant.Statement{Account: account, Month: month}
	rows, err := w.reader.QueryContext(w.Context(), w.sql(`SELECT month, currency, kind, amount FROM gateway_facts
		WHERE account = ? AND amount IS NOT NULL ORDER BY month, seq`), account)
	require.NoError(w, err)
	defer func() { require.NoError(w, rows.Close()) }()
	for rows.Next() {
		var in, kind string
		var currency gateway.Currency
		var amount int64
		require.NoError(w, rows.Scan(&in, &currency, &kind, &amount))
		if main.Currency == "" {
			main.Currency = currency
		}
		if in > month {
			continue
		}
		s := main
		if currency != main.Currency {
			if len(main.Others) == 0 {
				main.Others = append(main.Others, &merchant.Statement{Account: account, Month: month, Currency: currency})
			}
			s = main.Others[0]
		}
		s.Closing += amount
		if in < month {
			s.Opening += amount
			continue
		}
		switch kind {
		case "paid":
			s.Paid += amount
		case "fee":
			s.Fee -= amount
		case "refunded":
			s.Refunded -= amount
		case "disputed":
			s.Disputed -= amount
		case "paid_out":
			s.PaidOut -= amount
		case "adjusted":
			s.Adjusted += amount
		}
	}
	require.NoError(w, rows.Err())
	return main
}

// sums checks that the statements are the sums of the facts.
func (w *world) sums(when string) {
	w.Helper()
	for _, a := range w.cfg.Accounts {
		for _, month := range []string{"2026-07", "2026-08", "2026-09", "2026-10", "2026-11", "2026-12"} {
			is, err := w.m.Month(w.Context(), a.Name, month)
			require.NoError(w, err)
			require.Equal(w, w.statement(a.Name, month), is, "%s: %s %s", when, a.Name, month)
		}
	}
}

// adds lets a process add to the totals what it may, an hour later.
func (w *world) adds() {
	w.Helper()
	w.exec(`UPDATE gateway_unsummed SET since = 0`)
	stop := w.start()
	w.eventually("all facts are in the totals", w.added)
	stop()
}

// added reports whether a process has added all facts.
func (w *world) added() bool {
	return w.number(`SELECT COUNT(*) FROM gateway_unsummed WHERE last = 9223372036854775807 AND since > 0
		AND first > COALESCE((SELECT MAX(seq) FROM gateway_facts), first - 1)`) == 1
}

// ended waits until the transactions have ended that were open when the gaps were found, also
// those of other tests on the same server.
func (w *world) ended() {
	w.Helper()
	if w.dialect == database.DialectSQLite {
		return
	}
	w.eventually("the transactions have ended", func() bool {
		return w.number(`SELECT COUNT(*) FROM gateway_unsummed WHERE xid > txid_snapshot_xmin(txid_current_snapshot())
			AND last < 9223372036854775807`) == 0
	})
}

// gaps counts those that are known below the newest facts.
func (w *world) gaps() int { return w.number(`SELECT COUNT(*) - 1 FROM gateway_unsummed`) }

func (w *world) number(query string) (n int) {
	w.Helper()
	require.NoError(w, w.reader.QueryRowContext(w.Context(), query).Scan(&n))
	return n
}

func TestAStatementIsTheSumOfItsEntriesWhereverTheyAreSummed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.sums("without facts")
		w.adds()
		for round := range 3 {
			for range 4 { // of an account that this process does not have yet, too
				w.exec(w.storing(random(700)...))
			}
			w.exec(`DELETE FROM gateway_facts WHERE seq % 97 = 0 AND seq > (SELECT MAX(seq) - 2800 FROM gateway_facts)`) // as a rollback leaves it
			w.sums(fmt.Sprint("before, round ", round))
			w.adds()
			w.sums(fmt.Sprint("after, round ", round))
		}
		assert.Positive(w, w.gaps())
		w.cfg.Accounts = append(w.cfg.Accounts, w.account("other", "sk_test_other", w.gw.Secret()))
		w.open()
		w.sums("with another account")
		w.adds()
		w.ended()
		w.adds()
		assert.Zero(w, w.gaps(), "no transaction is open, so none can fill one")
		w.sums("without gaps")
	})
}

// More facts than one transaction adds, of a release that had no totals: statements are
// right at once, and while two processes add them.
func TestTotalsOfADatabaseOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		before := sqldb.WithMigrations(w.Context(), func(d database.Dialect, inSchema string) ([]database.Migration, error) {
			list, err := database.Schema(d, inSchema)
			return list[:4], err
		})
		_, err := merchant.Open(before, w.kind.on(w.db, w.pools[w.db]), w.cfg, w.on)
		require.NoError(w, err)
		for range 15 {
			w.exec(w.storing(random(1000)...))
		}
		require.Zero(w, w.number(`SELECT COUNT(*) FROM gateway_schema WHERE part = 'merchant' AND version > 4`))
		w.open()
		w.sums("before")
		want := w.statement("shop", "2026-11")
		other := w.process()
		ctx, cancel := context.WithCancel(w.Context())
		var running sync.WaitGroup
		for _, m := range []*merchant.Merchant[*txn]{w.m, other} {
			running.Go(func() { assert.NoError(w, m.Run(ctx)) })
		}
		for !w.added() {
			is, err := w.m.Month(w.Context(), "shop", "2026-11")
			require.NoError(w, err)
			require.Equal(w, want, is)
		}
		cancel()
		running.Wait()
		w.sums("after")
		w.exec(w.storing(random(100)...)) // by the release before, which still runs
		w.sums("with the release before")
	})
}

// The numbers of facts are not in the order of their commits. An entry whose transaction
// commits after the totals have passed it is in every statement from then on.
func TestAnEntryThatIsCommittedLateIsInTheStatement(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		if k.dialect == database.DialectSQLite {
			continue // has one writer
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, k)
			w.open()
			w.exec(w.storing(paidIn("2026-08", 1)))
			late, err := w.begin(w.Context(), w.db, nil)
			require.NoError(w, err)
			defer func() { _ = late.Rollback() }()
			for _, statement := range []string{
				w.storing(paidIn("2026-08", 10)), `SAVEPOINT s`, w.storing(paidIn("2026-09", 100), paidIn("2026-11", 1000)), `RELEASE SAVEPOINT s`,
			} {
				_, err = late.ExecContext(w.Context(), statement)
				require.NoError(w, err)
			}
			w.exec(w.storing(paidIn("2026-08", 10_000)))
			for range 3 { // hours, by the database's clock
				w.adds()
				w.sums("open")
			}
			assert.Equal(w, 2, w.gaps(), "its numbers, and those below the first one, which were found while it was open")
			require.NoError(w, late.Commit())
			w.sums("committed")
			w.ended()
			assert.Equal(w, int64(11_111), w.statement("shop", "2026-11").Closing)
			w.adds()
			w.sums("added")
			assert.Zero(w, w.gaps())
		})
	}
}

// A transaction that has a number may have no ID yet, so PostgreSQL does not say that it is
// open. It gets an ID within the same statement.
func TestAGapIsKeptForAnHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, postgres)
	w.open()
	w.exec(w.storing(paidIn("2026-08", 1)))
	number := w.number(`SELECT nextval(pg_get_serial_sequence('gateway_facts', 'seq'))`)
	w.exec(w.storing(paidIn("2026-08", 10)))
	w.adds()
	assert.Equal(t, 2, w.gaps(), "below the first fact, and this one")
	w.exec(`UPDATE gateway_unsummed SET since = 0 WHERE last = 9223372036854775807`)
	stop := w.start()
	w.eventually("an hour has passed since the totals were looked at", w.added)
	stop()
	assert.Equal(t, 2, w.gaps())
	late := paidIn("2026-09", 100)
	late.number = int64(number)
	w.exec(w.storing(late))
	w.sums("late")
	assert.Equal(t, int64(111), w.statement("shop", "2026-09").Closing)
}

// Entries are written, some of them late, and some rolled back, while three processes add
// them to the totals.
func TestProcessesAddEntriesWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		ctx, cancel := context.WithCancel(w.Context())
		var running, writing sync.WaitGroup
		for range 3 {
			db := w.connect()
			running.Go(func() {
				for ctx.Err() == nil { // a process that starts looks at once
					m, err := w.openOn(db, w.cfg) //nolint:contextcheck // the test's
					if err != nil {
						w.Error(err)
						return
					}
					run, stop := context.WithCancel(ctx)
					ended := make(chan error, 1)
					go func() { ended <- m.Run(run) }()
					w.eventually("it has added some", func() bool {
						return ctx.Err() != nil || w.number(`SELECT since FROM gateway_unsummed ORDER BY last DESC LIMIT 1`) > 0 //nolint:contextcheck // the test's
					})
					stop()
					if err := <-ended; err != nil {
						w.Error(err)
					}
				}
			})
		}
		for range 3 {
			writing.Go(func() {
				for range 25 {
					tx, err := w.begin(w.Context(), w.db, nil)
					if err != nil {
						w.Error(err)
						return
					}
					_, err = tx.ExecContext(w.Context(), w.storing(random(1+rand.N(20))...))
					if rand.N(4) == 0 {
						err = errors.Join(err, tx.Rollback())
					} else {
						err = errors.Join(err, tx.Commit())
					}
					if err != nil {
						w.Error(err)
					}
					w.exec(`UPDATE gateway_unsummed SET since = 0 WHERE last = 9223372036854775807`)
				}
			})
		}
		writing.Wait()
		cancel()
		running.Wait()
		w.sums("while written")
		w.adds()
		w.ended()
		w.adds()
		w.sums("afterwards")
		assert.Zero(w, w.gaps())
		assert.Positive(w, w.number(`SELECT COUNT(*) FROM gateway_totals`))
	})
}

// A process that dies at any statement leaves the totals as they were.
func TestAProcessThatDiesWhileItAddsEntries(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.exec(w.storing(random(300)...))
		w.adds()
		w.exec(w.storing(random(300)...))
		for _, word := range []string{
			"INSERT INTO gateway_totals", "DELETE FROM gateway_unsummed", "UPDATE gateway_unsummed SET first",
		} {
			var met atomic.Int64
			_, db := w.tapped(func(statement string) string {
				if strings.Contains(statement, word) {
					met.Add(1)
					return "no statement"
				}
				return statement
			})
			m, err := w.openOn(db, w.cfg)
			require.NoError(w, err)
			w.ended()
			w.exec(`UPDATE gateway_unsummed SET since = 0`)
			ctx, cancel := context.WithCancel(w.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			w.eventually("it has come to "+word, func() bool { return met.Load() > 0 })
			cancel()
			require.NoError(w, <-ended)
			assert.False(w, w.added())
			w.sums("after it died at " + word)
		}
		w.adds()
		w.sums("at last")
	})
}

// What the totals can't know, such as a fact that was restored by hand, is noticed.
func TestASumThatIsWrongIsNoticedAndCorrected(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.exec(w.storing(paidIn("2026-08", 1), paidIn("2026-08", 10)))
		w.adds()
		w.ended()
		w.adds()
		require.Zero(w, w.gaps())
		differences := func() (list []merchant.Difference) {
			_, all, err := w.m.CheckMonth(w.Context(), "shop", "2026-08")
			require.NoError(w, err)
			for _, d := range all {
				if d.Kind == merchant.DiffTotal {
					d.Text = ""
					list = append(list, d)
				}
			}
			return list
		}
		assert.Empty(w, differences())
		for _, wrong := range []struct {
			statement   string
			here, there int64
		}{
			{w.storing(fact{-5, "shop", "2026-08", "BRL", "paid", 100}), 11, 111},
			{`UPDATE gateway_totals SET amount = amount - 1`, 110, 111},
			{`DELETE FROM gateway_totals`, 0, 111},
			{`DELETE FROM gateway_facts WHERE amount = 10`, 111, 101},
		} {
			w.exec(wrong.statement)
			assert.Equal(w, []merchant.Difference{{Kind: merchant.DiffTotal, Here: wrong.here, There: wrong.there}}, differences())
			w.exec(`UPDATE gateway_unsummed SET since = 0`)
			stop := w.start()
			w.eventually("it is corrected", func() bool { return len(differences()) == 0 })
			stop()
			w.sums(wrong.statement)
		}
	})
}
