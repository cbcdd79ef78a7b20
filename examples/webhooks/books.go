package main

import (
	"context"
	"database/sql"

	"github.com/gateway-go/gateway/webhook/sqlstore"
)

// books is the shop's database, read from outside the receiver.
type books struct {
	db    *sql.DB
	store *sqlstore.Store
}

func (s *stage) open(ctx context.Context) (*books, error) {
	db, store, err := openShop(ctx, s.database())
	return &books{db: db, store: store}, err
}

func (b *books) close() { _ = b.db.Close() } // it was only read

// entries returns the amounts in the ledger by transaction.
func (b *books) entries(ctx context.Context) (map[string][]int64, error) {
	rows, err := b.db.QueryContext(ctx, `SELECT transaction_id, cents FROM ledger`)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err has the errors that matter
	found := make(map[string][]int64)
	for rows.Next() {
		var id string
		var cents int64
		if err := rows.Scan(&id, &cents); err != nil {
			return nil, err
		}
		found[id] = append(found[id], cents)
	}
	return found, rows.Err()
}

// findings are the differences between the payments and the ledger.
type findings struct {
	rows, lost, doubled, wrong, unknown int

	cents int64
}

// compare compares the payments, in cents by transaction, with the amounts in
// the ledger.
func compare(paid map[string]int64, booked map[string][]int64) (f findings) {
	for id, cents := range paid {
		switch amounts := booked[id]; {
		case len(amounts) == 0:
			f.lost++
		case len(amounts) > 1:
			f.doubled++
		case amounts[0] != cents:
			f.wrong++
		}
	}
	for id, amounts := range booked {
		if _, known := paid[id]; !known {
			f.unknown++
		}
		for _, cents := range amounts {
			f.rows++
			f.cents += cents
		}
	}
	return f
}

// clean reports whether each of n payments is booked once.
func (f findings) clean(payments int) bool {
	return f.rows == payments && f.lost+f.doubled+f.wrong+f.unknown == 0
}
