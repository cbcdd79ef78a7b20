package mockserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver"
)

func TestEndpointsAreLimited(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	const endpoint = `{"url":"http://127.0.0.1:9/"}`
	for range 1000 {
		do[any](p, http.MethodPost, "/endpoints", endpoint)
	}
	status, problem := p.call(http.MethodPost, "/endpoints", endpoint)
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "TOO_MANY_ENDPOINTS", problem["code"])
	assert.Contains(t, problem["detail"], "1000 endpoints")
	assert.PanicsWithError(t, "mockserver: endpoint: the gateway has reached its limit of 1000 endpoints: remove one or reset an account",
		func() { gw.Webhooks.Send(http.NotFoundHandler()) }, "a receiver that is not registered must not go unnoticed")
	assert.Len(t, gw.Webhooks.Endpoints(), 1000)

	do[any](p, http.MethodDelete, "/endpoints/ep_1", "")
	do[any](p, http.MethodPost, "/endpoints", endpoint)
}

func TestALongEndpointIsRejected(t *testing.T) {
	t.Parallel()
	p := plane{t: t, gw: mockserver.Run(t)}
	for _, long := range []string{
		fmt.Sprintf(`{"url":"http://127.0.0.1:9/","secret":%q}`, strings.Repeat("s", 16<<10+1)),
		fmt.Sprintf(`{"url":"http://127.0.0.1:9/","events":[%q]}`, strings.Repeat("s", 16<<10+1)),
		`{"url":"http://127.0.0.1:9/","events":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`,
		fmt.Sprintf(`{"url":"http://127.0.0.1:9/","signature_header":%q}`, strings.Repeat("s", 16<<10+1)),
	} {
		status, problem := p.call(http.MethodPost, "/endpoints", long)
		assert.Equal(t, http.StatusBadRequest, status, long[:60])
		assert.Contains(t, problem["detail"], "16 KiB")
	}
	do[any](p, http.MethodPost, "/endpoints", `{"url":"http://127.0.0.1:9/","secret":"whsec_s_0001"}`)
	status, _ := p.call(http.MethodPost, "/endpoints/ep_1/rotate", fmt.Sprintf(`{"secret":%q}`, strings.Repeat("s", 16<<10+1)))
	assert.Equal(t, http.StatusBadRequest, status, "a rotation has the same limit")
}

func TestWaitingFaultsAreLimited(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	const fault = `{"fault":"status=503","on":"transfers.create"}`
	for range 1000 {
		do[any](p, http.MethodPost, "/faults", fault)
	}
	status, problem := p.call(http.MethodPost, "/faults", fault)
	assert.Equal(t, http.StatusConflict, status)
	assert.Equal(t, "TOO_MANY_FAULTS", problem["code"])
	require.ErrorContains(t, gw.Webhooks.Drop("transaction.paid"), "1000 pending faults")

	gw.Faults.Clear()
	require.NoError(t, gw.Webhooks.Drop("transaction.paid"))
	status, problem = p.call(http.MethodPost, "/faults", fmt.Sprintf(`{"fault":"status=503","on":"/v2/{%s}"}`, strings.Repeat("x", 300)))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, problem["detail"], "at most 256")
}

// A long-running test adds one-time faults without end.
func TestFinishedFaultsMakeRoomForNewOnes(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	require.NoError(t, gw.Faults.Add(mockserver.Status(503).On("transfers.create")))
	client := gw.Client()
	for range 1100 {
		require.NoError(t, gw.Faults.Add(mockserver.Status(404).On("customers.get").Times(1)))
		_, err := client.Customers.Get(t.Context(), "01945f2c-0000-7000-8000-000000000000")
		require.Error(t, err)
	}
	reports := gw.Faults.Reports()
	assert.Len(t, reports, 1000)
	assert.Zero(t, reports[0].Fired, "one that has not fired yet stays, however old")
	assert.Equal(t, 1, reports[999].Fired)
}
