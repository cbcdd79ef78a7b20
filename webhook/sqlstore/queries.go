package sqlstore

import (
	"strings"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// The column account says whose event a row is, and an event's key is unique within its
// account. A claim that has expired is returned to its queue whosever it is, and the
// statements that end a claim find it by its key and token, which is drawn for each
// statement that claims. Every other statement reads and changes only the rows of its
// account.
//
// The column state has the values of webhook.State:
//
//	1 waiting, 2 claimed, 3 done, 4 dead, 5 unhandled
//
// An event that was set aside has the family and kind of the missing handler
// in the column aside; whenever it would be waiting, its state is unhandled
// instead. A row with state 0 is that of an account and has the key '': since is the time
// from which the table has every completed event of it. It is in this table, so that a table
// that was emptied remembers nothing.
//
// Times are Unix milliseconds of the database's clock, so the clocks of the
// processes need not agree.

const tableName = "gateway_webhook_events"

// queries is the SQL of one dialect and table.
type queries struct {
	lock, insert, entry, twinOfConfirmed, twinOfSigned, unfinished, putAway, match, standIn        string
	claim, claimFirst, claimAside, next, beyond, behind, fronts, expire, takeBack, clock, stepBack string
	extend, holds, complete, retry, bury, release, setAside                                        string
	insertAll, completeAll, releaseAll                                                             string
	asides, nextAside, unhandled                                                                   string
	deadLetters, requeue, discard, purge, purgeUnhandled, counts                                   string
	known, register, names, since, forget                                                          string
}

// columns are the columns of a claim, in the order in which scanClaim reads
// them. The concatenation keeps the planner from looking for the resource among
// all done events of the account: only the index "latest" applies.
const columns = `{row}.seq, {row}.due, {row}.key, {row}.event_id, {row}.kind, {row}.resource, {row}.fact, {row}.signed, {row}.source, ` +
	`{row}.late, {row}.position, {row}.digest, {row}.key_id, {row}.trace, {row}.body, {row}.confirmed, {row}.attempts, {now} - {row}.arrived, ` +
	`{row}.expired, ` +
	`COALESCE((SELECT MAX(d.position) FROM {t} AS d WHERE d.resource = {row}.resource AND d.account || '' = {a} AND d.state = 3), 0)`

// isFree is true if no event of the resource of row e is claimed. The subquery
// is scalar so that it is a single index lookup, whatever statistics the
// planner has.
const isFree = `(SELECT b.seq FROM {t} AS b WHERE b.account = {a} AND b.resource = e.resource AND b.state = 2 LIMIT 1) IS NULL`

// wait is the time until the row is due.
const wait = `CASE WHEN {row}.state IN (1, 5) AND {row}.due > {now} THEN {row}.due - {now} ELSE 0 END`

// rest is the state of an event that is not claimed, done or dead.
const rest = `CASE WHEN aside = '' THEN 1 ELSE 5 END`

// claimKey claims the row with a key.
const claimKey = `UPDATE {t} SET state = 2, attempts = attempts + 1, token = ?, lease = {now} + ?, since = {now}
	WHERE seq = (SELECT e.seq FROM {t} AS e WHERE e.key = ? AND e.account = {a} AND e.state + 0 IN ({states}) AND e.due <= {now} AND {free} {skip})
	RETURNING {columns}`

// durable makes a statement that changes a row raise synchronous_commit for the
// rest of its transaction, which may be that statement alone: an event that was
// acknowledged, or an outcome that was stored, must survive a crash of the
// database. Stricter settings than "on" stay.
const durable = ` RETURNING (SELECT ` + sqldb.RaiseCommit + `)`

// durableKey is durable for a statement whose caller needs the keys of the rows
// that it has changed.
const durableKey = ` RETURNING key, (SELECT ` + sqldb.RaiseCommit + `)`

// ended are the rows of claims, as arrays of keys and tokens, that are not locked.
// There is one index lookup for each.
const ended = ` WHERE seq = ANY(ARRAY(SELECT e.seq FROM unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[])) AS c(key, token),
	LATERAL (SELECT r.seq FROM {t} AS r WHERE r.key = c.key AND r.token = c.token AND r.state + 0 = 2 FOR UPDATE SKIP LOCKED) AS e))` + durableKey

// placeBeforeFrontier is the due time, on PostgreSQL, of an event that is not repeated later
// because of what it did. If another one of its resource follows, it keeps its due time, and
// so its place. Usually there is none, and the current time lets other processes find the
// event at once (see frontier). On SQLite, which has no frontier, it keeps its due time.
const placeBeforeFrontier = `CASE WHEN (SELECT f.seq FROM {t} AS f WHERE f.state + 0 = 1 AND f.resource <> '' AND f.account = {row}.account
				AND f.resource = {row}.resource AND f.due + 0 <= {now} LIMIT 1) IS NULL THEN {now} ELSE {row}.due END`

// expires ends a claim whose lease has expired. The first two in a row do not count as
// attempts; see webhook.Claim.
const expires = `UPDATE {t} SET state = {rest}, token = '', due = {place}, since = {now}, reason = '',
			attempts = CASE WHEN expired < 2 THEN attempts - 1 ELSE attempts END, expired = expired + 1`

// The changes that end the claims of several events together.
const (
	completes = `UPDATE {t} SET state = 3, since = {now}, body = NULL, confirmed = NULL, reason = ''`
	releases  = `UPDATE {t} SET state = {rest}, token = '', since = {now}, attempts = attempts - 1, due = {place}`
)

// nextFrom claims due rows of a queue. It reads a limited number of the oldest
// rows from an index, and claims those that are the first of their resource.
// Other processes skip the locked rows, and do not claim later events of their
// resources.
//
// Statistics are unreliable for a queue, which is empty one minute and full
// the next, so the statement is written to allow only one plan: rows are
// looked up by arrays of seq, and "state + 0" keeps the planner from using
// partial indexes for those lookups.
const nextFrom = `WITH w AS (SELECT seq, ROW_NUMBER() OVER (PARTITION BY resource ORDER BY due, seq) AS place
		FROM ({queue}) AS oldest WHERE due <= {now})
	UPDATE {t} SET state = 2, attempts = attempts + 1, token = ?, lease = {now} + ?, since = {now}
	WHERE seq {in}(SELECT e.seq FROM {t} AS e WHERE e.seq {in}(SELECT seq FROM w WHERE place = 1){ni}
		AND e.state + 0 = {state} AND {free}{first} ORDER BY e.due, e.seq LIMIT ?{skip_e}){ni}
	RETURNING {columns}`

// isFirst is true if no earlier event of the resource of row e is waiting,
// also behind the frontier. With "state + 0 = 1" only the index "first"
// applies.
const isFirst = ` AND (SELECT f.seq FROM {t} AS f WHERE f.state + 0 = 1 AND f.resource <> '' AND f.account = {a} AND f.resource = e.resource
		AND (f.due + 0, f.seq) < (e.due, e.seq) LIMIT 1) IS NULL`

// window reads the first waiting events that are due at or after a given time.
const window = `SELECT seq, due, resource FROM {t} WHERE account = {a} AND state = 1 AND due >= ? ORDER BY due, seq LIMIT ?`

// asideWindow reads the first events that were set aside for one missing
// handler.
const asideWindow = `SELECT seq, due, resource FROM {t} WHERE account = {a} AND state = 5 AND aside = ? ORDER BY due, seq LIMIT ?`

// fronts reads the first waiting event of each resource in a JSON array: those
// that have events due before the window.
const fronts = `SELECT f.seq, f.due, f.resource FROM jsonb_array_elements_text({jsonb}) AS r(name),
	LATERAL (SELECT seq, due, resource FROM {t} WHERE state + 0 = 1 AND resource <> '' AND account = {a} AND resource = r.name
		ORDER BY due + 0, seq LIMIT 1) AS f`

// statement finishes the text of a statement. account is the value of the column
// account. It is a part of the text: as a parameter it would not change within a
// process either, and names have no characters with a meaning in SQL.
func statement(db *sqldb.DB, account, text string) string {
	in, ni, waiting, place, skipE, commit := `IN `, ``, `e.state = 1`, `{row}.due`, ``, ``
	if db.Dialect() == database.DialectPostgres {
		in, ni, waiting, place = `= ANY(ARRAY`, `)`, `e.state + 0 = 1`, placeBeforeFrontier
		skipE, commit = ` FOR UPDATE OF e SKIP LOCKED`, durable
	}
	text = strings.NewReplacer("{columns}", columns, "{free}", isFree, "{rest}", rest, "{place}", place, "{wait}", wait, "{in}", in, "{ni}", ni,
		"{waiting}", waiting, "{durable}", commit).Replace(text)
	text = strings.NewReplacer("{t}", "{s}"+tableName, "{row}", tableName, "{a}", "'"+account+"'", "{skip_e}", skipE,
		"{lock_e}", strings.TrimSuffix(skipE, " SKIP LOCKED")).Replace(text)
	return db.SQL(text)
}

// newQueries returns the statements for the events of one account.
func newQueries(db *sqldb.DB, account string) queries {
	queue, first := window, ``
	if db.Dialect() == database.DialectPostgres {
		queue, first = `(`+window+`) UNION ALL `+fronts, isFirst
	}
	sql := func(text string) string { return statement(db, account, text) }
	q := queries{
		insert: sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position, digest, key_id, trace, body, confirmed,
			state, reason, attempts, token, due, lease, since, arrived, matched, account)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', {now}, 0, {now}, {now}, '', {a}) ON CONFLICT (key, account) DO NOTHING{durable}`),
		entry: sql(`SELECT COALESCE(w.key, e.key), COALESCE(w.state, e.state), e.digest,
			CASE WHEN w.seq IS NULL THEN ` + strings.ReplaceAll(wait, "{row}", "e") + ` ELSE ` + strings.ReplaceAll(wait, "{row}", "w") + ` END
			FROM {t} AS e LEFT JOIN {t} AS w ON w.seq = e.stands_in WHERE e.key = ? AND e.account = {a}`),
		// SQLite uses an index for a part of an OR only if the part implies its condition, and
		// "seq + 0" keeps both from reading all rows in the order of seq.
		twinOfConfirmed: sql(`SELECT key FROM {t} WHERE key <> ? AND account || '' = {a}
			AND ((fact <> '' AND fact = ?) OR (fact <> '' AND event_id = ? AND signed = 1)) ORDER BY seq + 0 LIMIT 1`),
		twinOfSigned: sql(`SELECT seq, key, state, {wait} FROM {t} WHERE account || '' = {a} AND signed = 0 AND (matched = '' OR matched = ?)
			AND ((fact <> '' AND fact = ?) OR (fact <> '' AND event_id = ? AND kind = ? AND resource = ?))
			ORDER BY CASE WHEN fact = ? THEN 0 ELSE 1 END, seq LIMIT 1`),
		unfinished: sql(`SELECT key, event_id, kind, resource FROM {t} WHERE account = {a} AND (state = 1 OR state = 2 OR state = 5) AND key > ?
			ORDER BY key LIMIT ?`),
		putAway: sql(`DELETE FROM {t} WHERE key = ? AND account = {a}`),
		match:   sql(`UPDATE {t} SET matched = ? WHERE seq = ?`),
		standIn: sql(`UPDATE {t} SET state = 3, stands_in = ?, position = 0, since = {now}, body = NULL, confirmed = NULL
			WHERE key = ? AND account = {a}`),

		claim:      sql(strings.ReplaceAll(claimKey, "{states}", "1, 5")),
		claimAside: sql(strings.ReplaceAll(claimKey, "{states}", "5")),
		// It waits for a lock: skipping a locked row would claim a later
		// event.
		claimFirst: sql(`UPDATE {t} SET state = 2, attempts = attempts + 1, token = ?, lease = {now} + ?, since = {now}
			WHERE seq = (SELECT e.seq FROM {t} AS e WHERE {waiting} AND e.resource <> '' AND e.account = {a} AND e.resource =
				(SELECT resource FROM {t} WHERE key = ? AND account = {a}) AND e.due <= {now} AND {free} ORDER BY e.due + 0, e.seq LIMIT 1{lock_e})
			RETURNING {columns}`),
		next:      sql(strings.NewReplacer("{queue}", queue, "{state}", "1", "{first}", first).Replace(nextFrom)),
		nextAside: sql(strings.NewReplacer("{queue}", asideWindow, "{state}", "5", "{first}", "").Replace(nextFrom)),
		beyond: sql(`SELECT seq FROM (SELECT seq, due FROM {t} WHERE account = {a} AND state = 1 AND due >= ? ORDER BY due, seq LIMIT 1 OFFSET ?) AS one
			WHERE due <= {now}`),
		expire: sql(expires + `
			WHERE seq {in}(SELECT seq FROM {t} WHERE state = 2 AND lease > 0 AND lease >= ? AND lease <= {now} {skip}){ni}`),
		takeBack: sql(expires + `
			WHERE seq {in}(SELECT b.seq FROM {t} AS b WHERE b.account = {a} AND b.resource = (SELECT resource FROM {t} WHERE key = ? AND account = {a})
			AND b.state = 2 AND b.lease <= {now} {skip}){ni}{durable}`),

		// A row that is locked by its handler's transaction can't be extended,
		// and need not be.
		extend: sql(`UPDATE {t} SET lease = {now} + ?
			WHERE seq IN (SELECT seq FROM {t} WHERE key = ? AND token = ? AND state + 0 = 2 {skip})`),
		holds: sql(`SELECT COUNT(*) FROM {t} WHERE key = ? AND token = ? AND state + 0 = 2`),
		complete: sql(completes + `
			WHERE key = ? AND token = ? AND state + 0 = 2{durable}`),
		retry: sql(`UPDATE {t} SET state = {rest}, token = '', since = {now}, due = {now} + ?, expired = 0, reason = ?
			WHERE key = ? AND token = ? AND state + 0 = 2{durable}`),
		bury: sql(`UPDATE {t} SET state = 4, token = '', since = {now}, reason = ?
			WHERE key = ? AND token = ? AND state + 0 = 2{durable}`),
		release: sql(releases + `
			WHERE key = ? AND token = ? AND state + 0 = 2{durable}`),
		setAside: sql(`UPDATE {t} SET state = 5, token = '', since = {now}, due = {now}, attempts = attempts - 1, aside = ?
			WHERE key = ? AND token = ? AND state + 0 = 2{durable}`),

		// One index lookup for each value of aside, however many rows have it.
		asides: sql(`WITH RECURSIVE k(aside) AS (SELECT MIN(aside) FROM {t} WHERE account = {a} AND state = 5
			UNION ALL SELECT (SELECT MIN(aside) FROM {t} WHERE account = {a} AND state = 5 AND aside > k.aside) FROM k WHERE k.aside IS NOT NULL)
			SELECT aside FROM k WHERE aside IS NOT NULL`),
		unhandled: sql(`SELECT aside, COUNT(*), MIN(since) FROM {t} WHERE account = {a} AND state = 5 GROUP BY aside ORDER BY aside`),

		// Rows written before the clock was set back would wait until it has
		// caught up. Their waiting times and leases are restarted from now.
		clock: sql(`SELECT {now}`),
		stepBack: sql(`UPDATE {t} SET due = CASE WHEN due > since THEN {now} + due - since ELSE {now} END,
			lease = CASE WHEN lease > since THEN {now} + lease - since ELSE lease END, since = {now}
			WHERE seq {in}(SELECT seq FROM {t} WHERE ((state = 1 AND due > {now}) OR (state = 2 AND lease > 0 AND lease > {now}) OR
			(state = 5 AND due > {now})) AND since > {now} + ? {skip}){ni}`),

		deadLetters: sql(`SELECT key, event_id, kind, resource, attempts, reason, since, body, seq FROM {t}
			WHERE account = {a} AND state = 4 AND (since > ? OR (since = ? AND seq > ?))
			AND (? = '' OR kind = ?) AND (? = '' OR resource = ?) AND since >= ? ORDER BY since, seq LIMIT ?`),
		requeue: sql(`UPDATE {t} SET state = {rest}, due = {now}, since = {now}, attempts = 0, expired = 0 WHERE key = ? AND account = {a} AND state + 0 = 4{durable}`),
		discard: sql(`UPDATE {t} SET state = 3, since = {now}, position = 0, body = NULL, confirmed = NULL, reason = ''
			WHERE key = ? AND account = {a} AND state + 0 = 4{durable}`),
		// Each batch begins where the last one ended: PostgreSQL's index still has what that deleted.
		purge: sql(`DELETE FROM {t} WHERE seq {in}(SELECT seq FROM {t} WHERE account = {a} AND state = 3 AND since < {now} - ? AND since >= ?
			ORDER BY since LIMIT ?){ni} RETURNING since`),
		// No index has since, but an event that is set aside was due then, or is due soon after.
		purgeUnhandled: sql(`DELETE FROM {t} WHERE seq {in}(SELECT seq FROM {t} WHERE account = {a} AND state = 5 AND aside = ?
			AND since < {now} - ? AND due < {now} - ? + 86400000 AND due >= ? ORDER BY due, seq LIMIT ?){ni} RETURNING due`),
		known: sql(`SELECT a.fingerprint FROM {s}gateway_accounts AS a JOIN {t} AS e ON e.key = '' AND e.account = a.name
			WHERE a.name = ?`),
		register: sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position, digest, key_id, trace,
			state, attempts, token, due, lease, since, arrived, matched, reason, account)
			VALUES ('', '', '', '', '', 0, '', 0, 0, '', '', '', 0, 0, '', 0, 0, {now}, 0, '', '', ?)
			ON CONFLICT (key, account) DO NOTHING`),
		names:  sql(`SELECT account FROM {t} WHERE key = '' ORDER BY account`),
		since:  sql(`SELECT {now} - since FROM {t} WHERE key = '' AND account = {a}`),
		forget: sql(`UPDATE {t} SET since = {now} - ? WHERE key = '' AND account = {a} AND since < {now} - ?`),
		counts: sql(`SELECT (SELECT COUNT(*) FROM {t} WHERE account = {a} AND state = 1),
			(SELECT COUNT(*) FROM {t} WHERE account = {a} AND state = 2),
			(SELECT COUNT(*) FROM {t} WHERE account = {a} AND state = 4), (SELECT COUNT(*) FROM {t} WHERE account = {a} AND state = 5),
			COALESCE((SELECT {now} - MIN(due) FROM {t} WHERE account = {a} AND state = 1), 0)`),
	}
	if db.Dialect() == database.DialectPostgres {
		// SQLite does not need these: it has only one writer at a time.
		q.insertAll = sql(`INSERT INTO {t} (key, event_id, kind, resource, fact, signed, source, late, position, digest, key_id, trace, body, confirmed,
			state, reason, attempts, token, due, lease, since, arrived, matched, account)
			SELECT r.key, r.event_id, r.kind, r.resource, '', r.signed, r.source, r.late, r.position, r.digest, r.key_id, r.trace,
				decode(r.body, 'hex'), decode(r.confirmed, 'hex'), 1, '', 0, '', {now}, 0, {now}, {now}, '', {a}
			FROM unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]),
				CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]))
				AS r(key, event_id, kind, resource, signed, source, late, position, digest, key_id, trace, body, confirmed)
			ON CONFLICT (key, account) DO NOTHING` + durableKey)
		q.completeAll, q.releaseAll = sql(completes+ended), sql(releases+ended)
		q.fronts = sql(`SELECT due, resource, FALSE FROM (` + fronts + `) AS known`)
		q.behind = sql(`SELECT e.due, e.resource, {free} FROM {t} AS e WHERE e.account = {a} AND e.state = 1 AND e.due >= ? AND e.due < ?
			AND e.resource <> ALL(ARRAY(SELECT jsonb_array_elements_text({jsonb}))) ORDER BY e.due, e.seq LIMIT ?`)
		q.lock = sql(`SELECT CAST(pg_advisory_xact_lock(hashtextextended(CAST(? AS TEXT), 0)) AS TEXT),
			current_setting('transaction_isolation')`)
	}
	return q
}
