package database_test

import (
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
