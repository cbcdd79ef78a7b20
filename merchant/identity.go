package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
)

// recognizing is how long [Open] waits for the gateway.
const recognizing = 5 * time.Second

// recognize checks that the clients see the transactions of their accounts: one with the
// credential of another account at the same base URL would charge and refund there. A gateway
// that can't be reached does not keep a shop from opening.
func (m *core) recognize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recognizing)
	defer cancel()
	results, reading := make(chan error, len(m.accounts)), make(chan struct{}, readAtOnce)
	for _, a := range m.accounts {
		go func() {
			reading <- struct{}{}
			own, err := m.outside().OwnTransactions(context.WithoutCancel(ctx), a.Name)
			<-reading
			if err == nil {
				err = m.recognizeOne(ctx, a, own)
			}
			results <- err
		}()
	}
	var failed error
	for range m.accounts {
		failed = errors.Join(failed, <-results)
	}
	return failed
}

// readAtOnce limits the connections to the database that a thousand accounts take at once.
const readAtOnce = 8

func (m *core) recognizeOne(ctx context.Context, a *account, own []ledger.OwnTransaction) error {
	if len(own) == 0 {
		return nil
	}
	for _, t := range own {
		_, err := a.Client.Transactions.Get(ctx, t.ID, gateway.MaxAttempts(1))
		switch v, _ := books.Absence(books.ByNotFound, t.Age, m.cfg.lag()); {
		case err == nil, errors.Is(err, gateway.ErrNotFound) && v == books.NotYet:
			return nil
		case !errors.Is(err, gateway.ErrNotFound):
			m.fail(ctx, "the credential of an account could not be checked", err, slog.String("account", a.Name))
			return nil
		}
	}
	return fmt.Errorf("%w: the client of %s does not find the account's own transactions: it has the credential of another account, or the gateway is another one, such as a mock that was restarted", ErrAccount, a.Name)
}

// distinct checks that a reference shows its account: no prefix begins with that of another
// account.
func (a *account) distinct(known []ledger.Prefix) error {
	for _, other := range known {
		switch {
		case a.Name == other.Account:
		case a.Prefix == other.Prefix:
			return fmt.Errorf("%w: another account than %s has the prefix %q, %s: set Account.Prefix to another one", ErrAccount, a.Name, a.Prefix, other.Account)
		case strings.HasPrefix(a.Prefix, other.Prefix):
			return fmt.Errorf("%w: the prefix %q begins with %q, the prefix of %s: set Account.Prefix to another one", ErrAccount, a.Prefix, other.Prefix, other.Account)
		case strings.HasPrefix(other.Prefix, a.Prefix):
			return fmt.Errorf("%w: the prefix %q of %s begins with %q: set Account.Prefix to another one", ErrAccount, other.Prefix, other.Account, a.Prefix)
		}
	}
	return nil
}

// foreign returns an error if a reference is that of another account of the process.
func (m *core) foreign(a *account, ref string) error {
	if other := m.otherThan(a, ref); other != nil {
		return fmt.Errorf("%w: the transaction %s belongs to account %s, and its event came to the webhook URL of %s", ErrAccount, ref, other.Name, a.Name)
	}
	return nil
}

// otherThan returns the account of this process that a reference belongs to, nil if it is none or a.
func (m *core) otherThan(a *account, ref string) *account {
	for _, other := range m.accounts {
		if other != a && strings.HasPrefix(ref, other.Prefix) {
			return other
		}
	}
	return nil
}
