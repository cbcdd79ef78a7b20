package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// fees are the fees in the golden files.
func fees(_ *httpapi.Config, sc *store.Config) { sc.Fee = 50 }

// sent reads a golden request, sends it and returns the response.
func (m *mock) sent(method, target, file string) response {
	m.t.Helper()
	return m.call(method, target, string(golden.Read(m.t, file)))
}

func (a response) alike(status int, file string, but ...string) response {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, string(a.Body))
	golden.Alike(a.t, golden.Read(a.t, file), a.Body, but...)
	return a
}

func TestGoldenTransactions(t *testing.T) {
	t.Parallel()
	m := newMock(t, fees)
	id := m.sent(http.MethodPost, "/v2/transactions", "transactions/create.request.json").
		alike(http.StatusCreated, "transactions/create.response.json").text("data.id")
	m.sent(http.MethodPost, "/v2/transactions", "transactions/create_voucher.request.json").
		alike(http.StatusCreated, "transactions/create_voucher.response.json")
	card := m.sent(http.MethodPost, "/v2/transactions", "transactions/create_card.request.json").
		alike(http.StatusCreated, "transactions/create_card.response.json").text("data.id")
	m.sent(http.MethodPost, "/v2/transactions", "transactions/create_buyer_id.request.json").problem(404, "NOT_FOUND")
	path := "/v2/transactions/" + id

	require.NoError(t, m.clock.Advance(t.Context(), 200*time.Second))
	m.move(id, engine.Pay)
	m.call(http.MethodGet, path, "").alike(http.StatusOK, "transactions/get.response.json")
	m.sent(http.MethodPut, path, "transactions/set_sandbox_status.request.json").
		alike(http.StatusOK, "transactions/set_sandbox_status.response.json")
	m.sent(http.MethodPut, path+"/delivery", "transactions/update_delivery.request.json").
		alike(http.StatusOK, "transactions/update_delivery.response.json")
	m.call(http.MethodPut, "/v2/transactions/"+card, `{"status":"captured"}`)
	list := m.call(http.MethodGet, "/v2/transactions?status=paid,captured", "")
	golden.Alike(t, golden.Read(t, "transactions/list.response.json"), list.Body, "total", "next_cursor")

	m.sent(http.MethodPut, path+"/refund", "transactions/refund.request.json").
		alike(http.StatusOK, "transactions/refund.response.json")
}

func TestGoldenFullRefund(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	id := m.sent(http.MethodPost, "/v2/transactions", "transactions/create.request.json").text("data.id")
	m.move(id, engine.Pay)
	m.sent(http.MethodPut, "/v2/transactions/"+id+"/refund", "transactions/refund_full.request.json").
		alike(http.StatusOK, "transactions/refund_full.response.json")
}

func TestGoldenTransactionsLive(t *testing.T) {
	t.Parallel()
	m := newMock(t, fees, live)
	id := m.sent(http.MethodPost, "/v2/transactions", "transactions/create.request.json").
		alike(http.StatusCreated, "transactions/create.live.response.json").text("data.id")
	card := m.sent(http.MethodPost, "/v2/transactions", "transactions/create_card.request.json").
		alike(http.StatusCreated, "transactions/create_card.live.response.json").text("data.id")
	newMock(t, fees, live).sent(http.MethodPost, "/v2/transactions", "transactions/create_informations.request.json").
		alike(http.StatusCreated, "transactions/create_informations.live.response.json")
	m.move(id, engine.Pay)
	m.call(http.MethodGet, "/v2/transactions/"+id, "").alike(http.StatusOK, "transactions/get.live.response.json")
	settleFor := func(cents int64) {
		m.move(id, func(env engine.Env, t *engine.Transaction) (engine.Change, *engine.Refusal) {
			return engine.SettleFor(env, t, cents)
		})
	}
	settleFor(3815)
	m.call(http.MethodGet, "/v2/transactions/"+id, "").alike(http.StatusOK, "transactions/get_settled.live.response.json")
	settleFor(0)
	m.call(http.MethodPut, "/v2/transactions/"+card, `{"status":"captured"}`)
	list := m.call(http.MethodGet, "/v2/transactions", "")
	golden.Alike(t, golden.Read(t, "transactions/list.live.response.json"), list.Body, "total", "fee", "next_cursor")
}

func TestGoldenErrors(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	pending := m.create(charge("external_ref", `"one"`))
	m.call(http.MethodPost, "/v2/transactions", charge("external_ref", `"one"`)).alike(409, "errors/duplicate.409.json")
	m.call(http.MethodPut, "/v2/transactions/"+pending+"/refund", "{}").alike(409, "errors/conflict.409.json")
	m.call(http.MethodGet, "/v2/transactions/01945f2c-0000-7000-8000-000000000000", "").alike(404, "errors/not_found.404.json")
	m.call(http.MethodGet, "/v2/transactions", "", "Authorization", "").alike(401, "errors/unauthorized.401.json", "detail")
	m.call(http.MethodGet, "/v2/transactions?limit=101", "").alike(422, "errors/validation.422.json", "code")
	m.call(http.MethodPost, "/v2/transactions", charge("amount", "0",
		"buyer", `{"name":"Ana","email":"ana@example.com","address":{"street":"Rua A"}}`, "products", `[{"name":"","price":1}]`)).
		alike(400, "errors/validation.400.json", "code")
	newLive := newMock(t, live)
	newLive.create(charge("external_ref", `"one"`))
	newLive.call(http.MethodPost, "/v2/transactions", charge("external_ref", `"one"`)).alike(409, "errors/duplicate.live.409.json")
	newLive.call(http.MethodPost, "/v2/transactions", "[]").alike(422, "errors/body.live.422.json")
}
