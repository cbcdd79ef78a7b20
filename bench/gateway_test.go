package bench_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gateway-go/gateway"
)

const cartMetadata = "cart=8f2c&campaign=verao&channel=web&gift=yes&card=Feliz+anivers%C3%A1rio,+" +
	"Joana&deliver=after+18h&leave=front+desk&invoice=NF-e+000.117.204&seller=ana"

// transaction is a paid Pix charge with the fields of the interface document and the
// published API descriptions.
var transaction = compact(`{
	"id":"0198c5a0-3c5e-7f2a-8d11-aaaa00000000","amount":15470,"currency":"BRL","method":"pix","status":"paid",
	"external_ref":"order-2027-0117-k3x9qa",
	"buyer":{"id":"0198c5a0-3c5e-7f2a-8d11-1234567890ab","name":"Maria Oliveira","email":"maria.oliveira@example.com",
		"phone":"11987654321","birth_date":"1990-05-17","document":{"type":"CPF","number":"12345678909"},
		"address":{"street":"Rua das Laranjeiras","number":"210","complement":"apto 31","neighborhood":"Laranjeiras",
			"city":"Rio de Janeiro","state":"RJ","zipCode":"22240003","country":"BR"}},
	"fee":{"net_amount":15316,"estimated_fee":154},"installments":1,
	"informations":[{"key":"channel","value":"web"},{"key":"bank","value":"99999999"}],
	"paid_amount":15470,"refunded_amount":0,"paid_at":"2027-01-04T12:03:41.000Z",
	"pix":{"qr_code":"00020101021226780014br.gov.bcb.pix2556pix.mock.invalid/v2/0198c5a0-3c5e-7f2a-8d11-1234567890ab5204000053039865406154.705802BR5912GATEWAY MOCK6009SAO PAULO62070503***63041D3D",
		"expiration_date":"2027-01-05T12:00:00.000Z","end_to_end_id":"E99999999202701041203K3X9QA7P2LM","receipt_url":null},
	"voucher":null,
	"products":[{"name":"Café em grãos, torra média, 500 g","price":4290,"quantity":2},
		{"name":"Filtro de papel nº 103","price":890,"quantity":1},
		{"name":"Oficina de métodos de preparo (online)","price":6000,"quantity":1}],
	"metadata":"` + cartMetadata + `","traceable":false,"ip_address":"203.0.113.7","splits":[],"next_action":null,
	"created_at":"2027-01-04T12:00:00.000Z","updated_at":"2027-01-04T12:03:41.000Z"}`)

func gatewayBackend() *backend {
	return &backend{
		one: []byte(`{"success":true,"requestId":"01J8Z7N5V6K3F2M1","data":` + transaction + `}`),
		list: func(n int) []byte {
			next := "null"
			if n+1 < pages {
				next = fmt.Sprintf(`"%d"`, n+1)
			}
			return fmt.Appendf(nil, `{"success":true,"requestId":"01J8Z7N5V6K3F2M1","data":{"data":[%s],"total":%d,"next_cursor":%s,"prev_cursor":null}}`,
				items(transaction, n), listSize, next)
		},
		pageOf: queryPage("/v2/transactions", "cursor", 0),
	}
}

// chargeParams builds a new request, as a shop does for each order.
func chargeParams() gateway.TransactionParams {
	return gateway.TransactionParams{
		ExternalRef: "order-2027-0117-k3x9qa",
		Amount:      15470,
		Currency:    gateway.BRL,
		Method:      gateway.Pix,
		Buyer: gateway.BuyerParams{
			Name: "Maria Oliveira", Email: "maria.oliveira@example.com", Phone: "11987654321", BirthDate: "1990-05-17",
			Document: &gateway.Document{Type: gateway.CPF, Number: "12345678909"},
			Address: &gateway.Address{
				Street: "Rua das Laranjeiras", Number: "210", Complement: "apto 31", Neighborhood: "Laranjeiras",
				City: "Rio de Janeiro", State: "RJ", ZipCode: "22240003", Country: gateway.Brazil,
			},
		},
		Products: []gateway.Product{
			{Name: "Café em grãos, torra média, 500 g", Price: 4290, Quantity: 2, Tangible: true, SKU: "CAFE-500"},
			{Name: "Filtro de papel nº 103", Price: 890, Quantity: 1, Tangible: true, SKU: "FILTRO-103"},
			{Name: "Oficina de métodos de preparo (online)", Price: 6000, Quantity: 1},
		},
		NotifyURL: "https://shop.example.com/webhooks/gateway/k3x9qa",
		Metadata:  cartMetadata,
		IPAddress: "203.0.113.7",
	}
}

func openGateway(n network) (calls, error) {
	client, err := gateway.New(n.base, gateway.BearerToken("sk_test_bench"),
		gateway.WithHTTPClient(&http.Client{Transport: n.transport}))
	if err != nil {
		return calls{}, err
	}
	return calls{
		create: func(ctx context.Context) (string, error) {
			t, err := client.Transactions.Create(ctx, chargeParams())
			if err != nil {
				return "", err
			}
			return t.ID, nil
		},
		get: func(ctx context.Context) (string, error) {
			t, err := client.Transactions.Get(ctx, "0198c5a0-3c5e-7f2a-8d11-aaaa00000000")
			if err != nil {
				return "", err
			}
			return t.ID, nil
		},
		list: func(ctx context.Context) (n int, err error) {
			for t, err := range client.Transactions.All(ctx, gateway.TransactionListParams{Limit: pageSize}) {
				if err != nil {
					return n, err
				}
				n += min(len(t.ID), 1)
			}
			return n, nil
		},
	}, nil
}
