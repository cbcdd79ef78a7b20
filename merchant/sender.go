package merchant

import (
	"context"
	"errors"

	"github.com/gateway-go/gateway/internal/gate"
	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/operations"
)

// sender is a call that stores a request and sends it after its commit.
type sender struct {
	id    string            // of the call
	claim *operations.Claim // nil if it has stored no request
	lost  bool              // the outcome of its first COMMIT was not known
}

// call returns the ID of the call, "" if there is none.
func (s *sender) call() string {
	if s == nil {
		return ""
	}
	return s.id
}

// sends is stored for such a call.
func (m *core) sends(ctx context.Context, by *sender, run func(ctx context.Context, tx sqldb.Tx) error) error {
	return m.stored(ctx, func(ctx context.Context, tx sqldb.Tx, again bool) error {
		if by.lost = again; !again { // what the first transaction has stored may be what the second one finds
			by.claim = nil
		}
		return run(ctx, tx)
	})
}

// sendBy sends what a call has stored. If it has found a request instead, it sends that, unless
// it was sent before.
func (m *core) sendBy(ctx context.Context, a *account, by *sender, kind, key string) error {
	claim := by.claim
	if claim == nil {
		return m.send(ctx, a, kind, key)
	}
	ctx = gate.With(ctx, a.gate)
	if !by.lost {
		_, err := claim.Send(ctx)
		return err
	}
	_, err := claim.SendIfStored(ctx)
	if errors.Is(err, operations.ErrNotFound) {
		return m.send(ctx, a, kind, key)
	}
	return err
}

// send sends a request now, unless it was before.
func (m *core) send(ctx context.Context, a *account, kind, key string) error {
	if key == "" { // the gateway made the charge
		return nil
	}
	if err := a.present(); err != nil {
		return err
	}
	list, err := a.outbox.List(ctx, operations.Query{Kind: kind, Key: key})
	if err != nil || len(list) == 0 {
		return err
	}
	_, err = a.outbox.Send(gate.With(ctx, a.gate), list[0].ID)
	return err
}
