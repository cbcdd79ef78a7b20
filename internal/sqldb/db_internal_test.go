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

// unreachable is a database that is never used.
type unreachable struct {
	database.Driver[int]

	dialect database.Dialect
	wrong   error // what Check returns
}

func (u unreachable) Dialect() database.Dialect   { return u.dialect }
func (u unreachable) Check(context.Context) error { return u.wrong }

func TestCheckWarnsOfAnOldSQLiteDriverOnce(t *testing.T) {
	t.Parallel()
	check := func(dialect database.Dialect, version string) string {
		var log bytes.Buffer
		db := New(Untyped[int](unreachable{dialect: dialect}), database.Location{}, slog.New(slog.NewTextHandler(&log, nil)))
		db.build = func() (*debug.BuildInfo, bool) {
			return &debug.BuildInfo{Deps: []*debug.Module{{Path: "modernc.org/sqlite", Version: version}}}, true
		}
		for range 2 {
			require.NoError(t, db.Check(t.Context()))
		}
		return log.String()
	}
	warning := check(database.DialectSQLite, "v1.40.0")
	assert.Contains(t, warning, "level=WARN")
	assert.Contains(t, warning, "version=v1.40.0 fixed_in=v1.41.0")
	assert.Equal(t, 1, bytes.Count([]byte(warning), []byte("level=")))
	assert.Empty(t, check(database.DialectSQLite, "v1.41.0"))
	assert.Empty(t, check(database.DialectPostgres, "v1.40.0"))
}

// A process that has checked nothing yet finds what is wrong before it writes.
func TestASettingThatIsWrongIsReportedEachTime(t *testing.T) {
	t.Parallel()
	wrong := errors.New("set journal_mode to WAL")
	db := New(Untyped[int](unreachable{dialect: database.DialectSQLite, wrong: wrong}), database.Location{}, slog.New(slog.DiscardHandler))
	for range 2 {
		require.ErrorIs(t, db.Check(t.Context()), wrong)
		require.ErrorIs(t, db.Migrate(t.Context(), database.PartAccounts), wrong)
	}
}

func TestBothDialectsHaveTheSameWords(t *testing.T) {
	t.Parallel()
	words := func(dialect database.Dialect) (list []string) {
		db := New(Untyped[int](unreachable{dialect: dialect}), database.Location{}, slog.New(slog.DiscardHandler))
		for i, word := range db.dialect() {
			if i%2 == 0 && word != "{s}" { // on PostgreSQL, SQL replaces it
				list = append(list, word)
			}
		}
		return list
	}
	assert.ElementsMatch(t, words(database.DialectSQLite), words(database.DialectPostgres))
}
