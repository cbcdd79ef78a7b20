package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// command runs the command and returns its exit code and output.
func command(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(args, &o, &e)
	return code, o.String(), e.String()
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	for want, args := range map[string]string{
		`-dialect must be postgres or sqlite, not ""`:                             "",
		`-dialect must be postgres or sqlite, not "mysql"`:                        "-dialect mysql",
		`-format must be goose, migrate, atlas or plain`:                          "-dialect sqlite -format flyway",
		`-after must be 0 or a version`:                                           "-dialect sqlite -after -1",
		`-after must be at most`:                                                  "-dialect sqlite -after 1000",
		`-number must be 1 or more, not 0`:                                        "-dialect sqlite -number 0",
		`-schema is only for -dialect postgres`:                                   "-dialect sqlite -schema billing",
		`-schema must name a schema`:                                              "-dialect postgres -schema=",
		`-schema must have at most 63 bytes`:                                      "-dialect postgres -schema " + long,
		"-schema: database: Schema: the name of the schema must ":                 "-dialect postgres -schema a\nb",
		`-dir must name a folder`:                                                 "-dialect sqlite -dir=",
		`-parts must be some of accounts,operations,events,merchant, not "order"`: "-dialect sqlite -parts accounts,order",
		`-parts must include accounts`:                                            "-dialect sqlite -parts merchant",
		`"migrations" is no flag`:                                                 "-dialect sqlite migrations",
		"flag provided but not defined: -shema":                                   "-dialect postgres -shema x",
		"invalid value \"three\" for flag -after":                                 "-after three",
	} {
		code, out, errs := command(strings.FieldsFunc(args, func(r rune) bool { return r == ' ' })...)
		assert.Equal(t, misused, code, args)
		assert.Empty(t, out, args)
		assert.Equal(t, 1, strings.Count(errs, want), "%s: %s", args, errs)
	}
	code, _, errs := command("-h")
	assert.Equal(t, done, code)
	for _, flag := range []string{"dialect", "format", "after", "dir", "schema", "parts", "number"} {
		assert.Contains(t, errs, "  -"+flag+" ")
	}
}

// names returns the names of the files in a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestTheNamesOfTheFiles(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-format goose": `00001_gateway_accounts.sql 00002_gateway_operations.sql
			00003_gateway_events.sql 00004_gateway_merchant.sql 00005_gateway_merchant.sql 00006_gateway_merchant.sql 00007_gateway_merchant.sql 00008_gateway_merchant.sql 00009_gateway_merchant.sql`,
		"-format migrate": `000001_gateway_accounts.up.sql 000002_gateway_operations.up.sql
			000003_gateway_events.up.sql 000004_gateway_merchant.up.sql 000005_gateway_merchant.up.sql 000006_gateway_merchant.up.sql 000007_gateway_merchant.up.sql 000008_gateway_merchant.up.sql 000009_gateway_merchant.up.sql`,
		"-format atlas": `0001_gateway_accounts.sql 0002_gateway_operations.sql
			0003_gateway_events.sql 0004_gateway_merchant.sql 0005_gateway_merchant.sql 0006_gateway_merchant.sql 0007_gateway_merchant.sql 0008_gateway_merchant.sql 0009_gateway_merchant.sql`,
		"":                         "0001_accounts.sql 0002_operations.sql 0003_events.sql 0004_merchant.sql 0005_merchant.sql 0006_merchant.sql 0007_merchant.sql 0008_merchant.sql 0009_merchant.sql",
		"-after 3":                 "0004_merchant.sql 0005_merchant.sql 0006_merchant.sql 0007_merchant.sql 0008_merchant.sql 0009_merchant.sql",
		"-parts accounts,merchant": "0001_accounts.sql 0004_merchant.sql 0005_merchant.sql 0006_merchant.sql 0007_merchant.sql 0008_merchant.sql 0009_merchant.sql",
		"-format goose -parts events,accounts -number 17": "00017_gateway_accounts.sql 00018_gateway_events.sql",
		"-format atlas -after 2 -number 20260131120000": `20260131120000_gateway_events.sql
			20260131120001_gateway_merchant.sql 20260131120002_gateway_merchant.sql 20260131120003_gateway_merchant.sql 20260131120004_gateway_merchant.sql 20260131120005_gateway_merchant.sql
			20260131120006_gateway_merchant.sql`,
	} {
		dir := filepath.Join(t.TempDir(), "db", "migrations")
		code, out, errs := command(append([]string{"-dialect", "postgres", "-dir", dir}, strings.Fields(args)...)...)
		require.Equal(t, done, code, errs)
		assert.Equal(t, strings.Fields(want), names(t, dir), args)
		for name := range strings.FieldsSeq(want) {
			assert.Contains(t, out, filepath.Join(dir, name)+"\n")
		}
	}
}

// Every file has every statement of its migration, and what its tool needs around them.
func TestTheFormats(t *testing.T) {
	t.Parallel()
	m := database.Migration{Version: 7, Part: "merchant", SQL: "CREATE TABLE x (y int);\n"}
	concurrent := m
	concurrent.SQL, concurrent.Concurrent = "-- concurrent\nCREATE INDEX CONCURRENTLY z ON x (y);\n", true
	const postgres, lite = database.DialectPostgres, database.DialectSQLite
	assert.Equal(t, file{"00007_gateway_merchant.sql", "-- +goose Up\n" + m.SQL}, goose(postgres, 7, m))
	assert.Equal(t, "-- +goose NO TRANSACTION\n-- +goose Up\n"+concurrent.SQL, goose(postgres, 7, concurrent).text)
	assert.Equal(t, file{"000007_gateway_merchant.up.sql", m.SQL}, migrate(postgres, 7, m))
	assert.Regexp(t, "^-- .*x-multi-statement=true.*\n-- concurrent\n", migrate(postgres, 7, concurrent).text)
	assert.Equal(t, file{"0007_gateway_merchant.sql", m.SQL}, atlas(postgres, 7, m))
	assert.Equal(t, "-- atlas:txmode none\n\n"+concurrent.SQL, atlas(postgres, 7, concurrent).text)
	assert.Equal(t, file{"0007_merchant.sql", "-- psql -v ON_ERROR_STOP=1 -f FILE\nBEGIN;\n" + m.SQL + "COMMIT;\n"},
		plain(postgres, 7, m))
	assert.Equal(t, "-- sqlite3 -bail DATABASE <FILE\nBEGIN IMMEDIATE;\n"+m.SQL+"COMMIT;\n", plain(lite, 7, m).text)
	assert.Equal(t, "-- psql -v ON_ERROR_STOP=1 -f FILE\n"+concurrent.SQL, plain(postgres, 7, concurrent).text)
}

func TestWithoutAFolderTheFilesArePrinted(t *testing.T) {
	t.Parallel()
	code, out, errs := command("-dialect", "postgres", "-format", "goose", "-schema", `It's "mine"`)
	require.Equal(t, done, code, errs)
	list, err := database.Schema(database.DialectPostgres, `It's "mine"`)
	require.NoError(t, err)
	rest := out
	for _, m := range list {
		_, after, found := strings.Cut(rest, "_gateway_"+m.Part+".sql\n-- +goose Up\n"+m.SQL)
		require.True(t, found, m.Part)
		rest = after
	}
	assert.Empty(t, rest)
	assert.Contains(t, out, `CREATE TABLE "It's ""mine""".gateway_orders (`)

	code, out, errs = command("-dialect", "sqlite", "-after", "9")
	assert.Equal(t, done, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "no migration after version 9")
}

// A file that was applied must not change, so one that differs stops the command before it
// writes anything.
func TestAFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"-dialect", "postgres", "-dir", dir}
	code, _, errs := command(args...)
	require.Equal(t, done, code, errs)
	code, out, errs := command(args...)
	require.Equal(t, done, code, errs)
	assert.Equal(t, "9 files exist already, and are the same\n", out)

	require.NoError(t, os.Remove(filepath.Join(dir, "0001_accounts.sql")))
	mine := filepath.Join(dir, "0003_events.sql")
	require.NoError(t, os.WriteFile(mine, []byte("-- mine"), 0o600))
	code, out, errs = command(args...)
	assert.Equal(t, failed, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, mine+" exists and differs")
	assert.Equal(t, []string{"0002_operations.sql", "0003_events.sql", "0004_merchant.sql", "0005_merchant.sql", "0006_merchant.sql", "0007_merchant.sql", "0008_merchant.sql", "0009_merchant.sql"}, names(t, dir),
		"nothing was written")
	text, err := os.ReadFile(mine)
	require.NoError(t, err)
	assert.Equal(t, "-- mine", string(text))

	code, out, errs = command("-dialect", "postgres", "-after", "3", "-dir", dir)
	require.Equal(t, done, code, errs)
	assert.Equal(t, "6 files exist already, and are the same\n", out)

	code, _, errs = command("-dialect", "postgres", "-dir", mine)
	assert.Equal(t, failed, code)
	assert.Contains(t, errs, mine)
}
