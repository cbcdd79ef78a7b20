package plans

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gateway-go/gateway/database"
)

// SQLite is a driver that remembers its statements, each with its last arguments. SQLite
// plans without statistics unless ANALYZE was run, so a plan does not depend on the rows.
type SQLite struct {
	database.Driver[*sql.Tx]

	db   *sql.DB
	mu   sync.Mutex
	seen map[string][]any
}

// OnSQLite returns the driver of a database.
func OnSQLite(db *sql.DB) *SQLite {
	return &SQLite{Driver: database.SQLite(db), db: db, seen: make(map[string][]any)}
}

// In implements [database.Driver].
func (d *SQLite) In(tx *sql.Tx) database.Conn { return remembering{d.Driver.In(tx), d} }

// Conn implements [database.Driver].
func (d *SQLite) Conn() database.Conn { return remembering{d.Driver.Conn(), d} }

// Scans returns the statements that read a table, or one of its indexes, from the beginning
// to the end, with their plans, and how many statements read it at all. The index of what is
// in flight is short.
func (d *SQLite) Scans(ctx context.Context, table string) (scans []string, statements int, err error) {
	d.mu.Lock()
	seen := maps.Clone(d.seen)
	d.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(seen)) {
		if !strings.Contains(text, table) || strings.HasPrefix(text, "CREATE") {
			continue
		}
		statements++
		plan, scan, err := d.explain(ctx, text, seen[text])
		if err != nil {
			return nil, 0, err
		}
		if scan {
			scans = append(scans, text+"\n"+plan)
		}
	}
	return scans, statements, nil
}

func (d *SQLite) explain(ctx context.Context, text string, args []any) (plan string, scan bool, err error) {
	rows, err := d.db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", text, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return "", false, err
		}
		plan += detail + "\n"
		// A scan of a subquery's rows names the subquery, which the other lines are about.
		scan = scan || strings.HasPrefix(detail, "SCAN gateway_") && !strings.HasSuffix(detail, "_busy") || scanOfAlias(detail)
	}
	return plan, scan, rows.Err()
}

// scanOfAlias reports whether a line is about the whole table under an alias of one letter.
func scanOfAlias(detail string) bool {
	words := strings.Fields(detail)
	return len(words) >= 2 && words[0] == "SCAN" && len(words[1]) == 1 && words[1] != "w" && words[1] != "k"
}

type remembering struct {
	database.Conn

	driver *SQLite
}

func (c remembering) remember(text string, args []any) {
	c.driver.mu.Lock()
	defer c.driver.mu.Unlock()
	c.driver.seen[text] = args
}

// Exec implements [database.Conn].
func (c remembering) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	c.remember(text, args)
	return c.Conn.Exec(ctx, text, args...)
}

// Query implements [database.Conn].
func (c remembering) Query(ctx context.Context, text string, args []any, row func(database.Scanner) error) error {
	c.remember(text, args)
	return c.Conn.Query(ctx, text, args, row)
}
