package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gateway-go/gateway/mockserver/internal/engine"
)

// FuzzTransaction applies random actions to one transaction: a byte names an
// action, the next its argument. The amounts must always be consistent with each
// other and the state, a rejected action must change nothing, and the account's
// balance must be what was paid and not refunded.
func FuzzTransaction(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte{0, 0, 6, 10, 6, 0})
	f.Add(uint8(2), uint8(1), []byte{0, 0, 5, 0, 7, 3, 9, 9})
	f.Add(uint8(2), uint8(4), []byte{4, 0, 6, 1, 5, 0})
	f.Add(uint8(1), uint8(0), []byte{8, 200, 0, 0, 6, 0, 7, 1, 7, 2})
	methods := []string{"pix", "voucher", "credit_card"}
	tokens := []string{"pgct_ok", "pgct_paid", "pgct_captured", "pgct_refused", "pgpm_3ds", "pgpm_chargeback"}
	states := []string{
		"pending", "paid", "captured", "expired", "canceled", "refused", "refunded", "partially_refunded", "chargedback",
		"authorized", "three_ds_required", "in_protest", "partially_paid", "processing", "processed", "med", "pre_chargedback", "waiting_payment",
	}
	f.Fuzz(func(t *testing.T, method, token uint8, actions []byte) {
		env := liveEnv()
		request := payment(methods[int(method)%len(methods)], tokens[int(token)%len(tokens)])
		tx, c := create(t, env, request)
		balance := c.Balance
		for i := 0; i+1 < len(actions); i += 2 {
			arg := int64(actions[i+1])
			before := *tx
			var refusal *engine.Refusal
			switch actions[i] % 10 {
			case 0:
				c, refusal = engine.Pay(env, tx)
			case 1:
				c, refusal = engine.Expire(env, tx)
			case 2:
				c, refusal = engine.Refuse(env, tx)
			case 3:
				c, refusal = engine.Cancel(env, tx)
			case 4:
				c, refusal = engine.PassChallenge(env, tx)
			case 5:
				c, refusal = engine.Chargeback(env, tx)
			case 6:
				c, refusal = engine.Refund(env, tx, engine.RefundRequest{Amount: 10 * arg})
			case 7:
				c, refusal = engine.SetStatus(env, tx, states[arg%int64(len(states))])
			case 8:
				env.Now = env.Now.Add(time.Duration(arg) * time.Hour)
				c, refusal = engine.ExpireByTimer(env, tx)
			case 9:
				c, refusal = engine.UpdateDelivery(env, tx, engine.DeliveryUpdate{Code: "1"})
			}
			require.Equal(t, before, *tx, "the engine does not modify its input")
			if refusal != nil {
				require.Equal(t, engine.Change{}, c)
				continue
			}
			if len(c.Transactions) > 0 {
				tx = c.Transactions[0]
			}
			balance += c.Balance
			checkAmounts(t, tx)
			checkState(t, tx)
			require.Equal(t, kept(tx), balance)
		}
	})
}

// kept returns the amount that the merchant keeps of a transaction without
// fees.
func kept(tx *engine.Transaction) int64 {
	if tx.Status == "chargedback" {
		return 0
	}
	return tx.PaidAmount - tx.RefundedAmount
}
