package operations

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// postgres is an empty database of the other dialect.
type postgres struct{ emptyDatabase }

func (*postgres) Dialect() Dialect { return DialectPostgres }

func TestMigrateWarnsOfAnOldSQLiteDriver(t *testing.T) {
	t.Parallel()
	client, err := gateway.New("https://api.gateway.example", gateway.BearerToken("sk_test_x"), gateway.WithAccount("shop"))
	require.NoError(t, err)
	migrate := func(d Driver[int], version string) string {
		var log bytes.Buffer
		o, err := New(d, Config{Client: client, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		o.store.build = func() (*debug.BuildInfo, bool) {
			return &debug.BuildInfo{Deps: []*debug.Module{{Path: "modernc.org/sqlite", Version: version}}}, true
		}
		require.ErrorContains(t, o.Migrate(t.Context()), "there is nothing to write")
		return log.String()
	}
	warning := migrate(&emptyDatabase{}, "v1.40.0")
	assert.Contains(t, warning, "level=WARN")
	assert.Contains(t, warning, "version=v1.40.0 fixed_in=v1.41.0")
	assert.Empty(t, migrate(&emptyDatabase{}, "v1.41.0"))
	assert.Empty(t, migrate(&postgres{}, "v1.40.0"))
}
