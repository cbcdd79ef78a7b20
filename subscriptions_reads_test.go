package gateway_test

import (
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// routed returns a client whose calls are answered by route, and the transport
// that counts them.
func routed(t *testing.T, answers map[string]string) (*gateway.Client, *httpmock.MockTransport) {
	t.Helper()
	transport := httpmock.NewMockTransport()
	for path, body := range answers {
		transport.RegisterResponder(http.MethodGet, baseURL+path, httpmock.NewStringResponder(http.StatusOK, body))
	}
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	return client, transport
}

const (
	incomplete = `{"success":true,"requestId":"r","data":{"id":"sub","status":"incomplete","transactions":[
		{"id":"refused","status":"refused"},{"id":"paid","status":"paid"},
		{"id":"waiting","status":"pending"},{"id":"challenged","status":"three_ds_required"}]}}`
	waiting    = `{"success":true,"requestId":"r","data":{"id":"waiting","status":"pending","next_action":null}}`
	challenged = `{"success":true,"requestId":"r","data":{"id":"challenged","status":"three_ds_required","next_action":{
		"type":"three_ds_challenge","challenge_session_id":"c-1","client_secret":"s-1","expires_at":"2027-01-04T12:15:00.000Z"}}}`
)

func TestPendingChallengeIsFoundThroughTheCharge(t *testing.T) {
	t.Parallel()
	client, transport := routed(t, map[string]string{
		"/v2/subscriptions/sub":        incomplete,
		"/v2/transactions/waiting":     waiting,
		"/v2/transactions/challenged":  challenged,
		"/v2/transactions/never-asked": waiting,
	})
	got, err := client.Subscriptions.PendingChallenge(t.Context(), "sub")
	require.NoError(t, err)
	require.NotNil(t, got)
	assert.Equal(t, "three_ds_challenge", got.Type)
	assert.Equal(t, "c-1", got.ChallengeSessionID)
	assert.Equal(t, gateway.ClientSecret("s-1"), got.ClientSecret)
	assert.Equal(t, at(t, "2027-01-04T12:15:00Z"), got.ExpiresAt)
	assert.Equal(t, 3, transport.GetTotalCallCount(), "charges that are settled or over are not read")
}

func TestPendingChallengeWithoutOne(t *testing.T) {
	t.Parallel()
	client, _ := routed(t, map[string]string{
		"/v2/subscriptions/sub": `{"success":true,"data":{"id":"sub","status":"active","transactions":[{"id":"waiting","status":"pending"}]}}`,
		"/v2/subscriptions/new": `{"success":true,"data":{"id":"new","status":"incomplete","transactions":null}}`,

		"/v2/transactions/waiting": waiting,
	})
	for _, id := range []string{"sub", "new"} {
		got, err := client.Subscriptions.PendingChallenge(t.Context(), id)
		require.NoError(t, err)
		assert.Nil(t, got)
	}
}

func TestPendingChallengeOfAChargeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	client, transport := routed(t, map[string]string{"/v2/subscriptions/sub": incomplete})
	transport.RegisterNoResponder(httpmock.NewStringResponder(http.StatusNotFound, ""))
	_, err := client.Subscriptions.PendingChallenge(t.Context(), "sub")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.ErrorContains(t, err, "transactions.get")
}

func TestSubscriptionsAllAndPages(t *testing.T) {
	t.Parallel()
	const first = `{"success":true,"data":{"data":[{"id":"s3"},{"id":"s2"}],"total":3,"next_cursor":"n1","prev_cursor":null}}`
	const last = `{"success":true,"data":[{"id":"s1"}],"total":3,"next_cursor":null,"prev_cursor":"p1"}`
	client, transport := routed(t, map[string]string{
		"/v2/subscriptions?limit=2&status=active":           first,
		"/v2/subscriptions?cursor=n1&limit=2&status=active": last,
	})
	params := gateway.SubscriptionListParams{Limit: 2, Status: gateway.SubscriptionActive}

	all := client.Subscriptions.All(t.Context(), params)
	assert.Zero(t, transport.GetTotalCallCount(), "nothing is sent before the range")
	got, err := gateway.Collect(all, 0)
	require.NoError(t, err)
	ids := make([]string, len(got))
	for i := range got {
		ids[i] = got[i].ID
	}
	assert.Equal(t, []string{"s3", "s2", "s1"}, ids)

	var sizes []int
	for page, err := range client.Subscriptions.Pages(t.Context(), params) {
		require.NoError(t, err)
		assert.Equal(t, 3, page.Total)
		sizes = append(sizes, len(page.Items))
	}
	assert.Equal(t, []int{2, 1}, sizes)

	sent := transport.GetTotalCallCount()
	for range client.Subscriptions.Pages(t.Context(), params) {
		break
	}
	assert.Equal(t, sent+1, transport.GetTotalCallCount(), "a range that stops sends nothing more")
}
