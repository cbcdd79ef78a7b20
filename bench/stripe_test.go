package bench_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/stripe/stripe-go/v85"
)

const stripeID = "pi_3PQrStUvWxYz987600000000"

var paymentIntent = compact(`{
	"id":"pi_3PQrStUvWxYz987600000000","object":"payment_intent","amount":15470,"amount_capturable":0,
	"amount_details":{"tip":{}},"amount_received":15470,"application":null,"application_fee_amount":null,
	"automatic_payment_methods":{"allow_redirects":"always","enabled":true},"canceled_at":null,
	"cancellation_reason":null,"capture_method":"automatic_async",
	"client_secret":"pi_3PQrStUvWxYz987600000000_secret_Qx7Jm2Lk8Rt4Vn6Yb1Cd3Ef5G","confirmation_method":"automatic",
	"created":1799064000,"currency":"brl","customer":"cus_QxJm2Lk8Rt4Vn6","description":"order-2027-0117-k3x9qa",
	"last_payment_error":null,"latest_charge":"ch_3PQrStUvWxYz000000000001","livemode":false,
	"metadata":{"order":"2027-0117","cart":"8f2c","campaign":"verao","channel":"web","reference":"order-2027-0117-k3x9qa"},
	"next_action":null,"on_behalf_of":null,"payment_method":"pm_1PQrStUvWxYz0000000001",
	"payment_method_configuration_details":{"id":"pmc_1PQrStUvWxYz0000000001","parent":null},
	"payment_method_options":{"card":{"installments":null,"mandate_options":null,"network":null,
		"request_three_d_secure":"automatic"},"boleto":{"expires_after_days":3}},
	"payment_method_types":["card","boleto"],"processing":null,"receipt_email":"maria.oliveira@example.com",
	"review":null,"setup_future_usage":null,
	"shipping":{"address":{"city":"Rio de Janeiro","country":"BR","line1":"Rua das Laranjeiras, 210","line2":"apto 31",
		"postal_code":"22240-003","state":"RJ"},"carrier":null,"name":"Maria Oliveira","phone":"+5511987654321",
		"tracking_number":null},
	"source":null,"statement_descriptor":null,"statement_descriptor_suffix":"CAFE","status":"succeeded",
	"transfer_data":null,"transfer_group":"order-2027-0117"}`)

func stripeBackend() *backend {
	return &backend{
		one: []byte(paymentIntent),
		list: func(n int) []byte {
			return fmt.Appendf(nil, `{"object":"list","url":"/v1/payment_intents","has_more":%t,"data":[%s]}`,
				n+1 < pages, items(paymentIntent, n))
		},
		pageOf: afterPage("/v1/payment_intents", "starting_after"),
	}
}

func openStripe(n network) (calls, error) {
	client := stripe.NewClient("sk_test_bench", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		HTTPClient: &http.Client{Transport: n.transport},
		URL:        &n.base,
	})))
	return calls{
		create: func(ctx context.Context) (string, error) {
			p, err := client.V1PaymentIntents.Create(ctx, paymentIntentParams())
			if err != nil {
				return "", err
			}
			return p.ID, nil
		},
		get: func(ctx context.Context) (string, error) {
			p, err := client.V1PaymentIntents.Retrieve(ctx, stripeID, nil)
			if err != nil {
				return "", err
			}
			return p.ID, nil
		},
		list: func(ctx context.Context) (n int, err error) {
			params := &stripe.PaymentIntentListParams{}
			params.Limit = stripe.Int64(pageSize)
			for p, err := range client.V1PaymentIntents.List(ctx, params).All(ctx) {
				if err != nil {
					return n, err
				}
				n += min(len(p.ID), 1)
			}
			return n, nil
		},
	}, nil
}

func paymentIntentParams() *stripe.PaymentIntentCreateParams {
	return &stripe.PaymentIntentCreateParams{
		Amount:   stripe.Int64(15470),
		Currency: stripe.String("brl"),
		Customer: stripe.String("cus_QxJm2Lk8Rt4Vn6"),
		AutomaticPaymentMethods: &stripe.PaymentIntentCreateAutomaticPaymentMethodsParams{
			Enabled: new(true), AllowRedirects: stripe.String("always"),
		},
		CaptureMethod: stripe.String("automatic_async"),
		Description:   stripe.String("order-2027-0117-k3x9qa"),
		Metadata: map[string]string{
			"order": "2027-0117", "cart": "8f2c", "campaign": "verao", "channel": "web",
			"reference": "order-2027-0117-k3x9qa", "item_1": "CAFE-500 x 2", "item_2": "FILTRO-103 x 1",
			"item_3": "Oficina de preparo x 1", "notify": "https://shop.example.com/webhooks/gateway/k3x9qa",
		},
		PaymentMethod:             stripe.String("pm_1PQrStUvWxYz0000000001"),
		ReceiptEmail:              stripe.String("maria.oliveira@example.com"),
		StatementDescriptorSuffix: stripe.String("CAFE"),
		TransferGroup:             stripe.String("order-2027-0117"),
		Shipping: &stripe.ShippingDetailsParams{
			Name: stripe.String("Maria Oliveira"), Phone: stripe.String("+5511987654321"),
			Address: &stripe.AddressParams{
				Line1: stripe.String("Rua das Laranjeiras, 210"), Line2: stripe.String("apto 31"),
				City: stripe.String("Rio de Janeiro"), State: stripe.String("RJ"),
				PostalCode: stripe.String("22240-003"), Country: stripe.String("BR"),
			},
		},
	}
}
