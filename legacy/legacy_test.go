package legacy_test

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/legacy"
)

const (
	v1Key       = "sk_test_v1"
	publicToken = "pub_5f2c4000"
)

// client returns a v1 client built on a v2 client with another kind of credential.
// Its responses come from e.
func client(t *testing.T, e *golden.Exchange) *legacy.Client {
	t.Helper()
	transport := httpmock.NewMockTransport()
	transport.RegisterNoResponder(e.Respond)
	v2, err := gateway.New("https://gateway.test/api", gateway.BearerToken("sk_test_v2"),
		gateway.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(t, err)
	v1, err := legacy.New(v2, gateway.NewSecret(v1Key))
	require.NoError(t, err)
	return v1
}

func integrationParams() legacy.IntegrationParams {
	return legacy.IntegrationParams{
		WebhookURL:    "https://shop.example/webhooks/all",
		PixWebhookURL: "https://shop.example/webhooks/pix",
	}
}

func paymentParams() legacy.PixPaymentParams {
	return legacy.PixPaymentParams{
		Payer: legacy.Payer{
			FullName: "Maria Silva",
			Document: "52998224725",
			Contact:  legacy.Contact{Mail: "maria@example.com", Phone: "11987654321"},
			Address: legacy.Address{
				ZipCode: "01001000", Street: "Rua das Flores", Number: "10",
				City: "São Paulo", State: "SP", Country: "BR", Neighborhood: "Centro",
			},
		},
		Transaction: legacy.PixCharge{
			Value: 4990, Description: "Order 3001", ExpirationTime: 3600, DueDate: "2027-01-05", ExternalID: "order-3001",
		},
		Splits: []legacy.SplitRule{
			{PixKey: "11222333000181", PixKeyType: legacy.SplitDocument, Document: "11222333000181", Percent: 12.5, ExternalID: "split-1"},
			{PixKey: "partner@example.com", PixKeyType: legacy.SplitEmail, Amount: 500},
		},
	}
}

// call is one operation with params that match its golden request.
type call struct {
	name     string
	method   string
	path     string
	request  string // file; "" for no body
	response string
	status   int
	class    string // "safe" or "unsafe"
	run      func(context.Context, *legacy.Client, ...gateway.RequestOption) (any, error)
}

func calls() []call {
	return []call{
		{
			"legacy.configure_integration", http.MethodPost, "/v1/business/integration",
			"configure_integration.request.json", "configure_integration.response.json", 200, "unsafe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.ConfigureIntegration(ctx, integrationParams(), opts...)
			},
		},
		{
			"legacy.configure_integration", http.MethodPost, "/v1/business/integration",
			"configure_integration_pix.request.json", "configure_integration_pix.response.json", 201, "unsafe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.ConfigureIntegration(ctx, legacy.IntegrationParams{PixWebhookURL: integrationParams().PixWebhookURL}, opts...)
			},
		},
		{
			"legacy.balance", http.MethodGet, "/v1/account/balance", "", "balance.response.json", 200, "safe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.Balance(ctx, opts...)
			},
		},
		{
			"legacy.create_pix_payment", http.MethodPost, "/pix/v1/payment",
			"create_pix_payment.request.json", "create_pix_payment.response.json", 201, "unsafe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.CreatePixPayment(ctx, paymentParams(), opts...)
			},
		},
		{
			"legacy.payment_token", http.MethodGet, "/v2/payment_token/" + publicToken, "", "payment_token.response.json", 200, "safe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.PaymentToken(ctx, publicToken, opts...)
			},
		},
		{
			"legacy.create_payment_token", http.MethodPost, "/v2/payment_token/" + publicToken,
			"create_payment_token.request.json", "create_payment_token.response.json", 200, "unsafe",
			func(ctx context.Context, c *legacy.Client, opts ...gateway.RequestOption) (any, error) {
				return c.CreatePaymentToken(ctx, publicToken, map[string]any{"payment_session": "ps_5f2c4000"}, opts...)
			},
		},
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for _, op := range calls() {
		t.Run(op.response, func(t *testing.T) {
			t.Parallel()
			e := &golden.Exchange{Status: op.status, Body: golden.Read(t, "legacy/"+op.response)}
			_, err := op.run(t.Context(), client(t, e), gateway.UseCredential(gateway.BearerToken("sk_test_other")))
			require.NoError(t, err)

			sent := e.Only(t)
			assert.Equal(t, op.method, sent.Method)
			assert.Equal(t, "/api"+op.path, sent.Path)
			assert.Empty(t, sent.Query)
			assert.Equal(t, []string{v1Key}, sent.Header["Apikey"], "the key is always sent in the apiKey header")
			assert.NotContains(t, sent.Header, "Authorization")
			if op.request == "" {
				assert.Empty(t, sent.Body)
				return
			}
			assert.Equal(t, "application/json", sent.Header.Get("Content-Type"))
			assert.Equal(t, golden.Body(t, "legacy/"+op.request), string(sent.Body))
		})
	}
}

func TestResponsesKeepEveryField(t *testing.T) {
	t.Parallel()
	for _, op := range calls() {
		t.Run(op.response, func(t *testing.T) {
			t.Parallel()
			file := golden.Read(t, "legacy/"+op.response)
			for _, body := range [][]byte{file, golden.Scramble(t, file)} {
				got, err := op.run(t.Context(), client(t, &golden.Exchange{Status: op.status, Body: body}))
				require.NoError(t, err)
				want, received := file, body
				if _, isToken := got.(*legacy.PaymentToken); isToken {
					want, received = golden.Data(t, file), golden.Data(t, body)
				}
				if raw, ok := golden.Raw(got); ok {
					assert.JSONEq(t, string(received), string(raw))
				}
				encoded, err := json.Marshal(got)
				require.NoError(t, err)
				golden.Keeps(t, want, encoded)
				encoded, err = stdjson.Marshal(got)
				require.NoError(t, err)
				golden.Keeps(t, want, encoded)
			}
		})
	}
}

func TestResponsesFillEveryField(t *testing.T) {
	t.Parallel()
	for _, op := range calls() {
		t.Run(op.response, func(t *testing.T) {
			t.Parallel()
			e := &golden.Exchange{Status: op.status, Body: golden.Read(t, "legacy/"+op.response)}
			got, err := op.run(t.Context(), client(t, e))
			require.NoError(t, err)
			switch op.response {
			case "configure_integration.response.json":
				golden.Filled(t, got, "StatusCode", "Message")
			case "configure_integration_pix.response.json":
				golden.Filled(t, got, "ID", "WebhookURL", "Status")
				got.(*legacy.Integration).Raw = nil
				assert.Equal(t, &legacy.Integration{
					PixWebhookURL: "https://shop.example/webhooks/pix", StatusCode: 201, Message: "Integration saved",
				}, got)
			case "create_pix_payment.response.json":
				golden.Filled(t, got, "PaymentLink")
				payment := got.(*legacy.PixPayment)
				assert.Equal(t, legacy.PaymentWaitingPayment, payment.Status)
				assert.Equal(t, time.Hour, payment.ExpirationDate.Sub(payment.GenerateTime.Time))
			default:
				golden.Filled(t, got)
			}
		})
	}
}

func TestResponsesInOtherFormats(t *testing.T) {
	t.Parallel()
	t.Run("balance as a string", func(t *testing.T) {
		t.Parallel()
		got, err := client(t, &golden.Exchange{Status: 200, Body: []byte(`{"balance": "1250", "currency": "BRL"}`)}).Balance(t.Context())
		require.NoError(t, err)
		assert.Equal(t, int64(1250), got.Balance)
	})
	t.Run("an empty payment link", func(t *testing.T) {
		t.Parallel()
		body := []byte(`{"transactionId": "t1", "status": "SOMETHING_NEW", "paymentLink": ""}`)
		got, err := client(t, &golden.Exchange{Status: 201, Body: body}).CreatePixPayment(t.Context(), paymentParams())
		require.NoError(t, err)
		assert.Empty(t, got.PaymentLink)
		assert.Equal(t, legacy.PaymentStatus("SOMETHING_NEW"), got.Status)
	})
	t.Run("a token without an envelope", func(t *testing.T) {
		t.Parallel()
		body := []byte(`{"token": "pgct_1", "brand": "visa", "last4": "4242", "exp_month": "12", "exp_year": 2030}`)
		got, err := client(t, &golden.Exchange{Status: 200, Body: body}).PaymentToken(t.Context(), publicToken)
		require.NoError(t, err)
		assert.Equal(t, &legacy.PaymentToken{Token: "pgct_1", Brand: "visa", Last4: "4242", ExpMonth: 12, ExpYear: 2030, Raw: body}, got)
	})
	for _, status := range []string{`null`, `""`, `{}`, `1.5`} {
		t.Run("an integration's status "+status, func(t *testing.T) {
			t.Parallel()
			body := []byte(`{"id": "i1", "status": ` + status + `, "pixWebhookUrl": "https://shop.example/"}`)
			got, err := client(t, &golden.Exchange{Status: 200, Body: body}).ConfigureIntegration(t.Context(), integrationParams())
			require.NoError(t, err)
			assert.Equal(t, &legacy.Integration{ID: "i1", PixWebhookURL: "https://shop.example/", Raw: body}, got)
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	kinds := map[int]error{
		400: gateway.ErrValidation,
		401: gateway.ErrUnauthorized,
		403: gateway.ErrForbidden,
		404: gateway.ErrNotFound,
		409: gateway.ErrConflict,
		410: gateway.ErrRetired,
		422: gateway.ErrValidation,
		429: gateway.ErrRateLimited,
		500: gateway.ErrServer,
		502: gateway.ErrServer,
	}
	for _, op := range calls() {
		for _, f := range golden.Failures(t) {
			t.Run(op.response+" "+f.Name, func(t *testing.T) {
				t.Parallel()
				_, err := op.run(t.Context(), client(t, &f.Exchange), gateway.MaxAttempts(1))
				kind := kinds[f.Status]
				if f.Status >= 500 && op.class == "unsafe" {
					kind = gateway.ErrOutcomeUnknown
				}
				require.ErrorIs(t, err, kind)
				var e *gateway.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, op.name, e.Op)
				assert.Equal(t, f.Status, e.StatusCode)
				assert.Equal(t, f.Code, e.Code)
				assert.Equal(t, f.Detail, e.Detail)
				var fields []string
				for _, field := range e.Fields {
					fields = append(fields, field.Field)
				}
				assert.Equal(t, f.Fields, fields)
				assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, e.Header), v1Key)
			})
		}
	}
}

func TestAnEmptyResponseIsAnError(t *testing.T) {
	t.Parallel()
	for _, op := range calls() {
		for _, body := range []string{
			`{"transactionId": "t1", "status": "WAITING_PAYMENT", "pixC`, "", "null", "{}", "[]", `"ok"`, "<html></html>",
			`{"success": true, "data": null}`, `{"success": true, "data": {}}`, `{"transactionId": "", "token": "", "id": ""}`, `{"success": false, "message": "no"}`, `{"balance": null, "currency": "BRL"}`,
		} {
			t.Run(op.response+" "+body, func(t *testing.T) {
				t.Parallel()
				e := &golden.Exchange{Status: 200, Body: []byte(body)}
				_, err := op.run(t.Context(), client(t, e))
				require.Error(t, err)
				assert.Len(t, e.Requests(), 1, "an unreadable response is not retried")
				assert.Equal(t, op.class == "unsafe", errors.Is(err, gateway.ErrOutcomeUnknown), "%v", err)
				if outcome, ok := errors.AsType[*gateway.OutcomeError](err); ok && strings.Contains(body, "t1") {
					assert.Equal(t, "t1", outcome.ResourceID)
					assert.Equal(t, "WAITING_PAYMENT", outcome.ResourceStatus)
				}
			})
		}
	}
}

func TestInvalidParamsAreNotSent(t *testing.T) {
	t.Parallel()
	noAmount, wrongKey := paymentParams(), paymentParams()
	noAmount.Transaction.Value = 0
	wrongKey.Splits[1].PixKeyType = "CPF"
	for name, c := range map[string]struct {
		op, field string
		run       func(context.Context, *legacy.Client) error
	}{
		"no amount": {"legacy.create_pix_payment", "transaction.value", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.CreatePixPayment(ctx, noAmount)
			return err
		}},
		"split key type": {"legacy.create_pix_payment", "splits[1].pixKeyType", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.CreatePixPayment(ctx, wrongKey)
			return err
		}},
		"plain http": {"legacy.configure_integration", "pixWebhookUrl", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.ConfigureIntegration(ctx, legacy.IntegrationParams{PixWebhookURL: "http://shop.example/"})
			return err
		}},
		"card data": {"legacy.create_payment_token", "card_number", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.CreatePaymentToken(ctx, publicToken, map[string]any{"card_number": "4111111111111111"})
			return err
		}},
		"empty token": {"legacy.payment_token", "public_token", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.PaymentToken(ctx, " ")
			return err
		}},
		"relative token": {"legacy.create_payment_token", "public_token", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.CreatePaymentToken(ctx, "..", nil)
			return err
		}},
		"path as a token": {"legacy.payment_token", "public_token", func(ctx context.Context, c *legacy.Client) error {
			_, err := c.PaymentToken(ctx, "../transactions")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := &golden.Exchange{Status: 200, Body: []byte(`{}`)}
			err := c.run(t.Context(), client(t, e))
			require.ErrorIs(t, err, gateway.ErrValidation)
			var invalid *gateway.ValidationError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, c.op, invalid.Op)
			assert.Equal(t, c.field, invalid.Fields[0].Field)
			assert.NotContains(t, err.Error(), "4111")
			assert.Empty(t, e.Requests())
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, paymentParams().Validate())
	require.NoError(t, integrationParams().Validate())
	require.NoError(t, legacy.IntegrationParams{}.Validate())
	require.NoError(t, legacy.IntegrationParams{PixWebhookURL: "http://127.0.0.1:8080/hook"}.Validate())
	require.ErrorIs(t, legacy.PixPaymentParams{}.Validate(), gateway.ErrValidation)
	require.ErrorIs(t, legacy.IntegrationParams{WebhookURL: "shop.example"}.Validate(), gateway.ErrValidation)
}

func TestNewRejectsAnythingButASecretKey(t *testing.T) {
	t.Parallel()
	sandbox, err := gateway.New("https://sandbox.gateway.test", gateway.BearerToken("sk_test_v2"))
	require.NoError(t, err)
	for name, key := range map[string]string{
		"empty": "", "public": "pk_test_1", "production": "sk_live_1", "line break": "sk_test_1\n",
	} {
		_, err := legacy.New(sandbox, gateway.NewSecret(key))
		require.Error(t, err, name)
		if key != "" {
			assert.NotContains(t, err.Error(), key)
		}
	}
	_, err = legacy.New(nil, gateway.NewSecret(v1Key))
	require.Error(t, err)
	_, err = legacy.New(sandbox, gateway.NewSecret(v1Key))
	require.NoError(t, err)
}

func TestStatesAreKnown(t *testing.T) {
	t.Parallel()
	states := []legacy.PaymentStatus{
		legacy.PaymentInAnalysis, legacy.PaymentWaitingConfirmation, legacy.PaymentWaitingPayment, legacy.PaymentWaitingWithdraw,
		legacy.PaymentWithdrawRequest, legacy.PaymentWithdrawPaid, legacy.PaymentWebhookUpdated, legacy.PaymentWebhookError,
		legacy.PaymentPaid, legacy.PaymentCancelled, legacy.PaymentReversed, legacy.PaymentRefund, legacy.PaymentRefundIn,
		legacy.PaymentRefundOut, legacy.PaymentSoftRefund, legacy.PaymentError, legacy.PaymentPendingApproval,
		legacy.PaymentApproved, legacy.PaymentDeclined,
	}
	known := map[legacy.PaymentStatus]bool{}
	for _, s := range states {
		assert.True(t, spec.LegacyStatuses.Has(string(s)), s)
		known[s] = true
	}
	assert.Len(t, known, 19, "the interface document has 19 states")
	assert.False(t, spec.LegacyStatuses.Has("paid"))
	for _, k := range []legacy.SplitKeyType{legacy.SplitDocument, legacy.SplitEmail, legacy.SplitPhone, legacy.SplitRandom} {
		assert.True(t, spec.LegacySplitKeyTypes.Has(string(k)), k)
	}
	assert.False(t, spec.LegacySplitKeyTypes.Has("CPF"))
}

// FuzzIntegration checks that a decoded integration survives encoding and
// decoding.
func FuzzIntegration(f *testing.F) {
	for _, file := range []string{"configure_integration.response.json", "configure_integration_pix.response.json"} {
		f.Add(golden.Read(f, "legacy/"+file))
	}
	f.Add([]byte(`{"status":201,"data":{"pixWebhookUrl":"u","x":{"y":[1]}},"z":null}`))
	f.Add([]byte(`{"status":"active","data":{"pixWebhookUrl":"u"},"message":1}`))
	f.Add([]byte(`{"data":{"pixWebhookUrl":"0","":{}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var read, again legacy.Integration
		if json.Unmarshal(body, &read) != nil {
			return
		}
		written, err := json.Marshal(read)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		assert.Equal(t, read, again, "%s", written)
	})
}
