package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

func storeWithKey(key string) *store {
	s := &store{account: gateway.Account{Name: "shop"}}
	s.digestKey.Store(&key)
	return s
}

// PostgreSQL stores JSON in another form.
func TestADigestDependsOnTheParamsAndTheKeyOnly(t *testing.T) {
	t.Parallel()
	params, err := encode(Refund{Key: "return-17", TransactionID: "01a20000-0000-7000-8000-000000000000", Amount: 500, Reason: "é\n"})
	require.NoError(t, err)
	digest := func(key, params string) string {
		digest, err := storeWithKey(key).digest([]byte(params))
		require.NoError(t, err)
		return digest
	}
	want := digest("k", string(params))
	assert.Equal(t, want, digest("k", `{"key": "return-17", "amount": 500.0, "reason": "\u00e9\n", "transaction_id": "01a20000-0000-7000-8000-000000000000"}`))
	assert.NotEqual(t, want, digest("k", `{"key": "return-17", "amount": 501, "reason": "é\n", "transaction_id": "01a20000-0000-7000-8000-000000000000"}`))
	assert.NotEqual(t, want, digest("l", string(params)))
	assert.NotContains(t, digest("k", string(params)), "500")
	_, err = storeWithKey("k").digest([]byte(`{`))
	require.Error(t, err)
}

// What is kept has nothing that was sent or received, and is what an entry shows.
func TestWhatRemainsOfAnOperation(t *testing.T) {
	t.Parallel()
	charge := charge("order-1")
	charge.Buyer.Name = "Beatriz Nogueira"
	params, err := encode(CreateTransaction(charge))
	require.NoError(t, err)
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	r := &record{params: params, Entry: Entry{Key: "order-1"}, p: progress{
		Sends: 2, Doubts: 1, DoubtSince: at, SentAt: at, SendKey: "GUESSED", Refunded: 300, Ambiguity: "a question about BEATRIZ NOGUEIRA", LastError: "beatriz nogueira",
		Before: snapshot{Settings: &subscriptionSettings{Metadata: "Beatriz Nogueira"}}, Search: &search{Cursor: "Beatriz Nogueira"},
		Rejection: &RejectedError{Text: "Beatriz Nogueira"}, Outcome: &outcome{Value: []byte(`"Beatriz Nogueira"`)},
		History: []Note{{At: at, Text: "sending"}, {At: at, Text: "order-1 of Beatriz Nogueira: 503 Unavailable"}},
	}}
	_, progress, _, err := storeWithKey("k").remains(r)
	require.NoError(t, err)
	assert.JSONEq(t, `{"sends": 2, "ambiguity": "a question about ***", "last_error": "***", "history": [
		{"at": "2026-11-26T12:00:00Z", "text": "sending"}, {"at": "2026-11-26T12:00:00Z", "text": "order-1 of ***: 503 Unavailable"}]}`, progress)
	assert.Len(t, r.p.History, 2)
	assert.Contains(t, r.p.History[1].Text, "Beatriz", "the handler may fail: the record stays")
}
