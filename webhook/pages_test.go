package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/pages"
	"github.com/gateway-go/gateway/webhook"
)

// proxy responds to every request with the same page.
type proxy struct {
	status int
	page   pages.Page
}

func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{}
	if p.page.ContentType != "" {
		h.Set("Content-Type", p.page.ContentType)
	}
	return &http.Response{
		StatusCode: p.status, Header: h, Request: r, Body: io.NopCloser(strings.NewReader(p.page.Body)),
		ContentLength: int64(len(p.page.Body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// TestAPageOfAProxyIsNotTheAPI has a proxy that lost its backend respond to every
// read. It neither refutes an unsigned delivery nor makes a resource missing.
func TestAPageOfAProxyIsNotTheAPI(t *testing.T) {
	t.Parallel()
	unsigned := map[webhook.Family]string{
		webhook.FamilyTransaction:  paid("evt_1", "tx_1"),
		webhook.FamilySubscription: `{"id":"evt_2","event":"subscription","data":{"id":"s_1","event_type":"subscription.renewed","status":"active"}}`,
		webhook.FamilyTransfer:     `{"id":"evt_3","type":"payout.transferred","data":{"object":{"id":"po_1","status":"paid"}}}`,
	}
	for _, status := range []int{400, 401, 403, 404, 405, 410, 422, 429, 500, 502, 503, 504} {
		for _, page := range pages.All() {
			t.Run(fmt.Sprintf("%d, %s", status, page.Name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { askThrough(t, proxy{status, page}, unsigned) })
			})
		}
	}
}

// askThrough delivers and reconciles while a proxy responds for the API.
func askThrough(t *testing.T, p proxy, unsigned map[webhook.Family]string) {
	t.Helper()
	client, err := newClient(p)
	require.NoError(t, err)
	cfg := webhook.Config{Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: client}
	rx, got := shop(t, cfg)
	for family, body := range unsigned {
		assert.Equal(t, notConfirmedYet, response(rx, request(body)), "unsigned %s", family)
	}
	refund := txBody("evt_4", webhook.TransactionRefunded, "tx_1", "refunded")
	assert.Equal(t, notConfirmedYet, response(rx, signed(refund)), "a signed event that needs the API")

	open := []webhook.OpenResource{
		{Family: webhook.FamilyTransaction, ID: "tx_1", Status: "pending"},
		{Family: webhook.FamilySubscription, ID: "s_1", Status: "active"},
		{Family: webhook.FamilyTransfer, ID: "po_1", Status: "pending"},
		{Family: webhook.FamilyTransaction, ExternalRef: "order-1", Since: time.Now().Add(-48 * time.Hour)},
	}
	found, err := reconciler(t, rx, open...).Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: len(open), Failed: len(open)}, found)
	assert.Empty(t, got.all())
}

// TestA404OfTheAPIIsAnAnswer is the counterpart: the gateway's own 404.
func TestA404OfTheAPIIsAnAnswer(t *testing.T) {
	t.Parallel()
	rx, _ := shop(t, mixed(t, &fakeAPI{}))
	assert.Equal(t, unconfirmed, response(rx, request(paid("evt_1", "tx_1"))))
	found, err := reconciler(t, rx, pendingTx("tx_1")...).Once(t.Context())
	require.NoError(t, err)
	assert.Equal(t, webhook.Reconciliation{Checked: 1, Missing: 1}, found)
}
