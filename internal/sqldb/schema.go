package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	if db.Dialect() == database.DialectPostgres {
		if err := db.Repeat(ctx, func() error { return db.find(ctx) }); err != nil {
			return err
		}
	} else if db.location.InSchema != "" {
		return errors.New("InSchema is only for PostgreSQL")
	}
	db.words.Store(strings.NewReplacer(db.dialect()...))
	return nil
}

// find sets the schema and the default isolation of PostgreSQL.
func (db *DB) find(ctx context.Context) error {
	var path, role, isolation string
	if err := one(ctx, db.driver.Conn(), `SELECT current_setting('search_path'), CAST(current_user AS text), current_setting('default_transaction_isolation')`,
		nil, &path, &role, &isolation); err != nil {
		return err
	}
	db.strict = isolation != "read committed" && isolation != "read uncommitted"
	candidates := []string{db.location.InSchema}
	if db.location.InSchema == "" {
		candidates = searched(path, role)
	}
	for _, name := range candidates {
		usable := false
		err := one(ctx, db.driver.Conn(), `SELECT has_schema_privilege(nspname, 'USAGE') FROM pg_namespace WHERE nspname = $1`, []any{name}, &usable)
		switch {
		case errors.Is(err, errNoRow) && name == role && db.location.InSchema == "": // from "$user"
		case errors.Is(err, errNoRow):
			return fmt.Errorf("%w: there is no schema %s; %s", database.ErrSchema, database.Quote(name), db.from(path))
		case err != nil:
			return err
		case !usable:
			return fmt.Errorf("%w: the role %s has no right to use the schema %s; %s; or run GRANT USAGE ON SCHEMA %s TO %s", database.ErrSchema,
				role, database.Quote(name), db.from(path), database.Quote(name), database.Quote(role))
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
	return fmt.Sprintf("it is the first one of the search_path %q: create it, or set InSchema to the schema of the gateway's tables", path)
}

// searched returns the schemas of a search path up to the first that must exist. "$user"
// stands for the role, and need not exist.
func searched(path, role string) []string {
	var list []string
	for path != "" {
		path = strings.TrimLeft(path, " \t")
		var name string
		if rest, quoted := strings.CutPrefix(path, `"`); quoted {
			name, path = unquoted(rest)
			_, path, _ = strings.Cut(path, ",")
		} else {
			name, path, _ = strings.Cut(path, ",")
			name = strings.ToLower(strings.TrimSpace(name))
		}
		if name == "" {
			continue
		}
		if name == "$user" {
			list = append(list, role)
			continue
		}
		return append(list, name)
	}
	return list
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

// dialect are the words of the dialect.
func (db *DB) dialect() []string {
	if db.Dialect() == database.DialectSQLite { // a transaction holds the only write lock
		return []string{
			"{s}", "", "{now}", dbms.SQLiteNow, "{clock}", dbms.SQLiteNow, "{lock}", "", "{skip}", "", "{json}", "?", "{jsonb}", "?", "{int}", "INTEGER",
		}
	}
	return []string{
		"{s}", database.Quote(db.schema) + ".", "{now}", dbms.PostgresNow,
		"{clock}", strings.ReplaceAll(dbms.PostgresNow, "statement_timestamp", "clock_timestamp"),
		"{lock}", "FOR UPDATE", "{skip}", "FOR UPDATE SKIP LOCKED", "{json}", "CAST(? AS json)", "{jsonb}", "CAST(? AS jsonb)", "{int}", "bigint",
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
func WithMigrations(ctx context.Context, list func(database.Dialect, string) ([]database.Migration, error)) context.Context {
	return context.WithValue(ctx, migrationsKey{}, list)
}

// migrations returns those of some parts.
func (db *DB) migrations(ctx context.Context, parts []string) ([]database.Migration, error) {
	list, ok := ctx.Value(migrationsKey{}).(func(database.Dialect, string) ([]database.Migration, error))
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
	if err := db.Find(ctx); err != nil {
		return err
	}
	known, err := db.migrations(ctx, parts)
	if err != nil {
		return err
	}
	missing, err := db.missing(ctx, db.Conn(), known)
	switch {
	case err != nil:
		return err
	case len(missing) == 0:
		return db.usable(ctx, known)
	case db.location.Schema == database.Expect:
		return fmt.Errorf("%w: the migrations %s are missing: apply the files of gateway-schema -dialect %s%s", database.ErrSchema,
			versions(missing), db.Dialect(), db.flag())
	}
	if err := db.create(ctx, known); err != nil {
		return err
	}
	return db.usable(ctx, known)
}

func (db *DB) flag() string {
	if db.schema == "" {
		return ""
	}
	return " -schema " + db.schema
}

func versions(list []database.Migration) string {
	var names []string
	for _, m := range list {
		names = append(names, fmt.Sprintf("%04d_%s", m.Version, m.Part))
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
	exists, err := db.exists(ctx, s, "gateway_schema")
	if err != nil || !exists {
		return known, err
	}
	applied, err := All(ctx, s, `SELECT part, version, oldest FROM {s}gateway_schema`, nil, func(scanner database.Scanner) (r row, err error) {
		return r, scanner.Scan(&r.part, &r.version, &r.oldest)
	})
	if err != nil {
		return nil, db.denied(err)
	}
	newest := make(map[string]int)
	for _, m := range known {
		newest[m.Part] = max(newest[m.Part], m.Version)
	}
	for _, r := range applied {
		if mine, ok := newest[r.part]; ok && r.oldest > mine {
			return nil, fmt.Errorf("%w: a later release has changed the tables of part %s to version %d, which a release that knows version %d "+
				"must not use: install a later release of this program", database.ErrSchema, r.part, r.version, mine)
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(m database.Migration) bool {
		return slices.ContainsFunc(applied, func(r row) bool { return r.part == m.Part && r.version == m.Version })
	}), nil
}

// exists reports whether there is a table.
func (db *DB) exists(ctx context.Context, s Session, table string) (bool, error) {
	query, args := `SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = ?`, []any{table}
	if db.Dialect() == database.DialectPostgres {
		// In the transaction that has waited for the lock, to_regclass may not see a table that
		// another process has created: the session remembers that there was none.
		query = `SELECT COUNT(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relname = ? AND n.nspname = ?`
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
		if err := db.concurrent(ctx, known); err != nil {
			return err
		}
	}
}

// apply applies the migrations that are missing up to one that is concurrent; again reports
// whether there is one.
func (db *DB) apply(ctx context.Context, s Session, known []database.Migration) (again bool, err error) {
	if db.Dialect() == database.DialectPostgres { // two processes that run this at once would disturb each other
		if _, err := s.Exec(ctx, `SELECT CAST(pg_advisory_xact_lock(hashtextextended('gateway_schema in ' || CAST(? AS text), 0)) AS text)`,
			db.schema); err != nil {
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

// concurrent applies the first migration that is missing, which can't run in a transaction.
func (db *DB) concurrent(ctx context.Context, known []database.Migration) error {
	missing, err := db.missing(ctx, db.Conn(), known)
	if err != nil || len(missing) == 0 || !missing[0].Concurrent {
		return err
	}
	return db.execute(ctx, db.driver.Conn(), missing[0])
}

// execute executes the statements of a migration.
func (db *DB) execute(ctx context.Context, c database.Conn, m database.Migration) error {
	for _, statement := range m.Statements() {
		_, err := c.Exec(ctx, statement)
		switch {
		case err == nil:
		case dbms.State(err) == "42501":
			return fmt.Errorf("%w: the migration %04d_%s is missing, and the role may not create tables in the schema %s: let the schema's owner open the "+
				"program once, or apply the files of gateway-schema -dialect %s%s: %w", database.ErrSchema, m.Version, m.Part, database.Quote(db.schema), db.Dialect(), db.flag(), err)
		case isTwice(err):
			return fmt.Errorf("%w: the table gateway_schema has no row for the migration %04d_%s, but a part of what it creates is there, so it was applied in part or by "+
				"hand: finish it with the file of gateway-schema -dialect %s%s, or drop what it created: %w", database.ErrSchema, m.Version, m.Part, db.Dialect(), db.flag(), err)
		default:
			return fmt.Errorf("the migration %04d_%s failed: %w", m.Version, m.Part, err)
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
	of := make(map[string]database.Migration)
	var names []string
	for _, m := range known {
		for _, name := range m.Tables() {
			if db.schema != "" {
				name = db.Qualified(name)
			}
			of[name], names = m, append(names, name)
		}
	}
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	query := `SELECT value, CASE WHEN (SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = value) = 0 THEN 'exist' ELSE '' END FROM json_each(?)`
	if db.Dialect() == database.DialectPostgres {
		query = `SELECT t.name, CASE WHEN to_regclass(t.name) IS NULL THEN 'exist' ELSE COALESCE((SELECT MIN(r.name)
				FROM (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r(name)
				WHERE NOT has_table_privilege(to_regclass(t.name), r.name) AND (r.name = 'SELECT' OR t.name NOT LIKE '%"gateway_schema"')), '') END
			FROM jsonb_array_elements_text({jsonb}) AS t(name)`
	}
	return db.Conn().Each(ctx, query, []any{string(list)}, func(row database.Scanner) error {
		var table, lacks string
		if err := row.Scan(&table, &lacks); err != nil {
			return err
		}
		switch lacks {
		case "":
			return nil
		case "exist":
			m := of[table]
			return fmt.Errorf("%w: the table %s is missing, although gateway_schema has the migration %04d_%s: restore it, or delete the row of "+
				"the migration if none of its tables is there", database.ErrSchema, table, m.Version, m.Part)
		default:
			return db.denied(fmt.Errorf("the role has no right to %s on %s", lacks, table))
		}
	})
}

// denied adds the repair to an error about a missing right.
func (db *DB) denied(err error) error {
	if state := dbms.State(err); state != "" && state != "42501" {
		return err
	}
	return fmt.Errorf("%w: %w: run GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO the role", database.ErrSchema, err, database.Quote(db.schema))
}
