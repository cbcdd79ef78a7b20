package gateway_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

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

func TestCustomerComesBackAsItWasMade(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		params := customerParams()
		created, err := gw.Client().Customers.Create(t.Context(), params)
		require.NoError(t, err)
		assert.Equal(t, &gateway.Customer{
			ID: created.ID, Name: params.Name, Email: params.Email, Phone: params.Phone, ExternalRef: params.ExternalRef,
			Document: params.Document, Address: params.Address, Status: gateway.CustomerActive, IPAddress: params.IPAddress,
		}, created)
		assert.Len(t, created.ID, 36)

		read, err := gw.Client().Customers.Get(t.Context(), created.ID)
		require.NoError(t, err)
		assert.Equal(t, created, read)
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
				// The reference of one is the start of another's.
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

func TestCustomerPaysByItsID(t *testing.T) {
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

func TestOneReferenceMakesOneCustomer(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t).Client()
	var group sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		group.Go(func() { _, errs[i] = client.Customers.Create(t.Context(), customerParams()) })
	}
	group.Wait()
	winners := 0
	for _, err := range errs {
		if err == nil {
			winners++
			continue
		}
		require.ErrorIs(t, err, gateway.ErrDuplicate)
	}
	assert.Equal(t, 1, winners)
	page, err := client.Customers.List(t.Context(), gateway.CustomerListParams{})
	require.NoError(t, err)
	assert.Equal(t, 1, page.Total)
}
