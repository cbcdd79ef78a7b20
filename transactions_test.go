package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
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

func cardOrder() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: "order-1004", Amount: 29900, Currency: gateway.BRL, Method: gateway.CreditCard,
		Installments: 3, InterestRate: gateway.Set(1.99),
		Buyer: gateway.BuyerParams{
			Name: "Maria Silva", Email: "maria@example.com", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		},
		Products: []gateway.Product{{Name: "Fone", Price: 29900, Quantity: 1, Tangible: true}},
		Token:    "pgct_3ds_7f3a91",
	}
}

// exchange returns a client whose requests get the golden answer.
func exchange(t *testing.T, status int, answer string) (*gateway.Client, *files.Exchange) {
	t.Helper()
	x := &files.Exchange{Status: status, Body: golden(t, answer)}
	return clientOf(t, roundTrip(x.Respond)), x
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func clientOf(t *testing.T, transport http.RoundTripper, opts ...gateway.Option) *gateway.Client {
	t.Helper()
	opts = append([]gateway.Option{gateway.WithHTTPClient(&http.Client{Transport: transport})}, opts...)
	client, err := gateway.New(baseURL, gateway.BearerToken(testKey), opts...)
	require.NoError(t, err)
	return client
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
		"card":      {cardOrder(), "create_card.request.json", "create_card.response.json", gateway.TransactionPending},
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
			assert.Empty(t, sent.Header.Get("Idempotency-Key"), "net/http would repeat such a request by itself")
			assert.Equal(t, goldenBody(t, "transactions/"+tc.request), string(sent.Body))
			assert.Equal(t, tc.status, got.Status)
			assert.Equal(t, tc.params.ExternalRef, resp.Reference)
			assert.Equal(t, gateway.Response{
				StatusCode: 201, RequestID: resp.RequestID, Header: resp.Header, Attempts: 1, Reference: tc.params.ExternalRef,
			}, resp)
			assert.NotEmpty(t, resp.RequestID)
			assertKeepsMembers(t, goldenData(t, "transactions/"+tc.response), got)
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
	assert.Empty(t, got.Extra, "every member has a field")
	files.Filled(t, got, "RefundedAmount", "Informations", "Splits", "Voucher", "NextAction")
}

func TestTransactionGetGolden(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"get.response.json", "get.live.response.json"} {
		client, x := exchange(t, http.StatusOK, "transactions/"+answer)
		got, err := client.Transactions.Get(t.Context(), orderID)
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "GET /v2/transactions/"+orderID, sent.Method+" "+sent.Path)
		assert.Empty(t, sent.Header.Get("Content-Type"), "a read has no body")
		assertKeepsMembers(t, goldenData(t, "transactions/"+answer), got)
	}
}

func TestTransactionListGolden(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"list.response.json", "list.live.response.json"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			client, x := exchange(t, http.StatusOK, "transactions/"+answer)
			page, err := client.Transactions.List(t.Context(), gateway.TransactionListParams{
				Limit: 2, Methods: []gateway.Method{gateway.Pix, gateway.CreditCard}, Traceable: gateway.Set(false),
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
			data := goldenData(t, "transactions/"+answer)
			for i, item := range listItems(t, data) {
				assertKeepsMembers(t, item, page.Items[i])
			}
		})
	}
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
		assertKeepsMembers(t, goldenData(t, "transactions/refund.response.json"), got)
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
			TrackingURL: gateway.Set("https://track.example.com/BR123456789"), TrackingCompany: gateway.Null[string](),
			IfMatch: `"v7"`,
		})
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "PUT /v2/transactions/"+orderID+"/delivery", sent.Method+" "+sent.Path)
		assert.Equal(t, `"v7"`, sent.Header.Get("If-Match"))
		assert.Equal(t, goldenBody(t, "transactions/update_delivery.request.json"), string(sent.Body))
		files.Filled(t, got, "Company")
		assertKeepsMembers(t, goldenData(t, "transactions/update_delivery.response.json"), got)
	})
	t.Run("sandbox status", func(t *testing.T) {
		t.Parallel()
		client, x := exchange(t, http.StatusOK, "transactions/set_sandbox_status.response.json")
		got, err := client.Transactions.SetSandboxStatus(t.Context(), orderID, gateway.SandboxStatusParams{Status: gateway.TransactionPaid})
		require.NoError(t, err)
		sent := x.Only(t)
		assert.Equal(t, "PUT /v2/transactions/"+orderID, sent.Method+" "+sent.Path)
		assert.Equal(t, goldenBody(t, "transactions/set_sandbox_status.request.json"), string(sent.Body))
		files.Filled(t, got)
	})
}

func TestRefundTakesOneChoice(t *testing.T) {
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
