package merchant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
