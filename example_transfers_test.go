package gateway_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gateway-go/gateway"
)

func ExampleTransfersService_Create() {
	_, client := mock()

	transfer, err := client.Transfers.Create(context.Background(), gateway.TransferParams{
		PixKeyType:  gateway.PixKeyCPF,
		PixKeyValue: "529.982.247-25",
		Amount:      150_00, // cents
		Description: "January prize",
		ExternalRef: "payout-2001", // stored with the payout before the call
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transfer.Status, transfer.Amount, transfer.Fee)
	// Output: pending 15000 50
}

// An invalid key is rejected before anything is sent.
func ExampleTransferParams_Validate() {
	err := gateway.TransferParams{
		PixKeyType:  gateway.PixKeyCPF,
		PixKeyValue: "52998224724", // one digit off
		Amount:      150_00,
	}.Validate()
	fmt.Println(err)
	fmt.Println(errors.Is(err, gateway.ErrValidation))
	// Output:
	// gateway: invalid request: pix_key_value must be a CPF: 11 digits with valid check digits
	// true
}

// A payout that is sent twice is paid once. Depending on the gateway, the second
// call is rejected or returns the first transfer.
func ExampleTransfersService_Create_twice() {
	_, client := mock()
	ctx := context.Background()

	params := gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: 150_00, ExternalRef: "payout-2001",
	}
	for range 2 {
		var response gateway.Response
		_, err := client.Transfers.Create(ctx, params, gateway.ResponseInto(&response))
		switch {
		case errors.Is(err, gateway.ErrDuplicate):
			fmt.Println("rejected: already exists")
		case err != nil:
			fmt.Println(err)
		case response.Existing:
			fmt.Println("returned: already exists")
		default:
			fmt.Println("created")
		}
	}
	transfers, err := gateway.Collect(client.Transfers.All(ctx, gateway.TransferListParams{}), 0)
	fmt.Println(len(transfers), "transfer", err)
	// Output:
	// created
	// rejected: already exists
	// 1 transfer <nil>
}

func ExampleTransfersService_Get() {
	_, client := mock()
	ctx := context.Background()

	created, err := client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyPhone, PixKeyValue: "11987654321", Amount: 150_00, ExternalRef: "payout-2001",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	transfer, err := client.Transfers.Get(ctx, created.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transfer.Status, "final:", transfer.Status.Final())
	// Output: pending final: false
}

func ExampleTransfersService_Cancel() {
	_, client := mock()
	ctx := context.Background()

	created, err := client.Transfers.Create(ctx, gateway.TransferParams{
		PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: 150_00, ExternalRef: "payout-2001",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	transfer, err := client.Transfers.Cancel(ctx, created.ID, gateway.TransferCancelParams{Reason: "wrong receiver"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transfer.Status)

	_, err = client.Transfers.Cancel(ctx, created.ID, gateway.TransferCancelParams{})
	fmt.Println("too late:", errors.Is(err, gateway.ErrConflict))
	// Output:
	// cancelled
	// too late: true
}

func ExampleTransfersService_List() {
	_, client := mock()
	ctx := context.Background()

	for _, amount := range []int64{10_00, 20_00, 30_00} {
		_, err := client.Transfers.Create(ctx, gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: amount,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	page, err := client.Transfers.List(ctx, gateway.TransferListParams{Limit: 2, Status: gateway.TransferPending})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, transfer := range page.Items {
		fmt.Println(transfer.Amount)
	}
	fmt.Println("of", page.Total, "more:", page.HasMore())
	// Output:
	// 3000
	// 2000
	// of 3 more: true
}

func ExampleTransfersService_Pages() {
	_, client := mock()
	ctx := context.Background()

	for _, amount := range []int64{10_00, 20_00, 30_00} {
		_, err := client.Transfers.Create(ctx, gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: amount,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for page, err := range client.Transfers.Pages(ctx, gateway.TransferListParams{Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(page.Items)) // page.NextCursor continues from here, even in another process
	}
	// Output:
	// 2
	// 1
}

func ExampleTransfersService_All() {
	_, client := mock()
	ctx := context.Background()

	for _, amount := range []int64{10_00, 20_00, 30_00} {
		_, err := client.Transfers.Create(ctx, gateway.TransferParams{
			PixKeyType: gateway.PixKeyEmail, PixKeyValue: "maria@example.com", Amount: amount,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	var total int64
	for transfer, err := range client.Transfers.All(ctx, gateway.TransferListParams{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		total += transfer.Amount
	}
	fmt.Println(total)
	// Output: 6000
}
