package engine

import (
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/spec"
)

// The states of a transfer. "cancelled" has two l's, unlike a transaction's;
// its event, payout.canceled, has one.
const (
	transferPending    = "pending"
	transferInAnalysis = "in_analysis"
	transferProcessing = "processing"
	transferPaid       = "paid"
	transferError      = "error"
	transferCancelled  = "cancelled"
)

// The timers of a transfer.
const (
	TimerTransferAnalyse TimerKind = "transfer.analyse"
	TimerTransferApprove TimerKind = "transfer.approve"
	TimerTransferProcess TimerKind = "transfer.process"
	TimerTransferSettle  TimerKind = "transfer.settle"
)

// The timing of a transfer that no control moves, and its fee.
const (
	transferAnalyseAfter = time.Second      // to the risk check, with a test key
	transferApproveAfter = time.Hour        // in analysis
	transferProcessAfter = 10 * time.Second // pending
	transferSettleAfter  = 10 * time.Second // processing
	transferFee          = 50               // cents, out of the amount: the receiver gets the rest
)

// The test keys: e-mail keys that start with one of these.
const (
	analysisKey = "analysis@"
	failKey     = "fail@"
)

// NetAmount returns the amount that the receiver gets, in cents.
func (t *Transfer) NetAmount() int64 { return max(0, t.Amount-t.Fee) }

// CreateTransfer creates a transfer and reserves its amount (rows P1, P2). first is
// the transfer that already has in.ExternalRef, or nil. The document dialect rejects
// a second one; in the live dialect nothing changes and the caller returns the first.
func CreateTransfer(env Env, first *Transfer, in Transfer) (Change, *Refusal) {
	if first != nil && env.Dialect.Live(spec.RepeatedTransfer) {
		return Change{}, nil
	}
	if first != nil {
		return Change{}, Duplicate("transfer", "/v2/transfers/"+first.ID)
	}
	t := &in
	t.ID = env.IDs.UUID(env.Now)
	t.Fee, t.Status = transferFee, transferPending
	t.CreatedAt, t.UpdatedAt = env.Now, env.Now
	next := Timer{At: env.Now.Add(transferProcessAfter), Kind: TimerTransferProcess, ID: t.ID}
	if t.testKey(analysisKey) {
		next = Timer{At: env.Now.Add(transferAnalyseAfter), Kind: TimerTransferAnalyse, ID: t.ID}
	}
	c := transferChange(t, "payout.created", next)
	c.Balance = -t.Amount
	return c, nil
}

// AnalyseTransfer holds a pending transfer for a risk check (row P3).
func AnalyseTransfer(env Env, t *Transfer) (Change, *Refusal) {
	if t.Status != transferPending {
		return Change{}, t.refuse("be put into analysis")
	}
	next := t.to(env, transferInAnalysis)
	return transferChange(next, "payout.in_analysis",
		Timer{At: env.Now.Add(transferApproveAfter), Kind: TimerTransferApprove, ID: t.ID}), nil
}

// ProcessTransfer simulates a bank that accepts a transfer (row P4).
func ProcessTransfer(env Env, t *Transfer) (Change, *Refusal) {
	if t.Status != transferPending && t.Status != transferInAnalysis {
		return Change{}, t.refuse("be processed")
	}
	next := t.to(env, transferProcessing)
	next.ProcessedAt = env.Now
	return transferChange(next, "payout.processing",
		Timer{At: env.Now.Add(transferSettleAfter), Kind: TimerTransferSettle, ID: t.ID}), nil
}

// SettleTransfer simulates the arrival of the money at the receiver (row P5).
func SettleTransfer(env Env, t *Transfer) (Change, *Refusal) {
	if t.Status != transferProcessing {
		return Change{}, t.refuse("be settled")
	}
	next := t.to(env, transferPaid)
	next.TransferredAt = env.Now
	return transferChange(next, "payout.transferred"), nil
}

// FailTransfer simulates a bank that refuses a transfer; the amount is returned (row
// P6).
func FailTransfer(env Env, t *Transfer) (Change, *Refusal) {
	if t.Status != transferProcessing && t.Status != transferInAnalysis {
		return Change{}, t.refuse("fail")
	}
	c := transferChange(t.to(env, transferError), "payout.failed")
	c.Balance = t.Amount
	return c, nil
}

// CancelTransfer cancels a transfer that no bank has accepted yet; the amount
// is returned (rows P7, P8).
func CancelTransfer(env Env, t *Transfer) (Change, *Refusal) {
	if t.Status != transferPending && t.Status != transferInAnalysis {
		return Change{}, t.refuse("be cancelled")
	}
	c := transferChange(t.to(env, transferCancelled), "payout.canceled")
	c.Balance = t.Amount
	return c, nil
}

// FireTransfer runs a timer of t. An outdated timer changes nothing: a transfer
// that was put into analysis is not processed by its first timer.
func FireTransfer(env Env, t *Transfer, kind TimerKind) Change {
	var step func(Env, *Transfer) (Change, *Refusal)
	switch {
	case kind == TimerTransferAnalyse:
		step = AnalyseTransfer
	case kind == TimerTransferApprove, kind == TimerTransferProcess && t.Status == transferPending:
		step = ProcessTransfer
	case kind == TimerTransferSettle && t.testKey(failKey):
		step = FailTransfer
	case kind == TimerTransferSettle:
		step = SettleTransfer
	default:
		return Change{}
	}
	c, _ := step(env, t) // a refusal's Change is empty
	return c
}

func (t *Transfer) testKey(prefix string) bool {
	return strings.HasPrefix(strings.ToLower(t.PixKey), prefix)
}

// to returns a copy of t in another state, updated now.
func (t *Transfer) to(env Env, status string) *Transfer {
	next := *t
	next.Status = status
	next.UpdatedAt = env.Now
	return &next
}

func (t *Transfer) refuse(action string) *Refusal {
	return NewRefusal(CodeInvalidState, "A transfer that is "+t.Status+" can't "+action+".")
}

func transferChange(t *Transfer, kind string, timers ...Timer) Change {
	return Change{
		Transfers: []*Transfer{t},
		Events:    []Event{{Kind: kind, Transfer: t}},
		Timers:    timers,
	}
}
