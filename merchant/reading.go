package merchant

import (
	"context"
	"fmt"
	"time"

	"github.com/gateway-go/gateway/internal/sqldb"
	"github.com/gateway-go/gateway/merchant/internal/books"
	"github.com/gateway-go/gateway/merchant/internal/ledger"
	"github.com/gateway-go/gateway/operations"
	"github.com/gateway-go/gateway/webhook"
)

// reading reads the books, and writes nothing: a [Merchant] and [Reports] have it in common. It
// is bound to a book, or to none if ofBook is "".
type reading struct {
	*ground

	ofBook string
}

// ground is what is the same for all books.
type ground struct {
	db         *sqldb.DB
	lag        time.Duration       // see [Config.lag]
	unknownFor time.Duration       // see [Keep]
	accounts   map[string]*account // of this process
	heard      []books.Callback    // for which this process delivers facts, or all of them
	unheard    []books.Callback    // that are nil
}

func newGround(db *sqldb.DB, lag, unknownFor time.Duration) *ground {
	return &ground{db: db, lag: lag, unknownFor: unknownFor, accounts: make(map[string]*account)}
}

// accountRequests are the requests of an account, as its outbox has stored them.
type accountRequests interface {
	List(ctx context.Context, q operations.Query) ([]*operations.Entry, error)
	Counts(ctx context.Context) (map[operations.State]int64, error)
}

// accountEvents are the webhook events of an account, as its receiver has stored them.
type accountEvents interface {
	DeadLetters(ctx context.Context, q webhook.DeadLetterQuery) ([]webhook.DeadLetter, error)
	Counts(ctx context.Context) (webhook.Counts, error)
}

// within returns m bound to a book, or to none.
func (m *reading) within(book string) *reading { return &reading{m.ground, book} }

// account returns an account by its name, which may be omitted if there is only one.
func (m *reading) account(name string) (*account, error) {
	own := m.sorted()
	for _, a := range own {
		if a.Name == name || name == "" && len(own) == 1 {
			return a, nil
		}
	}
	switch other := m.accounts[name]; {
	case other != nil:
		return nil, fmt.Errorf("%w: the account %s is in the book %s, not in %s", ErrAccount, name, other.Book, m.ofBook)
	case name == "" && len(own) > 1:
		return nil, fmt.Errorf("%w: there are several accounts: name one", ErrAccount)
	case name == "":
		return nil, fmt.Errorf("%w: this process has no account of the book %s", ErrAccount, m.ofBook)
	}
	return nil, fmt.Errorf("%w: there is no account %q", ErrAccount, name)
}

// ledger returns the tables in a transaction.
func (m *reading) ledger(tx sqldb.Tx) ledger.Ledger { return ledger.Of(m.db.In(tx)) }

// outside returns the tables outside of a transaction.
func (m *reading) outside() ledger.Ledger { return ledger.Of(m.db.Conn()) }

// anyAccount returns an account that has records, also one that this process lacks: what it
// has can be read.
func (m *reading) anyAccount(name, book string) *account {
	if a := m.accounts[name]; a != nil {
		return a
	}
	return &account{Account: Account{Name: name, Book: book, Zone: time.UTC}}
}

// byIndex returns the tables for statements that PostgreSQL must not carry out by reading all
// of one; see [sqldb.DB.ByIndex].
func (m *reading) byIndex(ctx context.Context, run func(ledger.Ledger) error) error {
	return m.db.ByIndex(ctx, func(s sqldb.Session) error { return run(ledger.Of(s)) })
}
