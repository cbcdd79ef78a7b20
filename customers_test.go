package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver"
)

const mariaID = "01945f2c-1c00-7a31-8f0e-5d2b7c9e4a10"

func customerParams() gateway.CustomerParams {
	return gateway.CustomerParams{
		Name:        "Maria Silva",
		Email:       "maria@example.com",
		Phone:       "11987654321",
		Document:    &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		ExternalRef: "customer-1001",
		Address: &gateway.Address{
			Street: "Rua das Flores", Number: "10", Complement: "ap 42", Neighborhood: "Centro",
			City: "São Paulo", State: "SP", ZipCode: "01001000", Country: gateway.Brazil,
		},
		IPAddress: "203.0.113.7",
	}
}

func TestCustomersOnTheWire(t *testing.T) {
	t.Parallel()
	testServiceCalls(t, []serviceCall{
		{
			op: "customers.create", method: http.MethodPost, path: "/v2/customers", class: "keyed", status: 201,
			request: "customers/create.request.json", response: "customers/create.response.json", unset: []string{"BirthDate"},
			run: func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) (any, error) {
				return c.Customers.Create(ctx, customerParams(), opts...)
			},
		},
		{
			op: "customers.get", method: http.MethodGet, path: "/v2/customers/" + mariaID, class: "safe", status: 200,
			response: "customers/get.response.json", unset: []string{"BirthDate"},
			run: func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) (any, error) {
				return c.Customers.Get(ctx, mariaID, opts...)
			},
		},
	})
}

func TestCustomerValues(t *testing.T) {
	t.Parallel()
	got, err := clientOver(t, responseOf(t, 200, "customers/get.response.json").Respond).Customers.Get(t.Context(), mariaID)
	require.NoError(t, err)
	params := customerParams()
	assert.Equal(t, &gateway.Customer{
		ID: mariaID, Name: params.Name, Email: params.Email, Phone: params.Phone, ExternalRef: params.ExternalRef,
		Document: params.Document, Address: params.Address, Status: gateway.CustomerActive, IPAddress: params.IPAddress, Raw: got.Raw,
	}, got)
}

// Live gateways have other names for some members of a customer, alone or beside
// those of the document.
func TestCustomerSpellings(t *testing.T) {
	t.Parallel()
	want := customerParams()
	both := bytes.ReplaceAll(golden(t, "customers/get.live.response.json"),
		[]byte(`"document_type"`), []byte(`"type": "CPF", "number": "52998224725", "document_type"`))
	both = bytes.ReplaceAll(both, []byte(`"zip_code"`), []byte(`"zipCode": "01001000", "zip_code"`))
	both = bytes.ReplaceAll(both, []byte(`"birth_date": null`), []byte(`"birth_date": "1990-05-17"`))
	for name, body := range map[string][]byte{"live": golden(t, "customers/get.live.response.json"), "both": both} {
		response := &files.Exchange{Status: 200, Body: body}
		got, err := clientOver(t, response.Respond).Customers.Get(t.Context(), mariaID)
		require.NoError(t, err)
		assert.Equal(t, want.Document, got.Document, name)
		assert.Equal(t, want.Address, got.Address, name)
		assert.Equal(t, name == "both", got.BirthDate == "1990-05-17")
		var envelope struct {
			Data json.RawMessage `json:"data"`
		}
		require.NoError(t, json.Unmarshal(body, &envelope))
		assertKeepsFields(t, envelope.Data, got)
		again, err := json.Marshal(got)
		require.NoError(t, err)
		assert.Equal(t, name == "both", bytes.Contains(again, []byte(`"zipCode"`)), "in the spelling that was received: %s", again)
		assert.Equal(t, name == "both", bytes.Contains(again, []byte(`"type"`)))
	}
	for _, nothing := range []string{`null`, `""`, `[]`} {
		response := &files.Exchange{Status: 200, Body: []byte(`{"data":{"id":"1","document":` + nothing + `,"address":` + nothing + `}}`)}
		got, err := clientOver(t, response.Respond).Customers.Get(t.Context(), mariaID)
		require.NoError(t, err)
		assert.Nil(t, got.Document, nothing)
		assert.Nil(t, got.Address, nothing)
	}
}

func TestCustomerList(t *testing.T) {
	t.Parallel()
	e := responseOf(t, 200, "customers/list.response.json")
	page, err := clientOver(t, e.Respond).Customers.List(t.Context(), gateway.CustomerListParams{
		Page: 2, Limit: 2, Search: "ma ria", DocumentNumber: "52998224725", Email: "maria@example.com", Phone: "11987654321",
		ExternalRef: "customer-1001", Status: gateway.CustomerActive, IPAddress: "203.0.113.7",
	})
	require.NoError(t, err)
	sent := e.Only(t)
	assertSent(t, sent, "")
	assert.Equal(t, "/v2/customers", sent.Path)
	assert.Equal(t, url.Values{
		"page": {"2"}, "limit": {"2"}, "search": {"ma ria"}, "document_number": {"52998224725"}, "email": {"maria@example.com"},
		"phone": {"11987654321"}, "external_ref": {"customer-1001"}, "status": {"active"}, "ip_address": {"203.0.113.7"},
	}, sent.Query)
	assert.Equal(t, 2, page.Number)
	assert.Equal(t, 2, page.Limit)
	assert.Equal(t, 5, page.Total)
	assert.True(t, page.HasMore())
	require.Len(t, page.Items, 2)
	assert.Equal(t, mariaID, page.Items[0].ID)
	assert.Equal(t, gateway.Customer{
		ID: "01945f2c-1be8-7c02-b7d4-90a3f1e26c55", Name: "João Souza", Email: "joao@example.com", Status: gateway.CustomerActive, Raw: page.Items[1].Raw,
	}, page.Items[1])
	for i, raw := range goldenItems(t, "customers/list.response.json") {
		assertKeepsFields(t, raw, page.Items[i])
	}
}

func TestCustomerListFailures(t *testing.T) {
	t.Parallel()
	checkFailures(t, "customers.list", "GET /v2/customers", false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Customers.List(ctx, gateway.CustomerListParams{})
		return err
	})
}

func TestCustomerPages(t *testing.T) {
	t.Parallel()
	steps := script{
		respond("GET /v2/customers?limit=2&page=2&search=a", 200,
			`{"success":true,"metadata":{"page":2,"limit":2,"total":5},"data":[{"id":"c3"},{"id":"c2"}]}`),
		respond("GET /v2/customers?limit=2&page=3&search=a", 200,
			`{"success":true,"metadata":{"page":3,"limit":2,"total":5},"data":[{"id":"c1"}]}`),
	}
	client := steps.client(t)
	customers, err := gateway.Collect(client.Customers.All(t.Context(), gateway.CustomerListParams{Page: 2, Limit: 2, Search: "a"}), 0)
	require.NoError(t, err)
	var ids []string
	for _, c := range customers {
		ids = append(ids, c.ID)
	}
	assert.Equal(t, []string{"c3", "c2", "c1"}, ids)
}

func TestCustomerPagesEnd(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]script{
		"on the page after a full one, whatever the total is": {
			respond("GET /v2/customers", 200, `{"metadata":{"page":1,"limit":1,"total":1},"data":[{"id":"c1"}]}`),
			respond("GET /v2/customers?page=2", 200, `{"metadata":{"page":2,"limit":1,"total":1},"data":[]}`),
		},
		"on the last page that is not full": {
			respond("GET /v2/customers", 200, `{"metadata":{"page":1,"limit":2,"total":1},"data":[{"id":"c1"}]}`),
		},
		"without customers": {
			respond("GET /v2/customers", 200, `{"metadata":{"page":1,"limit":10,"total":0},"data":[]}`),
		},
		"without metadata, on an empty page": {
			respond("GET /v2/customers", 200, `{"data":[{"id":"c1"}]}`),
			respond("GET /v2/customers?page=2", 200, `{"data":[]}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range steps.client(t).Customers.Pages(t.Context(), gateway.CustomerListParams{}) {
				require.NoError(t, err)
			}
		})
	}
}

func TestInvalidCustomersAreNotSent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	change := func(f func(*gateway.CustomerParams)) func(*gateway.Client) error {
		return func(c *gateway.Client) error {
			p := customerParams()
			f(&p)
			_, err := c.Customers.Create(ctx, p)
			return err
		}
	}
	requireNotSent(t, "customers.create", "name", change(func(p *gateway.CustomerParams) { p.Name = "" }))
	requireNotSent(t, "customers.create", "email", change(func(p *gateway.CustomerParams) { p.Email = "maria" }))
	requireNotSent(t, "customers.create", "document.type", change(func(p *gateway.CustomerParams) { p.Document.Type = "cpf" }))
	requireNotSent(t, "customers.create", "document.number", change(func(p *gateway.CustomerParams) { p.Document.Number = "" }))
	requireNotSent(t, "customers.create", "address.city", change(func(p *gateway.CustomerParams) { p.Address.City = "" }))
	requireNotSent(t, "customers.create", "ip_address", change(func(p *gateway.CustomerParams) { p.IPAddress = "localhost" }))
	requireNotSent(t, "customers.list", "page", func(c *gateway.Client) error {
		_, err := c.Customers.List(ctx, gateway.CustomerListParams{Page: 1_000_001})
		return err
	})
	requireNotSent(t, "customers.list", "limit", func(c *gateway.Client) error {
		_, err := gateway.Collect(c.Customers.All(ctx, gateway.CustomerListParams{Limit: -1}), 0)
		return err
	})
	for _, id := range []string{"", "..", "a/b"} {
		requireNotSent(t, "customers.get", "id", func(c *gateway.Client) error {
			_, err := c.Customers.Get(ctx, id)
			return err
		})
	}
}

func TestCustomerWithoutAReferenceIsSentOnce(t *testing.T) {
	t.Parallel()
	params := customerParams()
	params.ExternalRef = ""
	steps := script{lose("POST /v2/customers")}
	var response gateway.Response
	_, err := steps.client(t).Customers.Create(t.Context(), params, gateway.ResponseInto(&response))
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	assert.Empty(t, response.Reference, "no reference is generated for a customer")
}

func TestCustomerWhoseResponseWasLostIsRecovered(t *testing.T) {
	t.Parallel()
	const create, find, get = "POST /v2/customers", "GET /v2/customers?external_ref=customer-1001", "GET /v2/customers/" + mariaID
	made := string(golden(t, "customers/create.response.json"))
	duplicate := string(golden(t, "errors/duplicate.live.409.json")) // has no instance
	otherCustomer := `{"data":{"id":"` + mariaID + `","name":"Ana","email":"ana@example.com","externalRef":"customer-1001"}}`
	for name, c := range map[string]struct {
		steps script
		err   error
	}{
		"with the filter": {steps: script{
			lose(create), respond(create, 409, duplicate),
			respond(find, 200, `{"data":[{"id":"`+mariaID+`","externalRef":"customer-1001"}]}`), respond(get, 200, made),
		}},
		"but it belongs to another customer": {err: gateway.ErrDuplicate, steps: script{
			lose(create), respond(create, 409, duplicate),
			respond(find, 200, `{"data":[{"id":"`+mariaID+`","externalRef":"customer-1001"}]}`), respond(get, 200, otherCustomer),
		}},
		"but it does not exist": {err: gateway.ErrOutcomeUnknown, steps: script{
			lose(create), respond(create, 409, duplicate), respond(find, 200, `{"data":[]}`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var response gateway.Response
			got, err := c.steps.client(t).Customers.Create(t.Context(), customerParams(), gateway.ResponseInto(&response))
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, mariaID, got.ID)
			assert.True(t, response.Recovered)
		})
	}
}

func TestCustomerStatus(t *testing.T) {
	t.Parallel()
	assert.True(t, spec.CustomerStatuses.Has(string(gateway.CustomerActive)))
}

// inBothDialects runs a test against a mock gateway of each dialect.
func inBothDialects(t *testing.T, test func(t *testing.T, gw *mockserver.Server, d mockserver.Dialect)) {
	t.Helper()
	for name, d := range map[string]mockserver.Dialect{"document": mockserver.Document, "live": mockserver.Live} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, mockserver.Run(t, mockserver.WithSeed(1), mockserver.WithDialect(d)), d)
		})
	}
}

func TestCustomerIsReturnedAsItWasCreated(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		params := customerParams()
		created, err := gw.Client().Customers.Create(t.Context(), params)
		require.NoError(t, err)
		assert.Equal(t, &gateway.Customer{
			ID: created.ID, Name: params.Name, Email: params.Email, Phone: params.Phone, ExternalRef: params.ExternalRef,
			Document: params.Document, Address: params.Address, Status: gateway.CustomerActive, IPAddress: params.IPAddress, Raw: created.Raw,
		}, created)
		assert.Len(t, created.ID, 36)

		read, err := gw.Client().Customers.Get(t.Context(), created.ID)
		require.NoError(t, err)
		created.Raw, read.Raw = nil, nil // the responses differ in live gateways
		assert.EqualExportedValues(t, *created, *read)
	})
}

func TestEveryCustomerFilterFindsItsCustomer(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		var made []*gateway.Customer
		for i := range 3 {
			c, err := client.Customers.Create(t.Context(), gateway.CustomerParams{
				Name: fmt.Sprintf("Maria %c", 'A'+i), Email: fmt.Sprintf("maria%d@example.com", i), Phone: fmt.Sprintf("1198765432%d", i),
				Document: &gateway.Document{Type: gateway.CPF, Number: fmt.Sprintf("5299822472%d", i)},
				// One customer's reference is a prefix of another's.
				ExternalRef: "ref" + "-1-1"[:2*min(i, 2)], IPAddress: fmt.Sprintf("203.0.113.%d", i+1),
			})
			require.NoError(t, err)
			made = append(made, c)
		}
		for i, c := range made {
			for name, filter := range map[string]gateway.CustomerListParams{
				"search by name":     {Search: c.Name},
				"search by e-mail":   {Search: c.Email[:6]},
				"search by document": {Search: c.Document.Number},
				"document number":    {DocumentNumber: c.Document.Number},
				"e-mail":             {Email: c.Email},
				"phone":              {Phone: c.Phone},
				"reference":          {ExternalRef: c.ExternalRef},
				"ip address":         {IPAddress: c.IPAddress},
				"all at once": {
					Search: c.Name, DocumentNumber: c.Document.Number, Email: c.Email, Phone: c.Phone,
					ExternalRef: c.ExternalRef, Status: gateway.CustomerActive, IPAddress: c.IPAddress,
				},
			} {
				page, err := client.Customers.List(t.Context(), filter)
				require.NoError(t, err, name)
				if assert.Len(t, page.Items, 1, "%s of customer %d", name, i) {
					assert.Equal(t, *c, page.Items[0], name)
					assert.Equal(t, 1, page.Total, name)
				}
			}
		}
		all, err := gateway.Collect(client.Customers.All(t.Context(), gateway.CustomerListParams{Limit: 1, Status: gateway.CustomerActive}), 0)
		require.NoError(t, err)
		assert.Equal(t, []gateway.Customer{*made[2], *made[1], *made[0]}, all, "newest first")
		none, err := client.Customers.List(t.Context(), gateway.CustomerListParams{Status: "blocked"})
		require.NoError(t, err)
		assert.Empty(t, none.Items)
	})
}

func TestCustomerIDAsBuyerID(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		customer, err := client.Customers.Create(t.Context(), customerParams())
		require.NoError(t, err)
		params := gateway.TransactionParams{
			Amount: 4990, Method: gateway.Pix, Buyer: gateway.BuyerParams{ID: gateway.BuyerID(customer.ID)},
			Products: []gateway.Product{{Name: "Mug", Price: 4990}},
		}
		tx, err := client.Transactions.Create(t.Context(), params)
		require.NoError(t, err)
		assert.Equal(t, customer.ID, tx.Buyer.ID)
		assert.Equal(t, customer.Name, tx.Buyer.Name)
		assert.Equal(t, customer.Email, tx.Buyer.Email)

		params.Buyer.ID = "01945f2c-0000-7000-8000-000000000000"
		_, err = client.Transactions.Create(t.Context(), params)
		require.ErrorIs(t, err, gateway.ErrNotFound)
	})
}

func TestOneReferenceCreatesOneCustomer(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t).Client()
	var group sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		group.Go(func() { _, errs[i] = client.Customers.Create(t.Context(), customerParams()) })
	}
	group.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
			continue
		}
		require.ErrorIs(t, err, gateway.ErrDuplicate)
	}
	assert.Equal(t, 1, created)
	page, err := client.Customers.List(t.Context(), gateway.CustomerListParams{})
	require.NoError(t, err)
	assert.Equal(t, 1, page.Total)
}
