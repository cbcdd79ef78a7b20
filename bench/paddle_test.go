package bench_test

import (
	"context"
	"fmt"
	"net/http"

	paddle "github.com/PaddleHQ/paddle-go-sdk/v4"
)

const paddleID = "txn_01hv8x29kz0t586x00000000"

var paddleTransaction = compact(`{
	"id":"txn_01hv8x29kz0t586x00000000","status":"completed","customer_id":"ctm_01hv6y1jedq4p1n0yqn5ba3ky4",
	"address_id":"add_01hv8gq3318ktkfengj2r75gfx","business_id":null,
	"custom_data":{"order":"2027-0117","reference":"order-2027-0117-k3x9qa"},"currency_code":"BRL","origin":"api",
	"subscription_id":null,"invoice_id":"inv_01hv8x2acma2gz7he8kg11s0rj","invoice_number":"325-10566",
	"collection_mode":"automatic","discount_id":null,"billing_details":null,"billing_period":null,
	"items":[{"price":{"id":"pri_01gsz8x8sawmvhz1pv30nge1ke","product_id":"pro_01gsz4t5hdjse780zja8vvr7jg",
		"description":"Café em grãos","type":"custom","name":"Café","billing_cycle":null,"trial_period":null,
		"tax_mode":"account_setting","unit_price":{"amount":"4290","currency_code":"BRL"},"unit_price_overrides":[],
		"quantity":{"minimum":1,"maximum":99},"status":"active","custom_data":null,"import_meta":null,
		"created_at":"2027-01-04T12:00:00.000Z","updated_at":"2027-01-04T12:00:00.000Z"},"quantity":2,"proration":null}],
	"details":{"tax_rates_used":[{"tax_rate":"0","totals":{"subtotal":"15470","discount":"0","tax":"0","total":"15470"}}],
		"totals":{"subtotal":"15470","tax":"0","discount":"0","total":"15470","grand_total":"15470","fee":"154",
			"credit":"0","credit_to_balance":"0","balance":"0","earnings":"15316","currency_code":"BRL"},
		"line_items":[]},
	"payments":[{"payment_attempt_id":"497f6eca-6276-4993-bfeb-53cbbbba6f08","status":"captured","amount":"15470"}],"checkout":{"url":"https://shop.example.com/pay"},
	"created_at":"2027-01-04T12:00:00.000Z","updated_at":"2027-01-04T12:03:41.000Z",
	"billed_at":"2027-01-04T12:03:41.000Z","revised_at":null}`)

func paddleBackend() *backend {
	return &backend{
		one: []byte(`{"data":` + paddleTransaction + `,"meta":{"request_id":"fa176777-4bca-49ec-aa1e-f53885333cb7"}}`),
		list: func(n int) []byte {
			return fmt.Appendf(nil, `{"data":[%s],"meta":{"request_id":"fa176777-4bca-49ec-aa1e-f53885333cb7",`+
				`"pagination":{"per_page":%d,"next":"%s?after=%d","has_more":%t,"estimated_total":%d}}}`,
				items(paddleTransaction, n), pageSize, "/transactions", n+1, n+1 < pages, listSize)
		},
		pageOf: queryPage("/transactions", "after", 0),
	}
}

func openPaddle(n network) (calls, error) {
	client, err := paddle.New("pdl_bench", paddle.WithBaseURL(n.base), paddle.WithClient(&http.Client{Transport: n.transport}))
	if err != nil {
		return calls{}, err
	}
	return calls{
		create: func(ctx context.Context) (string, error) {
			t, err := client.CreateTransaction(ctx, paddleParams())
			if err != nil {
				return "", err
			}
			return t.ID, nil
		},
		get: func(ctx context.Context) (string, error) {
			t, err := client.GetTransaction(ctx, &paddle.GetTransactionRequest{TransactionID: paddleID})
			if err != nil {
				return "", err
			}
			return t.ID, nil
		},
		list: func(ctx context.Context) (n int, err error) {
			list, err := client.ListTransactions(ctx, &paddle.ListTransactionsRequest{PerPage: new(pageSize)})
			if err != nil {
				return 0, err
			}
			err = list.IterErr(ctx, func(t *paddle.Transaction) error {
				n += min(len(t.ID), 1)
				return nil
			})
			return n, err
		},
	}, nil
}

func paddleParams() *paddle.CreateTransactionRequest {
	item := func(name, description, amount string, quantity int) paddle.CreateTransactionItems {
		return *paddle.NewCreateTransactionItemsTransactionItemCreateWithPrice(&paddle.TransactionItemCreateWithPrice{
			Quantity: quantity,
			Price: paddle.TransactionPriceCreateWithProductID{
				ProductID:   "pro_01gsz4t5hdjse780zja8vvr7jg",
				Name:        new(name),
				Description: description,
				UnitPrice:   paddle.Money{Amount: amount, CurrencyCode: paddle.CurrencyCode("BRL")},
				Quantity:    paddle.PriceQuantity{Minimum: 1, Maximum: 99},
			},
		})
	}
	return &paddle.CreateTransactionRequest{
		Items: []paddle.CreateTransactionItems{
			item("Café", "Café em grãos, torra média, 500 g", "4290", 2),
			item("Filtro", "Filtro de papel nº 103", "890", 1),
			item("Oficina", "Oficina de métodos de preparo (online)", "6000", 1),
		},
		CustomerID:     new("ctm_01hv6y1jedq4p1n0yqn5ba3ky4"),
		AddressID:      new("add_01hv8gq3318ktkfengj2r75gfx"),
		CustomData:     paddle.CustomData{"order": "2027-0117", "reference": "order-2027-0117-k3x9qa", "channel": "web"},
		CurrencyCode:   new(paddle.CurrencyCode("BRL")),
		CollectionMode: new(paddle.CollectionModeAutomatic),
		Checkout:       &paddle.TransactionCheckout{URL: new("https://shop.example.com/pay")},
	}
}
