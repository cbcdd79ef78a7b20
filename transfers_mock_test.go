package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/mockserver"
)

func TestTransferFromCreateToPaid(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client()
		params := transferParams()
		created, err := client.Transfers.Create(t.Context(), params)
		require.NoError(t, err)
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

func TestTransferKeysOfEveryKindAreTaken(t *testing.T) {
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

func TestTransferAskedForAgain(t *testing.T) {
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
		require.ErrorIs(t, err, gateway.ErrDuplicate, "another amount is no repetition")

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
		require.NoError(t, err, "a refused request uses up no reference")
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

		// Back again from the second page, as another process could.
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

// losing loses the answer of every nth request that was applied.
type losing struct {
	http.RoundTripper

	nth   int64
	count atomic.Int64
}

func (l *losing) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || l.count.Add(1)%l.nth != 0 {
		return response, err
	}
	_ = response.Body.Close()
	return nil, errors.New("connection reset by peer")
}

// TestNoPayoutIsLostOrPaidTwice makes payouts from many goroutines over a
// network that loses every third answer.
func TestNoPayoutIsLostOrPaidTwice(t *testing.T) {
	t.Parallel()
	inBothDialects(t, func(t *testing.T, gw *mockserver.Server, _ mockserver.Dialect) {
		t.Helper()
		client := gw.Client(
			gateway.WithHTTPClient(&http.Client{Transport: &losing{RoundTripper: gw.Transport(), nth: 3}}),
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
				assert.False(t, reported[id], "two calls got the same transfer")
				reported[id] = true
			}
		}
		assert.Len(t, reported, workers*each)
		kept := map[string]bool{}
		for transfer, err := range client.Transfers.All(t.Context(), gateway.TransferListParams{Limit: 100}) {
			require.NoError(t, err)
			kept[transfer.ID] = true
		}
		assert.Equal(t, reported, kept, "what was reported and what was made")
	})
}
