package webhook_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/webhook"
)

// documentedKinds is the interface document's table of events.
var documentedKinds = map[webhook.Family]string{
	webhook.FamilyTransaction: `transaction.created transaction.pending transaction.paid transaction.cancelled
		transaction.refunded transaction.chargedback transaction.three_ds_required`,
	webhook.FamilyTransfer: `payout.created payout.in_analysis payout.processing payout.transferred payout.failed payout.canceled`,
	webhook.FamilySubscription: `subscription.created subscription.started subscription.renewed subscription.updated
		subscription.canceled subscription.payment_failed subscription.past_due subscription.trial_will_end
		subscription.chargeback_received`,
}

func TestEveryDocumentedKindHasOneRow(t *testing.T) {
	t.Parallel()
	documented := map[webhook.Family][]string{}
	for _, kind := range webhook.DocumentedKinds() {
		documented[kind.Family()] = append(documented[kind.Family()], string(kind))
	}
	assert.Len(t, documented, len(documentedKinds))
	for family, kinds := range documentedKinds {
		assert.ElementsMatch(t, strings.Fields(kinds), documented[family])
	}
	assert.Empty(t, webhook.Kind("dispute.opened").Family())
	rows := map[webhook.Kind]int{}
	for _, row := range webhook.KindRows() {
		rows[row.Kind]++
		assert.Equal(t, 1, rows[row.Kind], "%s has two rows", row.Kind)
	}
}

func TestEveryRowOfTheTableOfKindsIsComplete(t *testing.T) {
	t.Parallel()
	for _, row := range webhook.KindRows() {
		family := row.Kind.Family()
		assert.Contains(t, []webhook.Family{webhook.FamilyTransaction, webhook.FamilySubscription, webhook.FamilyTransfer}, family, "%s belongs to no family", row.Kind)
		assert.True(t, row.HasProof, "%s can't be confirmed", row.Kind)
		for _, status := range append([]string{row.Kind.Status()}, row.DerivedFrom...) {
			assert.True(t, isState(family, status), "%q of %s is not a state of a %s", status, row.Kind, family)
		}
		// Events that move money are never skipped, and of a subscription's
		// events only a chargeback has no rank.
		assert.True(t, row.Rank > 0 || row.Kind == webhook.SubscriptionChargebackReceived, "%s has no rank", row.Kind)
		assert.True(t, row.Occasion || row.OccasionData == nil, "%s has an occasionMember but no occasion", row.Kind)
	}
}

func isState(family webhook.Family, status string) bool {
	switch family {
	case webhook.FamilyTransaction:
		return spec.LiveTransactionStatuses.Has(status)
	case webhook.FamilyTransfer:
		return spec.LiveTransferStatuses.Has(status)
	default:
		return spec.SubscriptionStatuses.Has(status)
	}
}

// The guide lists which late events are skipped, family by family.
func TestTheGuideListsWhichLateEventsAreSkipped(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/webhooks.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "| late and skipped | late and handled |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	name := regexp.MustCompile("`([a-z_.]+)`")
	var skipped, handled []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 4)
		for i, list := range []*[]string{&skipped, &handled} {
			var prefix string
			for _, m := range name.FindAllStringSubmatch(cells[i+1], -1) {
				if before, rest, ok := strings.Cut(m[1], "."); ok {
					prefix, m[1] = before, rest
				}
				*list = append(*list, prefix+"."+m[1])
			}
		}
	}
	var wantSkipped, wantHandled []string
	for _, row := range webhook.KindRows() {
		if row.SkipLate {
			wantSkipped = append(wantSkipped, string(row.Kind))
		} else {
			wantHandled = append(wantHandled, string(row.Kind))
		}
	}
	assert.ElementsMatch(t, wantSkipped, skipped)
	assert.ElementsMatch(t, wantHandled, handled)
}

// docs/states.md lists the events of every transition of the mock gateway.
func TestEveryKindThatTheMockEmitsHasARow(t *testing.T) {
	t.Parallel()
	states, err := os.ReadFile("../docs/states.md")
	require.NoError(t, err)
	emitted := regexp.MustCompile("`((?:transaction|payout|subscription)\\.[a-z_]+)`").FindAllStringSubmatch(string(states), -1)
	require.NotEmpty(t, emitted)
	for _, m := range emitted {
		assert.True(t, slices.ContainsFunc(webhook.KindRows(), func(row webhook.KindRow) bool {
			return string(row.Kind) == m[1]
		}), "%s has no row", m[1])
	}
}
