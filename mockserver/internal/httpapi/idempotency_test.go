package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

// idempotency-header: the header Idempotency-Key, on each operation that takes a body.
func dialectOfIdempotencyKeys(m *mock, dialect string) {
	for _, w := range writes(m.t) {
		p := w.prepare(m.t, dialect)
		p.header = append(p.header, "Idempotency-Key", "key-1")
		first := p.send(p.body)
		require.Equal(p.m.t, w.status, first.Status, "%s: %s", w.name, first.Body)
		assert.Empty(p.m.t, first.Header.Get("Idempotent-Replayed"), w.name)
		before := p.m.state()
		second := p.send(p.body)
		if dialect == "document" || w.method == http.MethodPatch {
			assert.Empty(p.m.t, second.Header.Get("Idempotent-Replayed"), w.name)
			for _, account := range p.m.state().Accounts {
				assert.Empty(p.m.t, account.Records.Responses, w.name)
			}
			continue
		}
		assert.Equal(p.m.t, first.Status, second.Status, w.name)
		assert.Equal(p.m.t, string(first.Body), string(second.Body), w.name)
		assert.Equal(p.m.t, "true", second.Header.Get("Idempotent-Replayed"), w.name)
		assert.Equal(p.m.t, first.Header.Get("ETag"), second.Header.Get("ETag"), w.name)
		assert.NotEqual(p.m.t, first.Header.Get("X-Request-Id"), second.Header.Get("X-Request-Id"), w.name)
		assert.Equal(p.m.t, before, p.m.state(), "%s: a replay changes nothing", w.name)

		other := p.send(strings.Replace(p.body, "{", `{"another":"body",`, 1))
		assert.Equal(p.m.t, http.StatusConflict, other.Status, "%s: %s", w.name, other.Body)
		assert.Contains(p.m.t, string(other.Body), "IDEMPOTENCY_KEY_REUSED", w.name)
		assert.Equal(p.m.t, before, p.m.state(), "%s: a conflict changes nothing", w.name)
	}
}

// state is all that the accounts hold.
func (m *mock) state() store.State {
	m.t.Helper()
	state, err := m.store.State()
	require.NoError(m.t, err)
	return state
}

func TestAnIdempotencyKeyBelongsToOneRequest(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	one, two := m.create(charge()), m.create(charge())
	m.move(one, engine.Pay)
	m.move(two, engine.Pay)
	refund := func(id, body, key string) response {
		return m.call(http.MethodPut, "/v2/transactions/"+id+"/refund", body, "Content-Type", "application/json", "Idempotency-Key", key)
	}
	require.Equal(t, http.StatusOK, refund(one, `{"amount":100,"reason":"late"}`, "k").Status)
	refund(two, `{"amount":100,"reason":"late"}`, "k").problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	refund(one, `{"amount":101,"reason":"late"}`, "k").problem(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	m.call(http.MethodPost, "/v2/transactions", charge(), "Idempotency-Key", "k").plain(http.StatusConflict, "IDEMPOTENCY_KEY_REUSED")
	same := refund(one, "{ \"reason\": \"late\",\n \"amount\": 100 }", "k")
	assert.Equal(t, "true", same.Header.Get("Idempotent-Replayed"), "order and white space don't count")
	assert.InDelta(t, 100, m.get("/v2/transactions/"+one).at("data.refunded_amount"), 0)

	require.Equal(t, http.StatusOK, refund(two, "", "whole").Status)
	assert.Equal(t, "true", refund(two, "{}", "whole").Header.Get("Idempotent-Replayed"), "no body is an empty object")

	other := m.call(http.MethodPost, "/v2/transactions", charge(), "Idempotency-Key", "k", "Authorization", "Bearer sk_test_other")
	assert.Equal(t, http.StatusCreated, other.Status, "keys belong to an account")
}

func TestARejectedRequestLeavesItsIdempotencyKeyUnused(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	id := m.create(charge())
	path := "/v2/transactions/" + id + "/refund"
	m.call(http.MethodPut, path, `{"amount":0}`, "Idempotency-Key", "k").
		problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("amount", "too_small")
	m.call(http.MethodPut, path, `{"amount":10}`, "Idempotency-Key", "k").problem(http.StatusConflict, "NOT_REFUNDABLE")
	m.move(id, engine.Pay)
	assert.Equal(t, http.StatusOK, m.call(http.MethodPut, path, `{"amount":20}`, "Idempotency-Key", "k").Status)
}

func TestTheFormOfAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	for key, code := range map[string]string{
		"": "too_small", strings.Repeat("k", 256): "too_big", "clé": "invalid_string", "a\tb": "invalid_string",
	} {
		r := m.request(http.MethodPost, "/v2/transactions", charge())
		r.Header["Idempotency-Key"] = []string{key}
		m.serve(r).problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("Idempotency-Key", code)
	}
	r := m.request(http.MethodPost, "/v2/transactions", charge())
	r.Header["Idempotency-Key"] = []string{"one", "two"}
	m.serve(r).problem(http.StatusUnprocessableEntity, "VALIDATION_ERROR").field("Idempotency-Key", "invalid_string")
	for range 2 {
		long := m.call(http.MethodPost, "/v2/transactions", charge(), "Idempotency-Key", strings.Repeat("k", 255))
		assert.Equal(t, http.StatusCreated, long.Status)
	}
	assert.InDelta(t, 1, m.get("/v2/transactions").at("total"), 0)
}

func TestAnIdempotencyKeyIsStoredFor24Hours(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	pay := func() response { return m.call(http.MethodPost, "/v2/transactions", charge(), "Idempotency-Key", "k") }
	first := pay()
	require.NoError(t, m.clock.Advance(t.Context(), 24*time.Hour-1))
	assert.Equal(t, string(first.Body), string(pay().Body), "unchanged, although the charge has expired since")
	require.NoError(t, m.clock.Advance(t.Context(), 1))
	used := m.memory.Used()
	second := pay()
	assert.Empty(t, second.Header.Get("Idempotent-Replayed"))
	assert.NotEqual(t, first.text("data.id"), second.text("data.id"))
	assert.Less(t, m.memory.Used()-used, used/2, "the expired response was dropped")
	assert.Len(t, m.state().Accounts[0].Records.Responses, 1)
}

func TestConcurrentRequestsWithOneIdempotencyKeyAreExecutedOnce(t *testing.T) {
	t.Parallel()
	m := newMock(t, live)
	id := m.create(charge())
	m.move(id, engine.Pay)
	bodies := make([]string, 20)
	var wg sync.WaitGroup
	for i := range bodies {
		wg.Go(func() {
			a := m.call(http.MethodPut, "/v2/transactions/"+id+"/refund", `{"amount":10}`, "Idempotency-Key", "k")
			bodies[i] = string(a.Body)
		})
	}
	wg.Wait()
	for _, body := range bodies {
		assert.Equal(t, bodies[0], body)
	}
	assert.InDelta(t, 10, m.get("/v2/transactions/"+id).at("data.refunded_amount"), 0)
}

// A create that exceeds the memory limit changes nothing and leaves its key unused.
func TestAnIdempotencyKeyWithoutRoom(t *testing.T) {
	t.Parallel()
	m := newMock(t, live, func(_ *httpapi.Config, sc *store.Config) { sc.Memory = memlimit.New(6000) })
	var last response
	for i := 0; last.Status != http.StatusInsufficientStorage; i++ {
		require.Less(t, i, 10)
		last = m.call(http.MethodPost, "/v2/transactions", charge(), "Idempotency-Key", fmt.Sprint(i))
	}
	last.problem(http.StatusInsufficientStorage, "MEMORY_LIMIT")
	records := m.state().Accounts[0].Records
	assert.Len(t, records.Responses, len(records.Transactions))
}
