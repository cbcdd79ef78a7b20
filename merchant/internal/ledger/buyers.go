package ledger

import (
	"context"

	"github.com/gateway-go/gateway/database"
)

// The values of the column buyer of a charge.
const (
	BuyerStored  = 1 // the digests of its buyer are stored
	BuyerUnknown = 2 // the gateway no longer tells who it is
)

// Owned is what belongs to a buyer: an order, a sale by link, a subscription or a payout.
type Owned struct{ Book, Kind, Record string }

// Buyer is a digest of the document or of the e-mail address of a buyer, with what belongs to him.
type Buyer struct {
	Owned

	Digest string
}

// AddBuyers returns the statement that stores digests, at least one, unless they are stored.
func AddBuyers(list []Buyer) Write {
	var args []any
	for i := range list {
		b := &list[i]
		args = append(args, b.Digest, b.Book, b.Kind, b.Record)
	}
	return Write{
		SQL: `INSERT INTO {s}gateway_buyers (digest, book, kind, record) VALUES ` + repeated(`(?, ?, ?, ?)`, len(list)) +
			` ON CONFLICT DO NOTHING`,
		Args: args, Any: true,
	}
}

// DigestKeys returns the digest keys of the accounts of a book, also those that no process has any
// more.
func (l Ledger) DigestKeys(ctx context.Context, book string) ([]string, error) {
	return all(ctx, l, `SELECT digest_key FROM {s}gateway_accounts WHERE book = ? ORDER BY name`, []any{book},
		func(row database.Scanner, key *string) error { return row.Scan(key) })
}

// OwnedBy returns what belongs to the buyer of a book with some digests.
func (l Ledger) OwnedBy(ctx context.Context, book string, digests []string) ([]Owned, error) {
	in, args := list(digests)
	return all(ctx, l,
		`SELECT DISTINCT book, kind, record FROM {s}gateway_buyers WHERE digest IN `+in+` AND book = ? ORDER BY kind, record`,
		append(args, book), func(row database.Scanner, o *Owned) error { return row.Scan(&o.Book, &o.Kind, &o.Record) })
}

// unknownBuyers are the charges of an account, with a transaction, of whose buyer no digest is
// stored: an earlier release has stored them.
const unknownBuyers = ` FROM {s}gateway_charges WHERE account = ? AND buyer = 0 AND transaction_id IS NOT NULL`

// UnknownBuyers returns the IDs of the next charges of whose buyer no digest is stored.
func (l Ledger) UnknownBuyers(ctx context.Context, account, after string, limit int) ([]string, error) {
	return all(ctx, l, `SELECT id`+unknownBuyers+` AND id > ? ORDER BY account, id LIMIT ?`, []any{account, after, limit},
		func(row database.Scanner, id *string) error { return row.Scan(id) })
}

// HasUnknownBuyers reports whether accounts have charges of whose buyer no digest is stored.
func (l Ledger) HasUnknownBuyers(ctx context.Context, accounts []string) (bool, error) {
	for _, a := range accounts {
		if some, err := l.first(ctx, `SELECT 1`+unknownBuyers+` LIMIT 1`, []any{a}, new(int)); err != nil || some {
			return some, err
		}
	}
	return false, nil
}

// ForgetBuyer notes that the buyer of a charge can't be known any more.
func (l Ledger) ForgetBuyer(ctx context.Context, charge string) error {
	_, err := l.s.Exec(ctx, `UPDATE {s}gateway_charges SET buyer = ? WHERE id = ? AND buyer = 0`, BuyerUnknown, charge)
	return err
}
