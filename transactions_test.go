package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/mockserver"
)

const (
	orderID = "01945f2c-1c00-7e6a-8d21-5b9c3a7f4e10"
	buyerID = "01945f2c-1c00-7a10-b3f4-6d2e8c9a0b1f"
)

func mariasAddress() *gateway.Address {
	return &gateway.Address{
		Street: "Rua das Flores", Number: "10", Complement: "ap 42", Neighborhood: "Centro",
		City: "São Paulo", State: "SP", ZipCode: "01001000", Country: gateway.Brazil,
	}
}

func maria() gateway.BuyerParams {
	return gateway.BuyerParams{
		Name: "Maria Silva", Email: "maria@example.com", Phone: "11987654321", BirthDate: "1990-05-17",
		Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		Address:  mariasAddress(),
	}
}

func pixOrder() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: "order-1001",
		Amount:      15990,
		Currency:    gateway.BRL,
		Method:      gateway.Pix,
		Buyer:       maria(),
		Products: []gateway.Product{
			{Name: "Camiseta", Price: 4995, Quantity: 2, Tangible: true, SKU: "TS-1"},
			{Name: "Frete expresso", Price: 6000, Quantity: 1},
		},
		NotifyURL: "https://shop.example.com/webhooks/gateway",
		Metadata:  "campaign=summer",
		Traceable: true,
		IPAddress: "203.0.113.7",
	}
}

func informedOrder() gateway.TransactionParams {
	params := pixOrder()
	params.Informations = []gateway.Information{{Key: "loja", Value: "São Paulo 12"}, {Key: "vendedor", Value: "Bia"}}
	return params
}

func cardOrder() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: "order-1004", Amount: 29900, Currency: gateway.BRL, Method: gateway.CreditCard,
		Installments: 3, InterestRate: gateway.Some(1.99),
		Buyer: gateway.BuyerParams{
			Name: "Maria Silva", Email: "maria@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Fone", Price: 29900, Quantity: 1, Tangible: true}},
		Token:    "pgct_3ds_7f3a91",
	}
}

// exchange returns a client whose requests get the golden response.
func exchange(t *testing.T, status int, response string) (*gateway.Client, *files.Exchange) {
	t.Helper()
	x := &files.Exchange{Status: status, Body: golden(t, response)}
	return clientOf(t, roundTrip(x.Respond)), x
}

func TestTransactionCreateGolden(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		params   gateway.TransactionParams
		request  string
		response string
		status   gateway.TransactionStatus
	}{
		"pix":       {pixOrder(), "create.request.json", "create.response.json", gateway.TransactionPending},
		"pix, live": {pixOrder(), "create.request.json", "create.live.response.json", gateway.TransactionPending},
		"informations": {
			informedOrder(), "create_informations.request.json", "create_informations.live.response.json", gateway.TransactionPending,
		},
		"card": {cardOrder(), "create_card.request.json", "create_card.response.json", gateway.TransactionPending},
		"card, live": {
			cardOrder(), "create_card.request.json", "create_card.live.response.json", gateway.TransactionThreeDSRequired,
		},
		"voucher": {
			gateway.TransactionParams{
				ExternalRef: "order-1003", Amount: 10000, Currency: gateway.BRL, Method: gateway.Voucher,
				Buyer: maria(), Products: []gateway.Product{{Name: "Curso", Price: 10000, Quantity: 1}},
			},
			"create_voucher.request.json", "create_voucher.response.json", gateway.TransactionPending,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, x := exchange(t, http.StatusCreated, "transactions/"+tc.response)
			var resp gateway.Response
			got, err := client.Transactions.Create(t.Context(), tc.params, gateway.ResponseInto(&resp))
			require.NoError(t, err)
			sent := x.Only(t)
			assert.Equal(t, "POST", sent.Method)
			assert.Equal(t, "/v2/transactions", sent.Path)
			assert.Equal(t, "application/json", sent.Header.Get("Content-Type"))
			assert.Equal(t, "Bearer "+testKey, sent.Header.Get("Authorization"))
			assert.Empty(t, sent.Header.Get("Idempotency-Key"), "net/http would replay such a request")
			assert.Equal(t, goldenBody(t, "transactions/"+tc.request), string(sent.Body))
			assert.Equal(t, tc.status, got.Status)
			assert.Equal(t, tc.params.ExternalRef, resp.Reference)
			assert.Equal(t, gateway.Response{
				StatusCode: 201, RequestID: resp.RequestID, Header: resp.Header, Attempts: 1, Reference: tc.params.ExternalRef,
			}, resp)
			assert.NotEmpty(t, resp.RequestID)
			assertKeepsFields(t, goldenData(t, "transactions/"+tc.response), got)
		})
	}
}

func TestTransactionFields(t *testing.T) {
	t.Parallel()
	client, _ := exchange(t, http.StatusOK, "transactions/get.response.json")
	got, err := client.Transactions.Get(t.Context(), orderID)
	require.NoError(t, err)
	assert.Equal(t, orderID, got.ID)
	assert.Equal(t, int64(15990), got.Amount)
	assert.Equal(t, buyerID, got.Buyer.ID)
	assert.Equal(t, "São Paulo", got.Buyer.Address.City)
	assert.Equal(t, gateway.Brazil, got.Buyer.Address.Country)
	assert.Equal(t, int64(15940), got.Fee.NetAmount)
	assert.True(t, got.Settled())
	assert.Equal(t, int64(15990), got.PaidAmount)
	assert.Equal(t, at(t, "2027-01-04T12:03:20Z").Unix(), got.PaidAt.Unix())
	assert.Equal(t, "E99999999202701041203A1B2C3D4E5F", got.Pix.EndToEndID)
	assert.Nil(t, got.Voucher)
	assert.Equal(t, "campaign=summer", got.Metadata.Text())
	files.Filled(t, got, "BasePrice", "RefundedAmount", "Informations", "Splits", "Voucher", "NextAction", "Country", "AttemptsCount")
}

// A live gateway may report what it settles as the amount.
func TestTransactionWithTheSettledAmount(t *testing.T) {
	t.Parallel()
	client, _ := exchange(t, http.StatusOK, "transactions/get_settled.live.response.json")
	got, err := client.Transactions.Get(t.Context(), orderID)
	require.NoError(t, err)
	assert.Equal(t, int64(3815), got.Amount)
	assert.Equal(t, int64(15990), got.BasePrice)
	assert.Equal(t, int64(15990), got.Charged())
	assert.True(t, got.AmountIs(15990))
	assertKeepsFields(t, goldenData(t, "transactions/get_settled.live.response.json"), got)
}

func TestTransactionGetGolden(t *testing.T) {
	t.Parallel()
	for _, response := range []string{"get.response.json", "get.live.response.json"} {
		client, x := exchange(t, http.StatusOK, "transactions/"+response)
		got, err := client.Transactions.Get(t.Context(), orderID)
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "GET /v2/transactions/"+orderID, sent.Method+" "+sent.Path)
		assert.Empty(t, sent.Header.Get("Content-Type"), "a read has no body")
		assertKeepsFields(t, goldenData(t, "transactions/"+response), got)
	}
}

func TestTransactionListGolden(t *testing.T) {
	t.Parallel()
	for _, response := range []string{"list.response.json", "list.live.response.json"} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			client, x := exchange(t, http.StatusOK, "transactions/"+response)
			page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{
				Limit: 2, Methods: []gateway.Method{gateway.Pix, gateway.CreditCard}, Traceable: gateway.Some(false),
			})
			require.NoError(t, err)
			sent := x.Only(t)
			assert.Equal(t, "GET /v2/transactions", sent.Method+" "+sent.Path)
			assert.Equal(t, "limit=2&paymentMethods=pix%2Ccredit_card&traceable=false", sent.Query.Encode())
			assert.Equal(t, 57, page.Total)
			assert.Equal(t, "eyJzZXEiOjU2fQ", page.NextCursor)
			assert.Empty(t, page.PrevCursor)
			assert.True(t, page.HasMore())
			require.Len(t, page.Items, 2)
			card, pix := page.Items[0], page.Items[1]
			assert.Equal(t, gateway.TransactionCaptured, card.Status)
			assert.True(t, card.Settled())
			assert.Equal(t, gateway.CreditCard, card.Method)
			assert.Equal(t, 3, card.Installments)
			assert.Equal(t, orderID, pix.ID)
			assert.Equal(t, int64(15990), pix.Amount)
			assert.Equal(t, gateway.BRL, pix.Currency)
			assert.Equal(t, "order-1001", pix.ExternalRef)
			assert.Equal(t, "Maria Silva", pix.Buyer.Name)
			assert.Equal(t, "E99999999202701041203A1B2C3D4E5F", pix.Pix.EndToEndID)
			assert.Equal(t, "Camiseta", pix.Products[0].Name)
			assert.Equal(t, int64(4995), pix.Products[0].Price)
			assert.Equal(t, 2, pix.Products[0].Quantity)
			assert.False(t, pix.PaidAt.IsZero())
			assert.False(t, pix.CreatedAt.IsZero())
			for i, item := range goldenItems(t, "transactions/"+response) {
				assertKeepsFields(t, flattened(t, item), page.Items[i])
			}
		})
	}
}

// flattened returns a list item in the shape of a read.
func flattened(t *testing.T, item []byte) []byte {
	t.Helper()
	var members map[string]any
	require.NoError(t, json.Unmarshal(item, &members))
	payment, ok := members["payment"].(map[string]any)
	if !ok {
		return item
	}
	delete(members, "payment")
	maps.Copy(members, payment)
	renamed := func(object any, from, to string) {
		if m, ok := object.(map[string]any); ok {
			m[to] = m[from]
			delete(m, from)
		}
	}
	renamed(members["pix"], "qrcode", "qr_code")
	renamed(members["pix"], "endToEnd", "end_to_end_id")
	products, _ := members["products"].([]any)
	for _, product := range products {
		renamed(product, "title", "name")
		renamed(product, "unit_price", "price")
	}
	flat, err := json.Marshal(members)
	require.NoError(t, err)
	return flat
}

func TestTransactionActionsGolden(t *testing.T) {
	t.Parallel()
	t.Run("refund a part", func(t *testing.T) {
		t.Parallel()
		client, x := exchange(t, http.StatusOK, "transactions/refund.response.json")
		got, err := client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Amount: 5000, Reason: "One shirt came back"})
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "PUT /v2/transactions/"+orderID+"/refund", sent.Method+" "+sent.Path)
		assert.Equal(t, goldenBody(t, "transactions/refund.request.json"), string(sent.Body))
		files.Filled(t, got, "IsFullRefund")
		assertKeepsFields(t, goldenData(t, "transactions/refund.response.json"), got)
	})
	t.Run("refund all", func(t *testing.T) {
		t.Parallel()
		client, x := exchange(t, http.StatusOK, "transactions/refund_full.response.json")
		got, err := client.Transactions.Refund(t.Context(), orderID, gateway.RefundParams{Full: true, Reason: "Order cancelled"})
		require.NoError(t, err)
		assert.Equal(t, goldenBody(t, "transactions/refund_full.request.json"), string(x.Only(t).Body))
		assert.True(t, got.IsFullRefund)
	})
	t.Run("delivery", func(t *testing.T) {
		t.Parallel()
		client, x := exchange(t, http.StatusOK, "transactions/update_delivery.response.json")
		got, err := client.Transactions.UpdateDelivery(t.Context(), orderID, gateway.DeliveryParams{
			TrackingCode: "BR123456789", DeliveryStatus: gateway.DeliveryInTransit,
			TrackingURL: gateway.Some("https://track.example.com/BR123456789"), TrackingCompany: gateway.Clear[string](),
			IfMatch: `"v7"`,
		})
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "PUT /v2/transactions/"+orderID+"/delivery", sent.Method+" "+sent.Path)
		assert.Equal(t, `"v7"`, sent.Header.Get("If-Match"))
		assert.Equal(t, goldenBody(t, "transactions/update_delivery.request.json"), string(sent.Body))
		files.Filled(t, got, "Company")
		assertKeepsFields(t, goldenData(t, "transactions/update_delivery.response.json"), got)
	})
	t.Run("sandbox status", func(t *testing.T) {
		t.Parallel()
		client, x := exchange(t, http.StatusOK, "transactions/set_sandbox_status.response.json")
		got, err := client.Transactions.SetSandboxStatus(t.Context(), orderID, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "PUT /v2/transactions/"+orderID, sent.Method+" "+sent.Path)
		assert.Equal(t, goldenBody(t, "transactions/set_sandbox_status.request.json"), string(sent.Body))
		assert.Equal(t, &gateway.Transaction{
			ID: orderID, Status: gateway.TransactionPaid, Method: gateway.Pix, Amount: 15990, Currency: gateway.BRL, ExternalRef: "order-1001", Raw: got.Raw,
		}, got)
		assert.Contains(t, string(got.Raw), `"id"`)
		assert.NotContains(t, string(got.Raw), `"transaction"`, "only the transaction")
	})
}

func TestRefundNeedsEitherAmountOrFull(t *testing.T) {
	t.Parallel()
	client, x := exchange(t, http.StatusOK, "transactions/refund.response.json")
	for name, params := range map[string]gateway.RefundParams{
		"neither": {}, "both": {Amount: 1, Full: true}, "negative": {Amount: -1},
	} {
		_, err := client.Transactions.Refund(t.Context(), orderID, params)
		var invalid *gateway.ValidationError
		require.ErrorAs(t, err, &invalid, name)
		assert.Equal(t, "transactions.refund", invalid.Op, name)
		assert.Equal(t, "amount", invalid.Fields[0].Field, name)
		require.ErrorIs(t, params.Validate(), gateway.ErrValidation, name)
	}
	assert.Empty(t, x.Requests())
}

func pixCharge(reference string) gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: reference,
		Amount:      4990,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Ana Souza", Email: "ana@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Mug", Price: 4990}},
	}
}

// withCharges returns a gateway with n charges, order-1 to order-n, and a client.
func withCharges(t *testing.T, n int, opts ...mockserver.Option) (*mockserver.Server, *gateway.Client) {
	t.Helper()
	gw := mockserver.Run(t, opts...)
	client := gw.Client()
	for i := range n {
		_, err := client.Transactions.Create(t.Context(), pixCharge(fmt.Sprintf("order-%d", i+1)))
		require.NoError(t, err)
	}
	return gw, client
}

func TestTransactionPages(t *testing.T) {
	t.Parallel()
	for _, dialect := range []mockserver.Dialect{mockserver.Document, mockserver.Live} {
		_, client := withCharges(t, 7, mockserver.WithDialect(dialect))
		var forward []string
		var sizes []int
		var last *gateway.Page[gateway.Transaction]
		for page, err := range client.Transactions.Pages(t.Context(), gateway.TransactionListParams{Limit: 3}) {
			require.NoError(t, err)
			for _, item := range page.Items {
				forward = append(forward, item.ExternalRef)
			}
			sizes, last = append(sizes, len(page.Items)), page
		}
		assert.Equal(t, []int{3, 3, 1}, sizes)
		assert.Equal(t, []string{"order-7", "order-6", "order-5", "order-4", "order-3", "order-2", "order-1"}, forward)
		assert.Equal(t, 7, last.Total)
		assert.False(t, last.HasMore())

		// Go back from the last page. The nearest page comes first.
		back := gateway.TransactionListParams{Limit: 3, Cursor: last.PrevCursor, Direction: gateway.DirectionPrev}
		items, err := gateway.Collect(client.Transactions.All(t.Context(), back), 0)
		require.NoError(t, err)
		references := make([]string, 0, len(items))
		for _, item := range items {
			references = append(references, item.ExternalRef)
		}
		slices.Sort(references)
		assert.Equal(t, []string{"order-2", "order-3", "order-4", "order-5", "order-6", "order-7"}, references)
	}
}

// Times in filters are as precise as those in responses, so that a transaction can
// be found by its own created_at.
func TestListFiltersTimesToTheMillisecond(t *testing.T) {
	t.Parallel()
	gw, client := withCharges(t, 1)
	require.NoError(t, gw.Clock.Advance(250*time.Millisecond))
	second, err := client.Transactions.Create(t.Context(), pixCharge("order-2"))
	require.NoError(t, err)
	for want, params := range map[string]gateway.TransactionListParams{
		"order-2":         {From: second.CreatedAt.Time},
		"order-2 order-1": {To: second.CreatedAt.Time},
		"order-1":         {To: second.CreatedAt.Add(-time.Millisecond)},
	} {
		page, err := client.Transactions.List(t.Context(), params)
		require.NoError(t, err)
		var found []string
		for _, item := range page.Items {
			found = append(found, item.ExternalRef)
		}
		assert.Equal(t, want, strings.Join(found, " "))
	}
}

func TestTransactionAllStopsWhenTheLoopBreaks(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 5)
	items, err := gateway.Collect(client.Transactions.All(t.Context(), gateway.TransactionListParams{Limit: 2}), 3)
	require.NoError(t, err)
	assert.Len(t, items, 3)
}

func TestFindByExternalRef(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 3)
	found, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{})
	require.NoError(t, err)
	assert.Equal(t, "order-1", found.ExternalRef)
	assert.NotNil(t, found.Pix, "the result is the complete transaction")

	_, err = client.Transactions.FindByExternalRef(t.Context(), "order", gateway.FindOptions{})
	require.ErrorIs(t, err, gateway.ErrNotFound, "a prefix of a reference does not match")
	_, err = client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{Since: time.Now().AddDate(100, 0, 0)})
	require.ErrorIs(t, err, gateway.ErrNotFound)
	_, err = client.Transactions.FindByExternalRef(t.Context(), "", gateway.FindOptions{})
	require.ErrorIs(t, err, gateway.ErrValidation)
}

func TestFindByExternalRefReadsNoMorePagesThanAllowed(t *testing.T) {
	t.Parallel()
	_, client := withCharges(t, 101)
	_, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{MaxPages: 1})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown, "it may be on a page that was not read")
	require.NotErrorIs(t, err, gateway.ErrNotFound)
	require.ErrorContains(t, err, "find_by_external_ref: the outcome is unknown: no transaction with this reference was found (100 checked, back to 2027-01-04T12:00:00Z), and there are more")
	found, err := client.Transactions.FindByExternalRef(t.Context(), "order-1", gateway.FindOptions{MaxPages: 2})
	require.NoError(t, err)
	assert.Equal(t, "order-1", found.ExternalRef)
}

func TestWaitEndsWithThePayment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		client := gw.Client()
		tx, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
		require.NoError(t, err)
		go func() {
			time.Sleep(5 * time.Second)
			assert.NoError(t, gw.Transactions.Pay(tx.ID))
		}()
		began := time.Now()
		paid, err := client.Transactions.Wait(t.Context(), tx.ID)
		require.NoError(t, err)
		assert.True(t, paid.Settled())
		took := time.Since(began)
		assert.GreaterOrEqual(t, took, 5*time.Second, "Wait returned before the payment")
		assert.LessOrEqual(t, took, 10*time.Second, "Wait noticed the payment late")
		reads := gw.Requests.Count("transactions.get")
		assert.Greater(t, reads, 1)
		assert.LessOrEqual(t, reads, 6, "Wait reads too often: its waits must grow")
	})
}

func TestWaitReturnsAPaymentThatWasPartiallyRefunded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gw := mockserver.Run(t)
		client := gw.Client()
		tx, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
		require.NoError(t, err)
		require.NoError(t, gw.Transactions.Pay(tx.ID))
		_, err = client.Transactions.Refund(t.Context(), tx.ID, gateway.RefundParams{Amount: 1})
		require.NoError(t, err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := client.Transactions.Wait(ctx, tx.ID)
		require.NoError(t, err)
		assert.False(t, got.Settled())
		assert.Equal(t, tx.Amount-1, got.PaidAmount-got.RefundedAmount)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := mockserver.Run(t).Client()
		tx, err := client.Transactions.Create(t.Context(), pixCharge("order-1"))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		last, err := client.Transactions.Wait(ctx, tx.ID)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotNil(t, last)
		assert.Equal(t, gateway.TransactionPending, last.Status)
	})
}

func TestWaitRetriesTransientErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		responses := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusOK}
		body := golden(t, "transactions/get.response.json")
		client, err := gateway.New(baseURL, gateway.BearerToken(testKey), gateway.WithMaxAttempts(1),
			gateway.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				status := responses[0]
				responses = responses[1:]
				return (&files.Exchange{Status: status, Body: body, Header: http.Header{"Retry-After": {"30"}}}).Respond(r)
			})}))
		require.NoError(t, err)
		began := time.Now()
		_, err = client.Transactions.WaitUntil(t.Context(), "tx", func(*gateway.Transaction) bool { return true })
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(began), "twice the Retry-After")
		assert.Empty(t, responses)
	})
}

func TestWaitReturnsPermanentErrors(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t).Client()
	last, err := client.Transactions.Wait(t.Context(), "01941700-0000-7000-8000-000000000000")
	require.ErrorIs(t, err, gateway.ErrNotFound)
	assert.Nil(t, last)
}

// The payment element wants the next action whole, also with members that live gateways
// add. A transaction that is passed on has them too.
func TestUnknownMembersArePassedOn(t *testing.T) {
	t.Parallel()
	action := `{"type":"three_ds_challenge","challenge_session_id":"c-1","client_secret":"s-1","expires_at":"2027-01-04T12:15:00.000Z",` +
		`"three_ds_stage":"post_charge","sdk":{"keys":[1,null,"a"]}}`
	response := reply(200, `{"success":true,"data":{"id":"tx-1","status":"pending","amount":5,"next_action":`+action+`,"acquirer":{"a":1},"fee":7}}`)
	tx, err := clientOf(t, play(response)).Transactions.Get(t.Context(), "tx-1")
	require.NoError(t, err)
	assert.JSONEq(t, action, string(mustMarshal(t, tx.NextAction)))
	assert.JSONEq(t, action, string(mustMarshal(t, *tx.NextAction)))

	var passed map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(mustMarshal(t, tx), &passed))
	assert.JSONEq(t, action, string(passed["next_action"]))
	assert.JSONEq(t, `{"a":1}`, string(passed["acquirer"]))
	assert.JSONEq(t, `null`, string(passed["fee"]), "a program that reads it again gets a transaction")

	var again gateway.NextAction // as a program that stored the action reads it
	require.NoError(t, json.Unmarshal(mustMarshal(t, tx.NextAction), &again))
	assert.JSONEq(t, action, string(mustMarshal(t, again)))
	again.Type = "other"
	assert.JSONEq(t, strings.Replace(action, "three_ds_challenge", "other", 1), string(mustMarshal(t, again)), "fields win")

	page, err := clientOf(t, play(reply(200, `{"success":true,"data":[{"id":"tx-1","next_action":`+action+`}]}`))).
		Transactions.List(t.Context(), gateway.TransactionListParams{})
	require.NoError(t, err)
	assert.JSONEq(t, action, string(mustMarshal(t, page.Items[0].NextAction)))

	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).InfoContext(t.Context(), "x", slog.Any("tx", tx), slog.Any("in", map[string]any{"action": tx.NextAction}))
	assert.NotContains(t, logged.String(), "post_charge", "logs have no unknown members")
	assert.NotContains(t, logged.String(), "s-1")
}
