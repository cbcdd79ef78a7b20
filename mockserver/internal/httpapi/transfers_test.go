package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

const payoutTo = `{"pix_key_type":"EMAIL","pix_key_value":"maria@example.com","amount":4990,"external_ref":%q}`

// payout makes a transfer and takes it through moves.
func (m *mock) payout(ref string, moves ...store.Transition[engine.Transfer]) string {
	m.t.Helper()
	a := m.call(http.MethodPost, "/v2/transfers", fmt.Sprintf(payoutTo, ref))
	require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
	for _, move := range moves {
		_, refusal := m.account().Transfer(a.text("data.id"), move)
		require.Nil(m.t, refusal)
	}
	return a.text("data.id")
}

func TestGoldenTransfers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]option{"": document, ".live": live} {
		t.Run("dialect"+name, func(t *testing.T) {
			t.Parallel()
			m := newMock(t, change)
			m.payout("payout-2000", engine.ProcessTransfer, engine.FailTransfer)
			id := m.sent(http.MethodPost, "/v2/transfers", "transfers/create.request.json").
				alike(http.StatusCreated, "transfers/create"+name+".response.json").text("data.id")
			m.account().View(func(d *store.Data) {
				assert.Equal(t, "https://shop.example/webhooks/payouts", d.Transfers.Get(id).NotifyURL)
			})
			require.NoError(t, m.clock.Advance(t.Context(), time.Minute))
			m.call(http.MethodGet, "/v2/transfers/"+id, "").alike(http.StatusOK, "transfers/get"+name+".response.json")
			list := m.call(http.MethodGet, "/v2/transfers", "")
			golden.Alike(t, golden.Read(t, "transfers/list"+name+".response.json"), list.Body, "total", "next_cursor")

			other := newMock(t, change)
			id = other.sent(http.MethodPost, "/v2/transfers", "transfers/create.request.json").text("data.id")
			other.sent(http.MethodPost, "/v2/transfers/"+id+"/cancel", "transfers/cancel.request.json").
				alike(http.StatusOK, "transfers/cancel"+name+".response.json")
		})
	}
}

func TestTransferErrors(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.payout("one")
	again := m.call(http.MethodPost, "/v2/transfers", fmt.Sprintf(payoutTo, "one"))
	again.problem(http.StatusConflict, "DUPLICATE_EXTERNAL_REF")
	assert.Equal(t, "/v2/transfers/"+id, again.text("instance"))
	m.call(http.MethodGet, "/v2/transfers/nothing", "").problem(http.StatusNotFound, "NOT_FOUND")
	m.call(http.MethodPost, "/v2/transfers/nothing/cancel", "").problem(http.StatusNotFound, "NOT_FOUND")
	m.call(http.MethodPost, "/v2/transfers/"+id+"/cancel", "") // without a body
	m.call(http.MethodPost, "/v2/transfers/"+id+"/cancel", "{}").problem(http.StatusConflict, "INVALID_STATE")
	m.call(http.MethodPost, "/v2/transfers", `{"pix_key_type":"CPF","pix_key_value":"52998224724","amount":1}`).
		problem(http.StatusBadRequest, "VALIDATION_ERROR").field("pix_key_value", "invalid_string")
}

func TestTransferListByStatus(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	m.payout("1")
	paid := m.payout("2", engine.ProcessTransfer, engine.SettleTransfer)
	m.payout("3", engine.CancelTransfer)
	a := m.call(http.MethodGet, "/v2/transfers?status=paid", "")
	assert.InDelta(t, 1, a.at("data.total"), 0)
	assert.Equal(t, paid, a.text("data.data.0.id"))
	first := m.call(http.MethodGet, "/v2/transfers?limit=2", "")
	second := m.call(http.MethodGet, "/v2/transfers?limit=2&cursor="+first.text("data.next_cursor"), "")
	assert.Equal(t, "1", second.text("data.data.0.external_ref"))
	assert.Nil(t, second.at("data.next_cursor"))
}
