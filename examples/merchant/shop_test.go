package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
)

// A dispute that is won ships an order that was paid in full, once, and never one that was
// not.
func TestADispute(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ships int
		c     merchant.Charge
		state string
		want  int
	}{
		"opened":                           {1, merchant.Charge{State: merchant.Disputed, Disputed: 1990}, "disputed", 1},
		"won":                              {1, merchant.Charge{State: merchant.Paid, OrderLeft: 1990}, "paid", 1},
		"won before it was shipped":        {0, merchant.Charge{State: merchant.Paid, OrderLeft: 1990}, "paid", 1},
		"of the first of two payments":     {1, merchant.Charge{State: merchant.Disputed, Disputed: 1990, OrderLeft: 1990}, "paid", 1},
		"of a part, opened":                {0, merchant.Charge{State: merchant.Disputed, Disputed: 990}, "disputed", 0},
		"of a part that was paid, and won": {0, merchant.Charge{State: merchant.Underpaid, OrderLeft: 990}, "underpaid", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_txlock=immediate")
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			_, err = db.ExecContext(t.Context(), schema)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), `INSERT INTO orders (id, state, ships) VALUES ('A1', 'new', ?)`, tc.ships)
			require.NoError(t, err)
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			tc.c.Order = "A1"
			require.NoError(t, disputed(t.Context(), tx, &tc.c))
			require.NoError(t, tx.Commit())
			var state string
			var ships int
			require.NoError(t, db.QueryRowContext(t.Context(), `SELECT state, ships FROM orders`).Scan(&state, &ships))
			assert.Equal(t, tc.state, state)
			assert.Equal(t, tc.want, ships)
		})
	}
}
