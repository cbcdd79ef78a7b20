package operations

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/internal/sqldb"
)

// contended is a PostgreSQL database in which a claim conflicts with that of another worker,
// which gets the operation, after its row was read.
type contended struct {
	emptyDatabase

	claims int
}

type conflict struct{ error }

func (conflict) SQLState() string { return "40001" }

type values []any

func (v values) Scan(columns ...any) error {
	for i, value := range v {
		switch column := columns[i].(type) {
		case *string:
			*column, _ = value.(string)
		case *bool:
			*column, _ = value.(bool)
		case *[]byte:
			*column = []byte("{}")
		}
	}
	return nil
}

func (*contended) Dialect() database.Dialect { return database.DialectPostgres }
func (d *contended) Conn() database.Conn     { return d }

func (d *contended) Query(_ context.Context, query string, _ []any, row func(database.Scanner) error) error {
	switch {
	case strings.Contains(query, "search_path"):
		return row(values{"public", "shop", "read committed"})
	case strings.Contains(query, "pg_namespace"):
		return row(values{"public", true})
	}
	if d.claims++; d.claims > 1 {
		return nil
	}
	if err := row(make(values, 13)); err != nil {
		return err
	}
	return conflict{errors.New("could not serialize access")}
}

// Both workers would send the operation, with the same number of claims.
func TestAClaimThatIsRepeatedAndLostIsNoClaim(t *testing.T) {
	t.Parallel()
	d := &contended{}
	s := &store{db: sqldb.New(sqldb.Untyped[int](d), database.Location{}, slog.New(slog.DiscardHandler)), account: gateway.Account{Name: "shop"}}
	require.NoError(t, s.db.Find(t.Context()))
	r, err := s.claim(t.Context(), 1, time.Minute)
	require.NoError(t, err)
	assert.Nil(t, r)
	assert.Equal(t, 2, d.claims)
}
