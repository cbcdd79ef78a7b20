package operations_test

import (
	"testing"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/contrib/river/operations"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/assert"
)

func TestQueueNameIsValidForRiver(t *testing.T) {
	t.Parallel()
	assert.Regexp(t, `^[a-z0-9_]+$`, operations.Queue)
	assert.NotNil(t, gateway.ErrOutcomeUnknown)
}
