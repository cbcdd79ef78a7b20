package explore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// defect is a bug that the exploration must find. It is injected between the client
// and its network, in the gateway, or in the merchant's error handling.
type defect struct {
	name      string
	operation string
	finds     string // text in the counter-example
	client    func(http.RoundTripper) http.RoundTripper
	gateway   func(http.RoundTripper) http.RoundTripper
	merchant  func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error)
}

var reference = regexp.MustCompile(`"external_ref":"[^"]*"`)

func defects() []defect {
	const twice, denied = "carried out 2 times", "says that nothing was done, but it was"
	return []defect{
		{
			name: "each attempt has its own reference", operation: "charge, live", finds: twice,
			client: func(next http.RoundTripper) http.RoundTripper {
				n := 0
				return rewriting(next, func(body string) string {
					n++
					return reference.ReplaceAllString(body, fmt.Sprintf(`"external_ref":"attempt-%d"`, n))
				})
			},
		},
		{
			name: "a 5xx is treated as a rejection", operation: "payout, live", finds: denied,
			client: replacing(func(resp *http.Response, err error) (*http.Response, error) {
				if err == nil && resp.StatusCode >= 500 {
					reject(resp, http.StatusUnprocessableEntity)
				}
				return resp, err
			}),
		},
		{
			name: "a 408 is treated as a rejection", operation: "subscription, live", finds: denied,
			client: replacing(func(resp *http.Response, err error) (*http.Response, error) {
				if err == nil && resp.StatusCode == http.StatusRequestTimeout {
					reject(resp, http.StatusBadRequest)
				}
				return resp, err
			}),
		},
		{
			name: "a reset is treated as a request that was not sent", operation: "refund", finds: twice,
			client: replacing(func(resp *http.Response, err error) (*http.Response, error) {
				if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrUnexpectedEOF) {
					err = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return resp, err
			}),
		},
		{
			name: "an empty search result is taken to mean that nothing was done", operation: "charge, live", finds: denied,
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				id, err := s.operation.call(ctx, s.client, o, opts...)
				if !errors.Is(err, gateway.ErrOutcomeUnknown) {
					return id, err
				}
				t, err := s.client.Transactions.FindByExternalRef(ctx, o.reference, gateway.FindOptions{})
				if err != nil {
					return "", err // including ErrNotFound, from a list that lags behind
				}
				return t.ID, nil
			},
		},
		{
			name: "a call gives up after the first failure", operation: "charge of a card", finds: "another attempt would have helped",
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				return s.operation.call(ctx, s.client, o, append(opts, gateway.MaxAttempts(1))...)
			},
		},
		{
			name: "the amount is compared alone", operation: "charge that is settled in part", finds: "another attempt would have helped",
			client: replacing(func(resp *http.Response, err error) (*http.Response, error) {
				if err == nil {
					body, _ := io.ReadAll(resp.Body)
					body = regexp.MustCompile(`"(base_price|paid_amount)":"?\d+"?`).ReplaceAll(body, []byte(`"$1":0`))
					resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				}
				return resp, err
			}),
		},
		{
			name: "Retry-After is ignored", operation: "payout, live", finds: "before Retry-After had passed",
			client: replacing(func(resp *http.Response, err error) (*http.Response, error) {
				if err == nil {
					resp.Header = resp.Header.Clone()
					resp.Header.Del("Retry-After")
				}
				return resp, err
			}),
		},
		{
			name: "a refund is sent again after an unknown outcome", operation: "refund", finds: twice,
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				id, err := s.operation.call(ctx, s.client, o, opts...)
				if errors.Is(err, gateway.ErrOutcomeUnknown) && ctx.Err() == nil {
					return s.operation.call(ctx, s.client, o, opts...)
				}
				return id, err
			},
		},
		{
			name: "each attempt has its own idempotency key", operation: "refund with an idempotency key", finds: twice,
			client: func(next http.RoundTripper) http.RoundTripper {
				n := 0
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					n++
					r.Header.Set("Idempotency-Key", fmt.Sprintf("attempt-%d", n))
					return next.RoundTrip(r)
				})
			},
		},
		{
			name: "a 200 is treated as a success whatever its body", operation: "charge, live", finds: "success was reported, but nothing was done",
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				id, err := s.operation.call(ctx, s.client, o, opts...)
				if e, ok := errors.AsType[*gateway.Error](err); ok && e.StatusCode == http.StatusOK {
					return "", nil // even for a proxy's page; a create returns 201
				}
				return id, err
			},
		},
		{
			name: "a duplicate is treated as the call's own resource", operation: "charge, document", finds: "for a different order",
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				id, err := s.operation.call(ctx, s.client, o, opts...)
				if e, ok := errors.AsType[*gateway.Error](err); ok && errors.Is(err, gateway.ErrDuplicate) {
					return e.ResourceID, nil
				}
				return id, err
			},
		},
		{
			name: "a canceled context is treated as a request that was not sent", operation: "charge of a card", finds: denied,
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				id, err := s.operation.call(ctx, s.client, o, opts...)
				if ctx.Err() != nil {
					return "", gateway.ErrNotSent
				}
				return id, err
			},
		},
		{
			name: "a restarted process generates a new reference", operation: "payout, live", finds: twice,
			merchant: func(ctx context.Context, s *schedule, o order, opts ...gateway.RequestOption) (string, error) {
				o.reference = fmt.Sprintf("process-%d", s.process)
				return s.operation.call(ctx, s.client, o, opts...)
			},
		},
		{
			name: "the gateway ignores idempotency keys", operation: "refund with an idempotency key", finds: twice,
			gateway: func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					r.Header.Del("Idempotency-Key")
					return next.RoundTrip(r)
				})
			},
		},
	}
}

// rewriting changes the bodies of writes.
func rewriting(next http.RoundTripper, rewrite func(string) string) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !isWrite(r) {
			return next.RoundTrip(r)
		}
		out := r.Clone(r.Context())
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text := rewrite(string(body))
		out.Body, out.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		return next.RoundTrip(out)
	})
}

// reject turns a response into a rejection by the gateway.
func reject(resp *http.Response, status int) {
	body := fmt.Sprintf(`{"status":%d,"title":"Rejected"}`, status)
	resp.StatusCode, resp.ContentLength, resp.Body = status, int64(len(body)), io.NopCloser(strings.NewReader(body))
}

// replacing changes the responses to writes.
func replacing(replace func(*http.Response, error) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if !isWrite(r) {
				return resp, err
			}
			return replace(resp, err)
		})
	}
}

// TestEverySeededDefectIsFound shows that the properties can fail: each defect has
// a short counter-example that says what is wrong.
func TestEverySeededDefectIsFound(t *testing.T) {
	t.Parallel()
	byName := map[string]operation{}
	for _, op := range operations() {
		byName[op.name] = op
	}
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			op, ok := byName[d.operation]
			require.True(t, ok)
			found, runs := exploreOperation(t, &op, d, 1) // schedules with one fault first
			if found == nil {
				found, runs = exploreOperation(t, &op, d, 2)
			}
			require.NotNil(t, found, "%d schedules", runs)
			t.Logf("schedule %d:\n%v", runs, found)
			assert.Contains(t, strings.Join(found.violations, "; "), d.finds)
			assert.LessOrEqual(t, len(found.rows), 5, "the counter-example is not minimal")
		})
	}
}
