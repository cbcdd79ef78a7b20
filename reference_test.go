package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// transactionResponse is the response to a create or a read of pixOrder.
func transactionResponse(id, reference string, amount int) string {
	return fmt.Sprintf(`{"success":true,"requestId":"r-1","data":%s}`, transactionJSON(id, reference, amount))
}

func transactionJSON(id, reference string, amount int) string {
	return fmt.Sprintf(`{"id":%q,"external_ref":%q,"amount":%d,"currency":"BRL","method":"pix","status":"pending",`+
		`"created_at":"2027-01-04T12:00:00.000Z"}`, id, reference, amount)
}

// duplicate is the rejection of a reused reference; instance may be "".
func duplicate(instance string) string {
	return fmt.Sprintf(`{"title":"Conflict","status":409,"code":"DUPLICATE_EXTERNAL_REF","instance":%q}`, instance)
}

func sentReference(t *testing.T, body string) string {
	t.Helper()
	var sent struct {
		Ref string `json:"external_ref"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &sent))
	return sent.Ref
}

func TestAutomaticReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := pixOrder()
		order.ExternalRef = ""
		s := play(fail(errReset), reply(500, ""), reply(201, transactionResponse(orderID, "", 15990)))
		client := clientOf(t, s)
		var resp gateway.Response
		_, err := client.Transactions.Create(t.Context(), order, gateway.ResponseInto(&resp))
		require.NoError(t, err)
		ref := sentReference(t, s.bodies[0])
		require.NoError(t, uuid.Validate(ref))
		assert.Equal(t, ref, resp.Reference)
		assert.Equal(t, s.bodies[0], s.bodies[1])
		assert.Equal(t, s.bodies[0], s.bodies[2])
		assert.True(t, json.Valid([]byte(s.bodies[0])))

		s.steps = append(s.steps, reply(201, transactionResponse(orderID, "", 15990)))
		_, err = client.Transactions.Create(t.Context(), order)
		require.NoError(t, err)
		assert.NotEqual(t, ref, sentReference(t, s.bodies[3]), "each call generates its own reference")
	})
}

func TestAutomaticReferenceIsInEveryError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := pixOrder()
		order.ExternalRef = ""
		s := play(reply(422, problem(422)))
		var resp gateway.Response
		_, err := clientOf(t, s).Transactions.Create(t.Context(), order, gateway.ResponseInto(&resp))
		var e *gateway.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, sentReference(t, s.bodies[0]), e.Reference)
		assert.Equal(t, e.Reference, resp.Reference)
		assert.Equal(t, 422, resp.StatusCode)
		assert.Contains(t, err.Error(), e.Reference)
	})
}

// TestWithoutAutomaticReference: a create without a reference is not retried.
func TestWithoutAutomaticReference(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		order := pixOrder()
		order.ExternalRef = ""
		s := play(fail(errReset))
		_, err := clientOf(t, s, gateway.WithAutoReference(false)).Transactions.Create(t.Context(), order)
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		assert.Len(t, s.at, 1)
		assert.Empty(t, sentReference(t, s.bodies[0]))
	})
}

func TestReferenceAsBodyField(t *testing.T) {
	t.Parallel()
	order := pixOrder()
	order.ExternalRef = ""
	s := play(reply(201, transactionResponse(orderID, "mine", 15990)))
	var resp gateway.Response
	_, err := clientOf(t, s).Transactions.Create(t.Context(), order, gateway.BodyField("external_ref", "mine"), gateway.ResponseInto(&resp))
	require.NoError(t, err)
	assert.Equal(t, "mine", resp.Reference)
	assert.Equal(t, 1, strings.Count(s.bodies[0], "external_ref"))
}

// TestRecovery covers a 409 that an earlier attempt of the same call caused.
func TestRecovery(t *testing.T) {
	t.Parallel()
	instance := "/v2/transactions/" + orderID
	listPage := func(next string, items ...string) string {
		return fmt.Sprintf(`{"success":true,"data":{"data":[%s],"total":9,"next_cursor":%q,"prev_cursor":null}}`, strings.Join(items, ","), next)
	}
	other := transactionJSON("00000000-0000-7000-8000-000000000001", "order-0001", 1)
	mine := transactionJSON(orderID, "order-1001", 15990)
	for name, steps := range map[string][]roundTrip{
		"by instance": {
			fail(errReset), reply(409, duplicate(instance)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"by instance below a prefix": {
			reply(500, ""), reply(409, duplicate("https://api.gateway.example/eu"+instance)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"on the third attempt": {
			fail(errReset), reply(503, ""), reply(409, duplicate(instance)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"rate limited in between": {
			fail(errReset), reply(429, problem(429)), reply(409, duplicate(instance)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"by the list": {
			fail(errReset), reply(409, `{"error":"DUPLICATE_EXTERNAL_REF","message":"…","status":409}`),
			reply(200, listPage("", other, mine)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"by the second page of the list": {
			fail(errReset), reply(409, "<html>"), reply(200, listPage("c2", other)), reply(200, listPage("", mine)),
			reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"instance of the request itself": {
			fail(errReset), reply(409, duplicate("/v2/transactions")),
			reply(200, listPage("", mine)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"instance of another transaction": {
			fail(errReset), reply(409, duplicate("/v2/transactions/"+buyerID)), reply(200, transactionResponse(buyerID, "order-7", 15990)),
			reply(200, listPage("", mine)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
		"instance that does not exist": {
			fail(errReset), reply(409, duplicate("/v2/transactions/"+buyerID)), reply(404, problem(404)),
			reply(200, listPage("", mine)), reply(200, transactionResponse(orderID, "order-1001", 15990)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(steps...)
				var resp gateway.Response
				got, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.ResponseInto(&resp))
				require.NoError(t, err)
				assert.Equal(t, orderID, got.ID)
				assert.True(t, resp.Recovered)
				assert.False(t, resp.Existing)
				assert.Equal(t, "order-1001", resp.Reference)
				assert.Len(t, s.at, len(steps))
			})
		})
	}
}

func TestNoRecovery(t *testing.T) {
	t.Parallel()
	instance := "/v2/transactions/" + orderID
	for name, tc := range map[string]struct {
		steps    []roundTrip
		unknown  bool
		existing bool
	}{
		"the caller's own duplicate": {[]roundTrip{reply(409, duplicate(instance))}, false, false},
		"nothing was sent before":    {[]roundTrip{fail(errDial), reply(409, duplicate(instance))}, false, false},
		"limited before":             {[]roundTrip{reply(429, problem(429)), reply(409, duplicate(instance))}, false, false},
		"another amount": {[]roundTrip{
			fail(errReset), reply(409, duplicate(instance)), reply(200, transactionResponse(orderID, "order-1001", 1)),
		}, false, true},
		"not found": {[]roundTrip{
			fail(errReset), reply(409, duplicate("")), reply(200, `{"success":true,"data":[]}`),
		}, true, false},
		"the search is rejected": {[]roundTrip{
			fail(errReset), reply(409, duplicate("")), reply(403, problem(403)),
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(tc.steps...)
				_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
				assert.Equal(t, !tc.unknown, errors.Is(err, gateway.ErrDuplicate))
				assert.Equal(t, !tc.unknown, errors.Is(err, gateway.ErrConflict))
				assert.Len(t, s.at, len(tc.steps))
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, "order-1001", e.Reference)
				assert.Equal(t, "transactions.create", e.Op)
				var outcome *gateway.OutcomeError
				assert.Equal(t, tc.unknown, errors.As(err, &outcome), "%v", err)
				if tc.existing {
					existing, ok := e.Existing.(*gateway.Transaction)
					require.True(t, ok)
					assert.Equal(t, int64(1), existing.Amount)
				}
			})
		})
	}
}

// TestRecoveryUsesTheSameCredential: the reads of a recovery use the credential of
// the create.
func TestRecoveryUsesTheSameCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(fail(errReset), reply(409, duplicate("/v2/transactions/"+orderID)), reply(200, transactionResponse(orderID, "order-1001", 15990)))
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.UseCredential(gateway.APIKey("sk_test_other")))
		require.NoError(t, err)
		for _, r := range s.requests {
			assert.Equal(t, "sk_test_other", r.Header.Get("Apikey"))
			assert.Empty(t, r.Header.Get("Authorization"))
		}
	})
}

// TestRecoverySearchEnds: the search stops after a few pages of an endless
// list, and at items older than the call.
func TestRecoverySearchEnds(t *testing.T) {
	t.Parallel()
	page := func(n int, created time.Time) roundTrip {
		return reply(200, fmt.Sprintf(`{"success":true,"data":[{"id":"x","external_ref":"order-%d","created_at":%q}],"next_cursor":"c%d"}`,
			n, created.Format(time.RFC3339), n))
	}
	newest := time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC) // by the gateway's clock
	for name, tc := range map[string]struct {
		gap   time.Duration
		pages int
	}{
		"new items": {time.Millisecond, 10},
		"old items": {30 * time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := play(fail(errReset), reply(409, duplicate("")))
				for n := range 20 {
					s.steps = append(s.steps, page(n, newest.Add(-time.Duration(n)*tc.gap)))
				}
				_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
				require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
				assert.Len(t, s.at, 2+tc.pages)
				for _, r := range s.requests[2:] {
					assert.Equal(t, "100", r.URL.Query().Get("limit"))
				}
			})
		})
	}
}

// TestOlderResource covers creates for which the gateway returns an existing
// resource.
func TestOlderResource(t *testing.T) {
	t.Parallel()
	t.Run("equal, 200", func(t *testing.T) {
		t.Parallel()
		s := play(reply(200, transactionResponse(orderID, "order-1001", 15990)))
		var resp gateway.Response
		_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.ResponseInto(&resp))
		require.NoError(t, err)
		assert.True(t, resp.Existing)
		assert.False(t, resp.Recovered)
	})
	t.Run("equal, after a lost response", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := play(fail(errReset), reply(200, transactionResponse(orderID, "order-1001", 15990)))
			var resp gateway.Response
			_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.ResponseInto(&resp))
			require.NoError(t, err)
			assert.True(t, resp.Existing)
			assert.True(t, resp.Recovered)
		})
	})
	for status, want := range map[int]error{
		http.StatusOK:      gateway.ErrDuplicate,
		http.StatusCreated: gateway.ErrOutcomeUnknown, // something was created
	} {
		t.Run(fmt.Sprintf("different, %d", status), func(t *testing.T) {
			t.Parallel()
			s := play(reply(status, transactionResponse(orderID, "order-1001", 100)))
			_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder())
			require.ErrorIs(t, err, want)
			require.Equal(t, want == gateway.ErrDuplicate, errors.Is(err, gateway.ErrDuplicate)) //nolint:errorlint // not wrapped
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			existing, ok := e.Existing.(*gateway.Transaction)
			require.True(t, ok)
			assert.Equal(t, int64(100), existing.Amount)
		})
	}
}

// TestATruncatedResponseNamesTheResource: a truncated response still names the
// resource if it contains the id.
func TestATruncatedResponseNamesTheResource(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, id, status string }{
		"cut":                {`{"success":true,"requestId":"r-9","data":{"id":"tx-1","status":"paid","amount":15`, "tx-1", "paid"},
		"another type":       {`{"success":true,"data":{"id":"tx-1","amount":{"value":1},"status":"paid"}}`, "tx-1", "paid"},
		"a fraction":         {`{"success":true,"data":{"id":"tx-1","amount":12.5,"status":"pending"}}`, "tx-1", "pending"},
		"the id is a number": {`{"data":{"id":17,"amount":true}}`, "17", ""},
		"wrapped":            {`{"data":{"transaction":{"id":"tx-1","status":"paid"},"amount":[1]}}`, "tx-1", "paid"},
		"no data":            {`{"success":true}`, "", ""},
		"null":               {`{"success":true,"data":null}`, "", ""},
		"html":               {`<html>created</html>`, "", ""},
		"nothing":            {``, "", ""},
		"bare resource":      {`{"id":"tx-1","status":"paid"}`, "tx-1", "paid"},
		"an array as data":   {`{"success":true,"data":[1]}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(reply(201, tc.body))
			_, err := clientOf(t, s).Transactions.Create(t.Context(), pixOrder(), gateway.MaxAttempts(1))
			var outcome *gateway.OutcomeError
			require.ErrorAs(t, err, &outcome)
			assert.Equal(t, tc.id, outcome.ResourceID)
			assert.Equal(t, tc.status, outcome.ResourceStatus)
			assert.Equal(t, "order-1001", outcome.Reference)
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, 201, e.StatusCode)
			assert.Equal(t, tc.body, string(e.Body))
			assert.NotContains(t, err.Error(), "15", "the text of the response is not printed")
		})
	}
}

// TestReferenceGivenAsNull: a field set by the caller is not sent twice.
func TestReferenceGivenAsNull(t *testing.T) {
	t.Parallel()
	order := pixOrder()
	order.ExternalRef = ""
	s := play(fail(errReset))
	_, err := clientOf(t, s).Transactions.Create(t.Context(), order, gateway.BodyField("external_ref", nil))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	assert.Len(t, s.at, 1, "a create without a reference is not retried")
	assert.Equal(t, 1, strings.Count(s.bodies[0], "external_ref"))
}

// TestAnUnreadableResponseIsNotAProblem: the fields of a resource are not read as
// those of an error.
func TestAnUnreadableResponseIsNotAProblem(t *testing.T) {
	t.Parallel()
	body := `{"success":true,"requestId":"r-9","data":{"id":"tx-1","type":"x","code":"A_CODE","title":"T","detail":"D","errors":[{"field":"f"}],"amount":[1]}}`
	for _, step := range []roundTrip{reply(201, body), cut(201, body[:120])} {
		_, err := clientOf(t, play(step)).Transactions.Create(t.Context(), pixOrder(), gateway.MaxAttempts(1))
		var e *gateway.Error
		require.ErrorAs(t, err, &e)
		assert.Empty(t, e.Code+e.Type+e.Detail)
		assert.Empty(t, e.Fields)
		assert.Contains(t, err.Error(), "201 ")
	}
}

// losingResponses returns a client that loses the responses to its first n writes,
// and a reliable client of the same gateway.
func losingResponses(t *testing.T, n int64) (lossy, reliable *gateway.Client) {
	t.Helper()
	gw := mockserver.Run(t)
	return gw.Client(losing(gw, func(write int64) bool { return write <= n })), gw.Client()
}

func TestALostSubscriptionIsNotCreatedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, key := range []string{"order-17", ""} { // the caller's key, and one that the client generates
			lossy, reliable := losingResponses(t, 1)
			customer, err := reliable.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
			require.NoError(t, err)
			var response gateway.Response
			sub, err := lossy.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
				CustomerID: customer.ID, Amount: 4990, Token: gateway.CardToken("pgct_ok_" + key), Interval: gateway.IntervalMonth,
				IdempotencyKey: key,
			}, gateway.ResponseInto(&response))
			require.NoError(t, err)
			assert.Equal(t, gateway.SubscriptionActive, sub.Status)
			assert.Equal(t, 2, response.Attempts)
			assert.NotEmpty(t, response.Reference)

			all, err := gateway.Collect(reliable.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}), 0)
			require.NoError(t, err)
			assert.Len(t, all, 1)
			charges, err := gateway.Collect(reliable.Transactions.All(t.Context(), gateway.TransactionListParams{}), 0)
			require.NoError(t, err)
			assert.Len(t, charges, 1, "it was charged once")
		}
	})
}

func TestALostSubscriptionWithoutAKeyIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lossy, reliable := losingResponses(t, 1)
		lossy, err := lossy.With(gateway.WithAutoReference(false))
		require.NoError(t, err)
		customer, err := reliable.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(t, err)
		_, err = lossy.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
		})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		all, err := gateway.Collect(reliable.Subscriptions.All(t.Context(), gateway.SubscriptionListParams{}), 0)
		require.NoError(t, err)
		assert.Len(t, all, 1, "the create was not repeated")
	})
}

// A write without a key is sent only once. The caller must read the resource to see
// whether it was applied.
func TestLostWritesWithoutAKeyAreUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lossy, reliable := losingResponses(t, 4)
		customer, err := reliable.Customers.Create(t.Context(), gateway.CustomerParams{Name: "Ana", Email: "ana@example.com"})
		require.NoError(t, err)
		sub, err := reliable.Subscriptions.Create(t.Context(), gateway.SubscriptionParams{
			CustomerID: customer.ID, Amount: 4990, Token: "pgct_ok", Interval: gateway.IntervalMonth,
		})
		require.NoError(t, err)

		_, err = lossy.Subscriptions.Update(t.Context(), sub.ID, gateway.SubscriptionUpdateParams{FailurePolicy: gateway.ImmediateCancel})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		_, err = lossy.Subscriptions.Cancel(t.Context(), sub.ID, gateway.SubscriptionCancelParams{})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		var outcome *gateway.OutcomeError
		require.ErrorAs(t, err, &outcome)
		assert.Equal(t, "subscriptions.cancel", outcome.Op)

		got, err := reliable.Subscriptions.Get(t.Context(), sub.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.ImmediateCancel, got.FailurePolicy)
		assert.Equal(t, gateway.SubscriptionCancelScheduled, got.Status)

		_, err = lossy.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		link, err := reliable.CheckoutLinks.Create(t.Context(), gateway.CheckoutLinkParams{Amount: 4990})
		require.NoError(t, err)
		session, err := lossy.CheckoutSessions.Open(t.Context(), link.Slug())
		require.NoError(t, err)
		_, err = lossy.CheckoutSessions.Update(t.Context(), link.Slug(), session.SessionToken, gateway.CheckoutSessionParams{PaymentMethod: gateway.Pix})
		require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
		assert.NotContains(t, err.Error(), session.SessionToken.Reveal())
	})
}
