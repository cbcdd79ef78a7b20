package gateway_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
)

// serviceCall is one operation of a service, with params that match its golden
// request.
type serviceCall struct {
	op       string
	method   string
	path     string
	request  string // file under testdata; "" for no body
	response string // file under testdata
	status   int
	class    string   // "safe", "keyed" or "unsafe"
	unset    []string // fields that the answer leaves empty; see files.Filled
	run      func(context.Context, *gateway.Client, ...gateway.RequestOption) (any, error)
}

// clientOver returns a client whose every request is given to respond.
func clientOver(t *testing.T, respond httpmock.Responder, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	transport := httpmock.NewMockTransport()
	transport.RegisterNoResponder(respond)
	opts = append([]gateway.Option{
		gateway.WithHTTPClient(&http.Client{Transport: transport}),
		gateway.WithBackoff(time.Microsecond, time.Microsecond),
	}, opts...)
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), opts...)
	require.NoError(t, err)
	return client
}

func testServiceCalls(t *testing.T, calls []serviceCall) {
	t.Helper()
	for _, c := range calls {
		t.Run(c.response, func(t *testing.T) {
			t.Parallel()
			c.testRequest(t)
			c.testAnswer(t)
			c.testUnreadableAnswer(t)
			checkFailures(t, c.op, c.method+" "+c.path, c.class != "safe", func(ctx context.Context, client *gateway.Client) error {
				_, err := c.run(ctx, client)
				return err
			})
		})
	}
}

func (c serviceCall) testRequest(t *testing.T) {
	t.Helper()
	e := answerOf(t, c.status, c.response)
	_, err := c.run(t.Context(), clientOver(t, e.Respond))
	require.NoError(t, err)
	sent := e.Only(t)
	assert.Equal(t, c.method, sent.Method)
	assert.Equal(t, c.path, sent.Path)
	assert.Empty(t, sent.Query)
	assertSent(t, sent, c.request)
}

// testAnswer checks that the golden answer fills every field, and that it and
// one of a later version come out of decode and encode whole.
func (c serviceCall) testAnswer(t *testing.T) {
	t.Helper()
	body := golden(t, c.response)
	for _, answer := range [][]byte{body, files.Scramble(t, body)} {
		e := &files.Exchange{Status: c.status, Body: answer}
		got, err := c.run(t.Context(), clientOver(t, e.Respond))
		require.NoError(t, err)
		files.Filled(t, got, c.unset...)
		for _, marshal := range []func(any) ([]byte, error){stdjson.Marshal, marshalV2} {
			encoded, err := marshal(got)
			require.NoError(t, err)
			files.Keeps(t, files.Data(t, answer), encoded)
		}
	}
}

func marshalV2(v any) ([]byte, error) { return json.Marshal(v) }

// testUnreadableAnswer checks that a write whose 2xx can't be read is never
// taken for one that failed.
func (c serviceCall) testUnreadableAnswer(t *testing.T) {
	t.Helper()
	for _, body := range []string{
		"", "null", "<html>ok</html>", `{"success":true,"data":{"id":"r-1","status":"paid","am`, `{"success":true}`,
		`{"success":true,"data":{}}`, `{"success":true,"data":[]}`,
	} {
		e := &files.Exchange{Status: c.status, Body: []byte(body)}
		_, err := c.run(t.Context(), clientOver(t, e.Respond), gateway.NoRetry())
		require.Error(t, err, body)
		assert.Equal(t, c.class != "safe", errors.Is(err, gateway.ErrOutcomeUnknown), body)
		if outcome, ok := errors.AsType[*gateway.OutcomeError](err); ok && strings.Contains(body, "r-1") {
			assert.Equal(t, "r-1", outcome.ResourceID)
			assert.Equal(t, "paid", outcome.ResourceStatus)
		}
	}
}

// refusedUnsent checks that a call breaks the rule of a member, before
// anything is sent.
func refusedUnsent(t *testing.T, op, field string, run func(*gateway.Client) error) {
	t.Helper()
	e := &files.Exchange{Status: http.StatusOK, Body: []byte(`{"data":{}}`)}
	err := run(clientOver(t, e.Respond))
	require.ErrorIs(t, err, gateway.ErrValidation)
	refused, ok := errors.AsType[*gateway.ValidationError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, op, refused.Op)
	if assert.Len(t, refused.Fields, 1, "%v", err) {
		assert.Equal(t, field, refused.Fields[0].Field)
	}
	assert.Empty(t, e.Requests(), "nothing may be sent")
}

// script is what the requests of one client must be, in turn, and how each is
// answered.
type script []step

type step struct {
	asked  string // "GET /path?query"
	status int    // of the answer; 0 loses it
	body   string
}

// answer is a step that is answered.
func answer(asked string, status int, body string) step { return step{asked, status, body} }

// lose is a step that may have been applied and whose answer is lost.
func lose(asked string) step { return step{asked: asked} }

// client returns a client whose requests must be those of the script.
func (s script) client(t *testing.T) *gateway.Client {
	t.Helper()
	next := 0
	t.Cleanup(func() { assert.Equal(t, len(s), next, "the steps that were asked for") })
	return clientOver(t, func(r *http.Request) (*http.Response, error) {
		asked := r.Method + " " + r.URL.RequestURI()
		if next == len(s) {
			return nil, errors.New("a request too many: " + asked)
		}
		step := s[next]
		next++
		assert.Equal(t, step.asked, asked)
		if step.status == 0 {
			return nil, errors.New("connection reset by peer")
		}
		e := files.Exchange{Status: step.status, Body: []byte(step.body)}
		return e.Respond(r)
	})
}
