package merchant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/gateway-go/gateway"
	"github.com/gateway-go/gateway/database"
)

// recognizing is how long [Open] waits for the gateway.
const recognizing = 5 * time.Second

// recognize checks that the account's client sees the transactions of the account: one
// with the credential of another account at the same base URL would charge and refund
// there. A gateway that can't be reached does not keep a shop from opening.
func (m *Merchant) recognize(ctx context.Context, a *account) error {
	reading, cancel := context.WithTimeout(ctx, recognizing)
	defer cancel()
	// The first and the last one in an index: the gateway may not show a new one yet.
	for _, order := range []string{"", " DESC"} {
		var id string
		found, err := m.store.conn().first(ctx, `SELECT transaction_id FROM gateway_charges WHERE account = ? AND transaction_id IS NOT NULL
			ORDER BY transaction_id`+order+` LIMIT 1`, []any{a.Name}, &id)
		if err != nil || !found {
			return err
		}
		_, err = a.Client.Transactions.Get(reading, id, gateway.MaxAttempts(1))
		switch {
		case errors.Is(err, gateway.ErrNotFound):
		case err != nil:
			m.fail(ctx, "the credential of an account could not be checked", err, slog.String("account", a.Name))
			return nil
		default:
			return nil
		}
	}
	return fmt.Errorf("%w: the client of %s does not find the account's own transactions: it has the credential of another account, or the gateway is another one, such as a mock that was restarted", ErrAccount, a.Name)
}

// distinct checks that a reference shows its account: no prefix begins with another one.
func (a *account) distinct(ctx context.Context, c conn) error {
	type named struct{ name, prefix string }
	var list []named
	err := c.each(ctx, `SELECT name, prefix FROM gateway_accounts WHERE name <> ? AND prefix IS NOT NULL`, []any{a.Name}, func(row database.Scanner) error {
		var other named
		err := row.Scan(&other.name, &other.prefix)
		list = append(list, other)
		return err
	})
	if err != nil {
		return err
	}
	for _, other := range list {
		switch {
		case strings.HasPrefix(a.Prefix, other.prefix):
			return fmt.Errorf("%w: the prefix %q begins with %q, the prefix of %s: set Account.Prefix to another one", ErrAccount, a.Prefix, other.prefix, other.name)
		case strings.HasPrefix(other.prefix, a.Prefix):
			return fmt.Errorf("%w: the prefix %q of %s begins with %q: set Account.Prefix to another one", ErrAccount, other.prefix, other.name, a.Prefix)
		}
	}
	return nil
}

// foreign returns an error if a reference is that of another account of the process.
func (m *Merchant) foreign(a *account, ref string) error {
	for _, other := range m.accounts {
		if other != a && strings.HasPrefix(ref, other.Prefix) {
			return fmt.Errorf("%w: the transaction %s belongs to account %s, and its event came to the webhook URL of %s", ErrAccount, ref, other.Name, a.Name)
		}
	}
	return nil
}
