package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/webhook"
)

func TestResponses(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.MaxBody = 300
	rx := receiver(t, cfg)
	body := paid("evt_1", "tx_1")
	tampered := signed(body)
	tampered.Body = http.NoBody
	stale := request(body)
	sign(stale, secret, time.Now().Add(-301*time.Second), body)
	for name, tc := range map[string]struct {
		request *http.Request
		want    string
	}{
		"good":             {signed(body), received},
		"unsigned":         {request(body), `401 {"error":"missing_signature"}`},
		"forged":           {forged(body), `401 {"error":"invalid_signature"}`},
		"tampered":         {tampered, `401 {"error":"invalid_signature"}`},
		"stale":            {stale, `401 {"error":"stale_timestamp"}`},
		"no JSON":          {signed("no JSON"), `400 {"error":"invalid_json"}`},
		"empty":            {signed(""), `400 {"error":"invalid_json"}`},
		"no id":            {signed(`{"event":"transaction"}`), `400 {"error":"missing_event_id"}`},
		"a GET":            {httptest.NewRequest(http.MethodGet, "/", nil), `405 {"error":"method_not_allowed"}`},
		"a form":           {contentType(forged(body), "application/x-www-form-urlencoded"), `415 {"error":"unsupported_media_type"}`},
		"no type":          {contentType(signed(body), ""), received},
		"a charset":        {contentType(signed(body), "application/json; charset=utf-8"), received},
		"another JSON":     {contentType(signed(body), "application/cloudevents+json"), received},
		"compressed":       {withHeader(forged(body), "Content-Encoding", "gzip"), `415 {"error":"unsupported_media_type"}`},
		"too large":        {signed(strings.Repeat(" ", 301)), `413 {"error":"body_too_large"}`},
		"large, unlabeled": {chunked(signed(strings.Repeat(" ", 301))), `413 {"error":"body_too_large"}`},
		"at the limit":     {signed(body + strings.Repeat(" ", 300-len(body))), received},
		"chunked":          {chunked(signed(body)), received},
	} {
		assert.Equal(t, tc.want, response(rx, tc.request), name)
	}
	assert.Equal(t, "POST", serve(rx, httptest.NewRequest(http.MethodPut, "/", nil)).Header().Get("Allow"))
	assert.Equal(t, "application/json", serve(rx, signed(body)).Header().Get("Content-Type"))
}

// TestABodyThatIsNotReadEndsItsConnection: the server would read it, however slowly
// it comes, to reuse the connection.
func TestABodyThatIsNotReadEndsItsConnection(t *testing.T) {
	t.Parallel()
	cfg := signedConfig()
	cfg.MaxBody, cfg.SecretPath = 300, gateway.NewSecret("c0ffee00c0ffee00")
	rx := receiver(t, cfg)
	at := func(method, path string, body io.Reader) *http.Request {
		return httptest.NewRequest(method, path, body)
	}
	const path = "/c0ffee00c0ffee00"
	for name, tc := range map[string]struct {
		request *http.Request
		want    string
	}{
		"another path":       {at(http.MethodPost, "/", strings.NewReader("{}")), "close"},
		"another method":     {at(http.MethodPut, path, strings.NewReader("{}")), "close"},
		"a form":             {contentType(at(http.MethodPost, path, strings.NewReader("a=b")), "text/plain"), "close"},
		"no signature":       {at(http.MethodPost, path, strings.NewReader("{}")), "close"},
		"too large":          {at(http.MethodPost, path, strings.NewReader(strings.Repeat(" ", 301))), "close"},
		"no body":            {at(http.MethodGet, path, http.NoBody), ""},
		"no body, elsewhere": {at(http.MethodHead, "/", http.NoBody), ""},
	} {
		assert.Equal(t, tc.want, serve(rx, tc.request).Header().Get("Connection"), name)
	}
}

// TestMediaTypesThatMeanJSON has what gateways and proxies write. With a valid
// signature the media type does not matter; otherwise it must mean JSON.
func TestMediaTypesThatMeanJSON(t *testing.T) {
	t.Parallel()
	api := &fakeAPI{}
	api.setTransaction("tx_1", "paid", "paid_at", time.Now().UTC().Format(time.RFC3339))
	rx, _ := shop(t, webhook.Config{Trust: webhook.SignatureOrReadBack, Keys: []webhook.SigningKey{{Key: secret}}, API: api.client(t)})
	const rejected = `415 {"error":"unsupported_media_type"}`
	n := 0
	for name, tc := range map[string]struct {
		header http.Header
		json   bool
	}{
		"none":                       {http.Header{}, true},
		"blank":                      {http.Header{"Content-Type": {""}, "Content-Encoding": {" "}}, true},
		"twice in one line":          {http.Header{"Content-Type": {"application/json, application/json"}}, true},
		"twice":                      {http.Header{"Content-Type": {"application/json", "application/json; charset=utf-8"}}, true},
		"malformed parameter":        {http.Header{"Content-Type": {"application/json; charset"}}, true},
		"trailing semicolon":         {http.Header{"Content-Type": {"application/json;"}}, true},
		"two charsets":               {http.Header{"Content-Type": {"application/json; charset=utf-8; charset=UTF-8"}}, true},
		"upper case":                 {http.Header{"Content-Type": {"APPLICATION/JSON"}}, true},
		"white space":                {http.Header{"Content-Type": {" application/json ;charset=utf-8"}}, true},
		"text/json":                  {http.Header{"Content-Type": {"text/json"}}, true},
		"problem":                    {http.Header{"Content-Type": {"application/problem+json"}}, true},
		"a charset for an encoding":  {http.Header{"Content-Encoding": {"UTF-8"}}, true},
		"utf8":                       {http.Header{"Content-Encoding": {"utf8"}}, true},
		"identity":                   {http.Header{"Content-Encoding": {"Identity, identity"}}, true},
		"gzip":                       {http.Header{"Content-Encoding": {"gzip"}}, false},
		"gzip besides identity":      {http.Header{"Content-Encoding": {"identity, gzip"}}, false},
		"text":                       {http.Header{"Content-Type": {"text/plain"}}, false},
		"text with a JSON parameter": {http.Header{"Content-Type": {"text/plain; application/json"}}, false},
		"text and JSON":              {http.Header{"Content-Type": {"application/json, text/plain"}}, false},
		"a form":                     {http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, false},
		"nonsense":                   {http.Header{"Content-Type": {"json"}}, false},
	} {
		n++
		body := paid(fmt.Sprintf("evt_%d", n), "tx_1")
		send := func(r *http.Request) string {
			r.Header.Del("Content-Type")
			maps.Copy(r.Header, tc.header)
			return response(rx, r)
		}
		assert.Equal(t, received, send(signed(body)), "%s, signed", name)
		unsigned, guessed := received, `401 {"error":"invalid_signature"}`
		if !tc.json {
			unsigned, guessed = rejected, rejected
		}
		assert.Equal(t, unsigned, send(request(body)), "%s, unsigned", name)
		assert.Equal(t, guessed, send(forged(body)), "%s, forged", name)
	}
}

// TestAByteOrderMarkIsSkipped covers a body that was saved as "UTF-8 with BOM".
func TestAByteOrderMarkIsSkipped(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	body := "\xef\xbb\xbf" + paid("evt_1", "tx_1")
	var raw []byte
	webhook.OnTransaction(rx, webhook.TransactionPaid, func(_ context.Context, e *webhook.TransactionEvent) error {
		raw = e.Raw
		return nil
	})
	assert.Equal(t, received, response(rx, signed(body)))
	assert.JSONEq(t, paid("evt_1", "tx_1"), string(raw), "what a handler decodes")
	assert.Equal(t, received, response(rx, signed(paid("evt_1", "tx_1"))))
	assert.Equal(t, map[webhook.Outcome]uint64{webhook.OutcomeHandled: 1, webhook.OutcomeDuplicate: 1}, rx.Stats())
	assert.Equal(t, `400 {"error":"invalid_json"}`, response(rx, signed("\xef\xbb\xbf"+body)), "two marks")
	assert.Equal(t, `401 {"error":"invalid_signature"}`, response(rx, forged(body)))
	tampered := signed(paid("evt_2", "tx_1"))
	tampered.Body = io.NopCloser(strings.NewReader("\xef\xbb\xbf" + paid("evt_2", "tx_1")))
	tampered.ContentLength = -1
	assert.Equal(t, `401 {"error":"invalid_signature"}`, response(rx, tampered), "the signature covers the mark")
}

func forged(body string) *http.Request {
	r := request(body)
	sign(r, gateway.NewSecret("guessed"), time.Now(), body)
	return r
}

func contentType(r *http.Request, value string) *http.Request {
	r.Header.Del("Content-Type")
	if value != "" {
		r.Header.Set("Content-Type", value)
	}
	return r
}

func withHeader(r *http.Request, name, value string) *http.Request {
	r.Header.Set(name, value)
	return r
}

func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	return r
}

func TestABodyThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	rx := receiver(t, signedConfig())
	r := request("")
	r.Body, r.ContentLength = unreadable{t}, 1<<20+1
	w := serve(rx, r)
	assert.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	assert.Equal(t, "close", w.Header().Get("Connection"))
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("unreadable")
}
func (unreadable) Close() error { return nil }
