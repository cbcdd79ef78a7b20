package mockserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/explore"
	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/snapfile"
)

// raw sends a request of the interface and returns its status and its body.
func raw(t *testing.T, gw *mockserver.Server, method, path, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Apikey", gw.Key())
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := gw.Transport().RoundTrip(r)
	require.NoError(t, err, "%s %s", method, path)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var v map[string]any
	_ = json.Unmarshal(text, &v) // the caller checks the status
	return resp.StatusCode, v
}

// everything returns a server that has every kind of resource, with as many members set as
// possible.
func everything(t *testing.T) *mockserver.Server {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithSeed(5), mockserver.WithDialect(mockserver.Live), mockserver.WithLenient())
	serveHosts(gw, http.StatusServiceUnavailable)
	_, err := gw.Account(gw.Key()).Webhooks.AddEndpoint(mockserver.Endpoint{
		URL: "https://shop.test/hooks", Secret: gateway.NewSecret("whsec_0123456789"), Events: []string{"transaction.paid", "subscription.*"},
	})
	require.NoError(t, err)
	require.NoError(t, gw.Faults.Add(mockserver.DelayWebhook(time.Minute).Nth(2)))
	var customer, id string
	golden := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../testdata", name+".request.json"))
		require.NoError(t, err)
		return strings.ReplaceAll(string(text), "019416f1-8a00-7c3e-9d51-6b0f4e2a7c10", customer)
	}
	do := func(method, to, body string, headers ...string) map[string]any {
		status, v := raw(t, gw, method, to, body, headers...)
		require.Less(t, status, 300, "%s %s: %v", method, to, v)
		data, _ := v["data"].(map[string]any)
		if data["id"] != nil {
			id = fmt.Sprint(data["id"])
		}
		return data
	}
	do(http.MethodPost, "/v2/customers", golden("customers/create"))
	customer = id
	do(http.MethodPost, "/v2/transactions", golden("transactions/create"), "Idempotency-Key", "key-1")
	require.NoError(t, gw.Transactions.Pay(id))
	do(http.MethodPut, "/v2/transactions/"+id+"/delivery", golden("transactions/update_delivery"))
	do(http.MethodPut, "/v2/transactions/"+id+"/refund", `{"amount":100}`)
	do(http.MethodPost, "/v2/transactions", golden("transactions/create_card")) // in a challenge
	do(http.MethodPost, "/v2/transactions", golden("transactions/create_voucher"))
	do(http.MethodPost, "/v2/transactions", strings.NewReplacer("pgct_3ds_7f3a91", "pgct_refused_1", "order-1004", "order-1005").Replace(golden("transactions/create_card")))
	do(http.MethodPost, "/v2/transfers", golden("transfers/create"))
	for _, body := range []string{golden("subscriptions/create"), golden("subscriptions/create_trial"), golden("subscriptions/create_pix_automatic")} {
		do(http.MethodPost, "/v2/subscriptions", strings.ReplaceAll(body, "pgct_ok_4242", "pgct_ok_"+fmt.Sprint(len(body))))
	}
	require.NoError(t, gw.Subscriptions.Authorize(id))
	do(http.MethodPost, "/v2/subscriptions", strings.NewReplacer("pgct_ok_4242", "pgct_renewal_fails_2_x", "sub-order-17", "sub-20").Replace(golden("subscriptions/create")))
	link := do(http.MethodPost, "/v2/checkout-links", strings.ReplaceAll(golden("checkout_links/create"), `"price": 0`, `"price": 1`))
	slug := path.Base(fmt.Sprint(link["url"]))
	session := do(http.MethodGet, "/v2/checkout/"+slug, "")
	token := fmt.Sprint(session["session_token"])
	do(http.MethodPatch, "/v2/checkout/"+slug+"/session", golden("checkout_sessions/update"), "X-Checkout-Session-Token", token)
	require.NoError(t, gw.Checkout.Begin(slug))
	do(http.MethodPost, "/v1/business/integration", golden("legacy/configure_integration"))
	do(http.MethodPost, "/pix/v1/payment", golden("legacy/create_pix_payment"))
	require.NoError(t, gw.Clock.Advance(34*24*time.Hour)) // the second subscription is past due
	do(http.MethodPost, "/v2/transactions", strings.NewReplacer("pgct_3ds_7f3a91", "pgct_3ds_2", "order-1004", "order-8").Replace(golden("transactions/create_card")))
	do(http.MethodPost, "/v2/transactions", strings.ReplaceAll(golden("transactions/create"), "order-1001", "order-7"), "Idempotency-Key", "key-2")
	require.NoError(t, gw.Transactions.SettleFor(id, 3815))
	gw.Account(gw.Key()).Webhooks.Hold()
	require.NoError(t, gw.Transactions.Pay(id))
	require.NoError(t, gw.Wait(t.Context()))
	return gw
}

// serveHosts serves the hosts of the webhooks in memory.
func serveHosts(gw *mockserver.Server, status int) {
	for _, host := range []string{"shop.example.com", "shop.example", "shop.test"} {
		gw.Webhooks.ServeHost(host, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	}
}

// member is a member of a stored type, where it occurs in a snapshot.
type member struct {
	name string // "Subscription.IntervalCount"
	of   reflect.Type
	set  func(value any) // of its JSON
	was  any
}

// membersOf lists the members of the stored types in a snapshot's JSON. seen counts the
// occurrences of each.
func membersOf(name string, of reflect.Type, value any, set func(any), visit func(member)) {
	if name != "" {
		visit(member{name, of, set, value})
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch v := value.(type) {
	case map[string]any:
		if of.Kind() == reflect.Map {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				membersOf(name+"[]", of.Elem(), v[key], func(to any) { v[key] = to }, visit)
			}
			return
		}
		for f := range of.Fields() {
			switch field, found := v[f.Name]; {
			case f.Anonymous:
				membersOf("", f.Type, value, set, visit)
			case found:
				membersOf(of.Name()+"."+f.Name, f.Type, field, func(to any) { v[f.Name] = to }, visit)
			}
		}
	case []any:
		for i := range v {
			membersOf(name+"[]", of.Elem(), v[i], func(to any) { v[i] = to }, visit)
		}
	}
}

// damagesOf returns the values that a crafted file may have for a member.
func damagesOf(m member) map[string]any {
	values := map[string]any{"null": nil}
	t := m.of
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		maps.Copy(values, map[string]any{"zero": "0001-01-01T00:00:00Z", "past": "1000-01-01T00:00:00Z", "future": "9999-12-31T23:59:59Z"})
	case t.Kind() == reflect.String:
		maps.Copy(values, map[string]any{"empty": "", "unknown": "nonsense"})
	case t.Kind() == reflect.Bool:
		values["other"] = m.was != true
	case t.Kind() == reflect.Float64:
		maps.Copy(values, map[string]any{"negative": -1, "huge": 1e300})
	case reflect.Int <= t.Kind() && t.Kind() <= reflect.Uint64:
		maps.Copy(values, map[string]any{"zero": 0, "negative": -1, "huge": int64(math.MaxInt64)})
	case t.Kind() == reflect.Slice:
		values["empty"] = []any{}
		if list, ok := m.was.([]any); ok {
			values["twice"] = slices.Concat(list, list)
			values["null in it"] = slices.Concat(list, []any{nil})
		}
	default:
		values["empty"] = map[string]any{}
	}
	return values
}

// TestRestoreChecksEachMember damages each member of each stored type in each way, with a
// valid checksum. The server either rejects the file with an error that names the member,
// or works: a year passes, and everything can be listed. Without FULL_SIZE each member is
// damaged in one of the ways, and 40 days pass.
func TestRestoreChecksEachMember(t *testing.T) {
	t.Parallel()
	const perMember = 1 // occurrences that are damaged
	intact, err := everything(t).Snapshot()
	require.NoError(t, err)
	file, err := snapfile.Open(intact)
	require.NoError(t, err)
	parse := func() (state any) {
		d := json.NewDecoder(bytes.NewReader(file.State))
		d.UseNumber()
		require.NoError(t, d.Decode(&state))
		return state
	}
	occurrences, byName := 0, map[string]int{}
	chosen := []int{}
	membersOf("", mockserver.SnapshotType, parse(), nil, func(m member) {
		if m.was != nil && byName[m.name] < perMember {
			byName[m.name]++
			chosen = append(chosen, occurrences)
		}
		occurrences++
	})
	for name := range membersOfType(mockserver.SnapshotType) {
		assert.NotZero(t, byName[name], "the server of this test has no %s", name)
	}
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			gw := mockserver.Run(t, mockserver.WithSeed(5), mockserver.WithDialect(mockserver.Live), mockserver.WithLenient())
			serveHosts(gw, http.StatusOK)
			state := parse()
			var all []member
			membersOf("", mockserver.SnapshotType, state, nil, func(m member) { all = append(all, m) })
			for i, n := range chosen {
				if i%parts != part || (testing.Short() || fullSize()) && !explore.Sampled(i/parts) {
					continue
				}
				target := all[n]
				values := damagesOf(target)
				hows := slices.Sorted(maps.Keys(values))
				if !fullSize() {
					hows = hows[i%len(hows):][:1]
				}
				for _, how := range hows {
					value := values[how]
					if reflect.DeepEqual(value, target.was) {
						continue
					}
					target.set(value)
					text, err := json.Marshal(state)
					target.set(target.was)
					require.NoError(t, err)
					damaged, err := snapfile.Seal(file, json.RawMessage(text))
					require.NoError(t, err)
					works(t, gw, target.name, how, damaged)
				}
			}
		})
	}
}

// works tests one damaged file.
func works(t *testing.T, gw *mockserver.Server, name, how string, file []byte) {
	t.Helper()
	what := name + " " + how
	if err := gw.Restore(file); err != nil {
		last := strings.TrimRight(name[strings.LastIndex(name, ".")+1:], "s[]")
		assert.ErrorIs(t, err, mockserver.ErrSnapshot, what)
		assert.Contains(t, strings.ToLower(err.Error()), strings.ToLower(last), what)
		return
	}
	days := 40
	if fullSize() {
		days = 365
	}
	require.NoError(t, gw.Clock.Advance(time.Duration(days)*24*time.Hour), what)
	for _, list := range []string{
		"/v2/transactions", "/v2/customers", "/v2/transfers", "/v2/subscriptions", "/__mock/deliveries", "/__mock/endpoints", "/__mock/clock/timers",
		"/v1/account/balance", "/__mock/metrics",
	} {
		status, v := raw(t, gw, http.MethodGet, list, "")
		assert.Less(t, status, 500, "%s: %s: %v", what, list, v)
		items, _ := v["data"].([]any)
		for _, item := range items {
			of, _ := item.(map[string]any)
			status, v := raw(t, gw, http.MethodGet, list+"/"+fmt.Sprint(of["id"]), "")
			assert.Less(t, status, 500, "%s: %s: %v", what, list, v)
		}
	}
}

// membersOfType lists the members of the stored types.
func membersOfType(of reflect.Type) map[string]bool {
	names := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			if seen[of] || of == reflect.TypeFor[time.Time]() {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				if name := of.Name() + "." + f.Name; name == "Change.Events" || name == "Change.Timers" || name == "Snapshot.Mixture" {
					continue // not in such a file
				}
				if !f.Anonymous && f.Tag.Get("json") != "-" {
					names[of.Name()+"."+f.Name] = true
				}
				walk(f.Type)
			}
		default:
		}
	}
	walk(of)
	return names
}
