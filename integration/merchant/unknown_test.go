package merchant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/webhooktest"
)

// old is what a system that was there before makes at the account's gateway: a charge that is
// paid, a payout and a subscription.
func (w *world) old(n int) (transaction *gateway.Transaction, transfer *gateway.Transfer) {
	w.Helper()
	client := w.gw.Account(w.gw.Key()).Client()
	p := pix("", 1000).TransactionParams
	p.ExternalRef = fmt.Sprint("old-", n)
	transaction, err := client.Transactions.Create(w.Context(), p)
	require.NoError(w, err)
	require.NoError(w, w.gw.Account(w.gw.Key()).Transactions.Pay(transaction.ID))
	transfer, err = client.Transfers.Create(w.Context(), gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "b@example.com", Amount: 100, ExternalRef: fmt.Sprint("old-payout-", n),
	})
	require.NoError(w, err)
	return transaction, transfer
}

// settled waits until all events are handled.
func (w *world) settled() {
	w.Helper()
	require.NoError(w, w.gw.Wait(w.Context()))
	w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`)
}

// What another system charges has events that match nothing here: they are acknowledged, and seen.
func TestWhatMatchesNothingIsSeen(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var log synced
		w.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w.open()
		w.start()
		ours := w.paysWith(pix("A1", 700))
		charged, paidOut := w.old(1)
		w.old(2)
		w.settled()
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{})
		require.NoError(w, err)
		require.Len(w, list, 4)
		assert.True(w, slices.IsSortedFunc(list, func(a, b merchant.UnknownResource) int { return b.Last.Compare(a.Last) }))
		byID := make(map[string]merchant.UnknownResource)
		for _, u := range list {
			assert.Equal(w, "shop", u.Account)
			assert.False(w, u.First.After(u.Last))
			assert.NotEqual(w, ours.TransactionID, u.ID)
			byID[u.ID] = u
		}
		u := byID[strings.ToLower(charged.ID)]
		assert.Equal(w, webhook.FamilyTransaction, u.Family)
		assert.Equal(w, "old-1", u.Ref)
		assert.Equal(w, webhook.TransactionPaid, u.Kind)
		assert.Equal(w, 3, u.Events, "created, pending and paid")
		u = byID[strings.ToLower(paidOut.ID)]
		assert.Equal(w, webhook.FamilyTransfer, u.Family)
		assert.Equal(w, "old-payout-1", u.Ref)

		h := w.health()
		assert.Equal(w, 4, h.Unknown)
		assert.Equal(w, 4, h.Accounts[0].Unknown)
		assert.Zero(w, h.Problems)
		assert.Equal(w, 1, strings.Count(log.String(), "is not in the books"), "one warning for each account")

		page, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{Account: "shop", After: &list[1], Limit: 1})
		require.NoError(w, err)
		require.Len(w, page, 1)
		assert.Equal(w, list[2], page[0])
		_, err = w.m.Unknown(w.Context(), merchant.UnknownQuery{Limit: -1})
		require.ErrorIs(w, err, gateway.ErrValidation)
		_, err = w.m.Unknown(w.Context(), merchant.UnknownQuery{Account: "another"})
		require.ErrorIs(w, err, merchant.ErrAccount)

		// A record that has the resource since then ends it.
		w.exec(`UPDATE gateway_unknown SET id = ? WHERE id = ?`, strings.ToLower(ours.TransactionID), strings.ToLower(charged.ID))
		assert.Equal(w, 3, w.health().Unknown)
	})
}

// Config.Other hands the events to the code that charged before. What it does not handle, it gets
// again.
func TestOtherGetsTheEventsThatMatchNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var mu sync.Mutex
		var got []string
		failed := false
		w.cfg.Other = func(_ context.Context, account string, e *webhook.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == webhook.TransactionPaid && !failed {
				failed = true
				return errors.New("the old code's database is down")
			}
			got = append(got, account+" "+string(e.Kind)+" "+strings.ToLower(e.ResourceID))
			return nil
		}
		w.open()
		w.start()
		w.paysWith(pix("A1", 700))
		charged, paidOut := w.old(1)
		w.settled()
		mu.Lock()
		defer mu.Unlock()
		id := strings.ToLower(charged.ID)
		for _, kind := range []webhook.Kind{webhook.TransactionCreated, webhook.TransactionPending, webhook.TransactionPaid} {
			assert.Equal(w, 1, count(got, "shop "+string(kind)+" "+id), "%s in %v", kind, got)
		}
		assert.True(w, failed)
		assert.True(w, slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, strings.ToLower(paidOut.ID)) }))
		for _, s := range got {
			assert.True(w, strings.HasSuffix(s, id) || strings.HasSuffix(s, strings.ToLower(paidOut.ID)), "ours: %s", s)
		}
		assert.Equal(w, 2, w.health().Unknown, "it is seen all the same")
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{})
		require.NoError(w, err)
		for _, u := range list {
			if u.ID == id {
				assert.Equal(w, 3, u.Events, "an event that is handled again counts once")
			}
		}
	})
}

// oldMember subscribes a member of a system that was there before. The events of the subscription and
// of its charge have no reference.
func (w *world) oldMember() *gateway.Subscription {
	w.Helper()
	client := w.gw.Account(w.gw.Key()).Client()
	p := w.member("OLD", "pgct_ok_old")
	customer, err := client.Customers.Create(w.Context(), p.Customer)
	require.NoError(w, err)
	p.CustomerID = customer.ID
	s, err := client.Subscriptions.Create(w.Context(), p.SubscriptionParams)
	require.NoError(w, err)
	return s
}

// What has no reference may be ours for a moment: a subscription that is being created, or its
// charge. It is no alarm until it is sure that it is not, and then takes no place in the table.
func TestWhatMayBeOursIsNoAlarm(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var log synced
		w.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		w.cfg.SettleAfter = time.Hour
		w.members().open()
		w.start()
		w.oldMember()
		w.settled()
		assert.Positive(w, w.count(`SELECT COUNT(*) FROM gateway_unknown WHERE family = 'subscription'`))
		assert.Positive(w, w.count(`SELECT COUNT(*) FROM gateway_unknown WHERE family = 'transaction'`))
		assert.Zero(w, w.health().Unknown)
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{})
		require.NoError(w, err)
		assert.Empty(w, list)
		assert.NotContains(w, log.String(), "is not in the books")

		w.exec(`UPDATE gateway_unknown SET first_at = first_at - 3600000`)
		assert.Equal(w, 2, w.health().Unknown, "the subscription and its charge")
		w.pass(month)
		w.settled()
		assert.Contains(w, log.String(), "is not in the books")
	})
}

// Other code of the account makes references that begin with the account's prefix. Its events wait until
// the gateway no longer lags, because a record may be lost, and are that code's then.
func TestOtherGetsWhatHasThePrefixAndNoRecord(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		old := w.oldShop()
		var mu sync.Mutex
		var ids []string
		w.cfg.SendTimeout, w.cfg.SettleAfter = 100*time.Millisecond, 200*time.Millisecond // nothing is sent
		w.cfg.Other = func(_ context.Context, _ string, e *webhook.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Age < 200*time.Millisecond {
				return fmt.Errorf("%s came too soon", e.ResourceID)
			}
			ids = append(ids, e.ResourceID)
			return nil
		}
		w.open().start()
		p := pix("", 700).TransactionParams
		p.ExternalRef = "shop-416"
		tx, err := old.client.Transactions.Create(w.Context(), p)
		require.NoError(w, err)
		require.NoError(w, w.gw.Transactions.Pay(tx.ID))
		w.eventually("the old code has the event", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(ids, tx.ID)
		})
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{})
		require.NoError(w, err)
		require.Len(w, list, 1)
		assert.Equal(w, "shop-416", list[0].Ref)
		w.adopts("416", tx.ID)
	})
}

// The code that charged before does not get the events of a subscription of ours that come before it
// is stored: it might refund what it does not know.
func TestOtherGetsNothingOfOurSubscriptions(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.SettleAfter = time.Hour
		var mu sync.Mutex
		got := make(map[string]bool)
		w.cfg.Other = func(_ context.Context, _ string, e *webhook.Event) error {
			mu.Lock()
			defer mu.Unlock()
			got[strings.ToLower(e.ResourceID)] = true
			return nil
		}
		has := func(id string) bool {
			mu.Lock()
			defer mu.Unlock()
			return got[strings.ToLower(id)]
		}
		w.members().open()
		stop := w.start()
		ours := w.subscribe(w.member("M1", "pgct_ok_1"))
		theirs := w.oldMember()
		s := w.reads("M1", "the charge is stored", func(s *merchant.Subscription) bool { return len(s.Charges) > 0 })
		require.NoError(w, w.gw.Wait(w.Context()))
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state = 2 OR state = 1 AND attempts = 0`)
		assert.Positive(w, w.count(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state = 1 AND kind = 'subscription.created'`))
		mu.Lock()
		assert.Empty(w, got, "all of it may still be ours")
		mu.Unlock()

		stop()
		hours := time.Now().Add(-2 * time.Hour).UnixMilli()
		w.exec(`UPDATE gateway_webhook_events SET arrived = ?, since = ?, due = 1 WHERE state IN (1, 2)`, hours, hours)
		w.open()
		w.start()
		w.settled()
		assert.True(w, has(theirs.ID))
		for _, id := range []string{ours.SubscriptionID, s.SubscriptionID, s.Charges[0].TransactionID} {
			assert.False(w, has(id), id)
		}
	})
}

// An event of a family that only the next release knows is not acknowledged if it is ours: it waits
// for that release.
func TestOtherGetsNoUnknownEventOfOurs(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		got := make(chan string, 10)
		w.cfg.Other = func(_ context.Context, _ string, e *webhook.Event) error {
			got <- e.CorrelationID
			return nil
		}
		w.cfg.Accounts = append(w.cfg.Accounts, w.account("other", "sk_test_other", secrets["other"]))
		w.open()
		w.start()
		for _, ref := range []string{"shop-A1-1", "other-A1-1", "old-1"} {
			body := fmt.Appendf(nil, `{"id":"evt-%s","event":"dispute","type":"dispute.opened","data":{"id":"dp-%s","correlation_id":"%[1]s"}}`, ref, ref)
			response := httptest.NewRecorder()
			w.m.Webhook("shop").ServeHTTP(response, webhooktest.Signed(w.gw.Secret(), body))
			require.Equal(w, 200, response.Code)
		}
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state = 2 OR state = 1 AND attempts = 0`)
		require.Len(w, got, 1)
		assert.Equal(w, "old-1", <-got)
		assert.Equal(w, 2, w.count(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state IN (1, 2)`), "ours, and one that came to the wrong URL")
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{Account: "shop"})
		require.NoError(w, err)
		require.Len(w, list, 1)
		assert.Equal(w, "dp-old-1", list[0].ID)
	})
}

// Two accounts may share a key. A payout of the one is no payout of another system for the other.
func TestAPayoutOfAnotherAccountIsKnown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Other = func(_ context.Context, _ string, e *webhook.Event) error { return errors.New("got " + e.ResourceID) }
		second := w.account("second", w.gw.Key(), w.gw.Secret())
		w.cfg.Accounts = append(w.cfg.Accounts, second)
		w.open()
		w.start()
		p := bill("bill-1", "", 300)
		p.Account = "second"
		_, err := w.m.Payout(w.Context(), p)
		require.NoError(w, err)
		w.eventually("its event is stored", func() bool {
			return w.count(`SELECT COUNT(*) FROM gateway_webhook_events WHERE resource LIKE 'transfer/%'`) > 0
		})
		w.quiet(`SELECT COUNT(*) FROM gateway_webhook_events WHERE state = 2 OR state = 1 AND attempts = 0`)
		list, err := w.m.Unknown(w.Context(), merchant.UnknownQuery{Account: "shop"})
		require.NoError(w, err)
		assert.Empty(w, list)
	})
}

// What matches a record by now takes no place in the table.
func TestWhatIsInTheBooksTakesNoPlace(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.start()
		ours := w.paysWith(pix("A1", 700))
		now := time.Now().UnixMilli()
		w.exec(`INSERT INTO gateway_unknown (account, family, id, ref, kind, event, events, first_at, last_at) VALUES ('shop', 'transaction', ?, '', '', '', 1, ?, ?)`,
			strings.ToLower(ours.TransactionID), now, now)
		w.old(1)
		w.settled()
		assert.Zero(w, w.count(`SELECT COUNT(*) FROM gateway_unknown WHERE id = '`+strings.ToLower(ours.TransactionID)+`'`))
		assert.Equal(w, 2, w.count(`SELECT COUNT(*) FROM gateway_unknown`))
	})
}

// The table has an end, and what is old is forgotten.
func TestWhatMatchesNothingIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.open()
		w.start()
		numbers := `generate_series(1, 10050) AS k (n)`
		if w.dialect == database.DialectSQLite {
			numbers = `(WITH RECURSIVE k (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < 10050) SELECT n FROM k) AS k`
		}
		now := time.Now().UnixMilli()
		w.exec(fmt.Sprintf(`INSERT INTO gateway_unknown (account, family, id, ref, kind, event, events, first_at, last_at)
			SELECT 'shop', 'transaction', 'old-' || n, '', 'transaction.paid', '', 1, 0, %d - n FROM %s`, now, numbers))
		w.exec(fmt.Sprintf(`UPDATE gateway_unknown SET last_at = %d WHERE id IN ('old-1', 'old-2')`, time.Now().AddDate(0, 0, -91).UnixMilli()))
		assert.Equal(w, 10_048, w.health().Unknown)
		w.old(1)
		w.settled()
		assert.Equal(w, 0, w.count(`SELECT COUNT(*) FROM gateway_unknown WHERE id IN ('old-1', 'old-2')`))
		assert.LessOrEqual(w, w.count(`SELECT COUNT(*) FROM gateway_unknown`), 10_002)
		assert.Equal(w, 1, w.count(`SELECT COUNT(*) FROM gateway_unknown WHERE id = 'old-3'`), "the newest stay")
	})
}

func count(list []string, s string) (n int) {
	for _, is := range list {
		if is == s {
			n++
		}
	}
	return n
}

// synced is a buffer for several goroutines.
type synced struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *synced) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *synced) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
