package testplane_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/contrib/mcp/testplane"
	"github.com/gateway-go/gateway/mockserver"
)

// rightSecret and wrongSecret are environment variables of this process.
const (
	rightSecret = "TESTPLANE_RIGHT_SECRET"
	wrongSecret = "TESTPLANE_WRONG_SECRET"
	planted     = "whsec_planted_right_0123456789"
	plantedToo  = "whsec_planted_wrong_0123456789"
)

func TestMain(m *testing.M) {
	if exitAs(os.Getenv(actAs)) {
		return
	}
	for name, value := range map[string]string{rightSecret: planted, wrongSecret: plantedToo} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A session as an agent would have it: create a charge, lose the response, repeat, pay; the
// webhook is rejected because of a wrong secret, and a body is invalid.
func TestASessionOfAnAgent(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			a := serve(t, version)
			hook := receive(t, plantedToo)

			status := a.do("mock_status", object{})
			assert.Equal(t, "document", status["dialect"])
			endpoint := a.do("mock_endpoint", object{"url": hook.URL + "/webhooks", "secret_env": rightSecret})
			id := str(at(endpoint, "endpoint", "id"))

			a.do("mock_fault", object{"fault": "lose-response", "on": "transactions.create", "times": 1})
			lost := a.do("mock_call", create(pix("order-1")))
			assert.Contains(t, lost["do_next"], "outcome is unknown")
			assert.Nil(t, lost["status"])
			again := a.fails("mock_call", create(pix("order-1")))
			assert.Equal(t, "DUPLICATE_EXTERNAL_REF", again["code"])
			assert.Contains(t, again["do_next"], "Don't use a new reference")

			story := a.do("story", object{"id": "order-1"})
			tx := str(story["id"])
			assert.Equal(t, "pending", story["status"])
			paid := a.do("mock_act", object{"kind": "transactions", "id": tx, "action": "pay"})
			assert.Equal(t, "paid", at(paid, "resource", "status"))
			assert.Len(t, a.mock.Account(a.mock.Key()).Requests.Find("transactions.create"), 2)

			why := a.do("why_webhook", object{"resource_id": "order-1", "kind": "transaction.paid"})
			assert.Equal(t, true, why["emitted"])
			assert.Equal(t, "signature_rejected", at(why, "diagnosis", 0, "cause"))
			assert.Equal(t, false, at(why, "diagnosis", 0, "proven"))
			why = a.do("why_webhook", object{"resource_id": "order-1", "kind": "transaction.paid", "secret_env": wrongSecret})
			assert.Equal(t, "wrong_secret", at(why, "diagnosis", 0, "cause"))
			assert.Equal(t, true, at(why, "diagnosis", 0, "proven"))
			assert.Contains(t, at(why, "diagnosis", 0, "detail"), id)
			headers, body := hook.last()
			found := a.do("diagnose_signature", object{"headers": headers, "body": body, "secret_env": wrongSecret})
			assert.Equal(t, "wrong_secret", at(found, "diagnosis", 0, "cause"))
			assert.Equal(t, true, a.do("diagnose_signature", object{"headers": headers, "body": body, "secret_env": rightSecret})["valid"])

			hook.use(planted)
			advanced := a.do("mock_advance", object{"by": "10m"})
			assert.NotEmpty(t, advanced["happened"])
			why = a.do("why_webhook", object{"resource_id": tx, "kind": "transaction.paid"})
			assert.Equal(t, "delivered", at(why, "diagnosis", 0, "cause"))
			assert.Equal(t, "yes", a.do("story", object{"id": tx})["told"])

			invalid := pix("order-2")
			invalid["amount"] = 0
			rejected := a.fails("mock_call", create(invalid))
			assert.Equal(t, object{"field": "amount", "rule": "must be at least 1", "code": "too_small"}, at(rejected, "fields", 0))
			explained := a.do("explain_rejection", object{"match": "transactions.create"})
			assert.Equal(t, rejected, at(explained, "rejected", 0, "why"))
			assert.Equal(t, at(explained, "do_next"), rejected["do_next"])
		})
	}
}

// The first call of an agent is recorded, also by a gateway that is slow to stream events.
func TestEventsAreRecordedFromTheStart(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	base, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	target, err := url.Parse(base)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: log.New(io.Discard, "", 0)}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/__mock/events" {
			<-time.After(100 * time.Millisecond)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	a := serveMock(t, gw, "2026-07-28", func(cfg *testplane.Config) { cfg.URL = slow.URL })
	a.do("mock_call", create(pix("order-1")))
	assert.NotEmpty(t, a.do("mock_events", object{"types": []string{"transition"}})["events"])
}

func TestTheToolsOfAnExperiment(t *testing.T) {
	t.Parallel()
	a := serve(t, "2026-07-28")
	taken := a.do("mock_snapshot", object{})
	created := a.do("mock_call", create(pix("order-1")))
	assert.InEpsilon(t, http.StatusCreated, created["status"], 0)
	tx := str(at(created, "response", "data", "id"))
	require.NotEmpty(t, tx)
	assert.InEpsilon(t, 1990, at(created, "response", "data", "amount"), 0)

	sample := a.do("mock_sample", object{"kind": "transaction.paid"})
	assert.Equal(t, "no_endpoint", at(sample, "deliveries", 0, "status"))
	why := a.do("why_webhook", object{"event_id": at(sample, "deliveries", 0, "event_id")})
	assert.Equal(t, "no_endpoint", at(why, "diagnosis", 0, "cause"))

	events := a.do("mock_events", object{"types": []string{"transition"}})
	assert.Equal(t, "pending", at(events, "events", -1, "transition", "to"))
	a.do("mock_advance", object{"next": true}) // the Pix expires
	next := a.do("mock_events", object{"types": []string{"transition"}, "after": events["cursor"], "wait_seconds": 5})
	assert.Equal(t, "expired", at(next, "events", 0, "transition", "to"))
	why = a.do("why_webhook", object{"resource_id": tx})
	assert.Equal(t, "transaction expired", why["resource"])
	refused := a.fails("mock_act", object{"kind": "transactions", "id": tx, "action": "pay"})
	assert.Equal(t, "INVALID_STATE", refused["code"])
	assert.Equal(t, "gateway://docs/states", refused["docs"])

	a.do("mock_fault", object{"fault": "status", "value": "503", "more": "retry-after=2", "nth": 2})
	assert.Len(t, a.do("mock_status", object{})["faults"], 1)
	a.do("mock_fault_clear", object{})
	assert.Empty(t, a.do("mock_status", object{})["faults"])

	assert.Equal(t, true, a.do("mock_snapshot", object{"restore": taken["id"]})["restored"])
	assert.Equal(t, "NOT_FOUND", a.fails("story", object{"id": tx})["code"])
	a.do("mock_call", create(pix("order-2")))
	a.do("mock_reset", object{})
	assert.Empty(t, a.do("mock_status", object{})["resources"])
}

// Each argument that is wrong gets an error that says what is right.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	a := serve(t, "2026-07-28")
	for _, row := range []struct {
		tool string
		args object
		want string
	}{
		{"mock_call", object{"method": "GET", "path": "/__mock/snapshot"}, "/v2/"},
		{"mock_call", object{"method": "GET", "path": "/v2/../__mock/snapshot"}, "/v2/"},
		{"mock_call", object{"method": "GET", "path": "/v2/nothing"}, "no such path"},
		{"mock_call", create(object{"notify_url": "https://collector.example.com/?x"}), "on this machine"},
		{"mock_act", object{"kind": "transactions", "id": "x", "action": "settle"}, "use one of"},
		{"mock_act", object{"kind": "transactions", "id": "x", "action": "pay", "number": 1}, "takes no number"},
		{"mock_act", object{"kind": "transactions", "id": "x", "action": "pay"}, "There is no transaction"},
		{"mock_act", object{"kind": "transactions", "id": "..", "action": "pay"}, "id must be"},
		{"mock_advance", object{}, "exactly one of"},
		{"mock_advance", object{"by": "soon"}, "duration"},
		{"mock_fault", object{"fault": "status", "value": "9000"}, "status must be"},
		{"mock_endpoint", object{"url": "https://shop.example/hook"}, "on this machine"},
		{"mock_endpoint", object{"url": "http://127.0.0.1:1/", "secret_env": "TESTPLANE_NOT_SET"}, "secret_env"},
		{"mock_sample", object{"kind": "nothing"}, "kind"},
		{"why_webhook", object{}, "at least one of"},
		{"why_webhook", object{"kind": "nothing"}, "no event kind"},
		{"diagnose_signature", object{"headers": object{}, "received_at": "soon"}, "received_at"},
		{"story", object{"id": "order-9"}, "no resource"},
		{"story", object{"id": ""}, "id must be"},
		{"mock_events", object{"limit": 1000}, "limit"},
		{"mock_events", object{"wait_seconds": 60}, "wait_seconds"},
		{"mock_snapshot", object{"restore": "snap_9"}, "no snapshot"},
		{"run_exam", object{}, "-exam-command"},
	} {
		e := a.fails(row.tool, row.args)
		assert.Contains(t, e["detail"], row.want, row.tool)
		assert.NotEmpty(t, e["do_next"], row.tool)
	}
	for tool, args := range map[string]object{ // what the schema rejects
		"mock_call":        {"method": "TRACE", "path": "/v2/balance"},
		"mock_act":         {"kind": "everything", "id": "x", "action": "pay"},
		"mock_fault":       {"fault": "nothing"},
		"run_exam":         {"command": []string{"sh"}},
		"mock_fault_clear": {"idempotency_key": "x"},
	} {
		_, failed := a.try(tool, args)
		assert.True(t, failed, tool)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		a := serve(t, version)
		resources, err := a.session.ListResources(t.Context(), nil)
		require.NoError(t, err)
		uris := map[string]bool{}
		for _, r := range resources.Resources {
			uris[r.URI] = true
			if !strings.HasPrefix(r.URI, "gateway://") {
				continue // those of the mock have a test of their own
			}
			content, err := a.session.ReadResource(t.Context(), readParams(r.URI))
			require.NoError(t, err, r.URI)
			assert.Greater(t, len(content.Contents[0].Text), 1000, r.URI)
		}
		for _, uri := range []string{
			"docs/agents", "docs/errors", "docs/states", "docs/assumptions", "docs/operations", "docs/webhooks",
			"openapi/document", "openapi/live", "openapi/control",
		} {
			assert.True(t, uris["gateway://"+uri], uri)
		}
		prompts, err := a.session.ListPrompts(t.Context(), nil)
		require.NoError(t, err)
		tools := map[string]bool{}
		for _, tool := range toolsOf(t, a.session) {
			tools[tool.Name] = true
		}
		names := []string{}
		for _, p := range prompts.Prompts {
			names = append(names, p.Name)
			got, err := a.session.GetPrompt(t.Context(), promptParams(p.Name))
			require.NoError(t, err)
			text := textOf(t, got.Messages[0].Content)
			for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_", r) }) {
				if strings.HasPrefix(word, "mock_") || strings.HasPrefix(word, "why_") {
					assert.True(t, tools[word], "the prompt %s names %s", p.Name, word)
				}
			}
			for part := range strings.FieldsSeq(text) {
				if uri := strings.Trim(part, ".,;"); strings.HasPrefix(uri, "gateway://") {
					assert.True(t, uris[uri], "the prompt %s names %s", p.Name, uri)
				}
			}
		}
		assert.ElementsMatch(t, []string{"debug_webhook", "test_lost_response", "review_integration"}, names)
	}
}
