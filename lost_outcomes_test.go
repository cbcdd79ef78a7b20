package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// TestALostCreateIsRecoveredWhenItsRetryIsRejected: the first attempt used up the
// card token, the balance or the reference, so the second one is rejected; the
// client finds and returns the resource of the first one.
func TestALostCreateIsRecoveredWhenItsRetryIsRejected(t *testing.T) {
	t.Parallel()
	transfer := `{"id":"p-1","external_ref":"payout-1","amount":"1000","pix_key_type":"EMAIL","pix_key":"ana@example.com","status":"pending"}`
	customer := `{"id":"c-1","externalRef":"customer-1","email":"ana@example.com","name":"Ana"}`
	calls := map[string]struct {
		id, item string
		run      func(context.Context, *gateway.Client, *gateway.Response) (string, error)
	}{
		"transaction": {orderID, transactionJSON(orderID, "order-1001", 15990), func(ctx context.Context, c *gateway.Client, r *gateway.Response) (string, error) {
			tx, err := c.Transactions.Create(ctx, pixOrder(), gateway.ResponseInto(r))
			if err != nil {
				return "", err
			}
			return tx.ID, nil
		}},
		"transfer": {"p-1", transfer, func(ctx context.Context, c *gateway.Client, r *gateway.Response) (string, error) {
			p, err := c.Transfers.Create(ctx, gateway.TransferParams{
				PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com", Amount: 1000, ExternalRef: "payout-1",
			}, gateway.ResponseInto(r))
			if err != nil {
				return "", err
			}
			return p.ID, nil
		}},
		"customer": {"c-1", customer, func(ctx context.Context, c *gateway.Client, r *gateway.Response) (string, error) {
			p, err := c.Customers.Create(ctx, gateway.CustomerParams{Name: "Ana", Email: "ana@example.com", ExternalRef: "customer-1"},
				gateway.ResponseInto(r))
			if err != nil {
				return "", err
			}
			return p.ID, nil
		}},
	}
	for name, call := range calls {
		for _, rejection := range []roundTrip{
			reply(422, `{"code":"TOKEN_ALREADY_USED"}`), reply(400, `{"detail":"the balance is too low"}`), reply(409, problem(409)), reply(404, problem(404)),
			reply(200, `{"success":false,"status":422}`), reply(200, `{"success":false}`), reply(200, "<html>"),
		} {
			synctest.Test(t, func(t *testing.T) {
				s := play(fail(errReset), rejection,
					reply(200, fmt.Sprintf(`{"success":true,"data":[%s]}`, call.item)),
					reply(200, fmt.Sprintf(`{"success":true,"data":%s}`, call.item)))
				var resp gateway.Response
				id, err := call.run(t.Context(), clientOf(t, s), &resp)
				require.NoError(t, err, name)
				assert.Equal(t, call.id, id)
				assert.True(t, resp.Recovered)
			})
		}
	}
}

// TestAConflictWithAnOlderResourceIsADuplicate: the reference belongs to another
// resource, so no attempt can have created one.
func TestAConflictWithAnOlderResourceIsADuplicate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := transactionJSON(orderID, "order-1001", 1)
		s := play(fail(errReset), reply(422, problem(422)),
			reply(200, fmt.Sprintf(`{"success":true,"data":[%s]}`, other)), reply(200, fmt.Sprintf(`{"success":true,"data":%s}`, other)))
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
		require.ErrorIs(t, err, gateway.ErrDuplicate)
		e, ok := errors.AsType[*gateway.Error](err)
		require.True(t, ok)
		assert.Equal(t, orderID, e.ResourceID)
	})
}

// TestAnUnknownOutcomeKeepsTheRejection: the error has the details of the
// rejection, but matches only ErrOutcomeUnknown.
func TestAnUnknownOutcomeKeepsTheRejection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(fail(errReset), reply(422, `{"title":"Validation Error","code":"TOKEN_ALREADY_USED"}`), reply(403, problem(403)))
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
		assert.Equal(t, []string{"unknown"}, kinds(err))
		e, ok := errors.AsType[*gateway.Error](err)
		require.True(t, ok)
		assert.Equal(t, "TOKEN_ALREADY_USED", e.Code)
		assert.Equal(t, 422, e.StatusCode)
		assert.Equal(t, "gateway: transactions.create: the outcome is unknown: 422 Validation Error (TOKEN_ALREADY_USED): "+
			"transactions.list: 403 Forbidden [2 attempts, reference order-1001]", err.Error())
	})
}

// TestALostSubscriptionThatConflictsIsUnknown: the error has the id that the
// 409 names.
func TestALostSubscriptionThatConflictsIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conflict := reply(409, `{"code":"IDEMPOTENCY_KEY_REUSED","instance":"/v2/subscriptions/sub-1"}`)
		params := gateway.SubscriptionParams{
			CustomerID: buyerID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth, IdempotencyKey: "s-1",
		}
		_, err := clientOf(t, play(fail(errReset), conflict)).Subscriptions.Create(t.Context(), params)
		outcome, ok := errors.AsType[*gateway.OutcomeError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, "sub-1", outcome.ResourceID)
		assert.Equal(t, "s-1", outcome.Reference)

		_, err = clientOf(t, play(conflict)).Subscriptions.Create(t.Context(), params)
		require.ErrorIs(t, err, gateway.ErrDuplicate, "no earlier attempt was lost")
		e, ok := errors.AsType[*gateway.Error](err)
		require.True(t, ok)
		assert.Equal(t, "sub-1", e.ResourceID)
	})
}

// paidOrder creates a paid transaction of 1000 on a gateway with the live dialect.
// It returns a client that loses the responses to its first n writes, a reliable
// client, and the transaction's id.
func paidOrder(t *testing.T, n int64, opts ...gateway.Option) (lossy, reliable *gateway.Client, id string) {
	t.Helper()
	gw := mockserver.Run(t, mockserver.WithDialect(mockserver.Live))
	order := pixOrder()
	order.Amount = 1000
	reliable = gw.Client(opts...)
	tx, err := reliable.Transactions.Create(t.Context(), order)
	require.NoError(t, err)
	require.NoError(t, gw.Transactions.Pay(tx.ID))
	return gw.Client(append(opts, losing(gw, func(write int64) bool { return write <= n }))...), reliable, tx.ID
}

func refunded(t *testing.T, c *gateway.Client, id string) int64 {
	t.Helper()
	tx, err := c.Transactions.Get(t.Context(), id)
	require.NoError(t, err)
	return tx.RefundedAmount
}

// TestALostRefundIsRefundedOnceWithItsKey: the client retries the refund with the
// same key.
func TestALostRefundIsRefundedOnceWithItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lossy, reliable, id := paidOrder(t, 2, gateway.WithIdempotencyKeys())
		refund, err := lossy.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 500})
		require.NoError(t, err)
		assert.Equal(t, int64(500), refund.AmountRefunded)
		assert.Equal(t, int64(500), refunded(t, reliable, id))
	})
}

// TestALostRefundIsRepeatedLaterWithItsKey: another process repeats the refund
// with the key from the error.
func TestALostRefundIsRepeatedLaterWithItsKey(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"", "refund-of-order-1001"} {
		synctest.Test(t, func(t *testing.T) {
			lossy, reliable, id := paidOrder(t, 3, gateway.WithIdempotencyKeys())
			var opts []gateway.RequestOption
			if own != "" {
				opts = append(opts, gateway.IdempotencyKey(own))
			}
			_, err := lossy.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 500}, opts...)
			outcome, ok := errors.AsType[*gateway.OutcomeError](err)
			require.True(t, ok, "%v", err)
			require.NotEmpty(t, outcome.IdempotencyKey)
			assert.Contains(t, err.Error(), outcome.IdempotencyKey)
			if own != "" {
				assert.Equal(t, own, outcome.IdempotencyKey)
			}
			time.Sleep(time.Hour)
			_, err = reliable.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 500}, gateway.IdempotencyKey(outcome.IdempotencyKey))
			require.NoError(t, err)
			assert.Equal(t, int64(500), refunded(t, reliable, id))

			_, err = reliable.Transactions.Refund(t.Context(), id, gateway.RefundParams{Amount: 400}, gateway.IdempotencyKey(outcome.IdempotencyKey))
			require.ErrorIs(t, err, gateway.ErrDuplicate, "the key belongs to another refund")
			assert.Equal(t, int64(500), refunded(t, reliable, id))
		})
	}
}

// TestAReusedIdempotencyKeyIsADefiniteError: this holds even after a lost
// response, because the lost request was rejected for the same reason.
func TestAReusedIdempotencyKeyIsADefiniteError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(fail(errReset), reply(409, `{"status":409,"code":"IDEMPOTENCY_KEY_REUSED"}`))
		_, err := clientOf(t, s, gateway.WithIdempotencyKeys()).Transactions.Refund(
			t.Context(), orderID, gateway.RefundParams{Amount: 5}, gateway.IdempotencyKey("k-1"))
		require.ErrorIs(t, err, gateway.ErrDuplicate)
		require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "the idempotency key k-1 was used before with another request")
	})
}

// TestAKeyWithoutTheOptionIsNotRetried: the write is repeated neither by the
// client nor by net/http, which replays requests that have the header and a body
// that can be read again, or none.
func TestAKeyWithoutTheOptionIsNotRetried(t *testing.T) {
	t.Parallel()
	var writes atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, transactionResponse(orderID, "order-1001", 15990))
			return
		}
		writes.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close() // applied, and the response is lost
		}
	}))
	t.Cleanup(server.Close)
	for name, write := range map[string]func(*gateway.Client, gateway.RequestOption) error{
		"a refund": func(c *gateway.Client, key gateway.RequestOption) error {
			_, err := c.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 500}, key)
			return err
		},
		"a POST without a body": func(c *gateway.Client, key gateway.RequestOption) error {
			return c.Do(t.Context(), http.MethodPost, "/v2/things/1/capture", nil, nil, key)
		},
		"a DELETE": func(c *gateway.Client, key gateway.RequestOption) error {
			return c.Do(t.Context(), http.MethodDelete, "/v2/things/1", nil, nil, key)
		},
	} {
		for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			writes.Store(0)
			client, err := gateway.New(server.URL, gateway.BearerToken(testKey))
			require.NoError(t, err)
			_, err = client.Transactions.Get(t.Context(), orderID) // leaves an idle connection
			require.NoError(t, err)
			require.ErrorIs(t, write(client, gateway.Header(header, "k-1")), gateway.ErrOutcomeUnknown, "%s, %s", name, header)
			assert.Equal(t, int32(1), writes.Load(), "%s, %s", name, header)
			client.CloseIdleConnections()
		}
	}
}

// TestErrNotSentOverARealNetwork: nothing is sent if a proxy refuses the CONNECT,
// if the TLS handshake fails, or if no process listens on the port.
func TestErrNotSentOverARealNetwork(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(proxy.Close)
	proxyURL, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	foreign := httptest.NewUnstartedServer(http.NotFoundHandler())
	foreign.Config.ErrorLog = log.New(io.Discard, "", 0)
	foreign.StartTLS()
	t.Cleanup(foreign.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, tc := range map[string]struct {
		url       string
		transport *http.Transport
		attempts  int
	}{
		"refused CONNECT":   {"https://gateway.example", &http.Transport{Proxy: http.ProxyURL(proxyURL)}, 1},
		"wrong certificate": {foreign.URL, &http.Transport{}, 1},
		"no TLS":            {"https://" + plain.Listener.Addr().String(), &http.Transport{}, 1},
		"no common TLS version": {foreign.URL, &http.Transport{
			TLSClientConfig: &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, InsecureSkipVerify: true},
		}, 1},
		"handshake cut off": {"https://" + closing(t), &http.Transport{}, 2},
		"closed port":       {"http://" + closed(t), &http.Transport{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(tc.transport.CloseIdleConnections)
			client, err := gateway.New(tc.url, gateway.BearerToken(testKey), gateway.WithHTTPClient(&http.Client{Transport: tc.transport}),
				gateway.WithMaxAttempts(2), gateway.WithBackoff(time.Microsecond, time.Microsecond))
			require.NoError(t, err)
			_, err = client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 500})
			assert.Equal(t, []string{"not sent"}, kinds(err), "%v", err)
			e, ok := errors.AsType[*gateway.Error](err)
			require.True(t, ok)
			assert.Equal(t, tc.attempts, e.Attempts, "%v", err)
		})
	}
}

// TestAReplayDoesNotHideThatARequestWasSent: net/http sent it, lost the
// connection, and could not dial again.
func TestAReplayDoesNotHideThatARequestWasSent(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for n := range 2 {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if n == 0 {
				body := transactionResponse(orderID, "order-1001", 15990)
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				continue
			}
			_ = listener.Close()
		}
	}()
	client, err := gateway.New("http://"+listener.Addr().String(), gateway.BearerToken(testKey), gateway.WithIdempotencyKeys())
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	_, err = client.Transactions.Get(t.Context(), orderID)
	require.NoError(t, err)
	_, err = client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 500}, gateway.MaxAttempts(1))
	assert.Equal(t, []string{"unknown"}, kinds(err), "%v", err)
}

// TestARejectedReplayLeavesTheOutcomeUnknown: the first request is applied and
// its connection is reset, net/http replays it because it has a key, and the
// replay is rejected. A merchant who trusts the rejection would refund again.
func TestARejectedReplayLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *gateway.Client) error{
		"with a body": func(ctx context.Context, client *gateway.Client) error {
			_, err := client.Transactions.Refund(ctx, orderID, gateway.RefundParams{Amount: 500}, gateway.MaxAttempts(1))
			return err
		},
		"without a body": func(ctx context.Context, client *gateway.Client) error {
			_, err := client.Transfers.Cancel(ctx, orderID, gateway.TransferCancelParams{}, gateway.MaxAttempts(1))
			return err
		},
	} {
		for _, status := range []int{400, 401, 403, 404, 409, 422, 429} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				t.Parallel()
				var writes atomic.Int32
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case r.Method == http.MethodGet:
						_, _ = io.WriteString(w, transactionResponse(orderID, "order-1001", 15990))
					case writes.Add(1) == 1:
						conn, _, err := http.NewResponseController(w).Hijack()
						if err == nil {
							_ = conn.Close()
						}
					default:
						w.WriteHeader(status)
						_, _ = fmt.Fprintf(w, `{"status":%d}`, status)
					}
				}))
				t.Cleanup(server.Close)
				client, err := gateway.New(server.URL, gateway.BearerToken(testKey), gateway.WithIdempotencyKeys(),
					gateway.WithHTTPClient(&http.Client{Transport: &http.Transport{}}))
				require.NoError(t, err)
				t.Cleanup(client.CloseIdleConnections)
				_, err = client.Transactions.Get(t.Context(), orderID) // leaves an idle connection
				require.NoError(t, err)

				err = call(t.Context(), client)
				assert.Equal(t, int32(2), writes.Load(), "net/http replays the request")
				assert.Equal(t, []string{"unknown"}, kinds(err), "%v", err)
			})
		}
	}
}

// closing returns the address of a server that closes every connection.
func closing(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// closed returns an address that no process listens on. An outgoing connection
// keeps its port until the test ends, so no other process can take it.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return conn.LocalAddr().String()
}

// TestAnErrorDoesNotRepeatItself: the detail and the fields may have the same
// text.
func TestAnErrorDoesNotRepeatItself(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"detail":"trial_end must be in the future.","errors":[{"field":"trial_end","message":"must be in the future"}]}`: "trial_end must be in the future",
		`{"detail":"must be in the future.","errors":[{"field":"trial_end","message":"must be in the future"}]}`:           "trial_end must be in the future",
		`{"detail":"See below.","errors":[{"field":"amount","message":"is required"}]}`:                                    "See below: amount is required",
	} {
		_, err := clientOf(t, play(reply(422, body))).Transactions.Get(t.Context(), orderID)
		text := "gateway: transactions.get: 422 Unprocessable Entity"
		if want != "" {
			text += ": " + want
		}
		require.EqualError(t, err, text)
	}
}

// TestFindByExternalRefReadsTheTransactionThatTheConflictNames: a 409 names the
// transaction, which makes the search unnecessary.
func TestFindByExternalRefReadsTheTransactionThatTheConflictNames(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 3)
	first, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{})
	require.NoError(t, err)
	_, err = client.Transactions.Create(t.Context(), pixCharge("order-1"))
	e, ok := errors.AsType[*gateway.Error](err)
	require.True(t, ok)
	assert.Equal(t, first.ID, e.ResourceID)

	var resp gateway.Response
	found, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{ID: e.ResourceID}, gateway.ResponseInto(&resp))
	require.NoError(t, err)
	assert.Equal(t, first.ID, found.ID)

	found, err = client.Transactions.FindByExternalRef(t.Context(), "order-2", gateway.FindOptions{ID: e.ResourceID})
	require.NoError(t, err, "a transaction with another reference is ignored")
	assert.Equal(t, "order-2", found.ExternalRef)
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-9", gateway.FindOptions{ID: buyerID})
	require.EqualError(t, err, "gateway: transactions.find_by_external_ref: no transaction has this reference (3 checked) [reference order-9]")
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-9", gateway.FindOptions{MaxPages: -1})
	require.ErrorIs(t, err, gateway.ErrValidation)
}

func TestFindByExternalRefReadsNothingNewerThanUntil(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	first := gw.Clock.Now()
	for _, ref := range []string{"order-1", "order-2"} {
		_, err := client.Transactions.Create(t.Context(), pixCharge(ref))
		require.NoError(t, err)
		require.NoError(t, gw.Clock.Advance(time.Hour))
	}
	find := gateway.FindOptions{Since: first, Until: first.Add(time.Minute)}
	_, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", find)
	require.NoError(t, err)
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-2", find)
	require.ErrorIs(t, err, gateway.ErrNotFound)
	require.ErrorContains(t, err, "no transaction from 2027-01-04T12:00:00Z up to 2027-01-04T12:01:00Z has this reference (1 checked)")

	find.Until = first.Add(-time.Second)
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-1", find)
	require.ErrorContains(t, err, "until must not be before since")
}

// TestFindByExternalRefBounds: the search reads ten pages by default, and all
// pages back to Since if it is set.
func TestFindByExternalRefBounds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		find  gateway.FindOptions
		pages int32
		is    error
		text  string
	}{
		"no bound": {gateway.FindOptions{}, 10, gateway.ErrOutcomeUnknown, "no transaction with this reference was found (10 checked, back to "},
		"pages":    {gateway.FindOptions{MaxPages: 3}, 3, gateway.ErrOutcomeUnknown, "no transaction with this reference was found (3 checked, back to "},
		"since":    {gateway.FindOptions{Since: time.Now()}, 30, gateway.ErrNotFound, "(30 checked)"},
		"enough":   {gateway.FindOptions{MaxPages: 30}, 30, gateway.ErrNotFound, "(30 checked)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pages atomic.Int32
			client := clientOf(t, roundTrip(func(r *http.Request) (*http.Response, error) {
				n, next := pages.Add(1), ""
				if n < 30 {
					next = fmt.Sprintf("c%d", n)
				}
				return reply(200, fmt.Sprintf(`{"success":true,"data":[%s],"next_cursor":%q}`,
					transactionJSON("x", fmt.Sprintf("other-%d", n), 1), next))(r)
			}))
			_, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", tc.find)
			require.ErrorIs(t, err, tc.is)
			assert.Len(t, kinds(err), 1)
			assert.Equal(t, tc.pages, pages.Load())
			require.ErrorContains(t, err, tc.text)
		})
	}
}

// TestRefusalReason: the reason is in the Informations of a refused transaction.
func TestRefusalReason(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	for token, want := range map[gateway.CardToken]string{
		"pgct_refused_insufficient_funds": "insufficient_funds", "pgct_refused_fraud": "fraud", "pgct_refused": "declined", "pgct_paid": "",
	} {
		order := pixOrder()
		order.Method, order.Token, order.ExternalRef = gateway.CreditCard, token, string(token)
		tx, err := gw.Client().Transactions.Create(t.Context(), order)
		require.NoError(t, err)
		assert.Equal(t, want, tx.RefusalReason(), token)
	}
}

// TestARepeatOfALostCallBehavesLikeItsSecondAttempt: a process died after it
// sent the call, and another process repeats it.
func TestARepeatOfALostCallBehavesLikeItsSecondAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		item := transactionJSON(orderID, "order-1001", 15990)
		repeat := gateway.FirstSent(time.Now().Add(-time.Hour))
		for _, rejection := range []roundTrip{reply(409, problem(409)), reply(422, `{"code":"TOKEN_ALREADY_USED"}`)} {
			s := play(rejection, reply(200, fmt.Sprintf(`{"success":true,"data":[%s]}`, item)), reply(200, fmt.Sprintf(`{"success":true,"data":%s}`, item)))
			var resp gateway.Response
			tx, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), repeat, gateway.ResponseInto(&resp))
			require.NoError(t, err)
			assert.Equal(t, orderID, tx.ID)
			assert.True(t, resp.Recovered)
		}
		for _, rejection := range []roundTrip{reply(401, problem(401)), reply(409, problem(409)), reply(422, problem(422)), reply(429, problem(429)), fail(errReset)} {
			_, err := clientOf(t, play(rejection)).Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 5}, repeat, gateway.MaxAttempts(1))
			assert.Equal(t, []string{"unknown"}, kinds(err))
		}
		_, err := clientOf(t, play(reply(404, problem(404)))).Transactions.Get(t.Context(), orderID, repeat)
		require.ErrorIs(t, err, gateway.ErrNotFound, "a read has no outcome")
		_, err = clientOf(t, play()).Transactions.Create(t.Context(), pixOrder(), gateway.FirstSent(time.Time{}))
		require.ErrorIs(t, err, gateway.ErrValidation)
	})
}

// TestARepeatThatIsNotSentDecidesNothing: the client rejects the params of a
// repeat, but the first call may have been applied.
func TestARepeatThatIsNotSentDecidesNothing(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client()
	order := pixCharge("order-1")
	order.Method, order.Token = gateway.CreditCard, "pgct_captured"
	first, err := client.Transactions.Create(t.Context(), order)
	require.NoError(t, err)

	order.Token = "" // a token is not stored
	var resp gateway.Response
	again, err := client.Transactions.Create(t.Context(), order, gateway.FirstSent(time.Now()), gateway.ResponseInto(&resp))
	require.NoError(t, err)
	assert.Equal(t, first.ID, again.ID)
	assert.True(t, resp.Recovered)

	order.ExternalRef = "order-2"
	_, err = client.Transactions.Create(t.Context(), order, gateway.FirstSent(time.Now()), gateway.ResponseInto(&resp))
	assert.Equal(t, []string{"unknown"}, kinds(err))
	require.EqualError(t, err, "gateway: transactions.create: the outcome is unknown: the repeat is invalid and was not sent: "+
		"token is required: no resource with the reference was found (1 checked) [reference order-2]")
	assert.Equal(t, "order-2", resp.Reference)
	e, ok := errors.AsType[*gateway.Error](err)
	require.True(t, ok)
	assert.Equal(t, "token", e.Fields[0].Field)
	require.NotErrorIs(t, e, gateway.ErrNotSent, "the first call was sent")

	order.Metadata = "\xff"
	_, err = client.Transactions.Create(t.Context(), order, gateway.FirstSent(time.Now()))
	assert.Equal(t, []string{"unknown"}, kinds(err))
	require.ErrorContains(t, err, "invalid UTF-8")
	order.Metadata = ""

	order.ExternalRef = ""
	_, err = client.Transactions.Create(t.Context(), order)
	require.ErrorIs(t, err, gateway.ErrValidation, "this is no repeat")
	_, err = client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{IdempotencyKey: "club-1"}, gateway.FirstSent(time.Now()))
	assert.Equal(t, []string{"unknown"}, kinds(err))
	_, err = client.Transactions.Create(t.Context(), pixCharge("order-3"), gateway.FirstSent(time.Now()), gateway.BodyField("amount", func() {}))
	assert.Equal(t, []string{"validation"}, kinds(err), "an invalid option")
	assert.Len(t, gw.Requests.Find("transactions.create"), 1)
}

// TestTheReasonFollowsTheDetail: a detail ends with a full stop, and the message
// goes on.
func TestTheReasonFollowsTheDetail(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	require.NoError(t, gw.Faults.Add(mockserver.Status(422).On("transactions.create")))
	_, err := gw.Client().Transactions.Create(t.Context(), pixCharge("order-1"), gateway.FirstSent(time.Now()))
	require.ErrorContains(t, err, "The mock gateway has injected this error: no resource with the reference was found (0 checked)")
}

// TestARepeatNeedsAReference: with a generated one, the repeat would be a second
// charge.
func TestARepeatNeedsAReference(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client, repeat := gw.Client(), gateway.FirstSent(time.Now())
	_, err := client.Transactions.Create(t.Context(), pixCharge(""), repeat)
	require.EqualError(t, err, "gateway: transactions.create: invalid request: external_ref is required for a repeat: pass the reference of the earlier call")
	invalid, ok := errors.AsType[*gateway.ValidationError](err)
	require.True(t, ok)
	assert.Equal(t, "required", invalid.Fields[0].Code)
	_, err = client.Transactions.Create(t.Context(), pixCharge(""), repeat, gateway.IdempotencyKey("order-1"))
	require.ErrorIs(t, err, gateway.ErrValidation, "the first body had another reference")
	_, err = client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"}, repeat)
	require.ErrorContains(t, err, "externalRef is required for a repeat")
	_, err = client.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{}, repeat)
	require.ErrorContains(t, err, "idempotency_key is required for a repeat")
	_, err = client.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"}, repeat, gateway.IdempotencyKey("customer-1"))
	require.NoError(t, err)
	assert.Len(t, gw.Requests.Find(""), 1)
}

// TestARepeatOfAnOldCallOnABusyAccount: the 409 names no id, and more
// transactions have been created since than a search reads.
func TestARepeatOfAnOldCallOnABusyAccount(t *testing.T) {
	t.Parallel()
	sent := time.Now().Add(-3 * time.Hour)
	gw := mockserver.Run(t, mockserver.WithStart(sent), mockserver.WithDialect(mockserver.Live))
	client := gw.Client()
	first, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
	require.NoError(t, err)
	require.NoError(t, gw.Clock.Advance(3*time.Hour))
	for i := range 1001 {
		_, err = client.Transactions.Create(t.Context(), pixCharge(fmt.Sprintf("later-%d", i)))
		require.NoError(t, err)
	}

	var resp gateway.Response
	again, err := client.Transactions.Create(t.Context(), pixCharge("order-1"), gateway.FirstSent(sent), gateway.ResponseInto(&resp))
	require.NoError(t, err)
	assert.Equal(t, first.ID, again.ID)
	assert.True(t, resp.Recovered)
}

// TestRepeatOfTakesTheErrorOfTheEarlierCall: the repeat has the reference or the key
// of the earlier call, even if the client generated it.
func TestRepeatOfTakesTheErrorOfTheEarlierCall(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client(gateway.WithMaxAttempts(1))
	lose := func(operation string) {
		t.Helper()
		require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On(operation).Times(1)))
	}

	lose("transactions.create")
	before := time.Now()
	_, lost := client.Transactions.Create(t.Context(), pixCharge(""))
	first, ok := errors.AsType[*gateway.OutcomeError](lost)
	require.True(t, ok, "%v", lost)
	assert.WithinRange(t, first.Sent, before, time.Now())
	var resp gateway.Response
	tx, err := client.Transactions.Create(t.Context(), pixCharge(""), gateway.RepeatOf(lost), gateway.ResponseInto(&resp))
	require.NoError(t, err)
	assert.Equal(t, first.Reference, tx.ExternalRef)
	assert.True(t, resp.Recovered)
	assert.Equal(t, first.Reference, resp.Reference)

	require.NoError(t, gw.Faults.Add(mockserver.Status(500).On("transactions.create").Times(1)))
	_, again := client.Transactions.Create(t.Context(), pixCharge(""), gateway.RepeatOf(lost))
	second, ok := errors.AsType[*gateway.OutcomeError](again)
	require.True(t, ok, "%v", again)
	assert.Equal(t, first.Sent, second.Sent, "the time of the first call")
	assert.Equal(t, first.Reference, second.Reference)

	_, err = client.Transactions.Create(t.Context(), pixCharge("order-2"), gateway.RepeatOf(lost))
	require.EqualError(t, err, "gateway: transactions.create: invalid request: external_ref must be that of the earlier call")
	_, err = client.Transactions.Create(t.Context(), pixCharge(""), gateway.RepeatOf(lost), gateway.BodyField("external_ref", nil))
	require.ErrorContains(t, err, "external_ref must be that of the earlier call")
	_, err = client.Transactions.Create(t.Context(), pixCharge(""), gateway.RepeatOf(lost), gateway.IdempotencyKey("k"))
	require.ErrorContains(t, err, "the IdempotencyKey is not that of the earlier call")
	_, err = client.Transfers.Create(t.Context(), gateway.TransferParams{}, gateway.RepeatOf(lost))
	require.ErrorContains(t, err, "RepeatOf: the error is that of transactions.create")
	_, err = gw.Client(gateway.WithAccount("shop-mx")).Transactions.Create(t.Context(), pixCharge(""), gateway.RepeatOf(lost))
	require.ErrorContains(t, err, "RepeatOf: the error is that of a client with another account")
	for _, definite := range []error{nil, gateway.ErrNotSent, &gateway.Error{}, &gateway.OutcomeError{}} {
		_, err = client.Transactions.Create(t.Context(), pixCharge("order-1"), gateway.RepeatOf(definite))
		require.EqualError(t, err, "gateway: transactions.create: RepeatOf needs the error of the earlier call, which must match ErrOutcomeUnknown")
	}
	assert.Len(t, gw.Requests.Find("transactions.create"), 3)

	require.NoError(t, gw.Transactions.Pay(tx.ID))
	lose("transactions.refund")
	_, lost = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 100})
	_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 100}, gateway.RepeatOf(lost))
	require.ErrorContains(t, err, "a repeat of this call may be applied twice")
	require.ErrorIs(t, err, gateway.ErrValidation)
	assert.Len(t, gw.Requests.Find("transactions.refund"), 1)

	s := play(fail(errReset), reply(200, `{"success":true,"data":{"amount_refunded":200}}`))
	keyed := clientOf(t, s, gateway.WithMaxAttempts(1), gateway.WithIdempotencyKeys())
	_, lost = keyed.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 200})
	require.ErrorIs(t, lost, gateway.ErrOutcomeUnknown)
	_, err = keyed.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 200}, gateway.RepeatOf(lost))
	require.NoError(t, err)
	assert.NotEmpty(t, s.requests[0].Header.Get("Idempotency-Key"))
	assert.Equal(t, s.requests[0].Header.Get("Idempotency-Key"), s.requests[1].Header.Get("Idempotency-Key"))
}

// TestARepeatOfACallWithoutAReference: a new reference would be a second charge.
func TestARepeatOfACallWithoutAReference(t *testing.T) {
	t.Parallel()
	gw := mockserver.Run(t)
	client := gw.Client(gateway.WithMaxAttempts(1), gateway.WithAutoReference(false))
	require.NoError(t, gw.Faults.Add(mockserver.LoseResponse().On("transactions.create").Times(1)))
	_, lost := client.Transactions.Create(t.Context(), pixCharge(""))
	require.ErrorIs(t, lost, gateway.ErrOutcomeUnknown)
	for _, reference := range []string{"", "order-1"} {
		for _, client := range []*gateway.Client{client, gw.Client()} {
			_, err := client.Transactions.Create(t.Context(), pixCharge(reference), gateway.RepeatOf(lost))
			require.ErrorIs(t, err, gateway.ErrValidation)
		}
	}
	assert.Len(t, gw.Requests.Find("transactions.create"), 1)
}
