package webhook_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway"
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
		"a GET":            {httptest.NewRequest(http.MethodGet, "/", http.NoBody), `405 {"error":"method_not_allowed"}`},
		"a form":           {contentType(signed(body), "application/x-www-form-urlencoded"), `415 {"error":"unsupported_media_type"}`},
		"no type":          {contentType(signed(body), ""), received},
		"a charset":        {contentType(signed(body), "application/json; charset=utf-8"), received},
		"another JSON":     {contentType(signed(body), "application/cloudevents+json"), received},
		"compressed":       {withHeader(signed(body), "Content-Encoding", "gzip"), `415 {"error":"unsupported_media_type"}`},
		"too large":        {signed(strings.Repeat(" ", 301)), `413 {"error":"body_too_large"}`},
		"large, unlabeled": {chunked(signed(strings.Repeat(" ", 301))), `413 {"error":"body_too_large"}`},
		"at the limit":     {signed(body + strings.Repeat(" ", 300-len(body))), received},
		"chunked":          {chunked(signed(body)), received},
	} {
		assert.Equal(t, tc.want, response(rx, tc.request), name)
	}
	assert.Equal(t, "POST", serve(rx, httptest.NewRequest(http.MethodPut, "/", http.NoBody)).Header().Get("Allow"))
	assert.Equal(t, "application/json", serve(rx, signed(body)).Header().Get("Content-Type"))
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
