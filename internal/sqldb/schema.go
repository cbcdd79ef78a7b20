package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// Find finds out in which schema the tables are, once, on a session of the pool: the search
// path of a user's transaction may be another one.
func (db *DB) Find(ctx context.Context) error {
	if db.words.Load() != nil {
		return nil
	}
	db.found.Lock()
	defer db.found.Unlock()
	if db.words.Load() != nil {
		return nil
	}
	switch {
	case db.location.Schema > database.Expect:
		return errors.New("Location.Schema must be Create or Expect")
	case db.Dialect() == database.DialectPostgres:
		if err := db.Repeat(ctx, func() error { return db.find(ctx) }); err != nil {
			return err
		}
	case db.location.InSchema != "":
		return errors.New("Location.InSchema is only for PostgreSQL: SQLite has no schemas")
	}
	db.words.Store(strings.NewReplacer(db.dialect()...))
	return nil
}

// find sets the schema and the default isolation of PostgreSQL.
func (db *DB) find(ctx context.Context) error {
	var path, role, isolation string
	if err := one(ctx, db.driver.Conn(), `SELECT current_setting('search_path'), CAST(current_user AS text),
		current_setting('default_transaction_isolation')`, nil, &path, &role, &isolation); err != nil {
		return err
	}
	db.strict = isolation != "read committed" && isolation != "read uncommitted"
	candidates := []candidate{{name: db.location.InSchema}}
	if db.location.InSchema == "" {
		candidates = searched(path, role)
	}
	for _, c := range candidates {
		var name string
		usable := false
		// The cast shortens a long name as PostgreSQL does everywhere.
		err := one(ctx, db.driver.Conn(), `SELECT CAST(nspname AS text), has_schema_privilege(oid, 'USAGE') FROM pg_namespace
			WHERE nspname = CAST(CAST($1 AS text) AS name)`, []any{c.name}, &name, &usable)
		switch {
		case errors.Is(err, errNoRow) && c.user:
		case errors.Is(err, errNoRow):
			return fmt.Errorf("%w: there is no schema %s; %s", database.ErrSchema, database.Quote(c.name), db.from(path))
		case err != nil:
			return err
		case !usable:
			quoted := database.Quote(name)
			return fmt.Errorf("%w: the role %s has no right to use the schema %s; %s; or run GRANT USAGE ON SCHEMA %s TO %s",
				database.ErrSchema, role, quoted, db.from(path), quoted, database.Quote(role))
		default:
			db.schema = name
			return nil
		}
	}
	return fmt.Errorf("%w: no schema is named; %s", database.ErrSchema, db.from(path))
}

// from says where the name of the schema comes from, and what to do.
func (db *DB) from(path string) string {
	if db.location.InSchema != "" {
		return "create it, or set InSchema to another one"
	}
	return fmt.Sprintf("it is the first one of the search_path '%s': create it, or set InSchema to the schema of the "+
		"gateway's tables", path)
}

// candidate is a schema that may have the tables.
type candidate struct {
	name string
	user bool // from "$user", so it need not exist
}

// space are the characters that PostgreSQL skips between the names of a search path.
const space = " \t\n\r\f\v"

// searched returns the schemas of a search path up to the first that must exist. "$user"
// stands for the role, and need not exist.
func searched(path, role string) []candidate {
	var list []candidate
	for path != "" {
		path = strings.TrimLeft(path, space)
		var name string
		if rest, quoted := strings.CutPrefix(path, `"`); quoted {
			name, path = unquoted(rest)
			_, path, _ = strings.Cut(path, ",")
		} else {
			name, path, _ = strings.Cut(path, ",")
			name = lower(strings.TrimRight(name, space))
		}
		switch name {
		case "":
		case "$user":
			list = append(list, candidate{role, true})
		default:
			return append(list, candidate{name, false})
		}
	}
	return list
}

// lower folds a name as PostgreSQL folds one without quotes: only the letters of ASCII.
func lower(name string) string {
	folded := []byte(name)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}

// unquoted reads a quoted name after its first quote.
func unquoted(text string) (name, rest string) {
	var b strings.Builder
	for {
		before, after, _ := strings.Cut(text, `"`)
		b.WriteString(before)
		if again, doubled := strings.CutPrefix(after, `"`); doubled {
			b.WriteByte('"')
			text = again
			continue
		}
		return b.String(), after
	}
}

// Qualified returns the quoted name of a table, with its schema. The schema must be known;
// see [DB.Find].
func (db *DB) Qualified(name string) string {
	if db.schema == "" {
		return database.Quote(name)
	}
	return database.Quote(db.schema) + "." + database.Quote(name)
}

// errNoRow reports that a query has no result.
var errNoRow = errors.New("the query has no result")

// one reads a row, without the words of DB.
func one(ctx context.Context, c database.Conn, query string, args []any, columns ...any) error {
	found := false
	err := c.Query(ctx, query, args, func(row database.Scanner) error {
		found = true
		return row.Scan(columns...)
	})
	if err == nil && !found {
		err = errNoRow
	}
	return err
}

// migrationsKey is the key of a context's migrations.
type migrationsKey struct{}

// WithMigrations replaces the migrations of the program, so that a test can be another
// release.
func WithMigrations(ctx context.Context, list Migrations) context.Context {
	return context.WithValue(ctx, migrationsKey{}, list)
}

// Migrations is [database.Schema] of another release.
type Migrations func(d database.Dialect, inSchema string) ([]database.Migration, error)

// migrations returns those of some parts.
func (db *DB) migrations(ctx context.Context, parts []string) ([]database.Migration, error) {
	list, ok := ctx.Value(migrationsKey{}).(Migrations)
	if !ok {
		list = database.Schema
	}
	all, err := list(db.Dialect(), db.schema)
	return slices.DeleteFunc(all, func(m database.Migration) bool { return !slices.Contains(parts, m.Part) }), err
}

// Migrate checks the settings of the database, and that the tables of some parts fit the
// program. It creates what is missing, unless that is left to the user's own migrations. If
// nothing is missing it only reads.
func (db *DB) Migrate(ctx context.Context, parts ...string) error {
	if err := db.Check(ctx); err != nil {
		return err
	}
	return db.MigrateUnchecked(ctx, parts...)
}

// MigrateUnchecked is Migrate for a package that has checked the settings itself.
func (db *DB) MigrateUnchecked(ctx context.Context, parts ...string) error {
	known, missing, err := db.compared(ctx, parts)
	switch {
	case dbms.State(err) == insufficientPrivilege: // to read gateway_schema
		return cmp.Or(db.usable(ctx, known), err)
	case err != nil:
		return err
	case len(missing) == 0:
		return db.usable(ctx, known)
	case db.location.Schema == database.Expect:
		return db.unexpected(ctx, missing)
	}
	if err := db.create(ctx, known); err != nil {
		return err
	}
	return db.usable(ctx, known)
}

// Readable checks that the tables of some parts are those of this release, and that the role may
// read them. It only reads, and needs no other right.
func (db *DB) Readable(ctx context.Context, parts ...string) error {
	known, missing, err := db.compared(ctx, parts)
	switch {
	case dbms.State(err) == insufficientPrivilege: // to read gateway_schema
		return cmp.Or(db.allowed(ctx, known, "SELECT"), err)
	case err != nil:
		return err
	case len(missing) > 0:
		return db.behind(known, missing)
	}
	return db.allowed(ctx, known, "SELECT")
}

// behind returns the error about migrations that are not this process's to apply.
func (db *DB) behind(known, missing []database.Migration) error {
	before := missing[0].Version - 1
	command := db.command()
	if before > 0 {
		command += " -after " + strconv.Itoa(before)
	}
	has := "has none of the gateway's tables"
	if len(missing) < len(known) {
		has = fmt.Sprintf("has the tables of version %d", before)
	}
	return fmt.Errorf("%w: the database %s, and this release needs version %d: the migrations %s are missing. Open the program of "+
		"this release on the primary server, or apply the files of %s there; a replica has them once it has caught up",
		database.ErrSchema, has, known[len(known)-1].Version, versions(missing), command)
}

// compared returns the migrations of some parts, and those of them that were not applied.
func (db *DB) compared(ctx context.Context, parts []string) (known, missing []database.Migration, err error) {
	if err := db.Find(ctx); err != nil {
		return nil, nil, err
	}
	if known, err = db.migrations(ctx, parts); err != nil {
		return nil, nil, err
	}
	missing, err = db.missing(ctx, db.Conn(), known)
	return known, missing, err
}

// unexpected returns the error about migrations that the user's own tool has not applied.
func (db *DB) unexpected(ctx context.Context, missing []database.Migration) error {
	for _, m := range missing {
		for _, table := range m.Tables() {
			if exists, err := db.exists(ctx, db.Conn(), table); err != nil || exists {
				return errors.Join(err, db.inPart(m, "the table "+table))
			}
		}
	}
	return fmt.Errorf("%w: the migrations %s are missing: apply the files of %s",
		database.ErrSchema, versions(missing), db.command())
}

// inPart returns the error about a migration that was applied without its row, or only in part.
func (db *DB) inPart(m database.Migration, what string) error {
	return fmt.Errorf("%w: %s is there, but the table gateway_schema has no row for the migration %s, which creates it: "+
		"if all that the migration creates is there, run the last statement of its file, which inserts the row; otherwise "+
		"drop what is there, if it is empty, or run the other statements too; %s prints the file",
		database.ErrSchema, what, name(m), db.command())
}

// command returns the command that prints the files of the migrations.
func (db *DB) command() string {
	command := "gateway-schema -dialect " + db.Dialect().String()
	if db.schema != "" {
		command += " -schema '" + strings.ReplaceAll(db.schema, "'", `'\''`) + "'"
	}
	return command
}

// name returns the name of a migration's file.
func name(m database.Migration) string { return fmt.Sprintf("%04d_%s", m.Version, m.Part) }

func versions(list []database.Migration) string {
	var names []string
	for _, m := range list {
		names = append(names, name(m))
	}
	return strings.Join(names, ", ")
}

// missing returns the migrations that were not applied. It returns an error if a later
// release has applied one that this program must not run beside.
func (db *DB) missing(ctx context.Context, s Session, known []database.Migration) ([]database.Migration, error) {
	type row struct {
		part            string
		version, oldest int
	}
	if !s.alone { // where an error would end the transaction
		if exists, err := db.exists(ctx, s, "gateway_schema"); err != nil || !exists {
			return known, err
		}
	}
	applied, err := All(ctx, s, `SELECT part, version, oldest FROM {s}gateway_schema ORDER BY version, part`, nil,
		func(scanner database.Scanner) (r row, err error) {
			return r, scanner.Scan(&r.part, &r.version, &r.oldest)
		})
	switch {
	case dbms.State(err) == "42P01", err != nil && strings.Contains(err.Error(), "no such table"):
		return known, nil
	case err != nil:
		return nil, err
	}
	newest := make(map[string]int)
	for _, m := range known {
		newest[m.Part] = max(newest[m.Part], m.Version)
	}
	for _, r := range applied {
		if mine, ok := newest[r.part]; ok && r.oldest > mine {
			return nil, fmt.Errorf("%w: a later release has changed the tables of part %s to version %d, which a release that "+
				"knows version %d must not use: install a later release of this program",
				database.ErrSchema, r.part, r.version, mine)
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(m database.Migration) bool {
		return slices.ContainsFunc(applied, func(r row) bool { return r.part == m.Part && r.version == m.Version })
	}), nil
}

// exists reports whether there is a table. On PostgreSQL it reads the catalog: in a transaction,
// to_regclass may not see a table that another session has just created.
func (db *DB) exists(ctx context.Context, s Session, table string) (bool, error) {
	query, args := `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, []any{table}
	if db.Dialect() == database.DialectPostgres {
		// Not to_regclass: a session remembers which tables it did not find, also after it has
		// waited for the transaction that creates one.
		query = `SELECT COUNT(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
			WHERE c.relname = CAST(CAST(? AS text) AS name) AND n.nspname = CAST(CAST(? AS text) AS name)`
		args = append(args, db.schema)
	}
	var n int64
	_, err := s.First(ctx, query, args, Into(&n))
	return n > 0, err
}

// create applies what is missing. Several processes may do so at once.
func (db *DB) create(ctx context.Context, known []database.Migration) error {
	for {
		again := false
		err := db.Durable(ctx, func(tx Tx) (err error) {
			again, err = db.apply(ctx, db.In(tx), known)
			return err
		})
		if err != nil || !again {
			return err
		}
		if err := db.Repeat(ctx, func() error { return db.concurrent(ctx, known) }); err != nil {
			return err
		}
	}
}

// lock is the key of an advisory lock for a schema, after its name.
const lock = `hashtextextended(CAST(? AS text) || ' in ' || CAST(? AS text), 0)`

// apply applies the migrations that are missing up to one that is concurrent; again reports
// whether there is one.
func (db *DB) apply(ctx context.Context, s Session, known []database.Migration) (again bool, err error) {
	if db.Dialect() == database.DialectPostgres { // two processes that run this at once would disturb each other
		_, err := s.Exec(ctx, `SELECT CAST(pg_advisory_xact_lock(`+lock+`) AS text)`, "gateway_schema", db.schema)
		if err != nil {
			return false, err
		}
	}
	missing, err := db.missing(ctx, s, known)
	if err != nil {
		return false, err
	}
	for _, m := range missing {
		if m.Concurrent {
			return true, nil
		}
		if err := db.execute(ctx, s.conn, m); err != nil {
			return false, err
		}
	}
	return false, nil
}

// patience is how long a process waits before it looks again whether another one has
// finished a concurrent migration.
const patience = 100 * time.Millisecond

// concurrent applies the first migration that is missing, if it is concurrent, or waits a
// moment for the process that does.
//
// The lock belongs to a transaction, not to a session, so that it holds behind a pooler. CREATE
// INDEX CONCURRENTLY waits for the snapshots of others: so the processes without the lock must
// not wait for it in a statement, and the transaction with the lock must have no snapshot. It
// keeps that of a query until its next statement, which is a SET, without one.
func (db *DB) concurrent(ctx context.Context, known []database.Migration) error {
	tx, err := db.driver.Begin(ctx, sql.LevelReadCommitted)
	if err != nil {
		return err
	}
	defer db.driver.Rollback(ctx, tx) //nolint:errcheck // it changes nothing
	first := true
	if db.Dialect() == database.DialectPostgres {
		_, err := db.In(tx).First(ctx, `SELECT pg_try_advisory_xact_lock(`+lock+`)`,
			[]any{"gateway_schema concurrently", db.schema}, Into(&first))
		if err != nil {
			return err
		}
	}
	if !first {
		if err := db.driver.Rollback(ctx, tx); err != nil {
			return err
		}
		wait := time.NewTimer(patience)
		defer wait.Stop()
		select {
		case <-wait.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	missing, err := db.missing(ctx, db.In(tx), known)
	if err != nil || len(missing) == 0 || !missing[0].Concurrent {
		return err
	}
	if db.Dialect() == database.DialectPostgres {
		if _, err := db.In(tx).Exec(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
	}
	return db.execute(ctx, db.driver.Conn(), missing[0])
}

// Codes of PostgreSQL.
const (
	insufficientPrivilege = "42501"
	readOnly              = "25006"
)

// execute executes the statements of a migration.
func (db *DB) execute(ctx context.Context, c database.Conn, m database.Migration) error {
	for _, statement := range m.Statements() {
		_, err := c.Exec(ctx, statement)
		switch {
		case err == nil:
		case dbms.State(err) == insufficientPrivilege:
			return fmt.Errorf("%w: the migration %s is missing, and the role lacks the right to apply it in the schema %s: let "+
				"a role that owns the tables open the program once, or apply the files of %s: %w",
				database.ErrSchema, name(m), database.Quote(db.schema), db.command(), err)
		case dbms.State(err) == readOnly:
			return fmt.Errorf("%w: the migration %s is missing, and the database is read-only: open it on the primary server, "+
				"with default_transaction_read_only off: %w", database.ErrSchema, name(m), err)
		case isTwice(err):
			return fmt.Errorf("%w: %w", db.inPart(m, "something that it creates"), err)
		default:
			return fmt.Errorf("the migration %s failed: %w", name(m), err)
		}
	}
	return nil
}

// isTwice reports whether what a statement creates exists already.
func isTwice(err error) bool {
	switch dbms.State(err) {
	case "42P07", "42701", "42710": // a table or index, a column, another object
		return true
	case "":
		return strings.Contains(err.Error(), "already exists") || strings.Contains(err.Error(), "duplicate column name")
	default:
		return false
	}
}

// usable checks that the tables exist and that the role has the rights that statements need.
func (db *DB) usable(ctx context.Context, known []database.Migration) error {
	return db.allowed(ctx, known, "SELECT", "INSERT", "UPDATE", "DELETE")
}

// allowed checks that the tables exist and that the role has some rights on them, and SELECT on
// gateway_schema.
func (db *DB) allowed(ctx context.Context, known []database.Migration, rights ...string) error {
	of := make(map[string]database.Migration)
	var names []string
	for _, m := range known {
		for _, table := range m.Tables() {
			of[table], names = m, append(names, table)
		}
	}
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	var has []string
	for _, right := range rights {
		has = append(has, `has_table_privilege(t.there, '`+right+`')`)
	}
	query, args := `SELECT value, (SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = value), 1, ''
		FROM json_each(?)`, []any{string(list)}
	if db.Dialect() == database.DialectPostgres {
		query = `SELECT t.name, CASE WHEN t.there IS NULL THEN 0 ELSE 1 END,
				CASE WHEN has_table_privilege(t.there, 'SELECT') AND (t.name = 'gateway_schema' OR
					` + strings.Join(has, ` AND `) + `) THEN 1 ELSE 0 END,
				CAST(current_user AS text)
			FROM (SELECT e.name, to_regclass(CAST(? AS text) || e.name) AS there
				FROM jsonb_array_elements_text({jsonb}) AS e(name)) AS t`
		args = []any{database.Quote(db.schema) + ".", string(list)}
	}
	var grants, read []string
	var role string
	if err := db.Conn().Each(ctx, query, args, func(row database.Scanner) error {
		var table string
		var there, allowed int
		if err := row.Scan(&table, &there, &allowed, &role); err != nil {
			return err
		}
		switch m := of[table]; {
		case there == 0:
			return fmt.Errorf("%w: the table %s is missing, although gateway_schema has the migration %s: restore it, or, if "+
				"none of the migration's tables is there, run DELETE FROM %s WHERE part = '%s' AND version >= %d",
				database.ErrSchema, table, name(m), db.Qualified("gateway_schema"), m.Part, m.Version)
		case allowed == 0 && table == "gateway_schema":
			read = []string{"GRANT SELECT ON " + db.Qualified(table) + " TO " + database.Quote(role)}
		case allowed == 0:
			grants = append(grants, db.Qualified(table))
		}
		return nil
	}); err != nil {
		return err
	}
	if len(grants) > 0 {
		read = append(read, "GRANT "+strings.Join(rights, ", ")+" ON "+strings.Join(grants, ", ")+" TO "+database.Quote(role))
	}
	if len(read) > 0 {
		return fmt.Errorf("%w: the role %s lacks rights: run %s", database.ErrSchema, role, strings.Join(read, "; "))
	}
	return nil
}
