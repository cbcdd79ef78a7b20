package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

type transferMove func(engine.Env, *engine.Transfer) (engine.Change, *engine.Refusal)

// transfer creates a transfer of 1200 cents and takes it through moves.
func (w *world) transfer(key string, moves ...transferMove) *engine.Transfer {
	w.tb.Helper()
	c, refusal := engine.CreateTransfer(w.env, nil, engine.Transfer{Amount: 1200, PixKey: key, PixKeyType: "EMAIL"})
	w.do(c, refusal)
	t := c.Transfers[0]
	for _, move := range moves {
		c, refusal = move(w.env, t)
		w.do(c, refusal)
		t = c.Transfers[0]
	}
	w.emitted()
	return t
}

func TestTransferRows(t *testing.T) {
	t.Parallel()
	analyse, process, settle := engine.AnalyseTransfer, engine.ProcessTransfer, engine.SettleTransfer
	fail, cancel := engine.FailTransfer, engine.CancelTransfer
	tests := []struct {
		name    string
		before  []transferMove
		move    transferMove
		want    string // the state after it; "" if it is rejected with 409
		event   string
		balance int64
	}{
		{"P3 pending, risk check", nil, analyse, "in_analysis", "payout.in_analysis", -1200},
		{"P3 only from pending", []transferMove{process}, analyse, "", "", -1200},
		{"P4 pending, bank accepts", nil, process, "processing", "payout.processing", -1200},
		{"P4 in_analysis, bank accepts", []transferMove{analyse}, process, "processing", "payout.processing", -1200},
		{"P4 not twice", []transferMove{process}, process, "", "", -1200},
		{"P5 settled", []transferMove{process}, settle, "paid", "payout.transferred", -1200},
		{"P5 not from pending", nil, settle, "", "", -1200},
		{"P6 processing, bank refuses", []transferMove{process}, fail, "error", "payout.failed", 0},
		{"P6 in_analysis, bank refuses", []transferMove{analyse}, fail, "error", "payout.failed", 0},
		{"P6 not from pending", nil, fail, "", "", -1200},
		{"P6 not from paid", []transferMove{process, settle}, fail, "", "", -1200},
		{"P7 pending, cancel", nil, cancel, "cancelled", "payout.canceled", 0},
		{"P7 in_analysis, cancel", []transferMove{analyse}, cancel, "cancelled", "payout.canceled", 0},
		{"P8 processing, cancel", []transferMove{process}, cancel, "", "", -1200},
		{"P8 paid, cancel", []transferMove{process, settle}, cancel, "", "", -1200},
		{"P8 error, cancel", []transferMove{process, fail}, cancel, "", "", 0},
		{"P8 cancelled, cancel", []transferMove{cancel}, cancel, "", "", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			before := w.transfer("ana@example.com", test.before...)
			w.env.Now = w.env.Now.Add(time.Minute)
			c, refusal := test.move(w.env, before)
			if test.want == "" {
				require.NotNil(t, refusal)
				assert.Equal(t, engine.CodeInvalidState, refusal.Code)
				assert.Empty(t, c)
				assert.Equal(t, test.balance, w.balance)
				return
			}
			w.do(c, refusal)
			after := c.Transfers[0]
			assert.Equal(t, test.want, after.Status)
			assert.Equal(t, []string{test.event}, w.emitted())
			assert.Equal(t, test.balance, w.balance)
			assert.Equal(t, w.env.Now, after.UpdatedAt)
			assert.Equal(t, test.want == "processing", after.ProcessedAt.Equal(w.env.Now))
			assert.Equal(t, test.want == "paid", after.TransferredAt.Equal(w.env.Now))
		})
	}
}

func TestTransferCreateRows(t *testing.T) {
	t.Parallel()
	in := engine.Transfer{
		Amount: 1200, PixKey: "52998224725", PixKeyType: "CPF",
		Description: "Prize", ExternalRef: "payout-1", Origin: "backoffice", NotifyURL: "https://shop.example/hook",
	}
	w := newWorld(t)
	c, refusal := engine.CreateTransfer(w.env, nil, in)
	w.do(c, refusal)
	first := c.Transfers[0]

	t.Run("P1 created", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, &engine.Transfer{
			ID: first.ID, Amount: 1200, Fee: 50, PixKey: "52998224725", PixKeyType: "CPF", Status: "pending",
			Description: "Prize", ExternalRef: "payout-1", Origin: "backoffice", NotifyURL: "https://shop.example/hook",
			CreatedAt: start(), UpdatedAt: start(),
		}, first)
		assert.Len(t, first.ID, 36)
		assert.Equal(t, []string{"payout.created"}, w.emitted())
		assert.Equal(t, int64(-1200), w.balance)
		assert.Equal(t, int64(1150), first.NetAmount())
		assert.Zero(t, (&engine.Transfer{Amount: 49, Fee: 50}).NetAmount(), "never negative")
	})
	t.Run("P2 external_ref seen before", func(t *testing.T) {
		t.Parallel()
		c, refusal := engine.CreateTransfer(w.env, first, in)
		assert.Empty(t, c)
		assert.Equal(t, &engine.Refusal{
			Code: "DUPLICATE_EXTERNAL_REF", Instance: "/v2/transfers/" + first.ID,
			Detail: "A transfer with this external reference already exists",
		}, refusal)
	})
	t.Run("P2 live returns the first", func(t *testing.T) {
		t.Parallel()
		live := w.env
		live.Dialect = spec.DocumentDialect.With(spec.RepeatedTransfer)
		c, refusal := engine.CreateTransfer(live, first, in)
		assert.Nil(t, refusal)
		assert.Empty(t, c)
	})
}

func TestARejectionNamesTheStateOfTheTransfer(t *testing.T) {
	t.Parallel()
	for what, transition := range map[string]transferMove{
		"be put into analysis": engine.AnalyseTransfer, "be processed": engine.ProcessTransfer, "be settled": engine.SettleTransfer,
		"fail": engine.FailTransfer, "be cancelled": engine.CancelTransfer,
	} {
		_, refusal := transition(newWorld(t).env, &engine.Transfer{Status: "paid"})
		require.NotNil(t, refusal)
		assert.Equal(t, engine.CodeInvalidState, refusal.Code)
		assert.Equal(t, "A transfer that is paid can't "+what+".", refusal.Detail)
	}
}

func TestTransferWithoutControls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key     string
		events  []string
		want    string
		balance int64
	}{
		{"ana@example.com", []string{"payout.processing", "payout.transferred"}, "paid", -1200},
		{"analysis@example.com", []string{"payout.in_analysis", "payout.processing", "payout.transferred"}, "paid", -1200},
		{"Fail@example.com", []string{"payout.processing", "payout.failed"}, "error", 0},
	}
	for _, test := range tests {
		t.Run(test.key, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.transfer(test.key).ID
			w.advance(24 * time.Hour)
			assert.Equal(t, test.want, w.transfers.rows[id].Status)
			assert.Equal(t, test.events, w.emitted())
			assert.Equal(t, test.balance, w.balance)
			assert.Empty(t, w.timers)
		})
	}
}

// The timing of a transfer without controls: 1 s to the risk check, an hour in
// analysis, 10 s pending, 10 s processing.
func TestTimingOfATransfer(t *testing.T) {
	t.Parallel()
	for key, at := range map[string][]time.Duration{
		"ana@example.com":      {10 * time.Second, 20 * time.Second},
		"analysis@example.com": {time.Second, time.Hour + time.Second, time.Hour + 11*time.Second},
	} {
		w := newWorld(t)
		w.transfer(key)
		w.advance(24 * time.Hour)
		var got []time.Duration
		for _, e := range w.events[1:] {
			got = append(got, e.at.Sub(start()))
		}
		assert.Equal(t, at, got, key)
	}
}

// A transfer that a control put into analysis must not be approved by the timer
// of its pending state.
func TestOutdatedTransferTimers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.transfer("ana@example.com", engine.AnalyseTransfer).ID
	w.advance(time.Minute)
	assert.Equal(t, "in_analysis", w.transfers.rows[id].Status)
	c, refusal := engine.CancelTransfer(w.env, w.transfers.rows[id])
	w.do(c, refusal)
	w.advance(24 * time.Hour)
	assert.Equal(t, "cancelled", w.transfers.rows[id].Status)
	assert.Equal(t, []string{"payout.canceled"}, w.emitted())

	held := w.transfer("fail@example.com", engine.AnalyseTransfer).ID
	w.advance(time.Minute)
	assert.Equal(t, "in_analysis", w.transfers.rows[held].Status, "its timer does not make it fail either")

	early := w.transfer("ana@example.com")
	w.advance(5 * time.Second)
	w.do(engine.ProcessTransfer(w.env, early))
	w.advance(10*time.Second - time.Millisecond)
	assert.Equal(t, "processing", w.transfers.rows[early.ID].Status, "the timer of its pending state does not settle it")
	w.advance(time.Millisecond)
	assert.Equal(t, "paid", w.transfers.rows[early.ID].Status)
}

func TestCustomerReferences(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := engine.Customer{ExternalRef: "c-1", IPAddress: "203.0.113.7", Buyer: engine.Buyer{
		Name: "Ana Souza", Email: "ana@example.com", Phone: "11987654321",
		Document: &engine.Document{Type: "CPF", Number: "52998224725"}, Address: &engine.Address{City: "São Paulo"},
	}}
	c, refusal := engine.CreateCustomer(w.env, nil, in)
	w.do(c, refusal)
	first := c.Customers[0]
	assert.Equal(t, "active", first.Status)
	assert.Equal(t, engine.Buyer{
		ID: first.ID, Name: in.Name, Email: in.Email, Phone: in.Phone, Document: in.Document, Address: in.Address,
	}, first.Buyer)
	assert.Equal(t, start(), first.CreatedAt)
	assert.Equal(t, start(), first.UpdatedAt)
	assert.Empty(t, w.emitted(), "customers have no events")

	_, refusal = engine.CreateCustomer(w.env, first, in)
	require.NotNil(t, refusal)
	assert.Equal(t, "DUPLICATE_EXTERNAL_REF", refusal.Code)
	assert.Equal(t, "/v2/customers/"+first.ID, refusal.Instance)
	assert.Equal(t, "A customer with this external reference already exists", refusal.Detail)
}
