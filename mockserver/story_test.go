package mockserver_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

const pixOrder = `{"external_ref":"order-1","amount":1990,"method":"pix",
	"buyer":{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"52998224725"}},"products":[{"name":"Book","price":1990}]}`

func TestTheControlPlaneTellsAStory(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	created, err := gw.Client().Transactions.Create(t.Context(), gateway.TransactionParams{
		ExternalRef: "order-1", Amount: 1990, Method: gateway.Pix,
		Buyer:    gateway.BuyerParams{Name: "Ana", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"}},
		Products: []gateway.Product{{Name: "Book", Price: 1990}},
	})
	require.NoError(t, err)
	waiting := do[map[string]any](p, http.MethodGet, "/story?id=order-1", "")
	assert.Len(t, waiting["timers"], 1)
	require.NoError(t, gw.Transactions.Pay(created.ID))

	byRef := do[map[string]any](p, http.MethodGet, "/story?id=order-1", "")
	assert.Equal(t, byRef, do[map[string]any](p, http.MethodGet, "/story?id="+created.ID, ""))
	assert.Equal(t, "transaction", byRef["resource"])
	assert.Equal(t, "paid", byRef["status"])
	steps := byRef["steps"].([]any)
	last := steps[len(steps)-1].(map[string]any)
	assert.Equal(t, "pending", last["from"])
	assert.Equal(t, "paid", last["to"])
	assert.InEpsilon(t, 1990, last["amount"], 0)
	assert.Equal(t, "control transactions/pay", last["cause"])
	assert.Len(t, last["events"], 1)
	assert.Len(t, byRef["requests"], 1)
	assert.Len(t, byRef["deliveries"], 3) // created, pending, paid: without an endpoint
	assert.Empty(t, byRef["parts"])

	assert.Equal(t, []any{map[string]any{"resource": "transaction", "status": "paid", "count": 1.0}}, do[[]any](p, http.MethodGet, "/resources", ""))
}

func TestTheStoryOfASubscriptionHasItsCharges(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	customer, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
	require.NoError(t, err)
	sub, err := gw.Client().Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 4990, Interval: gateway.IntervalMonth, Token: "pgct_ok_1", IdempotencyKey: "member-1",
	})
	require.NoError(t, err)
	story := do[map[string]any](p, http.MethodGet, "/story?id=member-1", "")
	assert.Equal(t, sub.ID, story["id"])
	require.Len(t, story["parts"], 1)
	part := story["parts"].([]any)[0].(map[string]any)
	assert.Equal(t, "transaction", part["resource"])
	steps := map[any]bool{}
	for _, s := range story["steps"].([]any) {
		steps[s.(map[string]any)["id"]] = true
	}
	assert.Equal(t, map[any]bool{sub.ID: true, part["id"]: true}, steps)
}

func TestStoriesThatDoNotExist(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	_, err := gw.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", ExternalRef: "c-1"})
	require.NoError(t, err)
	for path, want := range map[string]int{
		"/story": http.StatusBadRequest, "/story?id=": http.StatusBadRequest, "/story?id=order-9": http.StatusNotFound, "/story?id=c-1": http.StatusOK,
	} {
		status, body := plane{t: t, gw: gw}.call(http.MethodGet, path, "")
		assert.Equal(t, want, status, body)
	}
	status, _ := plane{t: t, gw: gw, key: "sk_test_other"}.call(http.MethodGet, "/story?id=c-1", "")
	assert.Equal(t, http.StatusNotFound, status, "of another account")
}

// A rejected request has the rule of each field and what to do, in the journal; the
// response itself is as the interface document says.
func TestTheJournalExplainsRejections(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	send := func(body, fault string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, mockserver.BaseURL+"/v2/transactions", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+gw.Key())
		r.Header.Set("Content-Type", "application/json")
		if fault != "" {
			r.Header.Set("X-Mock-Fault", fault)
		}
		resp, err := gw.Transport().RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	send(`{"amount":0}`, "")
	send(pixOrder, "")
	send(pixOrder, "")
	send(`[]`, "")
	send(pixOrder, "status=503")
	_, found := p.call(http.MethodGet, "/requests?match="+url.QueryEscape("transactions.create"), "")
	list := found["data"].([]any)
	require.Len(t, list, 5)
	rejection := func(i int) map[string]any {
		v, _ := list[i].(map[string]any)["rejection"].(map[string]any)
		return v
	}
	assert.Nil(t, rejection(1), "it was not rejected")
	assert.Equal(t, "VALIDATION_ERROR", rejection(0)["code"])
	assert.Contains(t, rejection(0)["errors"], map[string]any{"field": "amount", "message": "must be at least 1", "code": "too_small"})
	assert.Contains(t, rejection(0)["do_next"], "Fix each invalid field")
	assert.Equal(t, "DUPLICATE_EXTERNAL_REF", rejection(2)["code"])
	assert.Contains(t, rejection(2)["do_next"], "Don't use a new reference")
	assert.Equal(t, "MALFORMED_JSON", rejection(3)["code"])
	assert.Equal(t, true, rejection(4)["injected"])
	assert.Contains(t, rejection(4)["do_next"], "injected fault")
}

// Each code of the guide's table has advice of its own.
func TestEveryErrorCodeHasAdvice(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/mockgateway.md")
	require.NoError(t, err)
	source, err := os.ReadFile("internal/admin/rejection.go")
	require.NoError(t, err)
	refusals, err := os.ReadFile("internal/engine/refusals.go")
	require.NoError(t, err)
	names := map[string]string{}
	for _, m := range regexp.MustCompile(`(Code\w+) += "(\w+)"`).FindAllStringSubmatch(string(refusals), -1) {
		names[m[2]] = "engine." + m[1] + ":"
	}
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| [45]").FindAllStringSubmatch(string(guide), -1)
	assert.Greater(t, len(rows), 20)
	for _, row := range rows {
		key := names[row[1]]
		if key == "" {
			key = `"` + row[1] + `":`
		}
		assert.Contains(t, string(source), key, row[1])
	}
}
