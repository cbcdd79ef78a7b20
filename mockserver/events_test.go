package mockserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// happened formats the events so far, one per line.
func happened(t *testing.T, gw *mockserver.Server, events iter.Seq[mockserver.Event]) (lines []string) {
	t.Helper()
	gw.Down() // the last one
	for e := range events {
		if e.Fault != nil && e.Fault.Action == "down" {
			break
		}
		lines = append(lines, line(e))
	}
	gw.Up()
	return lines
}

func line(e mockserver.Event) string {
	switch {
	case e.Request != nil:
		return fmt.Sprintf("%s %s %d %s%s", e.Type, e.Request.Operation, e.Request.Status, e.Request.Code, e.Request.Fault)
	case e.Transition != nil:
		return fmt.Sprintf("%s %s -> %s by %s", e.Transition.Resource, e.Transition.From, e.Transition.To, e.Transition.Cause)
	case e.Timer != nil:
		return "timer " + e.Timer.Kind
	case e.Webhook != nil:
		return fmt.Sprintf("webhook %s to %d", e.Webhook.Kind, e.Webhook.Endpoints)
	case e.Delivery != nil:
		return fmt.Sprintf("delivery %s attempt %d: %d %s", e.Delivery.Kind, e.Delivery.Attempt, e.Delivery.Status, e.Delivery.State)
	case e.Clock != nil:
		return "clock +" + e.Clock.To.Sub(e.Clock.From).String()
	case e.Fault != nil:
		return fmt.Sprintf("fault %s %s", e.Fault.Action, e.Fault.Fault)
	case e.Reset != nil:
		return e.Reset.Cause
	}
	return string(e.Type)
}

func TestEventsOfAPayment(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	up := false
	gw.Webhooks.Send(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	events := gw.Events(t.Context())
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Wait(t.Context()))
	up = true
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Wait(t.Context()))
	require.NoError(t, gw.Clock.Advance(5*time.Second))
	require.Error(t, gw.Transactions.Pay(tx.ID), "a rejected request changes nothing")

	lines := happened(t, gw, events)
	// A delivery runs concurrently with the request.
	request := "request transactions.create 201 "
	assert.Contains(t, lines, request)
	assert.Equal(t, []string{
		"transaction  -> pending by request transactions.create",
		"webhook transaction.created to 1",
		"webhook transaction.pending to 1",
		"delivery transaction.created attempt 1: 502 pending",
		"delivery transaction.pending attempt 1: 502 pending",
		"transaction pending -> paid by control transactions/pay",
		"webhook transaction.paid to 1",
		"delivery transaction.paid attempt 1: 200 delivered",
		"timer webhook.attempt",
		"delivery transaction.created attempt 2: 200 delivered",
		"timer webhook.attempt",
		"delivery transaction.pending attempt 2: 200 delivered",
		"clock +5s",
	}, slices.DeleteFunc(lines, func(s string) bool { return s == request }))
}

// stopped returns a canceled context.
func stopped(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestEventsOfTimeFaultsAndResets(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	p := plane{t: t, gw: gw}
	client := gw.Client(gateway.WithMaxAttempts(1))
	_, err := client.Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	snapshot, err := gw.Snapshot()
	require.NoError(t, err)

	events := gw.Events(t.Context())
	require.NoError(t, gw.Clock.Advance(48*time.Hour))
	require.NoError(t, gw.Faults.Add(mockserver.Status(503).On("transactions.create").Times(1)))
	_, err = client.Transactions.Create(t.Context(), order(""))
	require.Error(t, err)
	gw.Faults.Clear()
	require.NoError(t, gw.Restore(snapshot))
	do[object](p, http.MethodPost, "/reset", "")
	do[object](p, http.MethodGet, "/clock", "")
	status, _ := p.call(http.MethodGet, "/nonsense", "")
	assert.Equal(t, http.StatusNotFound, status)
	gw.Down()
	gw.Down()
	_, err = client.Transactions.Create(t.Context(), order(""))
	require.Error(t, err)
	gw.Up()
	assert.Equal(t, []string{
		"timer transaction.expire",
		"transaction pending -> expired by timer transaction.expire",
		"clock +48h0m0s",
		"fault added status=503",
		"fault hit status=503",
		"request transactions.create 503 MOCK_FAULTstatus=503",
		"fault removed status=503",
		"restore",
		"reset",
		"control  200 ",
		"control  404 UNKNOWN_PATH",
	}, happened(t, gw, events))
	assert.Equal(t, []string{"request  0 down"}, happened(t, gw, skip(events, "down")))
}

// skip drops the events before the first one of a fault's action.
func skip(events iter.Seq[mockserver.Event], action string) iter.Seq[mockserver.Event] {
	return func(yield func(mockserver.Event) bool) {
		found := false
		for e := range events {
			if found && (e.Fault == nil || e.Fault.Action == "down") && !yield(e) {
				return
			}
			found = found || e.Fault != nil && e.Fault.Action == action
		}
	}
}

func TestARejectedRequestNamesFieldAndRule(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		gw := mockserver.Run(t, mockserver.WithDialect(dialect))
		events := gw.Events(t.Context(), mockserver.EventRequest)
		createAs(t, gw, "sk_test_mock", `{"amount":-1,"method":"pix","buyer":{"name":"Ana","email":"a@b.test","document":{"type":"CPF","number":"12345678909"}},"products":[{"name":"x","price":1}]}`)
		for e := range events {
			assert.Equal(t, "VALIDATION_ERROR", e.Request.Code)
			assert.Equal(t, []gateway.FieldError{{Field: "amount", Message: "must be at least 1", Code: "too_small"}}, e.Request.Errors)
			assert.Equal(t, "default", e.Account)
			assert.NotEmpty(t, e.Request.ID)
			assert.Positive(t, e.Request.Duration)
			break
		}
	}
}

func TestARepeatedRequestIsReportedAsReplayed(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	events := gw.Events(t.Context(), mockserver.EventRequest)
	mustPay(t, gw)
	mustPay(t, gw)
	var replayed []bool
	for e := range events {
		if replayed = append(replayed, e.Request.Replayed); len(replayed) == 2 {
			break
		}
	}
	assert.Equal(t, []bool{false, true}, replayed)
}

// createAs posts a transaction with a key and returns the response's body.
func createAs(t *testing.T, gw *mockserver.Server, key, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v2/transactions", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	gw.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

func TestNoSecretIsInAnyEvent(t *testing.T) {
	t.Parallel()
	const (
		key, card, cpf, number = "sk_test_Zq81secret", "pgct_refused_Zq82", "12345678909", "4111111111111111"
		hook, pix, session     = "whsec_Zq83", "ana.Zq84@shop.test", "Zq85"
	)
	gw := mockserver.Run(t)
	account := gw.Account(key)
	_, err := account.Webhooks.AddEndpoint(mockserver.Endpoint{
		URL: "http://user:" + session + "@127.0.0.1:1/hooks?token=" + session, Secret: gateway.NewSecret(hook),
	})
	require.NoError(t, err)
	_, err = account.Webhooks.AddEndpoint(mockserver.Endpoint{Secret: gateway.NewSecret(hook), Handler: http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { panic("my secret is " + hook) })})
	require.NoError(t, err)
	events := gw.Events(t.Context())

	client := account.Client(gateway.WithMaxAttempts(1))
	params := order("order of " + cpf)
	params.Method, params.Token = gateway.CreditCard, card
	params.Buyer.Document = &gateway.Document{Type: gateway.CPF, Number: cpf}
	tx, err := client.Transactions.Create(t.Context(), params)
	require.NoError(t, err)
	_, err = client.Customers.Create(t.Context(), gateway.CustomerParams{
		Name: "Ana", Email: "a@b.test", ExternalRef: "customer " + cpf, Document: &gateway.Document{Type: gateway.CPF, Number: cpf},
	})
	require.NoError(t, err)
	_, err = client.Transfers.Create(t.Context(), gateway.TransferParams{
		Amount: 100, PixKeyValue: pix, PixKeyType: gateway.PixKeyEmail, ExternalRef: "to " + pix,
	})
	require.NoError(t, err)
	createAs(t, gw, key, `{"card":{"number":"`+number+`","cvv":"987"},"external_ref":"`+number+`","`+number+`":1}`)
	createAs(t, gw, "sk_live_Zq86", `{}`)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/customers/"+number+"?token="+session+"&document_number="+cpf+"&search="+cpf, nil)
	r.Header.Set("Apikey", key)
	r.Header.Set("X-Request-Id", "for-"+cpf+"-"+key)
	gw.Handler().ServeHTTP(httptest.NewRecorder(), r)
	p := plane{t: t, gw: gw, key: key}
	p.call(http.MethodPost, "/transactions/"+key+number+"/pay", "")
	p.call(http.MethodPost, "/clock/advance", `{"to":"`+key+`"}`)
	require.Error(t, account.Transactions.Pay(tx.ID))
	require.NoError(t, gw.Wait(t.Context()))

	gw.Down()
	seen := 0
	for e := range events {
		if e.Fault != nil {
			break
		}
		seen++
		text, err := json.Marshal(e)
		require.NoError(t, err)
		for _, secret := range []string{"Zq8", cpf, number} {
			assert.NotContains(t, string(text), secret)
		}
		var read mockserver.Event
		require.NoError(t, json.Unmarshal(text, &read))
		again, err := json.Marshal(read)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(again))
		assert.Equal(t, e.Request, read.Request)
	}
	assert.Greater(t, seen, 15)
}

func TestAnAccountsEventsAreItsOwn(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	north, south := gw.Account("sk_test_north"), gw.Account("sk_test_south")
	events := north.Events(t.Context())
	for _, a := range []*mockserver.Account{south, north} {
		_, err := a.Client().Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "a@b.test"})
		require.NoError(t, err)
	}
	require.NoError(t, gw.Clock.Advance(time.Second))
	assert.Equal(t, []string{
		"customer  -> active by request customers.create", "request customers.create 201 ", "clock +1s",
	}, happened(t, gw, events))
}

func TestEventsEndWithTheServerAndTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw, err := mockserver.New()
		require.NoError(t, err)
		ended := make(chan int, 2)
		count := func(ctx context.Context) {
			n := 0
			for range gw.Events(ctx) {
				n++
			}
			ended <- n
		}
		ctx, cancel := context.WithCancel(t.Context())
		go count(ctx)
		go count(t.Context())
		synctest.Wait()
		gw.Down()
		synctest.Wait()
		cancel()
		assert.Equal(t, 1, <-ended)
		gw.Up()
		require.NoError(t, gw.Close())
		assert.Equal(t, 2, <-ended)
	})
}

// A reader that stops reading blocks nothing.
func TestASlowReaderBlocksNothing(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	events := gw.Events(t.Context())
	client := gw.Client()
	for range 600 { // two events each
		_, err := client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "a@b.test"})
		require.NoError(t, err)
	}
	for e := range events {
		require.Equal(t, mockserver.EventLost, e.Type)
		assert.Equal(t, uint64(200), e.Lost.Events)
		break
	}
}

// Without readers a request costs one atomic load: it allocates no more than
// without the stream, also after a reader has left.
func TestEventsWithoutReadersAllocateNothing(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	if testing.CoverMode() != "" || raceDetector {
		t.Skip("allocations differ with the race detector")
	}
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		create := func() {
			createAs(t, gw, "sk_test_mock", `{"amount":100,"method":"pix","buyer":{"name":"Ana","email":"a@b.test"},"products":[{"name":"x","price":100}]}`)
		}
		never := testing.AllocsPerRun(500, create)
		for range gw.Events(stopped(t)) {
		}
		listening := testing.AllocsPerRun(500, create)
		time.Sleep(2 * time.Minute) // the bubble's
		create()
		after := testing.AllocsPerRun(500, create)
		t.Logf("%v allocations, %v with a reader, %v after it has left (%s)", never, listening, after, runtime.Version())
		assert.Greater(t, listening, never+10)
		assert.InDelta(t, never, after, 1, "a map or a log grows now and then")
		assert.LessOrEqual(t, never, 82.0, "as many as before there were events")
	})
}

// frames reads server-sent events.
type frames struct {
	t    *testing.T
	resp *http.Response
	scan *bufio.Scanner
}

func stream(t *testing.T, url string, header ...string) *frames {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &frames{t, resp, bufio.NewScanner(resp.Body)}
}

// next returns the lines of the next frame with data, or false at the end.
func (f *frames) next() (id, kind string, data map[string]any, ok bool) {
	for f.scan.Scan() {
		name, value, _ := strings.Cut(f.scan.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			require.NoError(f.t, json.Unmarshal([]byte(value), &data))
		case "":
			if data != nil {
				return id, kind, data, true
			}
		}
	}
	return "", "", nil, false
}

func TestEventsOverHTTP(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	url, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	f := stream(t, url+"/__mock/events")
	assert.Equal(t, "text/event-stream", f.resp.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", f.resp.Header.Get("Cache-Control"))
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	id, kind, data, ok := f.next()
	require.True(t, ok)
	assert.Equal(t, "transition", kind)
	assert.Regexp(t, `-1$`, id)
	delete(data, "wall")
	request, _ := data["transition"].(map[string]any)["request_id"].(string)
	assert.Equal(t, map[string]any{
		"seq": 1.0, "type": "transition", "at": "2027-01-04T12:00:00.000Z", "account": "default", "transition": map[string]any{
			"resource": "transaction", "id": tx.ID, "reference": "order-1", "from": "", "to": "pending",
			"cause": "request transactions.create", "request_id": request,
		},
	}, data)

	resumed := stream(t, url+"/__mock/events?types=request", "Last-Event-ID", id)
	_, kind, data, _ = resumed.next()
	assert.Equal(t, "request", kind)
	assert.Equal(t, request, data["request"].(map[string]any)["id"])
	again := stream(t, url+"/__mock/events?types=webhook,request&after="+id)
	_, kind, _, _ = again.next()
	assert.Equal(t, "webhook", kind)
	lost := stream(t, url+"/__mock/events?types=request&after=nonsense")
	_, kind, data, _ = lost.next()
	assert.Equal(t, "lost", kind)
	assert.Equal(t, map[string]any{}, data["lost"])
	own := stream(t, url+"/__mock/events?after="+id, "Authorization", "Bearer sk_test_other")
	require.NoError(t, gw.Clock.Advance(time.Second))
	_, kind, _, _ = own.next()
	assert.Equal(t, "clock", kind, "events about all accounts come first: the rest belongs to another account")

	require.NoError(t, gw.Close())
	for _, f := range []*frames{f, resumed, again, lost, own} {
		for {
			if _, _, _, more := f.next(); !more {
				break
			}
		}
	}
}

// A request with a host name that is not allowed gets a 421 and no journal
// entry: the stream reports the reason.
func TestARequestWithAForeignHostIsReported(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	server := httptest.NewServer(gw.Handler())
	defer server.Close()
	events := gw.Events(t.Context())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v2/transactions", nil)
	require.NoError(t, err)
	r.Host = "gateway:4010"
	resp, err := server.Client().Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	for e := range events {
		assert.Equal(t, http.StatusMisdirectedRequest, e.Request.Status)
		assert.Equal(t, "FOREIGN_HOST", e.Request.Code)
		assert.Contains(t, e.Request.Detail, "gateway:4010")
		assert.Empty(t, e.Account)
		break
	}
}

// With a data file the body of a webhook is rendered before the event is
// reported.
func TestWebhooksAreReportedWithADataFileToo(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t, mockserver.WithDataFile(filepath.Join(t.TempDir(), "data")))
	events := gw.Events(t.Context(), mockserver.EventWebhook)
	tx, err := gw.Client().Transactions.Create(t.Context(), order("order-1"))
	require.NoError(t, err)
	for e := range events {
		assert.Equal(t, "transaction.created", e.Webhook.Kind)
		assert.Equal(t, tx.ID, e.Webhook.ResourceID)
		assert.Equal(t, "order-1", e.Webhook.Reference)
		assert.Zero(t, e.Webhook.Endpoints)
		break
	}
}

// HEAD tells a reader of the stream which event is the latest of its account.
func TestTheLatestEventOverHTTP(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	url, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	f := stream(t, url+"/__mock/events")
	_, err = gw.Client().Transactions.Create(t.Context(), order(""))
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	latest := func(account string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, url+"/__mock/events?account="+account, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.Header.Get("Last-Event-ID")
	}
	want := latest("default")
	assert.NotEmpty(t, want)
	assert.Empty(t, latest("acct_000000000000"))
	for id := ""; id != want; {
		var ok bool
		id, _, _, ok = f.next()
		require.True(t, ok)
	}
}

// A server that shuts down gracefully does not wait for the readers of the
// stream.
func TestAStreamEndsWithTheShutdownOfItsServer(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	server := httptest.NewServer(gw.Handler())
	f := stream(t, server.URL+"/__mock/events")
	require.NoError(t, server.Config.Shutdown(t.Context()))
	_, _, _, more := f.next()
	assert.False(t, more)
	require.NoError(t, f.resp.Body.Close())
	server.Close()
}

func TestRejectedStreams(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	url, err := gw.Listen("127.0.0.1:0")
	require.NoError(t, err)
	for path, want := range map[string]string{
		"?types=request,typo":   `there is no type \"typo\"; use request, control,`,
		"?account=acct_0000000": "the credential belongs to the account default",
	} {
		f := stream(t, url+"/__mock/events"+path, "Authorization", "Bearer sk_test_mock")
		assert.Equal(t, http.StatusBadRequest, f.resp.StatusCode)
		require.True(t, f.scan.Scan())
		assert.Contains(t, f.scan.Text(), want)
	}
	assert.Equal(t, http.StatusUnauthorized, stream(t, url+"/__mock/events", "Apikey", "sk_live_x").resp.StatusCode)
	p := plane{t: t, gw: gw}
	status, body := p.call(http.MethodGet, "/events", "")
	assert.Equal(t, http.StatusNotImplemented, status)
	assert.Contains(t, body["detail"], "Server.Events", "the transport in memory returns whole responses only")
	status, _ = p.call(http.MethodPost, "/events", "")
	assert.Equal(t, http.StatusMethodNotAllowed, status)
}

// A client that stops reading is cut off, and its stream leaves the server.
func TestAClientThatStopsReadingIsCutOff(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	w := &stuck{header: http.Header{}, deadline: make(chan time.Time, 10)}
	r := httptest.NewRequestWithContext(
		context.WithValue(t.Context(), http.LocalAddrContextKey, "127.0.0.1:80"), http.MethodGet, "http://localhost/__mock/events", nil)
	const patience = 10 * time.Second
	began := time.Now()
	gw.Handler().ServeHTTP(w, r)
	assert.WithinRange(t, <-w.deadline, began.Add(patience), time.Now().Add(patience))
}

// stuck is a connection whose peer has stopped reading.
type stuck struct {
	header   http.Header
	deadline chan time.Time
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}

func (s *stuck) Write([]byte) (int, error) { return 0, errors.New("i/o timeout") }

func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.deadline <- at
	return nil
}
