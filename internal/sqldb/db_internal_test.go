package sqldb

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

// checked is a driver of which only the dialect and the check are used.
type checked struct {
	database.Driver[Tx]

	dialect database.Dialect
}

func (d checked) Dialect() database.Dialect { return d.dialect }

func (checked) Check(context.Context) error { return errors.New("a setting of operations") }

func TestCheckWarnsOfAnOldSQLiteDriver(t *testing.T) {
	t.Parallel()
	warning := func(dialect database.Dialect, version string) string {
		var log bytes.Buffer
		db := New(checked{dialect: dialect}, database.Location{}, slog.New(slog.NewTextHandler(&log, nil)))
		db.build = func() (*debug.BuildInfo, bool) {
			return &debug.BuildInfo{Deps: []*debug.Module{{Path: "modernc.org/sqlite", Version: version}}}, true
		}
		require.ErrorContains(t, db.Check(t.Context()), "a setting of operations")
		assert.Empty(t, log.String())
		for range 2 { // it checks and warns once
			require.NoError(t, db.CheckBy(t.Context(), func(context.Context) error { return nil }))
		}
		require.NoError(t, db.Check(t.Context()))
		assert.LessOrEqual(t, bytes.Count(log.Bytes(), []byte("level=WARN")), 1)
		return log.String()
	}
	assert.Contains(t, warning(database.DialectSQLite, "v1.40.0"), "version=v1.40.0 fixed_in=v1.41.0")
	assert.Empty(t, warning(database.DialectSQLite, "v1.41.0"))
	assert.Empty(t, warning(database.DialectPostgres, "v1.40.0"))
}
