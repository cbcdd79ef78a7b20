package gateway_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
)

// hang sends no response until the attempt times out.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// cut sends a response and breaks off in the middle of the body.
func cut(status int, body string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		resp, _ := reply(status, body)(r)
		resp.ContentLength = int64(len(body)) + 100
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), brokenReader{}))
		return resp, nil
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

var (
	errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errDial  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errDNS   = &net.DNSError{Err: "no such host", Name: "api.gateway.example", IsNotFound: true}
)

// classCall is a call of one of the three classes, with a response that it
// accepts.
type classCall struct {
	name     string
	response string
	call     func(context.Context, *gateway.Client, ...gateway.RequestOption) error
}

func classCalls(t *testing.T) (safe, keyed, unsafe classCall) {
	t.Helper()
	safe = classCall{
		"safe", string(golden(t, "transactions/get.response.json")),
		func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) error {
			_, err := c.Transactions.Get(ctx, orderID, opts...)
			return err
		},
	}
	keyed = classCall{
		"keyed", string(golden(t, "transactions/create.response.json")),
		func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) error {
			_, err := c.Transactions.Create(ctx, pixOrder(), opts...)
			return err
		},
	}
	unsafe = classCall{
		"unsafe", string(golden(t, "transactions/refund.response.json")),
		func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) error {
			_, err := c.Transactions.Refund(ctx, orderID, gateway.RefundParams{Amount: 5000, Reason: "One shirt came back"}, opts...)
			return err
		},
	}
	return safe, keyed, unsafe
}

// noJitter takes the longest wait: 0.5 s, 1 s, 2 s and so on.
func noJitter() gateway.Option { return gateway.WithJitter(func() float64 { return 1 }) }

const (
	retries = "retries"
	stops   = "stops"          // an *Error: the outcome is known
	unknown = "stops, unknown" // an *OutcomeError
)

// TestRetryTable has one row for each outcome of an attempt, with the behavior of
// each class after it.
func TestRetryTable(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name                string
		ending              roundTrip
		took                time.Duration
		safe, keyed, unsafe string
	}{
		{"dial", fail(errDial), 0, retries, retries, retries},
		{"dns", fail(errDNS), 0, retries, retries, retries},
		{"429", reply(429, problem(429)), 0, retries, retries, retries},
		{"reset", fail(errReset), 0, retries, retries, unknown},
		{"EOF", fail(io.EOF), 0, retries, retries, unknown},
		{"attempt timeout", hang, 30 * time.Second, retries, retries, unknown},
		{"cut body", cut(201, `{"success":true,"data":{"id":"`), 0, retries, retries, unknown},
		{"short body", func(r *http.Request) (*http.Response, error) {
			resp, _ := reply(201, "{}")(r)
			resp.ContentLength = 10
			return resp, nil
		}, 0, retries, retries, unknown},
		{"408", reply(408, ""), 0, retries, retries, unknown},
		{"500", reply(500, ""), 0, retries, retries, unknown},
		{"502", reply(502, "<html>"), 0, retries, retries, unknown},
		{"503", reply(503, "{}"), 0, retries, retries, unknown},
		{"504", reply(504, ""), 0, retries, retries, unknown},
		{"599", reply(599, ""), 0, retries, retries, unknown},
		{"501", reply(501, ""), 0, retries, retries, unknown},
		{"400", reply(400, problem(400)), 0, stops, stops, stops},
		{"401", reply(401, problem(401)), 0, stops, stops, stops},
		{"403", reply(403, problem(403)), 0, stops, stops, stops},
		{"404", reply(404, problem(404)), 0, stops, stops, stops},
		{"409", reply(409, problem(409)), 0, stops, stops, stops},
		{"410", reply(410, problem(410)), 0, stops, stops, stops},
		{"422", reply(422, problem(422)), 0, stops, stops, stops},
		{"422 with a cut body", cut(422, `{"code":"X","detail":"cu`), 0, stops, stops, stops},
		{"422 whose body is cut too early", cut(422, "{"), 0, retries, retries, unknown},
		{"404 of an ingress", reply(404, "default backend - 404"), 0, retries, retries, unknown},
		{"302", reply(302, "", "Location", "https://evil.example/"), 0, retries, retries, unknown},
		{"307", reply(307, "", "Location", "https://evil.example/"), 0, retries, retries, unknown},
		{"certificate", fail(x509.UnknownAuthorityError{}), 0, stops, stops, stops},
		{"unreadable 2xx", reply(200, "<html>"), 0, stops, unknown, unknown},
		{"empty 2xx", reply(200, ""), 0, stops, unknown, unknown},
	}
	safe, keyed, unsafe := classCalls(t)
	for _, row := range rows {
		for class, want := range map[*classCall]string{&safe: row.safe, &keyed: row.keyed, &unsafe: row.unsafe} {
			t.Run(row.name+"/"+class.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := play(row.ending, row.ending, reply(200, class.response))
					err := class.call(t.Context(), clientOf(t, s, noJitter()))
					if want == retries {
						require.NoError(t, err)
						// The waits are 0.5 s and 1 s.
						first, second := row.took+500*time.Millisecond, 2*row.took+1500*time.Millisecond
						assert.Equal(t, []time.Duration{0, first, second}, s.at)
						assert.Equal(t, s.bodies[0], s.bodies[1])
						assert.Equal(t, s.bodies[0], s.bodies[2])
						return
					}
					require.Error(t, err)
					assert.Len(t, s.at, 1)
					var e *gateway.Error
					require.ErrorAs(t, err, &e)
					assert.Equal(t, 1, e.Attempts)
					assert.Equal(t, want == unknown, errors.Is(err, gateway.ErrOutcomeUnknown), "%v", err)
				})
			})
		}
	}
}

// TestErrorsAfterTheLastAttempt checks the error of each class when no attempt succeeded.
func TestErrorsAfterTheLastAttempt(t *testing.T) {
	t.Parallel()
	safe, keyed, unsafe := classCalls(t)
	rows := []struct {
		name    string
		class   classCall
		steps   []roundTrip
		unknown bool
		is      error
	}{
		{"reads have no outcome", safe, []roundTrip{fail(errReset), reply(503, ""), reply(503, "")}, false, gateway.ErrServer},
		{"keyed, lost", keyed, []roundTrip{fail(errReset), fail(errReset), fail(errReset)}, true, syscall.ECONNRESET},
		{"keyed, failed", keyed, []roundTrip{reply(500, ""), reply(500, ""), reply(500, "")}, true, gateway.ErrOutcomeUnknown},
		{"keyed, lost and then limited", keyed, []roundTrip{fail(errReset), reply(429, problem(429)), reply(429, problem(429))}, true, gateway.ErrOutcomeUnknown},
		{"keyed, lost and then unreachable", keyed, []roundTrip{fail(errReset), fail(errDial), fail(errDial)}, true, syscall.ECONNREFUSED},
		{"keyed, never sent", keyed, []roundTrip{fail(errDial), fail(errDNS), fail(errDial)}, false, syscall.ECONNREFUSED},
		{"keyed, limited", keyed, []roundTrip{reply(429, problem(429)), reply(429, problem(429)), reply(429, problem(429))}, false, gateway.ErrRateLimited},
		{"unsafe, never sent", unsafe, []roundTrip{fail(errDial), fail(errDial), fail(errDial)}, false, syscall.ECONNREFUSED},
		{"unsafe, limited and then lost", unsafe, []roundTrip{reply(429, problem(429)), fail(errReset)}, true, syscall.ECONNRESET},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(row.steps...)
				err := row.class.call(t.Context(), clientOf(t, s))
				require.ErrorIs(t, err, row.is)
				assert.Len(t, s.at, len(row.steps))
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, len(row.steps), e.Attempts)
				var outcome *gateway.OutcomeError
				assert.Equal(t, row.unknown, errors.As(err, &outcome), "%v", err)
				if row.class.name == "keyed" {
					assert.Equal(t, "order-1001", e.Reference)
				}
				if row.unknown && row.class.name == "keyed" {
					assert.Equal(t, "order-1001", outcome.Reference)
				}
			})
		})
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	lost := []roundTrip{fail(errReset), fail(errReset), fail(errReset), fail(errReset), fail(errReset), fail(errReset), fail(errReset)}
	for name, tc := range map[string]struct {
		jitter float64
		waits  []int64 // milliseconds
	}{
		"longest":  {1, []int64{500, 1000, 2000, 4000, 8000, 8000}},
		"shortest": {0, []int64{250, 500, 1000, 2000, 4000, 4000}},
		"between":  {0.5, []int64{375, 750, 1500, 3000, 6000, 6000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(lost...)
				client := clientOf(t, s, gateway.WithJitter(func() float64 { return tc.jitter }))
				_, err := client.Transactions.Get(t.Context(), orderID, gateway.MaxAttempts(7))
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.Len(t, s.at, 7)
				for i, wait := range tc.waits {
					assert.Equal(t, wait, (s.at[i+1] - s.at[i]).Milliseconds(), "wait %d", i+1)
				}
			})
		})
	}
}

func TestBackoffOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(fail(errReset), fail(errReset), fail(errReset), fail(errReset))
		client := clientOf(t, s, noJitter(), gateway.WithMaxAttempts(4), gateway.WithBackoff(10*time.Millisecond, 30*time.Millisecond))
		_, err := client.Transactions.Get(t.Context(), orderID)
		require.Error(t, err)
		assert.Equal(t, []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond}, s.at)
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	_, keyed, _ := classCalls(t)
	for name, tc := range map[string]struct {
		header string // "" sends wait as a date
		status int
		wait   time.Duration
	}{
		"seconds":         {"2", 429, 2 * time.Second},
		"fraction":        {"0.25", 503, 250 * time.Millisecond},
		"spaces":          {" 3 ", 429, 3 * time.Second},
		"at once":         {"0", 429, 0},
		"longest allowed": {"60", 429, time.Minute},
		"date":            {"", 503, 7 * time.Second},
		"past date":       {"Fri, 31 Dec 1999 23:59:59 GMT", 429, 0},
		"nonsense":        {"soon", 429, 500 * time.Millisecond},
		"negative":        {"-3", 429, 500 * time.Millisecond},
		"not a number":    {"NaN", 429, 500 * time.Millisecond},
		"on a 500":        {"4", 500, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				header := tc.header
				if header == "" {
					header = time.Now().Add(tc.wait).UTC().Format(http.TimeFormat)
				}
				s := play(reply(tc.status, "{}", "Retry-After", header), reply(201, keyed.response))
				require.NoError(t, keyed.call(t.Context(), clientOf(t, s, noJitter())))
				assert.Equal(t, []time.Duration{0, tc.wait}, s.at)
			})
		})
	}
}

// TestRetryAfterThatIsTooLong: if the wait is too long, the error is returned
// immediately.
func TestRetryAfterThatIsTooLong(t *testing.T) {
	t.Parallel()
	_, keyed, unsafe := classCalls(t)
	for name, tc := range map[string]struct {
		class   classCall
		status  int
		header  string
		timeout time.Duration
		want    time.Duration
		unknown bool
	}{
		"over a minute":        {keyed, 429, "61", time.Hour, 61 * time.Second, false},
		"over a minute, 503":   {keyed, 503, "61", time.Hour, 61 * time.Second, true},
		"past the deadline":    {keyed, 429, "10", 9 * time.Second, 10 * time.Second, false},
		"at the deadline":      {keyed, 429, "10", 10 * time.Second, 10 * time.Second, false},
		"unsafe":               {unsafe, 429, "3600", time.Hour * 2, time.Hour, false},
		"longer than a number": {keyed, 429, "1e300", time.Hour, 24 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				s := play(reply(tc.status, problem(tc.status), "Retry-After", tc.header))
				err := tc.class.call(ctx, clientOf(t, s))
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, tc.want, e.RetryAfter)
				assert.Equal(t, []time.Duration{0}, s.at)
				require.NoError(t, ctx.Err(), "the call must not wait")
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, tc.unknown, errors.Is(err, gateway.ErrOutcomeUnknown))
			})
		})
	}
}

// TestContextEnds cancels the caller's context at every point of a call.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	safe, keyed, unsafe := classCalls(t)
	cause := errors.New("the order was withdrawn")
	rows := []struct {
		name     string
		class    classCall
		steps    []roundTrip
		after    time.Duration // 0: before the call
		attempts int
		unknown  bool
		status   int
	}{
		{"before, safe", safe, nil, 0, 0, false, 0},
		{"before, keyed", keyed, nil, 0, 0, false, 0},
		{"before, unsafe", unsafe, nil, 0, 0, false, 0},
		{"in flight, safe", safe, []roundTrip{hang}, time.Second, 1, false, 0},
		{"in flight, keyed", keyed, []roundTrip{hang}, time.Second, 1, true, 0},
		{"in flight, unsafe", unsafe, []roundTrip{hang}, time.Second, 1, true, 0},
		{"waiting, safe", safe, []roundTrip{fail(errReset)}, 100 * time.Millisecond, 1, false, 0},
		{"waiting after a lost response", keyed, []roundTrip{fail(errReset)}, 100 * time.Millisecond, 1, true, 0},
		{"waiting after a failure", keyed, []roundTrip{reply(503, `{"code":"BUSY"}`)}, 100 * time.Millisecond, 1, true, 503},
		{"waiting, nothing sent", keyed, []roundTrip{fail(errDial)}, 100 * time.Millisecond, 1, false, 0},
		{"waiting, limited", unsafe, []roundTrip{reply(429, problem(429))}, 100 * time.Millisecond, 1, false, 429},
		{"waiting, limited after a loss", keyed, []roundTrip{fail(errReset), reply(429, problem(429))}, 600 * time.Millisecond, 2, true, 429},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				s := play(row.steps...)
				if row.after == 0 {
					cancel(cause)
				} else {
					time.AfterFunc(row.after, func() { cancel(cause) })
				}
				err := row.class.call(ctx, clientOf(t, s, noJitter()))
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause)
				assert.Len(t, s.at, row.attempts)
				assert.Equal(t, row.after, time.Since(s.start), "the call ends with its context")
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, row.status, e.StatusCode)
				assert.Equal(t, row.attempts, e.Attempts)
				assert.Equal(t, row.unknown, errors.Is(err, gateway.ErrOutcomeUnknown), "%v", err)
				assert.NotContains(t, err.Error(), "was not expected")
			})
		})
	}
}

// TestAttemptTimeoutIsNotTheCallers: the timeout of an attempt must not look
// like the caller's own deadline.
func TestAttemptTimeoutIsNotTheCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(hang)
		_, err := clientOf(t, s).Transactions.Get(t.Context(), orderID, gateway.MaxAttempts(1), gateway.AttemptTimeout(2*time.Second))
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, err, &timeout)
		assert.True(t, timeout.Timeout())
		assert.Equal(t, 2*time.Second, time.Since(s.start))
		assert.Equal(t, "gateway: transactions.get: no response within 2s", err.Error())
	})
}

// TestAttemptTimeoutCoversTheBody: a body that never ends is a failed attempt.
func TestAttemptTimeoutCoversTheBody(t *testing.T) {
	t.Parallel()
	safe, _, _ := classCalls(t)
	synctest.Test(t, func(t *testing.T) {
		stall := func(r *http.Request) (*http.Response, error) {
			resp, _ := reply(200, "")(r)
			resp.ContentLength = -1
			resp.Body = io.NopCloser(stalledReader{r.Context()})
			return resp, nil
		}
		s := play(stall, reply(200, safe.response))
		require.NoError(t, safe.call(t.Context(), clientOf(t, s, noJitter())))
		assert.Equal(t, []time.Duration{0, 30*time.Second + 500*time.Millisecond}, s.at)
	})
}

type stalledReader struct{ ctx context.Context } //nolint:containedctx // ends with its request

func (s stalledReader) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// TestEachAttemptHasItsOwnCredential: if a key rotates between attempts, the
// second attempt uses the new one.
func TestEachAttemptHasItsOwnCredential(t *testing.T) {
	t.Parallel()
	safe, _, _ := classCalls(t)
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rotating := gateway.CredentialFunc(func(context.Context) (gateway.Credential, error) {
			n++
			return gateway.BearerToken("sk_test_" + strconv.Itoa(n)), nil
		})
		s := play(fail(errReset), reply(200, safe.response))
		require.NoError(t, safe.call(t.Context(), clientOf(t, s), gateway.UseCredential(rotating)))
		assert.Equal(t, "Bearer sk_test_1", s.requests[0].Header.Get("Authorization"))
		assert.Equal(t, "Bearer sk_test_2", s.requests[1].Header.Get("Authorization"))
	})
}

func TestLongResponses(t *testing.T) {
	t.Parallel()
	page := `{"success":true,"data":[` + strings.Repeat(" ", 3<<20) + `]}`
	s := play(func(r *http.Request) (*http.Response, error) {
		resp, _ := reply(200, "")(r)
		resp.ContentLength = -1
		resp.Body = io.NopCloser(bytes.NewReader([]byte(page)))
		return resp, nil
	})
	_, err := clientOf(t, s).Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
}

// TestTimeoutOfTheCallersHTTPClient: the timeout limits an attempt, not the call.
func TestTimeoutOfTheCallersHTTPClient(t *testing.T) {
	t.Parallel()
	safe, _, _ := classCalls(t)
	synctest.Test(t, func(t *testing.T) {
		s := play(hang, hang, reply(200, safe.response))
		client, err := gateway.New(baseURL, gateway.BearerToken(testKey), noJitter(),
			gateway.WithHTTPClient(&http.Client{Transport: s, Timeout: 2 * time.Second}))
		require.NoError(t, err)
		require.NoError(t, safe.call(t.Context(), client))
		assert.Equal(t, []time.Duration{0, 2500 * time.Millisecond, 5500 * time.Millisecond}, s.at)
		s.steps = append(s.steps, hang)
		err = safe.call(t.Context(), client, gateway.MaxAttempts(1))
		require.ErrorContains(t, err, "no response within 2s")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}
