package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// FuzzCreateTransaction sends any body. The response is always JSON, a success
// or an error that names the invalid field, and only a success stores anything.
func FuzzCreateTransaction(f *testing.F) {
	for _, file := range []string{"create", "create_card", "create_voucher", "create_buyer_id"} {
		f.Add(string(golden.Read(f, "transactions/"+file+".request.json")), false)
	}
	f.Add(charge("amount", "1e400"), true)
	f.Add(charge("buyer", `{"id":[],"name":null}`), true)
	f.Add(`{"products":[{"name":"\ud800"}]}`, false)
	f.Add("{\"external_ref\":\"\x00\"}", false)
	f.Fuzz(func(t *testing.T, body string, isLive bool) {
		dialect := document
		if isLive {
			dialect = live
		}
		m := newMock(t, dialect)
		a := m.call(http.MethodPost, "/v2/transactions", body, "Content-Type", "application/json")
		require.True(t, json.Valid(a.Body), string(a.Body))
		stored := 0
		m.account().View(func(d *store.Data) { stored = d.Transactions.Len() })
		switch a.Status {
		case http.StatusCreated:
			assert.Equal(t, 1, stored)
			assert.NotEmpty(t, a.text("data.id"))
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotFound:
			assert.Zero(t, stored)
			assert.NotEmpty(t, a.text("detail"))
		default:
			assert.Fail(t, "unexpected response", "%d for %q: %s", a.Status, body, a.Body)
		}
	})
}

// FuzzListTransactions sends any query.
func FuzzListTransactions(f *testing.F) {
	f.Add("limit=5&cursor=AAAAAAAAAAA&direction=prev")
	f.Add("status=paid,,&products=&dateFrom=0001-01-01&dateTo=9999-12-31T23:59:59Z&installments=x")
	f.Add("limit=5&limit=6&%00=1&name=%ff")
	f.Fuzz(func(t *testing.T, query string) {
		m := newMock(t)
		m.create(charge())
		r := httptest.NewRequest(http.MethodGet, "/v2/transactions", nil)
		r.URL.RawQuery = query
		r.Header.Set("Apikey", key)
		w := httptest.NewRecorder()
		m.api.ServeHTTP(w, r)
		require.True(t, json.Valid(w.Body.Bytes()))
		require.Contains(t, []int{http.StatusOK, http.StatusUnprocessableEntity}, w.Code, query)
	})
}

// Many clients at once: creates, payments, refunds, state changes and lists of
// one account. Afterwards everything adds up.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	m := newMock(t)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() { m.busy(rand.New(rand.NewPCG(uint64(worker), 1)), worker) })
	}
	wg.Wait()

	var worth, balance int64
	count := map[string]int{}
	m.account().View(func(d *store.Data) {
		balance = d.Balance
		for _, tx := range d.Transactions.All(store.Query[engine.Transaction]{}) {
			count[tx.Status]++
			assert.LessOrEqual(t, tx.RefundedAmount, tx.PaidAmount)
			if tx.Status != "chargedback" {
				worth += tx.PaidAmount - tx.RefundedAmount
			}
		}
	})
	assert.Equal(t, worth, balance, "the balance adds up to the cent")
	total := 0
	for status, n := range count {
		assert.InDelta(t, n, m.call(http.MethodGet, "/v2/transactions?status="+status, "").at("data.total"), 0, status)
		total += n
	}
	assert.Equal(t, 8*40, total)
}

// busy creates 40 transactions and applies an action to each.
func (m *mock) busy(r *rand.Rand, worker int) {
	for i := range 40 {
		id := m.create(card("external_ref", fmt.Sprintf(`"order-%d-%d"`, worker, i), "token", `"pgpm_ok"`))
		path := "/v2/transactions/" + id
		for range 3 {
			switch r.IntN(5) {
			case 0:
				_, _ = m.account().Transaction(id, engine.Pay)
			case 1:
				m.call(http.MethodPut, path+"/refund", fmt.Sprintf(`{"amount":%d}`, 1+r.IntN(1000)))
			case 2:
				states := strings.Fields("paid captured canceled chargedback refunded partially_refunded pending")
				m.call(http.MethodPut, path, `{"status":"`+states[r.IntN(len(states))]+`"}`)
			case 3:
				a := m.call(http.MethodGet, "/v2/transactions?limit=7&status=paid,captured", "")
				assert.Equal(m.t, http.StatusOK, a.Status)
			case 4:
				m.call(http.MethodPut, path+"/delivery", `{"tracking_code":"1"}`)
			}
		}
	}
}
