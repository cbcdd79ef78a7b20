package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/api"
)

var root = filepath.Join("..", "..")

func listed(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// TestNoDeclarationWasRemovedOrChanged fails if a declaration of api/next.txt was
// removed or changed. It allows additions, but .ci/run compares the whole file.
func TestNoDeclarationWasRemovedOrChanged(t *testing.T) {
	t.Parallel()
	now, err := api.List(root)
	require.NoError(t, err)
	for _, broken := range api.Compare(listed(t, filepath.Join(root, "api", "next.txt")), now) {
		t.Errorf("%s\nif this is intended, update the list (go run ./internal/api/list >api/next.txt) and add a line to CHANGELOG.md", broken)
	}
}

// TestNoDeclarationOfAReleaseWasRemoved checks that the API still has the
// declarations of every earlier release of this major version.
func TestNoDeclarationOfAReleaseWasRemoved(t *testing.T) {
	t.Parallel()
	now, err := api.List(root)
	require.NoError(t, err)
	releases, err := filepath.Glob(filepath.Join(root, "api", "v*.txt"))
	require.NoError(t, err)
	t.Logf("releases: %q", releases)
	for _, file := range releases {
		for _, broken := range api.Compare(listed(t, file), now) {
			t.Errorf("%s: %s", filepath.Base(file), broken)
		}
	}
}

// TestTheListHasEveryKindOfDeclaration also checks that packages that other modules
// can't import are not listed.
func TestTheListHasEveryKindOfDeclaration(t *testing.T) {
	t.Parallel()
	now, err := api.List(root)
	require.NoError(t, err)
	for _, line := range []string{
		`pkg gateway, func New(string, Credential, ...Option) (*Client, error)`,
		`pkg gateway, func Some[T any](T) Opt[T]`,
		`pkg gateway, method (*TransactionsService) Get(context.Context, string, ...RequestOption) (*Transaction, error)`,
		`pkg gateway, type Transaction struct, Amount int64`,
		`pkg gateway, type TransactionStatus string`,
		`pkg gateway, const TransactionPaid TransactionStatus = "paid"`,
		`pkg webhook, type TransactionEvent struct, embedded *Event`,
		`pkg webhook, type Store interface, Settle func(context.Context, *Claim, Disposition) error`,
		`pkg webhook, const Inbox Mode = iota(1)`,
		`pkg sqlstore, func HandleTx[TX any, E any](*Store[TX], func(context.Context, TX, E) error) func(context.Context, E) error`,
		`pkg sqlstore, method (*core) Migrate(context.Context) error`, // of Store, which embeds it
		`pkg mockserver, func Run(TB, ...Option) *Server`,
	} {
		assert.Contains(t, now, line)
	}
	text := strings.Join(now, "\n")
	assert.NotContains(t, text, "pkg transport,", "an internal package")
	assert.NotContains(t, text, "pkg main,")
	assert.NotContains(t, text, "method (*Error) status")
}

// TestBreakingChangesAreListed also checks that additions are not listed.
func TestBreakingChangesAreListed(t *testing.T) {
	t.Parallel()
	before := []string{
		"pkg p, func A(int)", "pkg p, func B()", "pkg p, method (*T) M(int)", "pkg p, type I interface", "pkg p, type I interface, F func()",
		"pkg p, type T struct", "pkg p, type T struct, X int", "pkg p, const C K = 1", "pkg p, type S interface", "pkg p, type S interface, sealed func()",
	}
	now := []string{
		"pkg p, func A(int, string)", "pkg p, func New()", "pkg p, method (*T) M(int64)", "pkg p, type I interface", "pkg p, type I interface, F func()",
		"pkg p, type I interface, G func()", "pkg p, type T struct", "pkg p, type T struct, X string", "pkg p, type T struct, Y int", "pkg p, const C K = 2",
		"pkg p, type S interface", "pkg p, type S interface, sealed func()", "pkg p, type S interface, G func()",
	}
	assert.Equal(t, []string{
		"changed: pkg p, func A(int)\n     to: pkg p, func A(int, string)",
		"removed: pkg p, func B()",
		"changed: pkg p, method (*T) M(int)\n     to: pkg p, method (*T) M(int64)",
		"changed: pkg p, type T struct, X int\n     to: pkg p, type T struct, X string",
		"changed: pkg p, const C K = 1\n     to: pkg p, const C K = 2",
		"added to an interface: pkg p, type I interface, G func()",
	}, api.Compare(before, now))
	assert.Empty(t, api.Compare(before, before))
}
