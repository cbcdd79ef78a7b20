package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// closed is a database that can't be opened.
type closed struct{}

func (closed) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("it is closed") }
func (closed) Driver() driver.Driver                        { return nil }

func TestMigrateWarnsOfAnOldSQLiteDriver(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(closed{})
	defer func() { require.NoError(t, db.Close()) }()
	migrate := func(dialect Dialect, version string) string {
		var log bytes.Buffer
		s := New(db, dialect, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		s.shared.build = func() (*debug.BuildInfo, bool) {
			return &debug.BuildInfo{Deps: []*debug.Module{{Path: "modernc.org/sqlite", Version: version}}}, true
		}
		require.ErrorContains(t, s.Migrate(t.Context()), "it is closed")
		return log.String()
	}
	warning := migrate(SQLite, "v1.40.0")
	assert.Contains(t, warning, "level=WARN")
	assert.Contains(t, warning, "version=v1.40.0 fixed_in=v1.41.0")
	assert.Empty(t, migrate(SQLite, "v1.41.0"))
	assert.Empty(t, migrate(Postgres, "v1.40.0"))
}
