package ledger_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// All SQL of package merchant is here: a new column changes the schema, this package, and the
// record that has it.
func TestThePackageAboveHasNoSQL(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	statement := regexp.MustCompile(`SELECT|INSERT|UPDATE|DELETE`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			assert.False(t, statement.MatchString(line), "%s:%d: %s", file, i+1, line)
		}
	}
}

func TestOnlyTextsThatEveryDatabaseStores(t *testing.T) {
	t.Parallel()
	assert.True(t, ledger.Storable("A1", "é", "", 7, nil))
	for _, text := range []string{"A\x001", "A\xff1", "\xed\xa0\x80"} {
		assert.False(t, ledger.Storable("A1", text), "%q", text)
		assert.True(t, ledger.Storable(ledger.Clean(text)), "%q", text)
	}
}

func TestSubjectsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "A1", ledger.OrderID(ledger.OrderSubject("acme", "A1")))
	assert.Equal(t, "order/A1", ledger.OrderID(ledger.OrderSubject("acme", "order/A1")))
	assert.Equal(t, "M1", ledger.SubscriptionID(ledger.SubscriptionSubject("acme", "M1")))
	assert.NotEqual(t, ledger.OrderSubject("acme", "1"), ledger.OrderSubject("globex", "1"))
	for _, subject := range []ledger.Subject{
		ledger.SaleSubject("acme", "A1"), ledger.PayoutSubject("acme", "A1"), ledger.AccountSubject("acme", "A1"), {ID: "order"}, {},
	} {
		assert.Empty(t, ledger.OrderID(subject), subject)
		assert.Empty(t, ledger.SubscriptionID(subject), subject)
	}
	assert.Equal(t, ledger.SaleSubject("acme", "ab"), ledger.SaleSubject("acme", "AB"), "the gateway ignores the case of its IDs")
}

func TestAFailedCallbackWaitsAtMostAnHour(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	for failures := range 14 {
		waits = append(waits, ledger.Pause(failures))
	}
	assert.IsIncreasing(t, waits[:12])
	assert.Equal(t, time.Second, waits[0])
	assert.Equal(t, time.Hour, waits[12])
	assert.Equal(t, time.Hour, waits[13])
	assert.Equal(t, time.Hour, ledger.Pause(1_000_000))
}
