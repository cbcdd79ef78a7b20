package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/gateway-go/gateway/mockserver/internal/respond"
)

// ErrNoGateway means that no mock gateway responds at an address.
var ErrNoGateway = errors.New("no mock gateway responds")

// Client calls the control plane of a gateway, usually one in another process.
type Client struct {
	Base      string // the gateway's URL: "http://127.0.0.1:4010"
	Key       string // of the account; "" sends no credential
	Transport http.RoundTripper
}

// Call makes a call of the control plane, with in as its body unless that is nil, and
// returns what is in {"data": …}. A rejection is a [*RefusedError]; without a response
// of a mock gateway the error is [ErrNoGateway].
func Call[Out any](ctx context.Context, c Client, method, path string, in any) (out Out, raw jsontext.Value, err error) {
	resp, err := c.Open(ctx, method, path, in)
	if err != nil {
		return out, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, nil, c.none(err)
	}
	var envelope struct {
		Data jsontext.Value `json:"data"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil || envelope.Data == nil {
		return out, nil, c.none(errors.New("its response is not the control plane's"))
	}
	if err := json.Unmarshal(envelope.Data, &out); err != nil {
		return out, nil, fmt.Errorf("the gateway at %s has another version: %w", c.Base, err)
	}
	return out, envelope.Data, nil
}

// Open makes a call and returns its successful response, whose body the caller closes.
// The errors are those of [Call].
func (c Client) Open(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = respond.Marshal(in); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+Prefix+"/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.Transport.RoundTrip(req)
	if err != nil {
		return nil, c.none(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	const maxProblem = 64 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return nil, c.none(err)
	}
	var problem respond.Problem
	if json.Unmarshal(text, &problem) != nil || problem.Status != resp.StatusCode || problem.Code == "" {
		return nil, c.none(fmt.Errorf("the server there returned %s", resp.Status))
	}
	return nil, &RefusedError{problem.Status, problem.Code, problem.Detail}
}

func (c Client) none(err error) error { return fmt.Errorf("%w at %s: %w", ErrNoGateway, c.Base, err) }
