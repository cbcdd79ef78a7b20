package database_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// each runs a test for the migrations of each dialect, without and with the name of a schema.
func each(t *testing.T, test func(t *testing.T, d database.Dialect, inSchema string, list []database.Migration)) {
	t.Helper()
	for _, c := range []struct {
		dialect  database.Dialect
		inSchema string
	}{
		{database.DialectSQLite, ""},
		{database.DialectPostgres, ""},
		{database.DialectPostgres, "billing"},
		{database.DialectPostgres, `It's "my" shop; {s} -- {int}`},
	} {
		t.Run(c.dialect.String()+" in "+c.inSchema, func(t *testing.T) {
			t.Parallel()
			list, err := database.Schema(c.dialect, c.inSchema)
			require.NoError(t, err)
			test(t, c.dialect, c.inSchema, list)
		})
	}
}

func TestMigrations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database.Dialect, inSchema string, list []database.Migration) {
		t.Helper()
		prefix := ""
		if inSchema != "" {
			prefix = database.Quote(inSchema) + "."
		}
		version, parts, tables := 0, make(map[string]bool), make(map[string]bool)
		for _, m := range list {
			assert.Greater(t, m.Version, version, "the versions rise")
			version = m.Version
			parts[m.Part] = true
			assert.LessOrEqual(t, m.Oldest, m.Version)
			assert.Positive(t, m.Oldest)

			rest := strings.ReplaceAll(m.SQL, prefix, "")
			assert.NotContains(t, rest, "{", "a word is left")
			assert.NotContains(t, rest, "}", "a word is left")
			statements := m.Statements()
			for i, s := range statements {
				assert.NotContains(t, strings.ReplaceAll(s, prefix, ""), ";", "two statements")
				if inSchema != "" && !strings.HasPrefix(s, "DROP INDEX") {
					assert.Contains(t, s, prefix+"gateway_", "a name without the schema")
				}
				if plain := strings.ReplaceAll(s, prefix, ""); strings.HasPrefix(strings.ToUpper(plain), "ALTER ") {
					assert.Regexp(t, `^ALTER TABLE \w+ (ADD|DROP) COLUMN [a-z_0-9]+[^,]*$`, plain, "the readiness probe reads only this form")
				}
				row := strings.HasPrefix(s, "INSERT INTO "+prefix+"gateway_schema (part, version, oldest, applied_at)")
				assert.Equal(t, i == len(statements)-1, row, "the row is the last statement: %s", s)
			}
			assert.Len(t, m.Tables(), strings.Count(rest, "CREATE TABLE "))
			for _, name := range m.Tables() {
				assert.Regexp(t, `^gateway_[a-z_]+$`, name)
				assert.False(t, tables[name], "%s is created twice", name)
				tables[name] = true
			}
			if m.Concurrent {
				assert.Equal(t, database.DialectPostgres, d, "SQLite has one writer")
				assert.Regexp(t, `^DROP INDEX CONCURRENTLY IF EXISTS `, statements[0], "it can be repeated after a failure")
			}
		}
		assert.Equal(t, map[string]bool{
			database.PartAccounts: true, database.PartOperations: true, database.PartEvents: true, database.PartMerchant: true,
		}, parts)
		for _, name := range []string{"gateway_schema", "gateway_accounts", "gateway_operations", "gateway_orders"} {
			assert.True(t, tables[name], name)
		}
	})
}

// The files differ only in words and in what one dialect lacks, so the tables are the same.
func TestBothDialectsHaveTheSameTables(t *testing.T) {
	t.Parallel()
	postgres, err := database.Schema(database.DialectPostgres, "")
	require.NoError(t, err)
	lite, err := database.Schema(database.DialectSQLite, "")
	require.NoError(t, err)
	require.Len(t, lite, len(postgres))
	for i := range postgres {
		assert.Equal(t, postgres[i].Version, lite[i].Version)
		assert.Equal(t, postgres[i].Part, lite[i].Part)
		assert.Equal(t, postgres[i].Oldest, lite[i].Oldest)
		assert.Equal(t, postgres[i].Tables(), lite[i].Tables())
	}
	for _, m := range lite {
		for _, word := range []string{"bigint", "bytea", "jsonb", "IDENTITY", "EXTRACT"} {
			assert.NotContains(t, strings.Join(m.Statements(), ";"), word)
		}
	}
	for _, m := range postgres {
		for _, word := range []string{"INTEGER", "BLOB", "AUTOINCREMENT", "julianday"} {
			assert.NotContains(t, strings.Join(m.Statements(), ";"), word)
		}
	}
}

func TestSchemaRejects(t *testing.T) {
	t.Parallel()
	_, err := database.Schema(0, "")
	require.ErrorContains(t, err, "DialectPostgres or DialectSQLite")
	_, err = database.Schema(database.DialectSQLite, "billing")
	require.ErrorContains(t, err, "only PostgreSQL has schemas")
	_, err = database.Schema(database.DialectPostgres, "a;\n-- b")
	require.ErrorContains(t, err, "control characters")
}

func TestStatements(t *testing.T) {
	t.Parallel()
	m := database.Migration{SQL: `-- concurrent
-- A comment; with a semicolon;
CREATE TABLE a (
	-- inside;
	x int, -- an x
	y text DEFAULT ';'
);

  CREATE INDEX b ON a (x) ;
INSERT INTO c
	VALUES ('1;2');
`}
	assert.Equal(t, []string{
		"CREATE TABLE a (\n\tx int, -- an x\n\ty text DEFAULT ';'\n)",
		"CREATE INDEX b ON a (x) ",
		"INSERT INTO c\n\tVALUES ('1;2')",
	}, m.Statements())
	assert.Empty(t, database.Migration{}.Statements())
}

func TestTables(t *testing.T) {
	t.Parallel()
	m := database.Migration{SQL: `CREATE TABLE "a ""b"".c".gateway_a (x int);
-- CREATE TABLE gateway_comment (x int);
CREATE TABLE gateway_b (x int);
CREATE UNIQUE INDEX gateway_c ON gateway_b (x);
`}
	assert.Equal(t, []string{"gateway_a", "gateway_b"}, m.Tables())
}

func TestQuote(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `"billing"`, database.Quote("billing"))
	assert.Equal(t, `"It's ""mine"""`, database.Quote(`It's "mine"`))
}
