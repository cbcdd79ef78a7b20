package merchant_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
)

// The code of docs/merchant.md.

func forget[TX any](ctx context.Context, m *merchant.Merchant[TX], who merchant.Buyer, by, why string) (again bool, err error) {
	result, err := m.EraseBuyer(ctx, who, by, why)
	if err != nil {
		return true, err
	}
	for _, left := range result.Left {
		slog.InfoContext(ctx, "not erased yet", slog.String(left.Kind, left.ID), slog.Any("because", left.Err))
	}
	return result.Unread || len(result.Left) > 0, nil
}

var keep = merchant.Keep{
	Buyers:     5 * 365 * 24 * time.Hour, // for as long as your law asks for it
	Operations: 90 * 24 * time.Hour,
}

func TestTheGuideErasesABuyer(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.cfg.Keep = keep
		w.audience().open().start()
		w.paysPerson(pix("A1", 1000))
		open := w.charge(zuleica.buys(pix(w.order("A2"), 1000)))
		who := merchant.Buyer{Document: zuleica.cpf, Email: zuleica.email}
		again, err := forget(w.Context(), w.m, who, "support", "request 17")
		require.NoError(w, err)
		assert.True(w, again, "order A2 may still be paid")
		assert.False(w, w.state("A1").Erased.IsZero())
		require.NoError(w, w.gw.Transactions.Pay(open.TransactionID))
		w.refresh(open.ID)
		w.settled()
		require.NoError(w, w.m.Idle(w.Context()))
		again, err = forget(w.Context(), w.m, who, "support", "request 17")
		require.NoError(w, err)
		assert.False(w, again)
		assert.Empty(w, w.holds(zuleica.texts()...))
	}, mockserver.WithDialect(mockserver.Live))
}
