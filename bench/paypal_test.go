package bench_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/plutov/paypal/v4"
)

const paypalID = "5O190127TN00000000"

var order = compact(`{
	"id":"5O190127TN00000000","intent":"CAPTURE","status":"COMPLETED",
	"payer":{"name":{"given_name":"Maria","surname":"Oliveira"},"email_address":"maria.oliveira@example.com",
		"payer_id":"QYR5Z8XDVJNXQ","birth_date":"1990-05-17"},
	"purchase_units":[{"reference_id":"order-2027-0117-k3x9qa",
		"amount":{"currency_code":"BRL","value":"154.70","breakdown":{"item_total":{"currency_code":"BRL","value":"154.70"}}},
		"payee":{"email_address":"shop@example.com","merchant_id":"FCSKA3C2X2D5N"},
		"description":"Order 2027-0117","custom_id":"cart=8f2c","soft_descriptor":"CAFE",
		"items":[{"name":"Café em grãos, torra média, 500 g","unit_amount":{"currency_code":"BRL","value":"42.90"},
			"quantity":"2","sku":"CAFE-500","category":"PHYSICAL_GOODS"},
			{"name":"Filtro de papel nº 103","unit_amount":{"currency_code":"BRL","value":"8.90"},"quantity":"1","sku":"FILTRO-103"},
			{"name":"Oficina de métodos de preparo (online)","unit_amount":{"currency_code":"BRL","value":"60.00"},"quantity":"1"}],
		"shipping":{"name":{"full_name":"Maria Oliveira"},"address":{"address_line_1":"Rua das Laranjeiras, 210",
			"address_line_2":"apto 31","admin_area_2":"Rio de Janeiro","admin_area_1":"RJ","postal_code":"22240-003","country_code":"BR"}},
		"payments":{"captures":[{"id":"3C679366HH908993F","status":"COMPLETED","amount":{"currency_code":"BRL","value":"154.70"},
			"create_time":"2027-01-04T12:03:41Z","update_time":"2027-01-04T12:03:41Z"}]}}],
	"create_time":"2027-01-04T12:00:00Z","update_time":"2027-01-04T12:03:41Z",
	"links":[{"href":"https://api.example.com/v2/checkout/orders/5O190127TN00000000","rel":"self","method":"GET"},
		{"href":"https://api.example.com/v2/checkout/orders/5O190127TN00000000/capture","rel":"capture","method":"POST"}]}`)

// The list has another shape: PayPal lists transactions, not orders.
var reported = compact(`{
	"transaction_info":{"paypal_account_id":"6STWC2LSUYYYE","transaction_id":"5TY05013RG00000000",
		"paypal_reference_id":"5O190127TN820064Y","paypal_reference_id_type":"ODR","transaction_event_code":"T0006",
		"transaction_initiation_date":"2027-01-04T12:00:00+0000","transaction_updated_date":"2027-01-04T12:03:41+0000",
		"transaction_amount":{"currency_code":"BRL","value":"154.70"},"fee_amount":{"currency_code":"BRL","value":"-1.54"},
		"shipping_amount":{"currency_code":"BRL","value":"0.00"},"transaction_status":"S","transaction_subject":"Order 2027-0117",
		"transaction_note":"","invoice_id":"order-2027-0117-k3x9qa","custom_field":"cart=8f2c","protection_eligibility":"01",
		"ending_balance":{"currency_code":"BRL","value":"90153.16"},"available_balance":{"currency_code":"BRL","value":"90153.16"}},
	"payer_info":{"account_id":"6STWC2LSUYYYE","email_address":"maria.oliveira@example.com","address_status":"Y","payer_status":"Y",
		"payer_name":{"given_name":"Maria","surname":"Oliveira","alternate_full_name":"Maria Oliveira"},"country_code":"BR"},
	"shipping_info":{"name":"Maria Oliveira","method":"","address":{"line1":"Rua das Laranjeiras, 210","line2":"apto 31",
		"city":"Rio de Janeiro","state":"RJ","country_code":"BR","postal_code":"22240-003"}},
	"cart_info":{"item_details":[{"item_code":"CAFE-500","item_name":"Café em grãos, torra média, 500 g","item_quantity":"2",
		"item_unit_price":{"currency_code":"BRL","value":"42.90"},"item_amount":{"currency_code":"BRL","value":"85.80"},
		"total_item_amount":{"currency_code":"BRL","value":"85.80"}},
		{"item_code":"FILTRO-103","item_name":"Filtro de papel nº 103","item_quantity":"1",
		"item_unit_price":{"currency_code":"BRL","value":"8.90"},"item_amount":{"currency_code":"BRL","value":"8.90"},
		"total_item_amount":{"currency_code":"BRL","value":"8.90"}}]}}`)

func paypalBackend() *backend {
	return &backend{
		one: []byte(order),
		list: func(n int) []byte {
			return fmt.Appendf(nil, `{"transaction_details":[%s],"account_number":"XZXSPECPDZHZU",`+
				`"start_date":"2027-01-01T00:00:00+0000","end_date":"2027-01-31T00:00:00+0000",`+
				`"last_refreshed_datetime":"2027-01-31T00:00:00+0000","page":%d,"total_items":%d,"total_pages":%d,"links":[]}`,
				items(reported, n), n+1, listSize, pages)
		},
		pageOf: queryPage("/v1/reporting/transactions", "page", 1),
	}
}

func openPayPal(n network) (calls, error) {
	client, err := paypal.NewClient("bench", "bench", n.base)
	if err != nil {
		return calls{}, err
	}
	client.SetHTTPClient(&http.Client{Transport: n.transport})
	client.SetAccessToken("bench")
	return calls{
		create: func(ctx context.Context) (string, error) {
			units, payer, application := orderParams()
			o, err := client.CreateOrder(ctx, paypal.OrderIntentCapture, units, payer, application)
			if err != nil {
				return "", err
			}
			return o.ID, nil
		},
		get: func(ctx context.Context) (string, error) {
			o, err := client.GetOrder(ctx, paypalID)
			if err != nil {
				return "", err
			}
			return o.ID, nil
		},
		list: func(ctx context.Context) (n int, err error) {
			size := pageSize
			for page := 1; ; page++ {
				found, err := client.ListTransactions(ctx, &paypal.TransactionSearchRequest{
					StartDate: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
					EndDate:   time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
					PageSize:  &size,
					Page:      &page,
				})
				if err != nil {
					return n, err
				}
				for i := range found.TransactionDetails {
					n += min(len(found.TransactionDetails[i].TransactionInfo.TransactionID), 1)
				}
				if page >= found.TotalPages {
					return n, nil
				}
			}
		},
	}, nil
}

func orderParams() ([]paypal.PurchaseUnitRequest, *paypal.CreateOrderPayer, *paypal.ApplicationContext) {
	brl := func(value string) *paypal.Money { return &paypal.Money{Currency: "BRL", Value: value} }
	units := []paypal.PurchaseUnitRequest{{
		ReferenceID:    "order-2027-0117-k3x9qa",
		Amount:         &paypal.PurchaseUnitAmount{Currency: "BRL", Value: "154.70"},
		Description:    "Order 2027-0117",
		CustomID:       "cart=8f2c",
		SoftDescriptor: "CAFE",
		Items: []paypal.Item{
			{Name: "Café em grãos, torra média, 500 g", UnitAmount: brl("42.90"), Quantity: "2", SKU: "CAFE-500"},
			{Name: "Filtro de papel nº 103", UnitAmount: brl("8.90"), Quantity: "1", SKU: "FILTRO-103"},
			{Name: "Oficina de métodos de preparo (online)", UnitAmount: brl("60.00"), Quantity: "1"},
		},
		Shipping: &paypal.ShippingDetail{
			Name: &paypal.Name{FullName: "Maria Oliveira"},
			Address: &paypal.ShippingDetailAddressPortable{
				AddressLine1: "Rua das Laranjeiras, 210", AddressLine2: "apto 31", AdminArea2: "Rio de Janeiro",
				AdminArea1: "RJ", PostalCode: "22240-003", CountryCode: "BR",
			},
		},
	}}
	payer := &paypal.CreateOrderPayer{
		Name:         &paypal.CreateOrderPayerName{GivenName: "Maria", Surname: "Oliveira"},
		EmailAddress: "maria.oliveira@example.com",
	}
	application := &paypal.ApplicationContext{Locale: "pt-BR", UserAction: paypal.UserActionPayNow}
	return units, payer, application
}
