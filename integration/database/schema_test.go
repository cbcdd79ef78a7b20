package database_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/database"
)

func TestOpeningCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		t.Helper()
		db := k.open(t)
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), database.PartAccounts, database.PartOperations))
		require.NoError(t, k.on(db, database.Location{}).Migrate(t.Context(), allParts...))
		require.NoError(t, k.on(db, database.Location{Schema: database.Expect}).Migrate(t.Context(), allParts...))
	})
}

// A process starts while others write without a pause, on a machine that is busy.
func TestASQLiteDatabaseThatIsLockedIsChecked(t *testing.T) {
	t.Parallel()
	db := open(t, "sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+
		"?_txlock=immediate&_pragma=busy_timeout(20)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	writer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, writer.Rollback()) }()
	require.NoError(t, database.SQLite(db).Check(t.Context()))
}
