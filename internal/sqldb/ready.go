package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/dbms"
)

// Ready returns nil if the database responds, has the tables of some parts as this release
// expects them, and accepts writes. It only reads, and is meant for a readiness probe.
func (db *DB) Ready(ctx context.Context, parts ...string) error {
	known, missing, err := db.compared(ctx, parts)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: the migrations %s are missing: run Migrate", database.ErrSchema, versions(missing))
	}
	err = db.Conn().Each(ctx, probe(known), nil, func(database.Scanner) error { return nil })
	if err != nil { // a table that is missing or may not be read has an error of its own
		err = cmp.Or(db.usable(ctx, known), err)
	}
	switch {
	case err == nil:
	case dbms.State(err) == "42703" || strings.Contains(err.Error(), "no such column"):
		return fmt.Errorf("%w: a column is missing, although gateway_schema has its migration: restore it, or run the statement of "+
			"the migration that creates it; gateway-schema -dialect %s prints them: %w", database.ErrSchema, db.Dialect(), err)
	default:
		return err
	}
	return db.writable(ctx)
}

var (
	alter  = regexp.MustCompile(`(?m)^ALTER TABLE (?:"(?:[^"]|"")+"\.)?(\w+) (ADD|DROP) COLUMN (?:IF (?:NOT )?EXISTS )?(\w+)`)
	column = regexp.MustCompile(`^\t([a-z_0-9]+) +`) // not a constraint, whose first word is in capitals
)

// probe returns a statement that reads no row, and fails if a column of the tables is
// missing, as in a database that was restored from a backup of an earlier release.
func probe(known []database.Migration) string {
	columns := make(map[string][]string)
	var tables []string
	for _, m := range known {
		for _, statement := range m.Statements() {
			if table, body, found := strings.Cut(statement, " (\n"); found && strings.HasPrefix(statement, "CREATE TABLE ") {
				name := table[max(strings.LastIndexByte(table, '.'), strings.LastIndexByte(table, ' '))+1:]
				tables = append(tables, name)
				for line := range strings.Lines(body) {
					if is := column.FindStringSubmatch(line); is != nil {
						columns[name] = append(columns[name], is[1])
					}
				}
			}
		}
		for _, is := range alter.FindAllStringSubmatch(m.SQL, -1) {
			columns[is[1]] = slices.DeleteFunc(columns[is[1]], func(name string) bool { return name == is[3] })
			if is[2] == "ADD" {
				columns[is[1]] = append(columns[is[1]], is[3])
			}
		}
	}
	var selects []string
	for _, name := range tables {
		selects = append(selects, "SELECT 1 FROM (SELECT "+strings.Join(columns[name], ", ")+" FROM {s}"+name+" WHERE 1 = 0) AS "+name)
	}
	return strings.Join(selects, " UNION ALL ")
}

// writable returns an error if the session can't write: a server that became a standby
// accepts connections and reads.
func (db *DB) writable(ctx context.Context) error {
	query := `SELECT query_only FROM pragma_query_only`
	if db.Dialect() == database.DialectPostgres {
		query = `SELECT CASE current_setting('transaction_read_only') WHEN 'on' THEN 1 ELSE 0 END`
	}
	var readOnly int64
	if _, err := db.Conn().Row(ctx, query, nil, &readOnly); err != nil {
		return err
	}
	if readOnly != 0 {
		return errors.New("the database is read-only")
	}
	return nil
}
