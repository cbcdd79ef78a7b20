package database

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gateway-go/gateway/internal/dbms"
)

// The parts of the schema. Each package needs [PartAccounts] and its own.
const (
	PartAccounts   = "accounts"
	PartOperations = "operations"
	PartEvents     = "events" // of webhook/sqlstore
	PartMerchant   = "merchant"
)

// Migration is a step of the schema. Its SQL ends with the row of the table
// gateway_schema that says that it was applied.
//
// A migration keeps the release before it working: new columns have defaults, and what is
// dropped was unused for a release. So two releases may run side by side during a deploy.
type Migration struct {
	Version int    // rises over all parts, from 1
	Part    string // such as [PartAccounts]
	Oldest  int    // the version that a program must know of this part to run beside it
	SQL     string // statements that end with ";" at the end of a line

	// Concurrent means that the statements can't run in a transaction, as CREATE INDEX
	// CONCURRENTLY. So the first ones drop what an attempt that failed has left, with
	// DROP INDEX CONCURRENTLY IF EXISTS. It needs two connections of the pool. The first
	// line of the file is "-- concurrent".
	Concurrent bool
}

//go:embed schema/*.sql
var files embed.FS

// Schema returns all migrations in the order in which they are applied. inSchema is the
// PostgreSQL schema that the statements name; if it is "", they create the tables in the
// first schema of the search path.
func Schema(d Dialect, inSchema string) ([]Migration, error) {
	prefix := ""
	if inSchema != "" {
		prefix = Quote(inSchema) + "."
	}
	switch {
	case d != DialectPostgres && d != DialectSQLite:
		return nil, errors.New("database: Schema: the dialect must be DialectPostgres or DialectSQLite")
	case d == DialectSQLite && inSchema != "":
		return nil, errors.New("database: Schema: only PostgreSQL has schemas to name")
	case strings.ContainsFunc(inSchema, unicode.IsControl): // a statement ends at the end of a line
		return nil, errors.New("database: Schema: the name of the schema must not have control characters")
	}
	names, err := fs.Glob(files, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer(append([]string{"{s}", prefix}, types(d)...)...)
	var list []Migration
	for _, name := range names { // in the order of their versions
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimPrefix(name, "schema/"), only(d, string(text)))
		if err != nil {
			return nil, err
		}
		m.SQL = words.Replace(m.SQL)
		list = append(list, m)
	}
	return list, nil
}

// types are the words of a dialect in the files. Those of statements are in internal/sqldb,
// where {json} and {jsonb} mean a parameter.
func types(d Dialect) []string {
	if d == DialectSQLite {
		return []string{
			"{id}", "INTEGER PRIMARY KEY AUTOINCREMENT", "{int}", "INTEGER", "{bytes}", "BLOB",
			"{json}", "TEXT", "{jsonb}", "TEXT", "{now}", dbms.SQLiteNow,
		}
	}
	return []string{
		"{id}", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "{int}", "bigint", "{bytes}", "bytea",
		"{json}", "json", "{jsonb}", "jsonb", "{now}", dbms.PostgresNow,
	}
}

// only returns the lines of a file that a dialect has: one that begins with {postgres} or
// {sqlite} is for that dialect.
func only(d Dialect, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(line, "{"+d.String()+"}"); found {
			line = rest
		} else if strings.HasPrefix(line, "{") {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// Quote returns a quoted identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// parts are those that a file may have.
var parts = []string{PartAccounts, PartOperations, PartEvents, PartMerchant}

var (
	fileName = regexp.MustCompile(`^([0-9]{4})_([a-z]+)\.sql$`)
	lastRow  = regexp.MustCompile(`INSERT INTO \{s\}gateway_schema \(part, version, oldest, applied_at\)\s+` +
		`VALUES \('([a-z]+)', ([0-9]+), ([0-9]+), \{now\}\);\s*$`)
)

// parse reads a file before its words are replaced. Its name and its last statement must
// agree.
func parse(name, text string) (Migration, error) {
	file, row := fileName.FindStringSubmatch(name), lastRow.FindStringSubmatch(text)
	if file == nil || row == nil {
		return Migration{}, fmt.Errorf("database: the migration %s has another name or last statement than the others", name)
	}
	m := Migration{Part: row[1], SQL: text, Concurrent: strings.HasPrefix(text, "-- concurrent\n")}
	m.Version, _ = strconv.Atoi(row[2]) // digits
	m.Oldest, _ = strconv.Atoi(row[3])
	if fmt.Sprintf("%04d", m.Version) != file[1] || m.Part != file[2] {
		return Migration{}, fmt.Errorf("database: the migration %s says that it is version %d of %s", name, m.Version, m.Part)
	}
	if !slices.Contains(parts, m.Part) || m.Oldest < 1 || m.Oldest > m.Version {
		return Migration{}, fmt.Errorf("database: the migration %s has an unknown part, or a wrong oldest version", name)
	}
	return m, nil
}

// Statements returns the statements of the migration, without the comments between them.
func (m Migration) Statements() []string {
	var list []string
	var one strings.Builder
	for line := range strings.Lines(m.SQL) {
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "--") {
			continue
		}
		one.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			list = append(list, strings.TrimSuffix(strings.TrimSpace(one.String()), ";"))
			one.Reset()
		}
	}
	return list
}

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (?:"(?:[^"]|"")+"\.)?(\w+)`)

// Tables returns the names of the tables that the migration creates.
func (m Migration) Tables() []string {
	var names []string
	for _, match := range createTable.FindAllStringSubmatch(m.SQL, -1) {
		names = append(names, match[1])
	}
	return names
}
