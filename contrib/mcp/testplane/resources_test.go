package testplane_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read returns the content of a resource, and records it among the results.
func (a *agent) read(uri string) object {
	a.t.Helper()
	got, err := a.session.ReadResource(a.t.Context(), readParams(uri))
	require.NoError(a.t, err, uri)
	require.Len(a.t, got.Contents, 1)
	assert.Equal(a.t, uri, got.Contents[0].URI)
	assert.Equal(a.t, "application/json", got.Contents[0].MIMEType)
	*a.seen = append(*a.seen, uri+" "+got.Contents[0].Text)
	var out object
	require.NoError(a.t, json.Unmarshal([]byte(got.Contents[0].Text), &out))
	return out
}

// readAll reads every resource of the mock, and one of each kind by its id.
func (a *agent) readAll(ids map[string]string) {
	a.t.Helper()
	listed, err := a.session.ListResources(a.t.Context(), nil)
	require.NoError(a.t, err)
	read := 0
	for _, r := range listed.Resources {
		if strings.HasPrefix(r.URI, "mock://") {
			a.read(r.URI)
			read++
		}
	}
	assert.Equal(a.t, 3, read)
	for kind, id := range ids {
		a.read("mock://" + kind + "/" + id)
	}
}

func TestTheResourcesOfTheMock(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			a := serve(t, version)
			hook := receive(t, planted)
			a.do("mock_endpoint", object{"url": hook.URL, "secret_env": rightSecret})
			tx := str(at(a.do("mock_call", create(pix("order/1"))), "response", "data", "id"))
			a.do("mock_act", object{"kind": "transactions", "id": tx, "action": "pay"})
			a.do("why_webhook", object{"resource_id": tx}) // waits for the deliveries
			invalid := pix("order-2")
			invalid["amount"] = 0
			a.fails("mock_call", create(invalid))
			customer := str(at(a.do("mock_call", object{"method": "POST", "path": "/v2/customers", "body": object{
				"name": "Ana", "email": "ana@example.com", "document": object{"type": "CPF", "number": "52998224725"},
			}}), "response", "data", "id"))
			before := len(a.mock.Account(a.mock.Key()).Requests.All())

			templates, err := a.session.ListResourceTemplates(t.Context(), nil)
			require.NoError(t, err)
			var uris []string
			for _, r := range templates.ResourceTemplates {
				uris = append(uris, r.URITemplate)
			}
			assert.ElementsMatch(t, []string{
				"mock://transaction/{id}", "mock://transfer/{id}", "mock://customer/{id}", "mock://subscription/{id}", "mock://checkout-link/{id}",
			}, uris)

			assert.Equal(t, a.do("mock_status", object{}), a.read("mock://state"))
			story := a.do("story", object{"id": tx})
			assert.Equal(t, story, a.read("mock://transaction/"+tx))
			assert.Equal(t, story, a.read("mock://transaction/order%2F1"), "a reference may have a slash")
			assert.Equal(t, customer, a.read("mock://customer/" + customer)["id"])

			requests := a.read("mock://requests")
			assert.Equal(t, "amount", at(requests, "requests", 1, "why", "fields", 0, "field"))
			assert.InEpsilon(t, http.StatusCreated, at(requests, "requests", 0, "status"), 0)
			deliveries := a.read("mock://deliveries")
			assert.Equal(t, "delivered", at(deliveries, "deliveries", -1, "status"))
			assert.InEpsilon(t, http.StatusOK, at(deliveries, "deliveries", -1, "attempts", 0, "response_status"), 0)
			assert.Len(t, a.mock.Account(a.mock.Key()).Requests.All(), before, "a read is no request of the program")

			for _, uri := range []string{
				"mock://transaction/" + customer, // another kind
				"mock://transfer/" + tx,
				"mock://transaction/nothing",
				"mock://transaction/",
				"mock://transaction/" + tx + "/",
				"mock://transaction/" + tx + "?x=1",
				"mock://transaction/..%2F..%2Fsnapshot",
				"mock://transaction/%zz",
				"mock://snapshot",
				"xmock://transaction/" + tx,
			} {
				_, err := a.session.ReadResource(t.Context(), readParams(uri))
				require.ErrorContains(t, err, "not found", uri)
			}
		})
	}
}

// A long history is cut at its beginning.
func TestTheLatestRequestsAndWebhooks(t *testing.T) {
	t.Parallel()
	a := serve(t, "2026-07-28")
	for range 60 {
		a.do("mock_call", create(pix("")))
	}
	requests := a.read("mock://requests")
	assert.Len(t, requests["requests"], 50)
	assert.InEpsilon(t, 10, requests["omitted"], 0)
	assert.InEpsilon(t, 60, at(requests, "requests", -1, "request"), 0)
	assert.Len(t, a.read("mock://deliveries")["deliveries"], 20)
}
