package sqlstore

import (
	"strconv"
	"strings"
)

// The states as the table has them: those of package webhook.
//
//	1 waiting, 2 claimed, 3 done, 4 dead
//
// Times are Unix milliseconds of the database's clock, so that the clocks of
// the processes need not agree.

// queries is the SQL of one dialect and table.
type queries struct {
	lock, insert, entry, twinOfConfirmed, twinOfSigned, match, standIn string
	claim, next, beyond, expire                                        string
	extend, holds, complete, retry, bury, release                      string
	deadLetters, requeue, purge, counts                                string
}

// columns are what a claim needs, in the order of scanClaim.
const columns = `{row}.seq, {row}.due, {row}.key, {row}.event_id, {row}.kind, {row}.resource, {row}.fact, {row}.signed, {row}.source, ` +
	`{row}.late, {row}.position, {row}.body, {row}.confirmed, {row}.attempts, ` +
	`COALESCE((SELECT MAX(d.position) FROM {t} AS d WHERE d.resource = {row}.resource AND d.state = 3), 0)`

// isFree is true of a waiting row e whose resource nobody works on. The
// subqueries are scalar on purpose: each is one look into an index, whatever
// the planner believes about the table.
const isFree = `(SELECT b.seq FROM {t} AS b WHERE b.resource = e.resource AND b.state = 2 LIMIT 1) IS NULL`

func newQueries(d Dialect, table string) queries {
	now, skip, skipE := `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`, ``, ``
	if d == Postgres {
		// Stable within a statement, or no index would be used.
		now = `CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT)`
		skip, skipE = ` FOR UPDATE SKIP LOCKED`, ` FOR UPDATE OF e SKIP LOCKED`
	}
	sql := func(text string) string {
		text = strings.NewReplacer("{columns}", columns, "{free}", isFree).Replace(text)
		text = strings.NewReplacer("{t}", table, "{row}", bare(table), "{now}", now, "{skip}", skip, "{skip_e}", skipE).Replace(text)
		return bind(d, text)
	}
	q := queries{
		insert: sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position, body, confirmed,
			state, attempts, token, due, lease, since, matched, reason)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 0, '', {now}, 0, {now}, '', '') ON CONFLICT (key) DO NOTHING`),
		entry: sql(`SELECT COALESCE(w.key, e.key), COALESCE(w.state, e.state) FROM {t} AS e
			LEFT JOIN {t} AS w ON w.seq = e.stands_in WHERE e.key = ?`),
		twinOfConfirmed: sql(`SELECT key FROM {t} WHERE key <> ? AND fact <> '' AND (fact = ? OR (event_id = ? AND signed = 1))
			ORDER BY seq LIMIT 1`),
		twinOfSigned: sql(`SELECT seq, key, state FROM {t} WHERE signed = 0 AND fact <> '' AND (matched = '' OR matched = ?)
			AND (fact = ? OR (event_id = ? AND kind = ? AND resource = ?)) ORDER BY CASE WHEN fact = ? THEN 0 ELSE 1 END, seq LIMIT 1`),
		match: sql(`UPDATE {t} SET matched = ? WHERE seq = ?`),
		standIn: sql(`UPDATE {t} SET state = 3, stands_in = ?, position = 0, since = {now}, body = NULL, confirmed = NULL
			WHERE key = ?`),

		claim: sql(`UPDATE {t} SET state = 2, attempts = attempts + 1, token = ?, lease = {now} + ?, since = {now}
			WHERE seq = (SELECT e.seq FROM {t} AS e WHERE e.key = ? AND e.state = 1 AND {free}{skip})
			RETURNING {columns}`),
		// The oldest waiting rows come straight from an index, a bounded number
		// of them however long the queue is; those that are due and the first of
		// their resource are what may be claimed. Another process that looks at
		// the same moment finds them locked, and not their successors either.
		next: sql(`WITH w AS (SELECT seq, due, ROW_NUMBER() OVER (PARTITION BY resource ORDER BY due, seq) AS place
				FROM (SELECT seq, due, resource FROM {t} WHERE state = 1 ORDER BY due, seq LIMIT ?) AS oldest WHERE due <= {now})
			UPDATE {t} SET state = 2, attempts = attempts + 1, token = ?, lease = {now} + ?, since = {now}
			WHERE seq IN (SELECT e.seq FROM w JOIN {t} AS e ON e.seq = w.seq WHERE w.place = 1 AND e.state = 1 AND {free}
				ORDER BY w.due, w.seq LIMIT ?{skip_e})
			RETURNING {columns}`),
		beyond: sql(`SELECT seq FROM (SELECT seq, due FROM {t} WHERE state = 1 ORDER BY due, seq LIMIT 1 OFFSET ?) AS one
			WHERE due <= {now}`),
		expire: sql(`UPDATE {t} SET state = 1, token = '', due = {now}, since = {now}
			WHERE seq IN (SELECT seq FROM {t} WHERE state = 2 AND lease <= {now}{skip})`),

		// A row that its handler's transaction has locked can't be extended and
		// needs not be.
		extend: sql(`UPDATE {t} SET lease = {now} + ?
			WHERE seq IN (SELECT seq FROM {t} WHERE key = ? AND token = ? AND state = 2{skip})`),
		holds: sql(`SELECT COUNT(*) FROM {t} WHERE key = ? AND token = ? AND state = 2`),
		complete: sql(`UPDATE {t} SET state = 3, since = {now}, body = NULL, confirmed = NULL, reason = ''
			WHERE key = ? AND token = ? AND state = 2`),
		retry: sql(`UPDATE {t} SET state = 1, token = '', since = {now}, due = {now} + ?, reason = ?
			WHERE key = ? AND token = ? AND state = 2`),
		bury: sql(`UPDATE {t} SET state = 4, token = '', since = {now}, reason = ?
			WHERE key = ? AND token = ? AND state = 2`),
		release: sql(`UPDATE {t} SET state = 1, token = '', since = {now}, due = {now}, attempts = attempts - 1
			WHERE key = ? AND token = ? AND state = 2`),

		deadLetters: sql(`SELECT key, event_id, kind, resource, attempts, reason, since, body FROM {t}
			WHERE state = 4 ORDER BY since, seq LIMIT ?`),
		requeue: sql(`UPDATE {t} SET state = 1, due = {now}, since = {now}, attempts = 0 WHERE key = ? AND state = 4`),
		purge: sql(`DELETE FROM {t} WHERE seq IN
			(SELECT seq FROM {t} WHERE state = 3 AND since < {now} - ? ORDER BY since LIMIT ?)`),
		counts: sql(`SELECT (SELECT COUNT(*) FROM {t} WHERE state = 1), (SELECT COUNT(*) FROM {t} WHERE state = 2),
			(SELECT COUNT(*) FROM {t} WHERE state = 4),
			COALESCE((SELECT {now} - MIN(due) FROM {t} WHERE state = 1), 0)`),
	}
	if d == Postgres {
		// SQLite has one writer at a time anyway.
		q.lock = sql(`SELECT pg_advisory_xact_lock(hashtextextended('{t} ' || ?, 0))`)
	}
	return q
}

// bare is a table's name without its schema, which is what names its columns.
func bare(table string) string { return table[strings.LastIndexByte(table, '.')+1:] }

// bind numbers the parameters for PostgreSQL.
func bind(d Dialect, text string) string {
	if d != Postgres {
		return text
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}
