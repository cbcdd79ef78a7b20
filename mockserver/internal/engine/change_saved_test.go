package engine_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

func TestCompactChangeHoldsEachResourceOnce(t *testing.T) {
	t.Parallel()
	own, other := &engine.Transaction{Row: engine.Row{Seq: 1, Rev: 1}, Amount: 1200}, &engine.Transaction{Row: engine.Row{Seq: 2, Rev: 1}, Amount: 900}
	transfer := &engine.Transfer{Row: engine.Row{Seq: 1, Rev: 1}, Amount: 300}
	subscription := &engine.Subscription{Row: engine.Row{Seq: 1, Rev: 1}, Amount: 990}
	c := engine.Change{
		Transactions:  []*engine.Transaction{own},
		Transfers:     []*engine.Transfer{transfer},
		Subscriptions: []*engine.Subscription{subscription},
		Events:        []engine.Event{{Transaction: own}, {Transaction: other}, {Transfer: transfer}, {Subscription: subscription}},
	}
	compact := c.Compact()
	assert.Equal(t, []engine.Event{
		{Transaction: &engine.Transaction{Row: own.Row}},
		{Transaction: other},
		{Transfer: &engine.Transfer{Row: transfer.Row}},
		{Subscription: &engine.Subscription{Row: subscription.Row}},
	}, compact.Events)
	assert.Same(t, own, c.Events[0].Transaction, "the original change is not modified")

	compact.Expand()
	assert.Equal(t, c.Events, compact.Events)
	assert.Same(t, own, compact.Events[0].Transaction)
}

// TestSplitLeavesNoResourceOut fills every list of a change, so that a new kind
// of resource can't be missing from compacted data files.
func TestSplitLeavesNoResourceOut(t *testing.T) {
	t.Parallel()
	var whole engine.Change
	fields := reflect.ValueOf(&whole).Elem()
	for _, f := range fields.Fields() {
		if f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 3, 3))
		}
	}
	whole.Events, whole.Timers = nil, nil // not resources

	var merged engine.Change
	into := reflect.ValueOf(&merged).Elem()
	for _, part := range whole.Split(2) {
		for member, f := range reflect.ValueOf(part).Fields() {
			if f.Kind() == reflect.Slice {
				assert.LessOrEqual(t, f.Len(), 2)
				sum := into.FieldByIndex(member.Index)
				sum.Set(reflect.AppendSlice(sum, f))
			}
		}
	}
	assert.Equal(t, whole, merged)
}
