package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/gateway-go/gateway/internal/spec"
	"github.com/gateway-go/gateway/internal/wire"
)

// Live gateways send some members in more types than one. Those that decide about money
// must be readable, see [spec.Members]; any other is left out of the result, stays in its
// Raw and is logged once per client, so that a fee in a new form does not turn a charge
// into one with an unknown outcome.

// membersOf returns the table of the members that a response with a T requires; nil
// requires all.
func membersOf[T any]() *spec.Members {
	switch any((*T)(nil)).(type) {
	case *Transaction, *listedTransaction:
		return &spec.TransactionMembers
	case *sandboxResponse:
		return &spec.SandboxMembers
	case *Refund:
		return &spec.RefundMembers
	case *Delivery:
		return &spec.DeliveryMembers
	case *Transfer:
		return &spec.TransferMembers
	case *Customer:
		return &spec.CustomerMembers
	case *Subscription:
		return &spec.SubscriptionMembers
	case *CheckoutLink:
		return &spec.CheckoutLinkMembers
	case *CheckoutSession:
		return &spec.CheckoutSessionMembers
	case *CheckoutSessionState:
		return &spec.CheckoutSessionStateMembers
	default:
		return nil
	}
}

// doubter is a resource with parts that decode themselves and keep what they left out.
type doubter interface{ unread() []wire.Unread }

func (c *Customer) unread() []wire.Unread { return c.received.unread }

func (t *Transaction) unread() []wire.Unread {
	if t.NextAction == nil {
		return nil
	}
	return inside("next_action", t.NextAction.unread)
}

func (t *listedTransaction) unread() []wire.Unread { return (*Transaction)(t).unread() }

func (a *sandboxResponse) unread() []wire.Unread {
	return inside("transaction", a.Transaction.unread())
}

func (s *Subscription) unread() (all []wire.Unread) {
	if a := s.Authorization; a != nil {
		all = append(all, inside("authorization", a.unread)...)
	}
	if a := s.RecurringAuthorization; a != nil {
		all = append(all, inside("recurringAuthorization", a.unread)...)
	}
	return all
}

// inside returns what a member left out, by its path in the resource.
func inside(member string, unread []wire.Unread) []wire.Unread {
	all := make([]wire.Unread, len(unread))
	for i, u := range unread {
		all[i] = wire.Unread{Member: member + "." + u.Member, Kind: u.Kind}
	}
	return all
}

// leftOut appends what the parts of a resource left out.
func leftOut(unread []wire.Unread, resource any) []wire.Unread {
	if d, ok := resource.(doubter); ok {
		return append(unread, d.unread()...)
	}
	return unread
}

// warnUnread reports what was left out of a response: each member once per client.
func (r *request) warnUnread(ctx context.Context, unread []wire.Unread) {
	if len(unread) == 0 {
		return
	}
	if r.o.response != nil {
		for _, u := range unread {
			if !slices.Contains(r.o.response.Unread, u.Member) {
				r.o.response.Unread = append(r.o.response.Unread, u.Member)
			}
		}
	}
	logger := r.client.settings.logger
	if logger == nil {
		return
	}
	for _, u := range unread {
		key := [...]string{r.op.Name, u.Member, u.Kind}
		if _, known := r.client.said.LoadOrStore(key, true); !known {
			logger.LogAttrs(ctx, slog.LevelWarn, "gateway: a member of a response can't be read and was left out; Raw has it",
				slog.String("op", r.op.Name), slog.String("member", u.Member), slog.String("is", u.Kind))
		}
	}
}

// unreadIn returns which of the members were left out of a resource.
func unreadIn[T any](raw json.RawMessage, members []string) (d differences) {
	var again T
	unread, err := wire.DecodeMembers(raw, &again, membersOf[T]())
	if err != nil { // it was decoded before
		return members
	}
	for _, u := range leftOut(unread, &again) {
		d.unless(!slices.Contains(members, u.Member), u.Member)
	}
	return d
}
