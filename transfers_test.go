package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	files "github.com/gateway-go/gateway/internal/golden"
	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver"
)

const transferID = "01945f2c-2000-7b1d-9c3e-4f5a6b7c8d9e"

func transferParams() gateway.TransferParams {
	return gateway.TransferParams{
		PixKeyType:  gateway.PixKeyCPF,
		PixKeyValue: "52998224725",
		Amount:      150000,
		Description: "January prize",
		ExternalRef: "payout-2001",
		NotifyURL:   "https://shop.example/webhooks/payouts",
		Origin:      "backoffice",
	}
}

func TestTransfersOnTheWire(t *testing.T) {
	t.Parallel()
	create := serviceCall{
		op: "transfers.create", method: http.MethodPost, path: "/v2/transfers", class: "keyed", status: 201,
		request: "transfers/create.request.json", response: "transfers/create.response.json",
		unset: []string{"ProcessedAt", "TransferredAt"},
		run: func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) (any, error) {
			return c.Transfers.Create(ctx, transferParams(), opts...)
		},
	}
	get := serviceCall{
		op: "transfers.get", method: http.MethodGet, path: "/v2/transfers/" + transferID, class: "safe", status: 200,
		response: "transfers/get.response.json",
		run: func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) (any, error) {
			return c.Transfers.Get(ctx, transferID, opts...)
		},
	}
	cancel := serviceCall{
		op: "transfers.cancel", method: http.MethodPost, path: "/v2/transfers/" + transferID + "/cancel", class: "unsafe", status: 200,
		request: "transfers/cancel.request.json", response: "transfers/cancel.response.json",
		unset: []string{"ProcessedAt", "TransferredAt"},
		run: func(ctx context.Context, c *gateway.Client, opts ...gateway.RequestOption) (any, error) {
			return c.Transfers.Cancel(ctx, transferID, gateway.TransferCancelParams{Reason: "Requested by the customer"}, opts...)
		},
	}
	calls := []serviceCall{create, get, cancel}
	for _, c := range calls {
		c.response = c.response[:len(c.response)-len(".response.json")] + ".live.response.json"
		calls = append(calls, c)
	}
	testServiceCalls(t, calls)
}

func TestTransferValues(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"transfers/get.response.json", "transfers/get.live.response.json"} {
		e := &files.Exchange{Status: http.StatusOK, Body: golden(t, file)}
		got, err := clientOver(t, e.Respond).Transfers.Get(t.Context(), transferID)
		require.NoError(t, err)
		assert.Equal(t, &gateway.Transfer{
			ID: transferID, Amount: 150000, Fee: 50, Type: "pix", PixKey: "52998224725", PixKeyType: gateway.PixKeyCPF,
			Status: gateway.TransferPaid, Description: "January prize", ExternalRef: "payout-2001",
			ProcessedAt: at(t, "2027-01-04T12:00:05Z"), TransferredAt: at(t, "2027-01-04T12:00:09.250Z"),
			CreatedAt: at(t, "2027-01-04T12:00:00Z"), UpdatedAt: at(t, "2027-01-04T12:00:09.250Z"), Raw: got.Raw,
		}, got, file)
	}
}

func TestTransferCancelWithoutAReasonSendsAnObject(t *testing.T) {
	t.Parallel()
	e := &files.Exchange{Status: http.StatusOK, Body: golden(t, "transfers/cancel.response.json")}
	got, err := clientOver(t, e.Respond).Transfers.Cancel(t.Context(), transferID, gateway.TransferCancelParams{})
	require.NoError(t, err)
	assert.Equal(t, gateway.TransferCancelled, got.Status)
	assert.Equal(t, `{}`, string(e.Only(t).Body))
}

func TestTransferList(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"transfers/list.response.json", "transfers/list.live.response.json"} {
		e := &files.Exchange{Status: http.StatusOK, Body: golden(t, file)}
		page, err := clientOver(t, e.Respond).Transfers.List(t.Context(), gateway.TransferListParams{
			Cursor: "c1", Limit: 2, Direction: gateway.DirectionPrev, Status: gateway.TransferPaid,
		})
		require.NoError(t, err)
		sent := e.Only(t)
		assert.Equal(t, "/v2/transfers", sent.Path)
		assert.Equal(t, url.Values{"cursor": {"c1"}, "limit": {"2"}, "direction": {"prev"}, "status": {"paid"}}, sent.Query)
		assert.Equal(t, 5, page.Total)
		assert.Equal(t, "eyJzIjo0fQ", page.NextCursor)
		assert.Empty(t, page.PrevCursor)
		require.Len(t, page.Items, 2)
		assert.Equal(t, int64(150000), page.Items[0].Amount)
		assert.Equal(t, int64(4990), page.Items[1].Amount)
		assert.Equal(t, gateway.TransferError, page.Items[1].Status)
		assert.Empty(t, page.Items[1].Description)
		for i, raw := range goldenItems(t, file) {
			assertKeepsFields(t, raw, page.Items[i])
		}
	}
}

func TestTransferListFailures(t *testing.T) {
	t.Parallel()
	checkFailures(t, "transfers.list", "GET /v2/transfers", false, func(ctx context.Context, c *gateway.Client) error {
		_, err := c.Transfers.List(ctx, gateway.TransferListParams{})
		return err
	})
}

func TestTransferPages(t *testing.T) {
	t.Parallel()
	const path = "GET /v2/transfers?"
	steps := script{
		respond(path+"status=paid", 200, `{"data":{"data":[{"id":"t5"},{"id":"t4"}],"total":3,"next_cursor":"c2","prev_cursor":null}}`),
		respond(path+"cursor=c2&status=paid", 200, `{"data":[],"total":3,"next_cursor":"c3"}`),
		respond(path+"cursor=c3&status=paid", 200, `{"data":[{"id":"t1","amount":"1200"}],"total":3,"next_cursor":null}`),
	}
	client := steps.client(t)
	all := client.Transfers.All(t.Context(), gateway.TransferListParams{Status: gateway.TransferPaid})
	transfers, err := gateway.Collect(all, 0)
	require.NoError(t, err)
	require.Len(t, transfers, 3)
	assert.Equal(t, "t1", transfers[2].ID)
	assert.Equal(t, int64(1200), transfers[2].Amount)
}

func TestTransferPagesStopWhenTheLoopBreaks(t *testing.T) {
	t.Parallel()
	steps := script{respond("GET /v2/transfers", 200, `{"data":[{"id":"t5"},{"id":"t4"}],"next_cursor":"c2"}`)}
	client := steps.client(t)
	_ = client.Transfers.Pages(t.Context(), gateway.TransferListParams{}) // sends nothing
	for transfer, err := range client.Transfers.All(t.Context(), gateway.TransferListParams{}) {
		require.NoError(t, err)
		assert.Equal(t, "t5", transfer.ID)
		break
	}
}

func TestTransferPagesEndWithOneError(t *testing.T) {
	t.Parallel()
	steps := script{
		respond("GET /v2/transfers", 200, `{"data":[{"id":"t5"}],"next_cursor":"c2"}`),
		respond("GET /v2/transfers?cursor=c2", 403, problem(403)),
	}
	var ids []string
	var failures []error
	for transfer, err := range steps.client(t).Transfers.All(t.Context(), gateway.TransferListParams{}) {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		ids = append(ids, transfer.ID)
	}
	assert.Equal(t, []string{"t5"}, ids)
	require.Len(t, failures, 1)
	require.ErrorIs(t, failures[0], gateway.ErrForbidden)
}

func TestInvalidTransfersAreNotSent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	change := func(f func(*gateway.TransferParams)) func(*gateway.Client) error {
		return func(c *gateway.Client) error {
			p := transferParams()
			f(&p)
			_, err := c.Transfers.Create(ctx, p)
			return err
		}
	}
	for _, c := range []struct {
		field string
		run   func(*gateway.Client) error
	}{
		{"amount", change(func(p *gateway.TransferParams) { p.Amount = 0 })},
		{"amount", change(func(p *gateway.TransferParams) { p.Amount = -1 })},
		{"pix_key_type", change(func(p *gateway.TransferParams) { p.PixKeyType = "RANDOM" })},
		{"pix_key_value", change(func(p *gateway.TransferParams) { p.PixKeyValue = "52998224724" })},
		{"pix_key_value", change(func(p *gateway.TransferParams) { p.PixKeyType = gateway.PixKeyEVP })},
		{"notify_url", change(func(p *gateway.TransferParams) { p.NotifyURL = "http://shop.example" })},
		{"notify_url", change(func(p *gateway.TransferParams) { p.NotifyURL = "http://127.0.0.1/" })}, // the gateway is not on a loopback host
	} {
		requireNotSent(t, "transfers.create", c.field, c.run)
	}
	requireNotSent(t, "transfers.list", "limit", func(c *gateway.Client) error {
		_, err := c.Transfers.List(ctx, gateway.TransferListParams{Limit: 101})
		return err
	})
	requireNotSent(t, "transfers.list", "status", func(c *gateway.Client) error {
		_, err := gateway.Collect(c.Transfers.All(ctx, gateway.TransferListParams{Status: "canceled"}), 0)
		return err
	})
	for _, id := range []string{"", " ", "..", ".", "a/b", "../customers"} {
		requireNotSent(t, "transfers.get", "id", func(c *gateway.Client) error {
			_, err := c.Transfers.Get(ctx, id)
			return err
		})
		requireNotSent(t, "transfers.cancel", "id", func(c *gateway.Client) error {
			_, err := c.Transfers.Cancel(ctx, id, gateway.TransferCancelParams{})
			return err
		})
	}
}

func TestAnExistingTransferIsReturnedOnlyIfItMatches(t *testing.T) {
	t.Parallel()
	const create = "POST /v2/transfers"
	for name, c := range map[string]struct {
		change func(*gateway.TransferParams)
		same   bool
	}{
		"equal":             {func(*gateway.TransferParams) {}, true},
		"key punctuated":    {func(p *gateway.TransferParams) { p.PixKeyValue = "529.982.247-25" }, true},
		"other description": {func(p *gateway.TransferParams) { p.Description = "Prize" }, true},
		"other amount":      {func(p *gateway.TransferParams) { p.Amount++ }, false},
		"other key":         {func(p *gateway.TransferParams) { p.PixKeyValue = "11144477735" }, false},
		"other type of key": {func(p *gateway.TransferParams) { p.PixKeyType, p.PixKeyValue = gateway.PixKeyPhone, "11987654321" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params := transferParams()
			c.change(&params)
			steps := script{respond(create, http.StatusOK, string(golden(t, "transfers/create.live.response.json")))}
			var response gateway.Response
			got, err := steps.client(t).Transfers.Create(t.Context(), params, gateway.ResponseInto(&response))
			assert.Equal(t, "payout-2001", response.Reference)
			if c.same {
				require.NoError(t, err)
				assert.Equal(t, transferID, got.ID)
				assert.True(t, response.Existing)
				assert.False(t, response.Recovered)
				return
			}
			require.ErrorIs(t, err, gateway.ErrDuplicate)
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			existing, ok := e.Existing.(*gateway.Transfer)
			require.True(t, ok)
			assert.Equal(t, transferID, existing.ID)
		})
	}
}

func TestTransferWithAUsedReferenceIsADuplicate(t *testing.T) {
	t.Parallel()
	steps := script{respond("POST /v2/transfers", http.StatusConflict, string(golden(t, "errors/duplicate.409.json")))}
	_, err := steps.client(t).Transfers.Create(t.Context(), transferParams())
	require.ErrorIs(t, err, gateway.ErrDuplicate)
	require.NotErrorIs(t, err, gateway.ErrOutcomeUnknown)
}

func TestTransferWhoseResponseWasLostIsRecovered(t *testing.T) {
	t.Parallel()
	const create, get = "POST /v2/transfers", "GET /v2/transfers/" + transferID
	made := string(golden(t, "transfers/create.response.json"))
	conflict := func(instance string) string {
		return `{"title":"Conflict","status":409,"code":"DUPLICATE_EXTERNAL_REF","instance":"` + instance + `"}`
	}
	other := `{"data":{"id":"` + transferID + `","amount":99,"pix_key":"52998224725","pix_key_type":"CPF","external_ref":"payout-2001"}}`
	for name, c := range map[string]struct {
		steps script
		err   error
	}{
		"with the id in the rejection": {steps: script{
			lose(create),
			respond(create, 409, conflict("/v2/transfers/"+transferID)),
			respond(get, 200, made),
		}},
		"with the list": {steps: script{
			respond(create, 503, ""),
			respond(create, 409, conflict("")),
			respond("GET /v2/transfers?limit=100", 200, string(golden(t, "transfers/list.live.response.json"))),
			respond(get, 200, made),
		}},
		"returned by the second attempt": {steps: script{lose(create), respond(create, 200, made)}},
		"but it is a different transfer": {err: gateway.ErrDuplicate, steps: script{
			lose(create),
			respond(create, 409, conflict("/v2/transfers/"+transferID)),
			respond(get, 200, other),
		}},
		"but the list can't be read": {err: gateway.ErrOutcomeUnknown, steps: script{
			lose(create),
			respond(create, 409, conflict("")),
			respond("GET /v2/transfers?limit=100", 403, problem(403)),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var response gateway.Response
			got, err := c.steps.client(t).Transfers.Create(t.Context(), transferParams(), gateway.ResponseInto(&response))
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, transferID, got.ID)
			assert.True(t, response.Recovered)
		})
	}
}

func TestTransferGetsOneReferenceForAllAttempts(t *testing.T) {
	t.Parallel()
	e := &files.Exchange{Status: http.StatusBadGateway}
	params := transferParams()
	params.ExternalRef = ""
	_, err := clientOver(t, e.Respond).Transfers.Create(t.Context(), params)
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
	var outcome *gateway.OutcomeError
	require.ErrorAs(t, err, &outcome)
	require.Len(t, outcome.Reference, 36)
	sent := e.Requests()
	require.Len(t, sent, 3)
	for _, request := range sent {
		assert.Contains(t, string(request.Body), `"external_ref":"`+outcome.Reference+`"`)
		assert.Equal(t, string(sent[0].Body), string(request.Body))
	}
}

func TestTransferCancelIsNotRepeated(t *testing.T) {
	t.Parallel()
	steps := script{lose("POST /v2/transfers/" + transferID + "/cancel")}
	_, err := steps.client(t).Transfers.Cancel(t.Context(), transferID, gateway.TransferCancelParams{})
	require.ErrorIs(t, err, gateway.ErrOutcomeUnknown)
}

func TestTransferStates(t *testing.T) {
	t.Parallel()
	for status, final := range map[gateway.TransferStatus]bool{
		gateway.TransferPending:    false,
		gateway.TransferInAnalysis: false,
		gateway.TransferProcessing: false,
		gateway.TransferPaid:       true,
		gateway.TransferError:      true,
		gateway.TransferCancelled:  true,
		gateway.TransferScheduled:  false,
		gateway.TransferRejected:   true,
		gateway.TransferUnknown:    false,
	} {
		assert.True(t, spec.LiveTransferStatuses.Has(string(status)), status)
		assert.Equal(t, final, status.Final(), status)
	}
	assert.False(t, spec.LiveTransferStatuses.Has("canceled"))
	for _, keyType := range []gateway.PixKeyType{
		gateway.PixKeyCPF, gateway.PixKeyCNPJ, gateway.PixKeyEmail, gateway.PixKeyPhone, gateway.PixKeyEVP,
	} {
		assert.True(t, spec.PixKeyTypes.Has(string(keyType)), keyType)
	}
	assert.False(t, spec.PixKeyTypes.Has("cpf"))
}

func TestPixKeyPrintsMasked(t *testing.T) {
	t.Parallel()
	params := transferParams()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).InfoContext(t.Context(), "payout", slog.Any("key", params.PixKeyValue))
	for _, text := range []string{
		log.String(), fmt.Sprint(params.PixKeyValue), fmt.Sprintf("%v %+v %#v %v", params, params, params, gateway.Transfer{PixKey: "52998224725"}),
	} {
		assert.NotContains(t, text, "52998224725")
		assert.Contains(t, text, "***")
	}
	assert.Empty(t, gateway.PixKey("").String())
	assert.Equal(t, "52998224725", string(params.PixKeyValue))
}

func TestTransferFromCreateToPaid(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		params := transferParams()
		created, err := client.Transfers.Create(t.Context(), params)
		require.NoError(t, err)
		created.Raw = nil
		assert.Equal(t, &gateway.Transfer{
			ID: created.ID, Amount: params.Amount, Fee: 50, Type: "pix", PixKey: params.PixKeyValue, PixKeyType: params.PixKeyType,
			Status: gateway.TransferPending, Description: params.Description, ExternalRef: params.ExternalRef,
			CreatedAt: created.CreatedAt, UpdatedAt: created.CreatedAt,
		}, created)
		assert.False(t, created.CreatedAt.IsZero())

		require.NoError(t, gw.Transfers.Process(created.ID))
		_, err = client.Transfers.Cancel(t.Context(), created.ID, gateway.TransferCancelParams{})
		require.ErrorIs(t, err, gateway.ErrConflict)
		require.NotErrorIs(t, err, gateway.ErrDuplicate)
		require.NoError(t, gw.Transfers.Settle(created.ID))
		paid, err := client.Transfers.Get(t.Context(), created.ID)
		require.NoError(t, err)
		assert.Equal(t, gateway.TransferPaid, paid.Status)
		assert.True(t, paid.Status.Final())
		assert.False(t, paid.ProcessedAt.IsZero())
		assert.False(t, paid.TransferredAt.IsZero())
	})
}

func TestTransferKeysOfEveryKindAreAccepted(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		for keyType, keys := range map[gateway.PixKeyType][]gateway.PixKey{
			gateway.PixKeyCPF:   {"52998224725", "529.982.247-25"},
			gateway.PixKeyCNPJ:  {"11222333000181", "12.ABC.345/01DE-35"},
			gateway.PixKeyEmail: {"maria@example.com"},
			gateway.PixKeyPhone: {"+5511987654321", "11987654321"},
			gateway.PixKeyEVP:   {"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"},
		} {
			for _, key := range keys {
				transfer, err := gw.Client().Transfers.Create(t.Context(), gateway.TransferParams{
					PixKeyType: keyType, PixKeyValue: key, Amount: 1000,
				})
				require.NoError(t, err, keyType)
				assert.Equal(t, keyType, transfer.PixKeyType)
			}
		}
	})
}

func TestTransferWithARepeatedReference(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, d mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		first, err := client.Transfers.Create(t.Context(), transferParams())
		require.NoError(t, err)

		var response gateway.Response
		again, err := client.Transfers.Create(t.Context(), transferParams(), gateway.ResponseInto(&response))
		if d == mockserver.Live {
			require.NoError(t, err)
			assert.Equal(t, first, again)
			assert.True(t, response.Existing)
		} else {
			require.ErrorIs(t, err, gateway.ErrDuplicate)
			var e *gateway.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, "/v2/transfers/"+first.ID, e.Instance)
		}

		more := transferParams()
		more.Amount *= 2
		_, err = client.Transfers.Create(t.Context(), more)
		require.ErrorIs(t, err, gateway.ErrDuplicate, "a different amount is not a repeat")

		all, err := gateway.Collect(client.Transfers.All(t.Context(), gateway.TransferListParams{}), 0)
		require.NoError(t, err)
		assert.Equal(t, []gateway.Transfer{*first}, all)
	})
}

func TestTransferLiveMinimum(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, d mockserver.Dialect) {
		t.Helper()
		params := transferParams()
		params.Amount = 999
		_, err := gw.Client().Transfers.Create(t.Context(), params)
		if d == mockserver.Document {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, gateway.ErrValidation)
		var e *gateway.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, http.StatusUnprocessableEntity, e.StatusCode)
		require.Len(t, e.Fields, 1)
		assert.Equal(t, "amount", e.Fields[0].Field)
		assert.Equal(t, "too_small", e.Fields[0].Code)

		params.Amount = 1000
		_, err = gw.Client().Transfers.Create(t.Context(), params)
		require.NoError(t, err, "a rejected request does not use up its reference")
	})
}

func TestTransferListByState(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		var pending []string
		for i := range 7 {
			params := transferParams()
			params.ExternalRef = fmt.Sprintf("payout-%d", i)
			made, err := client.Transfers.Create(t.Context(), params)
			require.NoError(t, err)
			if i%3 == 0 {
				_, err := client.Transfers.Cancel(t.Context(), made.ID, gateway.TransferCancelParams{Reason: "test"})
				require.NoError(t, err)
				continue
			}
			pending = append([]string{made.ID}, pending...)
		}
		var found []string
		for transfer, err := range client.Transfers.All(t.Context(), gateway.TransferListParams{Limit: 2, Status: gateway.TransferPending}) {
			require.NoError(t, err)
			assert.Equal(t, gateway.TransferPending, transfer.Status)
			found = append(found, transfer.ID)
		}
		assert.Equal(t, pending, found)

		// Go back from the second page, as another process could.
		first, err := client.Transfers.List(t.Context(), gateway.TransferListParams{Limit: 3})
		require.NoError(t, err)
		assert.Equal(t, 7, first.Total)
		second, err := client.Transfers.List(t.Context(), gateway.TransferListParams{Limit: 3, Cursor: first.NextCursor})
		require.NoError(t, err)
		back, err := client.Transfers.List(t.Context(), gateway.TransferListParams{
			Limit: 3, Cursor: second.PrevCursor, Direction: gateway.DirectionPrev,
		})
		require.NoError(t, err)
		assert.Equal(t, first.Items, back.Items)
	})
}

// TestNoPayoutIsLostOrPaidTwice creates payouts from many goroutines over a network
// that loses every third response.
func TestNoPayoutIsLostOrPaidTwice(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client(
			losing(gw, func(write int64) bool { return write%3 == 0 }),
			gateway.WithBackoff(time.Microsecond, time.Microsecond), gateway.WithMaxAttempts(20),
		)
		const workers, each = 8, 25
		ids := make([][]string, workers)
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := range each {
					params := transferParams()
					params.Amount = int64(1000 + w*each + i)
					params.ExternalRef = ""
					if i%2 == 0 {
						params.ExternalRef = fmt.Sprintf("payout-%d-%d", w, i)
					}
					made, err := client.Transfers.Create(t.Context(), params)
					if assert.NoError(t, err) {
						assert.Equal(t, params.Amount, made.Amount)
						ids[w] = append(ids[w], made.ID)
					}
				}
			})
		}
		group.Wait()

		reported := map[string]bool{}
		for _, list := range ids {
			for _, id := range list {
				assert.False(t, reported[id], "two calls returned the same transfer")
				reported[id] = true
			}
		}
		assert.Len(t, reported, workers*each)
		stored := map[string]bool{}
		for transfer, err := range client.Transfers.All(t.Context(), gateway.TransferListParams{Limit: 100}) {
			require.NoError(t, err)
			stored[transfer.ID] = true
		}
		assert.Equal(t, reported, stored, "the calls returned exactly the transfers that exist")
	})
}
