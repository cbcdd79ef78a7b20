package merchant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// The phases of a process; the zero value means that Run was not called.
const (
	isRunning = 1 + iota
	hasEnded
)

// Ready returns nil if this process can do its work: the database responds and has the
// tables of this release, and [Merchant.Run] is running. It is meant for a readiness
// probe, and does not ask the gateway: a gateway that is down must not take the shop off
// the network.
//
// The error says what is missing. It is [ErrNotRunning] if that is only Run, which a
// process that just takes orders and webhooks need not call. Once Run has begun to shut
// down, the process is not ready any more.
func (m *core) Ready(ctx context.Context) error {
	phase := m.phase.Load()
	if phase == hasEnded {
		return errors.New("merchant: not ready: Run is shutting down or has ended")
	}
	if err := m.tablesReady(ctx); err != nil {
		return fmt.Errorf("merchant: not ready: %w", err)
	}
	if phase != isRunning {
		return ErrNotRunning
	}
	return nil
}

func (m *core) tablesReady(ctx context.Context) error {
	if err := m.db.Ready(ctx, parts...); err != nil {
		return err
	}
	for _, a := range m.accounts {
		switch _, found, err := m.db.Known(ctx, m.db.Conn(), a.Client.Account()); {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("the database has no account %s", a.Name)
		}
	}
	return nil
}

// Health is what waits and what fails in the accounts of a process.
type Health struct {
	Unknown     int              // how many resources of all accounts match no record, see [Merchant.Unknown]
	Problems    int              // how many problems [Merchant.Problems] lists
	Callbacks   CallbackHealth   // of all accounts
	Comparisons ComparisonHealth // of all accounts
	Accounts    []AccountHealth  // by name

	// Skipped counts the facts of the last seven days that were given up because no process had
	// a callback for them, by the name of the callback: "refunded" for [Callbacks.Refunded].
	// Those that you leave nil on purpose are counted too.
	Skipped map[string]int
}

// CallbackHealth counts the facts whose callback has not succeeded yet, without those whose
// callback is nil in this process.
type CallbackHealth struct {
	Waiting int           // all of them
	Failing int           // of Waiting, those whose callback has failed at least once
	Oldest  time.Duration // for how long the oldest one has waited
}

// ComparisonHealth counts the records that are due to be compared with the gateway.
type ComparisonHealth struct {
	Due    int
	Oldest time.Duration // for how long the oldest one has been due
}

// AccountHealth counts the requests and events of an account.
type AccountHealth struct {
	Name       string
	Outage     *Outage                    // what pauses the account's requests in this process; nil if nothing does
	Operations map[operations.State]int64 // see [operations.Outbox.Counts]
	Events     webhook.Counts
	Unknown    int // how many resources match no record, see [Merchant.Unknown]
	Adopting   int // how many adoptions wait, see [Merchant.Adoptions]

	// ReadSingly says why the charges of the account are read one by one instead of listed:
	// what is wrong with the gateway's list of transactions. It is "" if they are listed, or
	// because of [Account.NoLists]. Lists are tried again after a day or, if one was proved
	// wrong, after 30 days.
	ReadSingly string
}

// Health counts what waits and what fails, for dashboards and for the page of whoever is on
// call: a few queries in indexes, whose cost grows with what is counted.
func (m *reading) Health(ctx context.Context) (Health, error) {
	var h Health
	for _, a := range m.sorted() {
		is := AccountHealth{Name: a.Name, Outage: a.outage()}
		var err error
		if is.Operations, err = a.requests.Counts(ctx); err != nil {
			return h, err
		}
		if is.Events, err = a.inbox.Counts(ctx); err != nil {
			return h, err
		}
		h.Problems += int(is.Operations[operations.Ambiguous]+is.Operations[operations.Dead]) + is.Events.Dead
		h.Accounts = append(h.Accounts, is)
	}
	names, problems := m.names(), 0
	err := m.byIndex(ctx, func(l ledger.Ledger) error {
		callbacks, err := l.Waiting(ctx, names, m.heard, failedOften)
		if err != nil {
			return err
		}
		h.Callbacks = CallbackHealth{Waiting: callbacks.All, Failing: callbacks.Failing, Oldest: callbacks.Oldest}
		if h.Skipped, err = l.Skipped(ctx, names, skippedDays); err != nil {
			return err
		}
		open, err := l.OpenProblems(ctx, names, ProblemAmbiguous)
		if err != nil {
			return err
		}
		problems = callbacks.Often + open // the outboxes and receivers have the others
		if h.Comparisons.Due, h.Comparisons.Oldest, err = l.DueNow(ctx, names); err != nil {
			return err
		}
		unknown, err := l.CountUnknown(ctx, m.unmatched(names...))
		if err != nil {
			return err
		}
		adopting, err := l.WaitingAdoptions(ctx, names)
		if err != nil {
			return err
		}
		singly, err := l.Singly(ctx, names)
		h.Unknown = 0
		for i := range h.Accounts {
			h.Accounts[i].Unknown = unknown[h.Accounts[i].Name]
			h.Unknown += h.Accounts[i].Unknown
			h.Accounts[i].Adopting = adopting[h.Accounts[i].Name]
			if is := &h.Accounts[i]; !m.accounts[is.Name].NoLists {
				is.ReadSingly = singly[is.Name]
			}
		}
		return err
	})
	h.Problems += problems
	return h, err
}
