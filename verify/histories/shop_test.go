package histories_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

// setup is a way to run the mock gateway.
type setup struct {
	name    string
	live    bool
	sockets bool
}

var setups = []setup{
	{"document dialect, in memory", false, false},
	{"document dialect, over sockets", false, true},
	{"live dialect, in memory", true, false},
	{"live dialect, over sockets", true, true},
}

func (s setup) dialect() dialect { return dialect{payoutsRepeat: s.live} }

// shop performs operations and returns their outcomes. It sends each request
// once.
type shop struct {
	gw     *mockserver.Server
	client *gateway.Client

	mu  sync.Mutex
	ids map[string]string // by reference; missing until a response has it
}

type testingT interface {
	require.TestingT
	Helper()
	Context() context.Context
	Cleanup(func())
}

func open(t testingT, s setup) *shop {
	t.Helper()
	d := mockserver.Document
	if s.live {
		d = mockserver.Live
	}
	gw, err := mockserver.New(mockserver.WithDialect(d), mockserver.WithOpeningBalance(1<<40))
	require.NoError(t, err)
	t.Cleanup(func() { _ = gw.Close() })
	sh := &shop{gw: gw, client: gw.Client(), ids: make(map[string]string)}
	if s.sockets {
		url, err := gw.Listen("127.0.0.1:0")
		require.NoError(t, err)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
		t.Cleanup(client.CloseIdleConnections)
		sh.client, err = gateway.New(url, gateway.BearerToken(gw.Key()), gateway.WithHTTPClient(client))
		require.NoError(t, err)
	}
	return sh
}

func isPayout(ref string) bool { return strings.HasPrefix(ref, "payout") }

func (sh *shop) id(ref string) string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.ids[ref]
}

func (sh *shop) remember(ref, id string) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if was := sh.ids[ref]; was != "" && id != "" && was != id {
		panic(fmt.Sprintf("%s has two ids, %s and %s", ref, was, id))
	}
	if id != "" {
		sh.ids[ref] = id
	}
}

// response has every field that the tests read from any response.
type response struct {
	Data struct {
		ID       string `json:"id"`
		Status   string `json:"status"`
		Refunded int64  `json:"refunded_amount"`
		Left     int64  `json:"remaining_balance"`
	} `json:"data"`
}

// do performs an operation. Without an id, only a create can be done.
func (sh *shop) do(ctx context.Context, in input) output {
	id := sh.id(in.Ref)
	if isPayout(in.Ref) {
		return sh.doPayout(ctx, in, id)
	}
	return sh.doCharge(ctx, in, id)
}

func (sh *shop) doCharge(ctx context.Context, in input, id string) output {
	switch in.Do {
	case "create":
		return sh.create(ctx, in.Ref, "/v2/transactions", gateway.TransactionParams{
			Amount: amount, Method: gateway.Pix, ExternalRef: in.Ref, NotifyURL: "https://shop.example/webhooks",
			Buyer: gateway.BuyerParams{
				Name: "Ana", Email: "ana@example.com", Phone: "+5511999990000", Document: &gateway.Document{Type: gateway.CPF, Number: "52998224725"},
			},
			Products: []gateway.Product{{Name: "Mug", Price: amount, Quantity: 1}},
		})
	case "read":
		return sh.read(ctx, "/v2/transactions/"+id)
	case "pay":
		return controlOutcome(sh.gw.Transactions.Pay(id))
	case "cancel":
		return controlOutcome(sh.gw.Transactions.Cancel(id))
	case "refund":
		var got response
		out := outcome(sh.client.Do(ctx, http.MethodPut, "/v2/transactions/"+id+"/refund", gateway.RefundParams{Amount: in.Amount}, &got, gateway.MaxAttempts(1)))
		if out.OK {
			out.Left = got.Data.Left
		}
		return out
	default:
		panic(in.Do)
	}
}

func (sh *shop) doPayout(ctx context.Context, in input, id string) output {
	switch in.Do {
	case "create":
		return sh.create(ctx, in.Ref, "/v2/transfers", gateway.TransferParams{
			Amount: amount, ExternalRef: in.Ref, PixKeyType: gateway.PixKeyEmail, PixKeyValue: "ana@example.com",
		})
	case "read":
		return sh.read(ctx, "/v2/transfers/"+id)
	case "cancel":
		var got response
		out := outcome(sh.client.Do(ctx, http.MethodPost, "/v2/transfers/"+id+"/cancel", gateway.TransferCancelParams{}, &got, gateway.MaxAttempts(1)))
		if out.OK {
			out.Status = got.Data.Status
		}
		return out
	case "analyse":
		return controlOutcome(sh.gw.Transfers.Analyse(id))
	case "process":
		return controlOutcome(sh.gw.Transfers.Process(id))
	case "settle":
		return controlOutcome(sh.gw.Transfers.Settle(id))
	case "fail":
		return controlOutcome(sh.gw.Transfers.Fail(id))
	default:
		panic(in.Do)
	}
}

func (sh *shop) create(ctx context.Context, ref, path string, params any) output {
	var got response
	err := sh.client.Do(ctx, http.MethodPost, path, params, &got, gateway.MaxAttempts(1))
	if errors.Is(err, gateway.ErrValidation) {
		panic(err) // not part of the model
	}
	out := outcome(err)
	if out.OK {
		out.Status = got.Data.Status
		sh.remember(ref, got.Data.ID)
	}
	var e *gateway.Error
	if errors.As(err, &e) {
		sh.remember(ref, e.ResourceID)
	}
	return out
}

func (sh *shop) read(ctx context.Context, path string) output {
	var got response
	out := outcome(sh.client.Do(ctx, http.MethodGet, path, nil, &got, gateway.MaxAttempts(1)))
	if out.OK {
		out.Status, out.Refunded = got.Data.Status, got.Data.Refunded
	}
	return out
}

// outcome returns the outcome of an operation: only a 400, a 409 or a 422
// proves that a failed one was not applied.
func outcome(err error) output {
	var e *gateway.Error
	switch {
	case err == nil:
		return output{OK: true}
	case errors.As(err, &e) && (e.StatusCode == http.StatusConflict || e.StatusCode == http.StatusUnprocessableEntity || e.StatusCode == http.StatusBadRequest):
		return rejected
	default:
		return output{Unknown: true}
	}
}

func controlOutcome(err error) output {
	var rejection *mockserver.ControlError
	switch {
	case err == nil:
		return output{OK: true}
	case errors.As(err, &rejection) && rejection.Status == http.StatusConflict:
		return rejected
	default:
		panic(err)
	}
}

func eachSetup(t *testing.T, run func(*testing.T, setup)) {
	t.Helper()
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}
