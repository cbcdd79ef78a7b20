package merchant

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/webhook"
	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// receive creates the account's receiver.
func (m *core) receive(a *account, events *sqlstore.Store[sqldb.Tx]) (err error) {
	cfg := webhook.Config{
		Keys: a.Keys, Trust: a.Trust, SecretPath: a.SecretPath, Account: a.Name,
		Store: events, Mode: webhook.Inbox, Workers: m.cfg.Workers, PollInterval: m.cfg.PollInterval, Logger: m.cfg.Logger,
		Lease: m.cfg.Lease, Backoff: backoff,
	}
	if len(a.Keys) == 0 || a.Trust == webhook.SignatureOrReadBack || a.Trust == webhook.ReadBackOnly {
		cfg.API = a.Client // events that are signed are read once, by their handler
	}
	a.receiver, err = webhook.New(cfg)
	if err != nil {
		return fmt.Errorf("merchant: account %s: %w", a.Name, err)
	}
	a.inbox = a.receiver
	a.handle(m)
	return nil
}

// backoff begins low, because most handlers that fail could not read the gateway for a
// moment, and reaches an hour. An event is tried for about half a day.
func backoff(attempt int) time.Duration {
	pause := min(500*time.Millisecond<<min(attempt-1, 13), time.Hour)
	return pause/2 + rand.N(pause) //nolint:gosec // jitter needs no secrecy
}

// onTransaction reads the transaction of an event and books what it shows: an event does
// not say what was paid, refunded or deducted. To handle an event twice changes nothing.
func (m *core) onTransaction(ctx context.Context, a *account, e *webhook.TransactionEvent) error {
	ref := e.Data.CorrelationID
	row, err := m.match(ctx, a, e.ResourceID, ref)
	if err == nil && row == nil && strings.HasPrefix(ref, a.Prefix) {
		err = m.orphan(a, e.Event, ref)
	}
	if err != nil {
		return err
	}
	if row == nil {
		ours := false
		if a.Links {
			ours, err = m.onSale(ctx, a, e)
		}
		if err != nil || ours {
			return err
		}
		return m.other(ctx, a, e.Event, ref)
	}
	ch, err := m.chargeOf(row)
	if err == nil {
		err = m.onCharged(ctx, a, ch, e)
	}
	if err != nil || ch.Earlier == "" || books.Behind(ch.Earlier, e.State()) {
		return err
	}
	return m.toOther(ctx, a, e.Event)
}

// onCharged handles an event about a charge.
func (m *core) onCharged(ctx context.Context, a *account, ch *charge, e *webhook.TransactionEvent) error {
	if ch.Books.Status == e.State() && ch.Books.State == Pending {
		return nil // nothing is new: nearly every create has such an event
	}
	r, err := a.readTransaction(ctx, e.ResourceID, books.FromWebhook)
	if err != nil {
		return err
	}
	behind := books.Behind(r.Resource.Status, e.State())
	if err := m.once(ctx, at(&ch.Row), func(b *bench) error {
		if err := b.bookOne(ch.ID, r); err != nil {
			return err
		}
		if behind {
			ch, _ := b.charge(ch.ID)
			ch.Watch.announce(b.now, string(e.State()), true)
		}
		return nil
	}); err != nil || !behind {
		return err
	}
	return m.behind(e.Event, "transaction", string(r.Resource.Status))
}

// match returns the charge of a transaction, or nil if the transaction belongs to another
// system of the account.
func (m *core) match(ctx context.Context, a *account, id, ref string) (*ledger.Row, error) {
	row, err := m.outside().Match(ctx, ledger.Charges, a.Name, id, ref)
	if err != nil || row != nil {
		return row, err
	}
	return nil, m.foreign(a, ref)
}
