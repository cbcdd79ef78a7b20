package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/clock"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
	"github.com/gateway-go/gateway/mockserver/internal/httpapi"
	"github.com/gateway-go/gateway/mockserver/internal/ids"
	"github.com/gateway-go/gateway/mockserver/internal/memlimit"
	"github.com/gateway-go/gateway/mockserver/internal/store"
)

var noon = time.Date(2027, time.January, 4, 12, 0, 0, 0, time.UTC)

const key = "sk_test_mock"

// mock is an API with its store, clock and sender.
type mock struct {
	t      *testing.T
	api    *httpapi.API
	store  *store.Store
	memory *memlimit.Limit
	clock  *clock.Clock
	live   bool
}

// option changes the mock that newMock returns.
type option = func(*httpapi.Config, *store.Config)

func newMock(t *testing.T, change ...option) *mock {
	t.Helper()
	m := &mock{t: t}
	m.clock = clock.New(clock.Config{Start: noon, Fire: func(timer clock.Timer) error { return m.store.Fire(timer) }})
	sc := store.Config{Clock: m.clock, IDs: func(string) *ids.Source { return ids.Seeded(1) }, Sandbox: true}
	hc := httpapi.Config{Now: m.clock.Now, IDs: ids.Seeded(2)}
	for _, c := range change {
		c(&hc, &sc)
	}
	sc.Dialect, sc.Sandbox = hc.Dialect, !hc.Production
	if sc.Memory == nil {
		sc.Memory = memlimit.Unlimited()
	}
	m.memory, m.store = sc.Memory, store.New(sc)
	hc.Store, m.live = m.store, hc.Dialect == spec.LiveDialect
	m.api = httpapi.New(hc)
	return m
}

func document(*httpapi.Config, *store.Config)        {}
func live(hc *httpapi.Config, _ *store.Config)       { hc.Dialect = spec.LiveDialect }
func lenient(hc *httpapi.Config, _ *store.Config)    { hc.Lenient = true }
func production(hc *httpapi.Config, _ *store.Config) { hc.Production = true }
func limited(_ *httpapi.Config, sc *store.Config)    { sc.Memory = memlimit.New(4000) }

// response is the response to a call.
type response struct {
	t      *testing.T
	Status int
	Header http.Header
	Body   []byte

	problems string // the content type of problems
}

// call sends a request with the default key; header pairs replace the default
// headers, and an empty value omits one.
func (m *mock) call(method, target, body string, header ...string) response {
	m.t.Helper()
	return m.serve(m.request(method, target, body, header...))
}

func (m *mock) request(method, target, body string, header ...string) *http.Request {
	m.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	return r
}

func (m *mock) serve(r *http.Request) response {
	m.t.Helper()
	w := httptest.NewRecorder()
	m.api.ServeHTTP(w, r)
	a := response{t: m.t, Status: w.Code, Header: w.Header(), Body: w.Body.Bytes(), problems: "application/problem+json"}
	if m.live && r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/delivery") { // delivery-errors
		a.problems = "application/json"
	}
	return a
}

// unknownID is well formed, but no resource has it.
const unknownID = "01945f2c-0000-7000-8000-000000000000"

func (m *mock) account() *store.Account { return m.store.Account(key) }

// create posts a transaction and returns its id.
func (m *mock) create(body string) string {
	m.t.Helper()
	a := m.call(http.MethodPost, "/v2/transactions", body)
	require.Equal(m.t, http.StatusCreated, a.Status, string(a.Body))
	return a.text("data.id")
}

// move runs a transition as the control plane would.
func (m *mock) move(id string, do store.Transition[engine.Transaction]) {
	m.t.Helper()
	_, refusal := m.account().Transaction(id, do)
	require.Nil(m.t, refusal)
}

// at returns the value at a path of member names and positions: "data.id",
// "errors.0.field".
func (a response) at(path string) any {
	a.t.Helper()
	var v any
	require.NoError(a.t, json.Unmarshal(a.Body, &v), string(a.Body))
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			var found bool
			v, found = in[name]
			require.True(a.t, found, "no %s in %s", path, a.Body)
		case []any:
			require.Len(a.t, name, 1)
			i := int(name[0] - '0')
			require.Less(a.t, i, len(in), "no %s in %s", path, a.Body)
			v = in[i]
		default:
			require.Fail(a.t, "no "+path, string(a.Body))
		}
	}
	return v
}

func (a response) text(path string) string {
	a.t.Helper()
	s, ok := a.at(path).(string)
	require.True(a.t, ok, "%s is not a string in %s", path, a.Body)
	return s
}

// keysOfBody returns the body's member names.
func (a response) keysOfBody() []string {
	a.t.Helper()
	var body map[string]any
	require.NoError(a.t, json.Unmarshal(a.Body, &body))
	return slices.Collect(maps.Keys(body))
}

// keys returns the member names of the object at a path.
func (a response) keys(path string) []string {
	a.t.Helper()
	object, ok := a.at(path).(map[string]any)
	require.True(a.t, ok)
	return slices.Collect(maps.Keys(object))
}

// problem checks that the response is a complete problem body.
func (a response) problem(status int, code string) response {
	a.t.Helper()
	require.Equal(a.t, status, a.Status, string(a.Body))
	assert.Equal(a.t, a.problems, a.Header.Get("Content-Type"))
	assert.NotEmpty(a.t, a.Header.Get("X-Request-Id"))
	assert.InDelta(a.t, status, a.at("status"), 0)
	assert.Equal(a.t, code, a.at("code"))
	for _, name := range []string{"type", "title", "detail", "instance"} {
		assert.NotEmpty(a.t, a.text(name), name)
	}
	return a
}

// field checks that exactly one member was rejected.
func (a response) field(name, code string) {
	a.t.Helper()
	errors, ok := a.at("errors").([]any)
	require.True(a.t, ok)
	require.Len(a.t, errors, 1, string(a.Body))
	assert.Equal(a.t, name, a.at("errors.0.field"), string(a.Body))
	assert.Equal(a.t, code, a.at("errors.0.code"), string(a.Body))
	assert.NotEmpty(a.t, a.text("errors.0.message"))
}

// charge returns a complete request; members replace its own, or remove them if
// "": charge("amount", "5", "token", `"pgct_ok"`).
func charge(members ...string) string {
	order := []string{"external_ref", "amount", "method", "buyer", "products"}
	body := map[string]string{
		"amount": "1000", "method": `"pix"`,
		"buyer":    `{"name":"Ana","email":"ana@example.com","document":{"type":"CPF","number":"52998224725"}}`,
		"products": `[{"name":"Book","price":1000}]`,
	}
	for i := 0; i+1 < len(members); i += 2 {
		if _, known := body[members[i]]; !known && members[i] != "external_ref" {
			order = append(order, members[i])
		}
		body[members[i]] = members[i+1]
	}
	var parts []string
	for _, name := range order {
		if body[name] != "" {
			parts = append(parts, `"`+name+`":`+body[name])
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// card is charge by credit card.
func card(members ...string) string {
	return charge(append([]string{"method", `"credit_card"`, "token", `"pgpm_ok"`}, members...)...)
}

// member returns the JSON text of a member of the body.
func member(a response, name string) []byte {
	a.t.Helper()
	var body map[string]json.RawMessage
	require.NoError(a.t, json.Unmarshal(a.Body, &body), string(a.Body))
	return body[name]
}

// refusalOf returns only the error of [store.Account.Apply].
func refusalOf(_ engine.Change, refusal *engine.Refusal) *engine.Refusal { return refusal }
