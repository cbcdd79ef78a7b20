package memory

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Call makes a request with the API key of an account and reads the whole
// response. The body is JSON; nil is none.
func Call(ctx context.Context, h http.Handler, key, method, path string, body []byte) (status int, response []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Apikey", key)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&Transport{Handler: h}).RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	response, err = io.ReadAll(resp.Body)
	return resp.StatusCode, response, err
}
