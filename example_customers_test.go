package gateway_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
)

func ExampleCustomersService_Create() {
	_, client := mock()
	customer, err := client.Customers.Create(context.Background(), gateway.CustomerParams{
		Name:        "Maria Silva",
		Email:       "maria@example.com",
		Document:    &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
		ExternalRef: "customer-1001", // your own id; makes the call safe to repeat
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(customer.Name, customer.Status, len(customer.ID))
	// Output: Maria Silva active 36
}

// A second customer with the same reference is rejected. Find the first one by the
// reference.
func ExampleCustomersService_Create_duplicate() {
	_, client := mock()
	ctx := context.Background()

	params := gateway.CustomerParams{Name: "Maria Silva", Email: "maria@example.com", ExternalRef: "customer-1001"}
	if _, err := client.Customers.Create(ctx, params); err != nil {
		fmt.Println(err)
		return
	}
	_, err := client.Customers.Create(ctx, params)
	if errors.Is(err, gateway.ErrDuplicate) {
		page, err := client.Customers.List(ctx, gateway.CustomerListParams{ExternalRef: "customer-1001"})
		if err != nil || len(page.Items) == 0 {
			fmt.Println("not found:", err)
			return
		}
		fmt.Println("existing customer:", page.Items[0].Name)
	}
	// Output: existing customer: Maria Silva
}

func ExampleCustomersService_Get() {
	_, client := mock()
	ctx := context.Background()

	created, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: "Maria Silva", Email: "maria@example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	customer, err := client.Customers.Get(ctx, created.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(customer.Name)

	_, err = client.Customers.Get(ctx, "01945f2c-0000-7000-8000-000000000000")
	fmt.Println(errors.Is(err, gateway.ErrNotFound))
	// Output:
	// Maria Silva
	// true
}

func ExampleCustomersService_List() {
	_, client := mock()
	ctx := context.Background()

	for _, name := range []string{"Ana", "Bruno", "Carla"} {
		if _, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: name, Email: "team@example.com"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	page, err := client.Customers.List(ctx, gateway.CustomerListParams{Page: 1, Limit: 2, Email: "team@example.com"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("page", page.Number, "of", page.Total, "customers, more:", page.HasMore())
	for _, customer := range page.Items {
		fmt.Println(customer.Name)
	}
	// Output:
	// page 1 of 3 customers, more: true
	// Carla
	// Bruno
}

func ExampleCustomersService_Pages() {
	_, client := mock()
	ctx := context.Background()

	for _, name := range []string{"Ana", "Bruno", "Carla"} {
		if _, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: name, Email: "team@example.com"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for page, err := range client.Customers.Pages(ctx, gateway.CustomerListParams{Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("page", page.Number, "has", len(page.Items))
	}
	// Output:
	// page 1 has 2
	// page 2 has 1
}

func ExampleCustomersService_All() {
	_, client := mock()
	ctx := context.Background()

	for _, name := range []string{"Ana Lima", "Bruno Reis", "Ana Costa"} {
		if _, err := client.Customers.Create(ctx, gateway.CustomerParams{Name: name, Email: "team@example.com"}); err != nil {
			fmt.Println(err)
			return
		}
	}
	for customer, err := range client.Customers.All(ctx, gateway.CustomerListParams{Search: "ana"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(customer.Name)
	}
	// Output:
	// Ana Costa
	// Ana Lima
}
