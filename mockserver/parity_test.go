package mockserver_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
	"github.com/gateway-go/gateway/mockserver/internal/control"
)

// callsOf maps each method of a Go test to its control plane call, or to the
// reason why there is none. Those of resources are not here: the table of package
// control has them.
func callsOf() map[string]string {
	return map[string]string{
		"Legacy.SetStatus": "POST /legacy/payments/x/status",

		"Clock.Now":       "GET /clock",
		"Clock.Advance":   "POST /clock/advance",
		"Clock.AdvanceTo": "POST /clock/advance",
		"Clock.Next":      "POST /clock/advance",
		"Clock.Timers":    "GET /clock/timers",

		"Webhooks.Send":             "a handler in memory",
		"Webhooks.SendTo":           "a handler in memory",
		"Webhooks.ServeHost":        "a handler in memory",
		"Webhooks.AddEndpoint":      "POST /endpoints",
		"Webhooks.RemoveEndpoint":   "DELETE /endpoints/x",
		"Webhooks.RotateSecret":     "POST /endpoints/x/rotate",
		"Webhooks.PauseEndpoint":    "POST /endpoints/x/pause",
		"Webhooks.ResumeEndpoint":   "POST /endpoints/x/resume",
		"Webhooks.SendSample":       "POST /deliveries/sample",
		"Webhooks.Endpoints":        "GET /endpoints",
		"Webhooks.Deliveries":       "GET /deliveries",
		"Webhooks.Redeliver":        "POST /deliveries/x/redeliver",
		"Webhooks.Hold":             "POST /deliveries/hold",
		"Webhooks.Release":          "POST /deliveries/release",
		"Webhooks.Drop":             "POST /faults",
		"Webhooks.Duplicate":        "POST /faults",
		"Webhooks.Delay":            "POST /faults",
		"Webhooks.CorruptSignature": "POST /faults",
		"Webhooks.StaleTimestamp":   "POST /faults",
		"Webhooks.ClearFaults":      "DELETE /deliveries/faults",

		"Faults.Add":     "POST /faults",
		"Faults.Clear":   "DELETE /faults",
		"Faults.Reports": "GET /faults",

		"Requests.All":        "GET /requests",
		"Requests.Find":       "GET /requests",
		"Requests.Count":      "GET /requests",
		"Requests.NearMisses": "GET /requests",
		"Requests.Clear":      "DELETE /requests",
		"Requests.Wait":       "POST /requests/wait?timeout=0s",
		"Requests.InFlight":   "GET /requests",

		"Server.Wait":        "POST /deliveries/wait",
		"Account.Wait":       "POST /deliveries/wait",
		"Account.Events":     "GET /events",
		"Account.Client":     "in memory",
		"Account.RevokeKey":  "POST /key/revoke",
		"Account.RestoreKey": "POST /key/restore",
		"Account.ReplaceKey": "POST /key/replace",
		"Server.Events":      "GET /events",
		"Server.Down":        "POST /down",
		"Server.Up":          "POST /up",
		"Server.Seed":        "POST /seed",
		"Server.Seeded":      "GET /seed",
		"Server.Snapshot":    "GET /snapshot",
		"Server.Restore":     "PUT /snapshot",
		"Server.Account":     "the credential of a call chooses the account",
		"Server.Key":         "the mockgateway prints it",
		"Server.Secret":      "an endpoint has its own",
		"Server.Client":      "in memory",
		"Server.Transport":   "in memory",
		"Server.Handler":     "in memory",
		"Server.Listen":      "the mockgateway listens",
		"Server.Close":       "a signal ends the mockgateway",
	}
}

// Tests in other languages have the same features as Go tests: every control
// has a call.
func TestEachControlHasACall(t *testing.T) {
	t.Parallel()
	var controls []string
	add := func(name string, of reflect.Type) {
		for m := range of.Methods() {
			if m.Name != "Format" { // for printing with package fmt
				controls = append(controls, name+"."+m.Name)
			}
		}
	}
	server := reflect.TypeFor[mockserver.Server]()
	add("Server", reflect.PointerTo(server))
	add("Account", reflect.TypeFor[*mockserver.Account]())
	for field := range server.Fields() {
		if field.IsExported() && !slices.Contains(tabled(), field.Name) {
			add(field.Name, field.Type)
		}
	}
	calls := callsOf()
	gw := mockserver.Run(t)
	for _, control := range controls {
		require.Contains(t, calls, control, "how does a test in Python do this?")
		method, path, found := strings.Cut(calls[control], " /")
		if !found {
			continue
		}
		status, v := plane{t: t, gw: gw}.call(method, "/"+path, "")
		assert.NotEqual(t, "UNKNOWN_PATH", v["code"], control)
		assert.NotEqual(t, http.StatusMethodNotAllowed, status, control)
	}
	assert.Len(t, calls, len(controls))
}

// tabled are the fields of a server whose methods are rows of the table.
func tabled() []string { return []string{"Transactions", "Transfers", "Subscriptions", "Checkout"} }

// The table has each control of a resource in Go and no other: a name that it does not
// have makes the method panic.
func TestEachControlOfAResourceIsInTheTable(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for _, row := range control.All() {
		rows[row.Resource()]++
	}
	gw := reflect.ValueOf(mockserver.Run(t)).Elem()
	for _, name := range tabled() {
		controls := gw.FieldByName(name)
		assert.Equal(t, rows[strings.ToLower(name)], controls.NumMethod(), "%s: each row of the table of controls needs a Go method", name)
		for _, method := range controls.Methods() {
			args := []reflect.Value{reflect.ValueOf("nothing")}
			if method.Type().NumIn() == 2 {
				args = append(args, reflect.Zero(method.Type().In(1)))
			}
			err, _ := method.Call(args)[0].Interface().(error)
			unknown(t, err)
		}
		delete(rows, strings.ToLower(name))
	}
	assert.Empty(t, rows)
}
