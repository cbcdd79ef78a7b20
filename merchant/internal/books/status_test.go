package books_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/docs"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

func TestEveryStatusOfTheInterfaceHasARow(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, slices.Collect(spec.LiveTransactionStatuses.All()), books.TransactionStatuses())
	assert.ElementsMatch(t, slices.Collect(spec.LiveTransferStatuses.All()), books.TransferStatuses())
	assert.ElementsMatch(t, slices.Collect(spec.SubscriptionStatuses.All()), books.SubscriptionStatuses())
}

// A status that proves an event to the receiver of webhooks must book what the event
// says, or the books and the webhooks of a merchant differ.
func TestTheTableAgreesWithTheWebhookThatAStatusProves(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	client := gw.Client()
	for status := range spec.LiveTransactionStatuses.All() {
		tx := inSandbox(t, client, gateway.TransactionStatus(status))
		b, result := books.ApplyTransaction(books.Books{Order: books.Order{ID: "o"}, Charge: chargeOf(tx)}, reading(tx, 1))
		proven := func(kind webhook.Kind) bool { return confirmed(t, client, kind, tx.ID) }

		assert.Equal(t, proven(webhook.TransactionPaid), b.Charge.State != books.Underpaid && b.Charge.Paid > 0, "%s: paid", status)
		assert.Equal(t, proven(webhook.TransactionPaid), b.Order.SettledBy != "", "%s: settled", status)
		assert.Equal(t, proven(webhook.TransactionRefunded), b.Charge.Refunded > 0, "%s: refunded", status)
		assert.Equal(t, proven(webhook.TransactionMED), b.Charge.Disputed > 0, "%s: disputed", status)
		over := proven(webhook.TransactionCancelled) || proven(webhook.TransactionExpired) || proven(webhook.TransactionRefused)
		assert.Equal(t, over, b.Charge.State == books.Failed, "%s: failed", status)
		assert.Equal(t, over, has(result.Facts, books.Unpaid), "%s: unpaid", status)
	}
}

// inSandbox returns a transaction of 5000 that is put into a state.
func inSandbox(t *testing.T, client *gateway.Client, status gateway.TransactionStatus) *gateway.Transaction {
	t.Helper()
	tx, err := client.Transactions.Create(t.Context(), params("", 5000, gateway.Pix))
	require.NoError(t, err)
	if status != tx.Status {
		_, err = client.Transactions.SetSandboxStatus(t.Context(), tx.ID, gateway.SandboxStatusParams{Status: status})
		require.NoError(t, err)
	}
	tx, err = client.Transactions.Get(t.Context(), tx.ID)
	require.NoError(t, err)
	require.Equal(t, status, tx.Status)
	return tx
}

// confirmed reports whether a receiver that trusts only the API accepts an event.
func confirmed(t *testing.T, client *gateway.Client, kind webhook.Kind, id string) (handled bool) {
	t.Helper()
	rx, err := webhook.New(webhook.Config{API: client, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	webhook.OnTransaction(rx, kind, func(context.Context, *webhook.TransactionEvent) error { handled = true; return nil })
	body := fmt.Sprintf(`{"id":"evt_1","event":"transaction","data":{"id":%q,"event_type":%q}}`, id, kind)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	rx.ServeHTTP(httptest.NewRecorder(), r)
	return handled
}

// Without updated_at the position of a status orders readings, so no transition may go
// back, except to win a dispute.
func TestNoTransitionGoesBack(t *testing.T) {
	t.Parallel()
	for _, e := range machine(t, "Transactions") {
		won := e.from != "" && books.Stage(e.from) > books.Stage("refunded") && books.Stage(e.to) < books.Stage("med")
		assert.Equal(t, won, books.Stage(e.to) < books.Stage(e.from), "%s → %s", e.from, e.to)
		if e.from != "" && books.Pays(gateway.TransactionStatus(e.from)) {
			assert.True(t, books.Pays(gateway.TransactionStatus(e.to)), "%s → %s", e.from, e.to)
		}
	}
}

// edge is a transition of a diagram; from is "" where the resource is created.
type edge struct{ from, to string }

// machine returns the transitions of the diagrams in a section of docs/states.md.
func machine(t *testing.T, title string) (edges []edge) {
	t.Helper()
	text, err := docs.Files().ReadFile("states.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, found := range regexp.MustCompile(`(?m)^ +(\S+) --> (\S+?)(?:: .*)?$`).FindAllStringSubmatch(section, -1) {
		edges = append(edges, edge{strings.TrimPrefix(found[1], "[*]"), found[2]})
	}
	require.NotEmpty(t, edges)
	return edges
}

func TestAReadingBehindTheEventOfATransfer(t *testing.T) {
	t.Parallel()
	life := map[gateway.TransferStatus]int{
		gateway.TransferUnknown: 1, gateway.TransferScheduled: 2, gateway.TransferPending: 2, gateway.TransferInAnalysis: 3, gateway.TransferProcessing: 4,
		// Of different ends none is later.
		gateway.TransferPaid: 5, gateway.TransferError: 5, gateway.TransferRejected: 5, gateway.TransferCancelled: 5,
	}
	for read, is := range life {
		for announced, was := range life {
			assert.Equal(t, is < was, books.TransferBehind(read, announced), "%s, %s", read, announced)
		}
		assert.False(t, books.TransferBehind(read, "new"))
		assert.False(t, books.TransferBehind("new", read))
	}
}

func TestAReadingBehindTheEventOfATransaction(t *testing.T) {
	t.Parallel()
	assert.True(t, books.Behind(gateway.TransactionPending, gateway.TransactionPaid))
	assert.True(t, books.Behind(gateway.TransactionExpired, gateway.TransactionPaid), "an expired voucher that was paid")
	assert.True(t, books.Behind(gateway.TransactionPaid, gateway.TransactionRefunded))
	assert.True(t, books.Behind(gateway.TransactionPreChargedback, gateway.TransactionChargedback))
	assert.False(t, books.Behind(gateway.TransactionPaid, gateway.TransactionPending))
	assert.False(t, books.Behind(gateway.TransactionPaid, gateway.TransactionPaid))
	assert.False(t, books.Behind(gateway.TransactionPending, "new"))
	assert.False(t, books.Behind("new", gateway.TransactionPaid))
}
