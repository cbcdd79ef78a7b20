package mockserver_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// What live gateways were seen to do to merchants, for a while.

// A gateway whose reads lag shows the state of some time ago: nothing that is younger, in
// lists neither. Webhooks don't lag, and neither do writes.
func TestReadsThatLag(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithDialect(dialect))
		client := gw.Client()
		old, err := client.Transactions.Create(t.Context(), order("old"))
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(time.Minute))
		require.NoError(t, gw.Transactions.Pay(old.ID))
		require.NoError(t, gw.Clock.Advance(time.Minute))
		_, err = client.Transactions.Refund(t.Context(), old.ID, gateway.RefundParams{Amount: 100})
		require.NoError(t, err)
		young, err := client.Transactions.Create(t.Context(), order("young"))
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(30*time.Second))

		read := func(lag time.Duration, id string) (string, error) {
			var fault []gateway.RequestOption
			if lag > 0 {
				fault = append(fault, gateway.Header("X-Mock-Fault", mockserver.Lag(lag).String()))
			}
			tx, err := client.Transactions.Get(t.Context(), id, fault...)
			if err != nil {
				return "", err
			}
			return string(tx.Status), nil
		}
		for lag, want := range map[time.Duration]string{
			0: "partially_refunded", 30 * time.Second: "partially_refunded", 31 * time.Second: "paid", 90 * time.Second: "paid",
			2 * time.Minute: "pending", 150 * time.Second: "pending",
		} {
			status, err := read(lag, old.ID)
			require.NoError(t, err)
			assert.Equal(t, want, status, lag)
		}
		_, err = read(151*time.Second, old.ID)
		require.ErrorIs(t, err, gateway.ErrNotFound)
		_, err = read(time.Minute, young.ID)
		require.ErrorIs(t, err, gateway.ErrNotFound)

		require.NoError(t, gw.Account(gw.Key()).Faults.Add(mockserver.Lag(time.Minute).On("GET transactions.*").For(5*time.Minute)))
		list := func(params gateway.TransactionListParams) (states []string) {
			page, err := client.Transactions.List(t.Context(), params)
			require.NoError(t, err)
			for _, item := range page.Items {
				states = append(states, string(item.Status))
			}
			assert.Len(t, states, page.Total)
			return states
		}
		assert.Equal(t, []string{"paid"}, list(gateway.TransactionListParams{}))
		assert.Equal(t, []string{"paid"}, list(gateway.TransactionListParams{Statuses: []gateway.TransactionStatus{gateway.TransactionPaid}}))
		assert.Empty(t, list(gateway.TransactionListParams{Statuses: []gateway.TransactionStatus{"partially_refunded"}}))
		_, err = client.Transactions.Create(t.Context(), order("young"), gateway.MaxAttempts(1))
		require.Error(t, err, "a write does not lag: the reference is used")

		other := gw.Account("sk_test_other").Client()
		theirs, err := other.Transactions.Create(t.Context(), order("theirs"))
		require.NoError(t, err)
		_, err = other.Transactions.Get(t.Context(), theirs.ID)
		require.NoError(t, err, "another account does not lag")

		require.NoError(t, gw.Clock.Advance(time.Minute))
		assert.Equal(t, []string{"pending", "partially_refunded"}, list(gateway.TransactionListParams{}), "it is a minute later")
		require.NoError(t, gw.Clock.Advance(4*time.Minute))
		fresh, err := client.Transactions.Create(t.Context(), order("fresh"))
		require.NoError(t, err)
		_, err = client.Transactions.Get(t.Context(), fresh.ID)
		require.NoError(t, err, "the lag has ended")
	}
}

// Every list and every read by id can lag.
func TestEveryReadLags(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	customer, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@shop.test"})
	require.NoError(t, err)
	tx, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	transfer, err := client.Transfers.Create(t.Context(), gateway.TransferParams{PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@shop.test", Amount: 1500})
	require.NoError(t, err)
	sub, err := client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
		CustomerID: customer.ID, Amount: 500, Interval: gateway.IntervalMonth, Token: "pgct_ok",
	})
	require.NoError(t, err)
	for collection, id := range map[string]string{
		"customers": customer.ID, "transactions": tx.ID, "transfers": transfer.ID, "subscriptions": sub.ID,
	} {
		for lag, there := range map[string]bool{"": true, "lag=1s": false} {
			header := []string{"X-Mock-Fault", lag}
			if lag == "" {
				header = nil
			}
			status, _ := raw(t, gw, http.MethodGet, "/v2/"+collection+"/"+id, "", header...)
			assert.Equal(t, there, status == http.StatusOK, "%s %s: %d", collection, lag, status)
			status, v := raw(t, gw, http.MethodGet, "/v2/"+collection, "", header...)
			assert.Equal(t, http.StatusOK, status)
			text, err := json.Marshal(v)
			require.NoError(t, err)
			assert.Equal(t, there, strings.Contains(string(text), id), "the list of %s, %s", collection, lag)
		}
	}
}

func TestAGatewayStartsWithFaults(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithFaults(mockserver.Lag(time.Minute).For(time.Hour)), mockserver.WithFaults(mockserver.Shape("masked")))
	client := gw.Account("sk_test_any").Client()
	tx, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	_, err = client.Transactions.Get(t.Context(), tx.ID)
	require.ErrorIs(t, err, gateway.ErrNotFound)
	_, err = mockserver.New(mockserver.WithFaults(mockserver.Shape("made-up")))
	require.ErrorContains(t, err, "WithFaults: fault shape: the form \"made-up\" is unknown")
}

// A cursor that was issued before a lag is still one of the list.
func TestACursorSurvivesALag(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	for i := range 5 {
		_, err := client.Transactions.Create(t.Context(), order(fmt.Sprint("order-", i)))
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(time.Second))
	}
	first, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{Limit: 1})
	require.NoError(t, err)
	require.NoError(t, gw.Faults.Add(mockserver.Lag(3*time.Second)))
	next, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{Limit: 10, Cursor: first.NextCursor})
	require.NoError(t, err)
	assert.Len(t, next.Items, 3)
}

// A read that is forbidden, or finds nothing, for a while.
func TestFaultsThatEnd(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	client := gw.Client(gateway.WithMaxAttempts(1))
	tx, err := client.Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	v := do[object](p, http.MethodPost, "/faults", `{"fault":"status=404; code=NOT_FOUND","on":"GET transactions.*","for":"10m"}`)
	assert.Equal(t, "2027-01-04T12:10:00.000Z", v["until"])
	require.NoError(t, gw.Faults.Add(mockserver.Status(http.StatusForbidden).On("GET *").For(time.Hour)))
	get := func() error {
		_, err := client.Transactions.Get(t.Context(), tx.ID)
		return err
	}
	require.ErrorIs(t, get(), gateway.ErrNotFound)
	_, err = client.Transactions.Create(t.Context(), order("order-2"))
	require.NoError(t, err, "a write is no read")
	require.NoError(t, gw.Clock.Advance(10*time.Minute))
	require.ErrorIs(t, get(), gateway.ErrForbidden)
	require.NoError(t, gw.Clock.Advance(time.Hour))
	require.NoError(t, get())
	for _, wrong := range []string{"0s", "-1m", "soon"} {
		status, v := p.call(http.MethodPost, "/faults", `{"fault":"status=404","for":"`+wrong+`"}`)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, v["detail"], "for must be a duration above zero")
	}
	require.ErrorContains(t, gw.Faults.Add(mockserver.Status(404).For(0)), "above zero")
	require.ErrorContains(t, gw.Faults.Add(mockserver.Lag(0)), "above zero")
}

// Each form of a response that live gateways were seen to use. The rest of the body stays.
func TestShapesOfResponses(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live), mockserver.WithFee(35))
	client := gw.Client()
	params := order("order-1")
	params.Method, params.Token, params.Installments = gateway.CreditCard, "pgct_3ds", 3
	params.Buyer.Phone, params.Metadata = "11987654321", `{"fee":{"a":"1"}}`
	params.Informations = []gateway.Information{{Key: "table", Value: "7"}}
	tx, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(1500*time.Millisecond))
	require.NoError(t, gw.Transactions.PassChallenge(tx.ID))
	read := func(forms ...string) map[string]any {
		status, v := raw(t, gw, http.MethodGet, "/v2/transactions/"+tx.ID, "", "X-Mock-Fault", mockserver.Shape(forms...).String())
		require.Equal(t, http.StatusOK, status, v)
		data, ok := v["data"].(map[string]any)
		require.True(t, ok)
		return data
	}
	plain := read("three-ds-stage") // the challenge is over
	require.Nil(t, plain["next_action"])
	for forms, want := range map[string]map[string]any{
		"fee-number":          {"fee": 35.0},
		"fee-text":            {"fee": "35"},
		"fee-object":          {"fee": map[string]any{"net_amount": 965.0, "estimated_fee": 35.0, "spread_percentage": 1.5}},
		"informations-object": {"informations": map[string]any{"table": "7"}},
		"installments-text":   {"installments": "3"},
		"amounts-text": {
			"amount": "1000", "base_price": "1000", "paid_amount": "1000", "refunded_amount": "0",
			"fee":      map[string]any{"net_amount": "965", "estimated_fee": 35.0},
			"products": []any{map[string]any{"name": "Book", "price": "1000", "quantity": 1.0}},
		},
		"no-paid-amount":          {"paid_amount": nil},
		"zero-paid-amount":        {"paid_amount": 0.0},
		"whole-seconds":           {"updated_at": "2027-01-04T12:00:01.000Z"},
		"stopped-updates":         {"updated_at": "2027-01-04T12:00:00.000Z"},
		"fee-text,no-paid-amount": {"fee": "35", "paid_amount": nil},
	} {
		got := read(strings.Split(forms, ",")...)
		for name, was := range plain {
			expected := was
			if changed, ok := want[name]; ok {
				expected = changed
			}
			assert.Equal(t, expected, got[name], "%s: %s", forms, name)
		}
		if strings.Contains(forms, "no-paid-amount") {
			assert.NotContains(t, got, "paid_amount")
		}
	}
	buyer, _ := read("masked")["buyer"].(map[string]any)
	text, err := json.Marshal(buyer)
	require.NoError(t, err)
	for _, secret := range []string{"52998224725", "ana@", "11987654321"} {
		assert.NotContains(t, string(text), secret)
	}
	assert.Equal(t, "a***@example.com", buyer["email"])

	params.ExternalRef, params.Token = "order-2", "pgct_3ds_2"
	require.NoError(t, gw.Faults.Add(mockserver.Shape("three-ds-stage").On("transactions.*")))
	tx, err = client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	var action struct {
		NextAction map[string]any `json:"next_action"`
	}
	require.NoError(t, json.Unmarshal(tx.Raw, &action))
	assert.Equal(t, "post_charge", action.NextAction["three_ds_stage"])
	assert.Len(t, action.NextAction, 5)
}

func TestShapesOfRejections(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	const body = `{"amount":1000,"method":"pix","buyer":{"name":"A","email":"a@shop.test","document":{"type":"CPF","number":7}},"products":[{"name":7,"price":1}]}`
	for form, want := range map[string][]map[string]any{
		"path-list":         {{"path": []any{"buyer", "document", "number"}}, {"path": []any{"products", 0.0, "name"}}},
		"path-text":         {{"path": "buyer.document.number"}, {"path": "products[0].name"}},
		"unrecognized-keys": {{"code": "unrecognized_keys", "keys": []any{"number"}, "path": []any{"buyer", "document"}}, {"keys": []any{"name"}, "path": []any{"products", 0.0}}},
	} {
		status, v := raw(t, gw, http.MethodPost, "/v2/transactions", body, "X-Mock-Fault", "shape="+form)
		require.Equal(t, http.StatusUnprocessableEntity, status, v)
		entries, _ := v["errors"].([]any)
		require.Len(t, entries, 2)
		for i, entry := range entries {
			members, _ := entry.(map[string]any)
			assert.NotContains(t, members, "field")
			assert.NotEmpty(t, members["message"])
			for name, value := range want[i] {
				assert.Equal(t, value, members[name], "%s: %v", form, members)
			}
		}
	}
	for text, detail := range map[string]string{
		"shape": "form", "shape=fee": "unknown", "shape=kind-in-event": "unknown", "shape-webhook=kind-in-event": "can't inject faults into webhooks",
		"shape=fee-text; applied; body=html": "body",
	} {
		status, v := raw(t, gw, http.MethodGet, "/v2/transactions", "", "X-Mock-Fault", text)
		assert.Equal(t, http.StatusBadRequest, status, text)
		assert.Contains(t, v["detail"], detail, text)
	}
	p := plane{t: t, gw: gw}
	status, v := p.call(http.MethodPost, "/faults", `{"fault":"shape-webhook=masked"}`)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, v["detail"], "kind-in-event")
	assert.Contains(t, mockserver.ShapeNames(), "masked")
	assert.NotContains(t, mockserver.WebhookShapeNames(), "masked")
}

// A form of a webhook is signed, stays the same in every attempt, and survives a restart.
func TestShapesOfWebhooks(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	open := func() *mockserver.Server {
		gw, err := mockserver.New(mockserver.WithDialect(mockserver.Live), mockserver.WithDataFile(data), mockserver.WithFee(35))
		require.NoError(t, err)
		t.Cleanup(func() { _ = gw.Close() })
		return gw
	}
	gw := open()
	var bodies [][]byte
	receive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		bodies = append(bodies, text)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	gw.Webhooks.ServeHost("shop.test", receive)
	require.NoError(t, gw.Faults.Add(
		mockserver.ShapeWebhook("kind-in-event", "fee-object").On("transaction.created"),
		mockserver.ShapeWebhook("status-only").On("transaction.pending"),
		mockserver.ShapeWebhook("kind-in-event").On("payout.*"),
	))
	params := order("order-1")
	params.NotifyURL = "https://shop.test/hook"
	_, err := gw.Client().Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	require.Len(t, bodies, 2)
	var event struct {
		ID    string         `json:"id"`
		Event string         `json:"event"`
		Data  map[string]any `json:"data"`
	}
	require.NoError(t, json.Unmarshal(bodies[0], &event))
	assert.Equal(t, "transaction.created", event.Event)
	assert.NotContains(t, event.Data, "event_type")
	assert.Equal(t, map[string]any{"net_amount": 965.0, "estimated_fee": 35.0, "spread_percentage": 1.5}, event.Data["fee"])
	shown := gw.Webhooks.Deliveries()
	i := slices.IndexFunc(shown, func(d mockserver.Delivery) bool { return d.Kind == "transaction.created" })
	assert.Equal(t, string(bodies[0]), string(shown[i].Body), "what the console shows was sent")

	require.NoError(t, gw.Close())
	gw = open()
	gw.Webhooks.ServeHost("shop.test", receive)
	require.NoError(t, gw.Clock.Advance(time.Minute))
	require.Greater(t, len(bodies), 2)
	assert.Contains(t, jsonTexts(bodies[2:]), string(bodies[0]), "the same bytes in every attempt")
	for _, body := range bodies {
		var event struct {
			Event jsontext.Value `json:"event"`
			Type  jsontext.Value `json:"type"`
			Data  map[string]any `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &event))
		if event.Event == nil {
			assert.Nil(t, event.Type)
			assert.NotContains(t, event.Data, "event_type")
			assert.Equal(t, "pending", event.Data["status"])
		}
	}
}

func jsonTexts(list [][]byte) (texts []string) {
	for _, b := range list {
		texts = append(texts, string(b))
	}
	return texts
}

// A key that expires in mid-run: every call gets 401 and webhooks go on, until the key is
// restored or the account has a new one.
func TestAKeyIsRevokedInMidRun(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	const key = "sk_test_shop"
	account := gw.Account(key)
	var kinds []string
	require.NoError(t, gw.Account(key).Webhooks.SendTo("/hook", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		kinds = append(kinds, string(text))
	})))
	tx, err := account.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	before := len(kinds)
	p := plane{t: t, gw: gw, key: key}
	get := func(key string) error {
		_, err := gw.Account(key).Client().Transactions.Get(t.Context(), tx.ID)
		return err
	}
	call := func(key string) error { // gw.Account finds the account of a new key
		client, err := gateway.New(mockserver.BaseURL, gateway.BearerToken(key), gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
		require.NoError(t, err)
		_, err = client.Transactions.Get(t.Context(), tx.ID)
		return err
	}

	assert.Equal(t, object{"revoked": true}, do[object](p, http.MethodPost, "/key/revoke", ""))
	require.ErrorIs(t, get(key), gateway.ErrUnauthorized)
	status, v := raw(t, gw, http.MethodPost, "/v2/transactions", "{}", "Apikey", key)
	assert.Equal(t, http.StatusUnauthorized, status)
	assert.Contains(t, v["detail"], "revoked")
	_, err = gw.Client().Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err, "another account's key")
	paid := do[object](p, http.MethodPost, "/transactions/"+tx.ID+"/pay", "")
	assert.Equal(t, "paid", paid["status"], "the payer doesn't need the key")
	require.NoError(t, gw.Wait(t.Context()))
	assert.Len(t, kinds, before+1, "webhooks go on")

	for _, wrong := range []string{"", "sk_live_x", gw.Key(), key} {
		status, _ := p.call(http.MethodPost, "/key/replace", `{"key":"`+wrong+`"}`)
		assert.Equal(t, http.StatusBadRequest, status, wrong)
	}
	do[object](p, http.MethodPost, "/key/replace", `{"key":"sk_test_new"}`)
	require.NoError(t, call("sk_test_new"), "the new key is one of the same account")
	require.ErrorIs(t, call(key), gateway.ErrUnauthorized)
	require.Error(t, account.ReplaceKey("sk_test_new"), "it is in use")
	found := gw.Account("sk_test_new").Requests.All()
	assert.NotEmpty(t, found, "the journal has them with the account")

	account.RestoreKey()
	require.NoError(t, call(key))
	account.RevokeKey()
	require.ErrorIs(t, call("sk_test_new"), gateway.ErrUnauthorized, "all keys of the account")
	do[object](p, http.MethodPost, "/reset", "")
	require.ErrorIs(t, call(key), gateway.ErrNotFound, "a reset restores it")
}
