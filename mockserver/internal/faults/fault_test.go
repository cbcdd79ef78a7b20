package faults_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/faults"
)

func TestParseAndString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]faults.Fault{
		"status=503":                        {Kind: faults.Status, Status: 503},
		"status=503; retry-after=2":         {Kind: faults.Status, Status: 503, RetryAfter: 2 * time.Second},
		"status=429; retry-after=0.5":       {Kind: faults.Status, Status: 429, RetryAfter: time.Second / 2},
		"status=422; body=titled; code=A":   {Kind: faults.Status, Status: 422, Body: faults.BodyTitled, Code: "A"},
		"status=500; body=coded":            {Kind: faults.Status, Status: 500, Body: faults.BodyCoded},
		"status=500; applied":               {Kind: faults.Status, Status: 500, Applied: true},
		"status=503; latency=1s":            {Kind: faults.Status, Status: 503, Latency: time.Second},
		"latency=800ms":                     {Kind: faults.Slow, Latency: 800 * time.Millisecond},
		"reset-before":                      {Kind: faults.ResetBefore},
		"lose-response":                     {Kind: faults.LoseResponse},
		"truncate":                          {Kind: faults.Truncate},
		"empty-body":                        {Kind: faults.EmptyBody},
		"html-page; status=502":             {Kind: faults.HTMLPage, Status: 502},
		"bad-json":                          {Kind: faults.BadJSON},
		"hang-until-timeout":                {Kind: faults.Hang},
		"unknown-enum":                      {Kind: faults.UnknownEnum},
		"extra-field":                       {Kind: faults.ExtraField},
		"stale-read":                        {Kind: faults.StaleRead},
		"lag=1m30s":                         {Kind: faults.Lag, Behind: 90 * time.Second},
		"shape=fee-text,masked":             {Kind: faults.Shape, Forms: "fee-text,masked"},
		"shape-webhook=kind-in-event":       {Kind: faults.ShapeWebhook, Forms: "kind-in-event"},
		"drop-webhook":                      {Kind: faults.DropWebhook},
		"duplicate-webhook":                 {Kind: faults.DuplicateWebhook},
		"delay-webhook=1h0m0s":              {Kind: faults.DelayWebhook, Delay: time.Hour},
		"corrupt-signature":                 {Kind: faults.CorruptSignature},
		"stale-timestamp":                   {Kind: faults.StaleTimestamp},
		"html-page; status=503; applied":    {Kind: faults.HTMLPage, Status: 503, Applied: true},
		"hang-until-timeout; latency=100ms": {Kind: faults.Hang, Latency: 100 * time.Millisecond},
	} {
		got, err := faults.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, text, got.String())
		again, err := faults.Parse(got.String())
		require.NoError(t, err, got.String())
		assert.Equal(t, want, again, got.String())
	}
	for text, want := range map[string]faults.Fault{
		"html-page":                 {Kind: faults.HTMLPage, Status: 502},
		"latency=1s ; status=500 ;": {Kind: faults.Status, Status: 500, Latency: time.Second},
		"STATUS = 500":              {Kind: faults.Status, Status: 500},
		"delay-webhook=2d":          {Kind: faults.DelayWebhook, Delay: 48 * time.Hour},
		"code=A; status=409":        {Kind: faults.Status, Status: 409, Code: "A"},
		"status=429;retry-after=2s": {Kind: faults.Status, Status: 429, RetryAfter: 2 * time.Second},
	} {
		got, err := faults.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "lose-response", // the list of faults
		";":                             "must be named",
		"status":                        "status",
		"status=99":                     "200 to 599",
		"status=600":                    "200 to 599",
		"html-page; status=99":          "200 to 599",
		"status=abc":                    "abc",
		"status=500; body=xml":          `not "xml"`,
		"status=500; lose-response":     "only one fault",
		"latency":                       "latency",
		"latency=fast":                  "fast",
		"latency=-1s":                   "above zero",
		"lose-response=1":               "takes no value",
		"explode":                       `"explode" is unknown`,
		"status=500; retry_after=1":     "status has no such member; use one of applied, retry-after",
		"status=409; code=":             "needs a value",
		"status=409; code=no funds":     "capital letters",
		"status=409; code=é":            "capital letters",
		"lose-response; code=A":         "only status has",
		"html-page; code=A":             "only status has",
		"truncate; body=coded":          "only status has",
		"status=409; body=html; code=A": "have a code, not html",
		"reset-before; retry-after=1":   "only status and html-page",
		"delay-webhook=0s":              "above zero",
		"drop-webhook; latency=1s":      "delay-webhook",
		"status=500; retry-after=x":     "retry-after",
		"status=500; retry-after=-1":    "retry-after",
		"status=500; retry-after=1e9":   "retry-after",
	} {
		_, err := faults.Parse(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestFaultsMatchOperations(t *testing.T) {
	t.Parallel()
	create := faults.Request{Account: "a", Operation: "transactions.create", Method: "POST", Path: "/v2/transactions"}
	refund := faults.Request{Account: "b", Operation: "transactions.refund", Method: "PUT", Path: "/v2/transactions/1/refund"}
	for on, want := range map[string][2]bool{
		"":                                 {true, true},
		"transactions.create":              {true, false},
		"transactions.*":                   {true, true},
		"POST /v2/transactions":            {true, false},
		"post /v2/transactions":            {true, false},
		"GET /v2/transactions":             {false, false},
		"PUT /v2/transactions/{id}/refund": {false, true},
		"/v2/transactions/1/refund":        {false, true},
		"/v2/transactions/2/refund":        {false, false},
		"PUT /v2/*/*/refund":               {false, true},
		"transfers.create":                 {false, false},
	} {
		for i, r := range []faults.Request{create, refund} {
			var set faults.Set
			_, err := set.Add(faults.Fault{Kind: faults.LoseResponse, On: on})
			require.NoError(t, err)
			_, hit := set.ForRequest(r)
			assert.Equal(t, want[i], hit, "%q for %s", on, r.Operation)
		}
	}
}

func TestFaultsOfAnAccountDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	var set faults.Set
	id, err := set.Add(faults.Fault{Kind: faults.ResetBefore, Account: "a"})
	require.NoError(t, err)

	_, hit := set.ForRequest(faults.Request{Account: "b"})
	assert.False(t, hit)
	_, hit = set.ForRequest(faults.Request{Account: "a"})
	assert.True(t, hit)
	assert.Empty(t, set.Reports("b"))
	assert.False(t, set.Remove("b", id))
	set.Clear("b", false)
	assert.Len(t, set.Reports("a"), 1)
	assert.True(t, set.Remove("a", id))
	assert.Empty(t, set.Reports(""))

	_, err = set.Add(faults.Fault{Kind: faults.ResetBefore, Account: "a"})
	require.NoError(t, err)
	set.Clear("", false)
	assert.Empty(t, set.Reports(""), "all accounts")
}

func TestTimesAndNth(t *testing.T) {
	t.Parallel()
	var set faults.Set
	_, err := set.Add(faults.Fault{Kind: faults.ResetBefore, Times: 2})
	require.NoError(t, err)
	_, err = set.Add(faults.Fault{Kind: faults.LoseResponse, Nth: 3})
	require.NoError(t, err)

	var hits []faults.Kind
	for range 7 {
		f, _ := set.ForRequest(faults.Request{})
		hits = append(hits, f.Kind)
	}

	assert.Equal(t, []faults.Kind{"reset-before", "reset-before", "", "", "lose-response", "", ""}, hits,
		"the second fault starts counting when the first is used up")
	assert.Equal(t, 2, set.Reports("")[0].Fired)
	assert.Equal(t, 5, set.Reports("")[1].Seen)
}

func TestProbabilityRepeatsExactly(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (hits []bool) {
		set := faults.Set{Seed: seed}
		_, err := set.Add(faults.Fault{Kind: faults.ResetBefore, Probability: 0.25})
		require.NoError(t, err)
		for range 1000 {
			_, hit := set.ForRequest(faults.Request{})
			hits = append(hits, hit)
		}
		return hits
	}
	first := run(7)
	assert.Equal(t, first, run(7))
	assert.NotEqual(t, first, run(8))
	count := 0
	for _, hit := range first {
		if hit {
			count++
		}
	}
	assert.InDelta(t, 250, count, 50)
}

func TestWebhookAndRequestFaultsAreSeparate(t *testing.T) {
	t.Parallel()
	var set faults.Set
	for _, f := range []faults.Fault{
		{Kind: faults.DuplicateWebhook, On: "transaction.paid", Times: 1},
		{Kind: faults.DropWebhook, On: "subscription.*", Times: 1},
		{Kind: faults.DelayWebhook, Delay: time.Hour, Times: 1},
		{Kind: faults.CorruptSignature, Times: 1},
		{Kind: faults.StaleTimestamp, Times: 1},
	} {
		_, err := set.Add(f)
		require.NoError(t, err)
	}
	_, hit := set.ForRequest(faults.Request{Operation: "transaction.paid"})
	assert.False(t, hit)

	assert.Equal(t, faults.DuplicateWebhook, set.ForWebhook("a", "transaction.paid").Kind)
	assert.Equal(t, faults.DropWebhook, set.ForWebhook("a", "subscription.renewed").Kind)
	assert.Equal(t, time.Hour, set.ForWebhook("a", "payout.created").Delay)
	assert.Equal(t, faults.CorruptSignature, set.ForWebhook("a", "payout.created").Kind)
	assert.Equal(t, faults.StaleTimestamp, set.ForWebhook("a", "payout.created").Kind)
	assert.Empty(t, set.ForWebhook("a", "payout.created"))
}

func TestAddRejects(t *testing.T) {
	t.Parallel()
	set := faults.Set{Known: func(webhook bool, pattern string) bool { return !webhook && pattern == "transactions.create" }}
	for _, f := range []faults.Fault{
		{},
		{Kind: faults.Status},
		{Kind: faults.Slow},
		{Kind: faults.ResetBefore, Times: -1},
		{Kind: faults.ResetBefore, Nth: -1},
		{Kind: faults.ResetBefore, Probability: 1.5},
		{Kind: faults.ResetBefore, Latency: -1},
		{Kind: faults.ResetBefore, On: "transaction.create"},
		{Kind: faults.DropWebhook, On: "transactions.create"},
	} {
		_, err := set.Add(f)
		require.Error(t, err, f)
	}
	_, err := set.Add(faults.Fault{Kind: faults.DropWebhook, On: "transactions.create"})
	require.ErrorContains(t, err, `it is a fault of webhooks, so on must be a kind of event such as transaction.paid or transaction.*; `+
		`"transactions.create" is for requests`)
	_, err = set.Add(faults.Fault{Kind: faults.ResetBefore, On: "transaction.create"})
	require.ErrorContains(t, err, `or POST /v2/transactions, not "transaction.create"`)
	_, err = set.Add(faults.Fault{Kind: faults.ResetBefore, On: "transactions.create"})
	require.NoError(t, err)
	_, err = set.Add(faults.Fault{Kind: faults.ResetBefore, Probability: 1})
	require.NoError(t, err)
	assert.Len(t, set.Reports(""), 2)
}
