package simulation_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
	"github.com/gateway-go/gateway/merchant"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/webhook"
)

// asked counts the requests of a shop.
type asked struct {
	next                   http.RoundTripper
	reads, pages, disputes atomic.Int64
}

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method != http.MethodGet:
	case strings.HasPrefix(r.URL.Path, "/v2/transactions/"):
		a.reads.Add(1)
	case r.URL.Query().Has("id"):
		a.pages.Add(1)
	case r.URL.Path == "/v2/transactions":
		a.disputes.Add(1)
	}
	return a.next.RoundTrip(r)
}

// TestListsCostATwentiethOfReads counts the requests of a shop whose charges are paid and do
// not change: those of 100 for 60 days, with FULL_SIZE those of 1,000 for 180.
func TestListsCostATwentiethOfReads(t *testing.T) {
	t.Parallel()
	charges, days, poll := 100, 60, time.Hour
	if os.Getenv("FULL_SIZE") != "" {
		charges, days, poll = 1000, 180, 15*time.Minute
	}
	before, after := idleShop(t, charges, days, poll, true), idleShop(t, charges, days, poll, false)
	t.Logf("%d charges for %d days: %d reads; with lists %d reads, %d lists of charges and %d of disputes",
		charges, days, before.reads.Load(), after.reads.Load(), after.pages.Load(), after.disputes.Load())
	assert.Zero(t, before.pages.Load()+before.disputes.Load())
	assert.InDelta(t, charges*days, before.reads.Load(), float64(2*charges))
	assert.LessOrEqual(t, after.reads.Load(), int64(charges*days/30), "one in 30 days")
	assert.LessOrEqual(t, 20*(after.reads.Load()+after.pages.Load()), before.reads.Load())
	assert.LessOrEqual(t, after.disputes.Load(), int64(days*(96+1)), "one each quarter of an hour, however many charges there are")
}

// idleShop runs a shop with paid charges of which nothing is heard for some days.
func idleShop(t *testing.T, charges, days int, poll time.Duration, noLists bool) *asked {
	t.Helper()
	var a asked
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		gw, err := mockserver.New(mockserver.WithStart(time.Now()), mockserver.WithConsole(false), mockserver.WithDialect(mockserver.Live))
		require.NoError(t, err)
		defer func() { assert.NoError(t, gw.Close()) }()
		a.next = gw.Transport()
		client, err := gateway.New(mockserver.BaseURL, gateway.BearerToken(gw.Key()), gateway.WithAccount("shop"),
			gateway.WithHTTPClient(&http.Client{Transport: &a}))
		require.NoError(t, err)
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+
			"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		require.NoError(t, err)
		defer func() { assert.NoError(t, db.Close()) }()
		db.SetMaxIdleConns(16)
		m, err := merchant.Open(t.Context(), database.SQLite(db), merchant.Config{
			Accounts: []merchant.Account{{
				Name: "shop", Client: client, Keys: []webhook.SigningKey{{Key: gw.Secret()}}, Zone: time.UTC, NoLists: noLists,
			}},
			PollInterval: poll,
		}, merchant.Callbacks[*sql.Tx]{})
		require.NoError(t, err)
		for i := range charges {
			p := merchant.ChargeParams{Order: fmt.Sprint("I", i)}
			p.Amount, p.Method = 1000, gateway.Pix
			p.Buyer = gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}}
			p.Products = []gateway.Product{{Name: "Book", Price: 1000}}
			c, err := m.Charge(t.Context(), p)
			require.NoError(t, err)
			require.NoError(t, gw.Transactions.Pay(c.TransactionID))
			require.NoError(t, m.Refresh(t.Context(), c.ID))
		}
		a.reads.Store(0)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(time.Duration(days) * 24 * time.Hour)
		stop()
		require.NoError(t, <-ended)
	})
	return &a
}
