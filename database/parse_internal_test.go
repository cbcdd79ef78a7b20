package database

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileAgreesWithItsRow(t *testing.T) {
	t.Parallel()
	const good = `ALTER TABLE {s}gateway_orders ADD COLUMN x {int};
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 12, 4, {now});
`
	m, err := parse("0012_merchant.sql", good)
	require.NoError(t, err)
	assert.Equal(t, Migration{Version: 12, Part: PartMerchant, Oldest: 4, SQL: good}, m)
	m, err = parse("0012_merchant.sql", "-- concurrent\n"+good)
	require.NoError(t, err)
	assert.True(t, m.Concurrent)

	const other = "another name or last statement"
	for what, c := range map[string]struct{ name, text, want string }{
		"another version":     {"0013_merchant.sql", good, "says that it is version 12 of merchant"},
		"another part":        {"0012_events.sql", good, "says that it is version 12 of merchant"},
		"another name":        {"12_merchant.sql", good, other},
		"no row":              {"0012_merchant.sql", "SELECT 1;\n", other},
		"something after":     {"0012_merchant.sql", good + "SELECT 1;\n", other},
		"without the schema":  {"0012_merchant.sql", strings.ReplaceAll(good, "{s}", ""), other},
		"an unknown part":     {"0012_goods.sql", strings.ReplaceAll(good, "merchant", "goods"), "unknown part"},
		"an oldest beyond":    {"0012_merchant.sql", strings.ReplaceAll(good, "4,", "13,"), "wrong oldest version"},
		"an oldest version 0": {"0012_merchant.sql", strings.ReplaceAll(good, "4,", "0,"), "wrong oldest version"},
		"a constant time":     {"0012_merchant.sql", strings.ReplaceAll(good, "{now}", "1"), other},
	} {
		_, err := parse(c.name, c.text)
		require.ErrorContains(t, err, c.want, what)
		require.ErrorContains(t, err, c.name, what)
	}
}

func TestLinesOfOneDialect(t *testing.T) {
	t.Parallel()
	const text = "a\n{postgres}b\n{sqlite}c\n\td {int}\n"
	assert.Equal(t, "a\nb\n\td {int}\n", only(DialectPostgres, text))
	assert.Equal(t, "a\nc\n\td {int}\n", only(DialectSQLite, text))
}
