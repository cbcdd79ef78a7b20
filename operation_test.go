package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

func TestOperationFromContext(t *testing.T) {
	t.Parallel()
	response := responseOf(t, http.StatusOK, "checkout_sessions/update.response.json")
	var seen []gateway.Operation
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			op, ok := gateway.OperationFromContext(r.Context())
			assert.True(t, ok)
			seen = append(seen, op)
			return response.Respond(r)
		}),
	}))
	require.NoError(t, err)
	_, err = client.CheckoutSessions.Update(t.Context(), slug, sessionToken, sessionUpdate())
	require.NoError(t, err)
	assert.Equal(t, []gateway.Operation{
		{Name: "checkout_sessions.update", Method: "PATCH", Path: "/v2/checkout/{slug}/session"},
	}, seen)

	_, ok := gateway.OperationFromContext(t.Context())
	assert.False(t, ok)
}
