package merchant

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"

	"github.com/gateway-go/gateway/operations"
)

// schema creates the tables. The column record of a charge or refund has all that is known
// about it; the other columns are what queries need. An order's sums are those of its
// facts with an amount. Facts are never changed, apart from their delivery, or deleted.
//
// A refund belongs to the account of its charge, so no refund can belong to another one.
// The index gateway_charges_open allows one charge of an order whose outcome is not known.
// The charges of a subscription are the gateway's and have no reference. The column params
// has the request for a subscription until its customer exists. Gateway_link_sales has
// what a sale by each link looks like, at each version of its products. Gateway_balances has
// balances at the gateway, and the sum of the account's entries at the same time.
const schema = `
CREATE TABLE IF NOT EXISTS gateway_accounts (
	name        text PRIMARY KEY,
	fingerprint text NOT NULL,
	prefix      text NOT NULL UNIQUE,
	created_at  {bigint} NOT NULL,
	sweep_at    {bigint},
	balance_at  {bigint}
);
CREATE TABLE IF NOT EXISTS gateway_balances (
	account  text NOT NULL,
	currency text NOT NULL,
	at       {bigint} NOT NULL,
	balance  {bigint} NOT NULL,
	booked   {bigint} NOT NULL,
	PRIMARY KEY (account, currency, at)
);
CREATE TABLE IF NOT EXISTS gateway_orders (
	subject    text PRIMARY KEY,
	currency   text NOT NULL,
	paid       {bigint} NOT NULL,
	fee        {bigint} NOT NULL,
	refunded   {bigint} NOT NULL,
	disputed   {bigint} NOT NULL,
	paid_out   {bigint} NOT NULL,
	adjusted   {bigint} NOT NULL,
	settled_by text NOT NULL,
	current    text NOT NULL DEFAULT '',
	closed_at  {bigint}
);
CREATE TABLE IF NOT EXISTS gateway_charges (
	id             text PRIMARY KEY,
	account        text NOT NULL,
	subject        text NOT NULL,
	attempt        {bigint} NOT NULL,
	ref            text,
	transaction_id text,
	end_to_end_id  text,
	state          text NOT NULL,
	check_at       {bigint},
	created_at     {bigint} NOT NULL,
	record         text NOT NULL,
	UNIQUE (account, ref),
	UNIQUE (transaction_id, account)
);
CREATE UNIQUE INDEX IF NOT EXISTS gateway_charges_open ON gateway_charges (subject) WHERE state IN ('new', 'unknown', 'ambiguous') AND ref IS NOT NULL;
CREATE INDEX IF NOT EXISTS gateway_charges_subject ON gateway_charges (subject, attempt);
CREATE INDEX IF NOT EXISTS gateway_charges_end_to_end ON gateway_charges (end_to_end_id) WHERE end_to_end_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS gateway_charges_check ON gateway_charges (check_at) WHERE check_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS gateway_refunds (
	id         text PRIMARY KEY,
	charge     text NOT NULL REFERENCES gateway_charges (id),
	state      text NOT NULL,
	created_at {bigint} NOT NULL,
	record     text NOT NULL
);
CREATE INDEX IF NOT EXISTS gateway_refunds_charge ON gateway_refunds (charge, created_at);
CREATE TABLE IF NOT EXISTS gateway_payouts (
	id          text PRIMARY KEY,
	account     text NOT NULL,
	subject     text NOT NULL,
	ref         text NOT NULL,
	transfer_id text,
	state       text NOT NULL,
	check_at    {bigint},
	created_at  {bigint} NOT NULL,
	record      text NOT NULL,
	UNIQUE (account, ref),
	UNIQUE (account, transfer_id)
);
CREATE INDEX IF NOT EXISTS gateway_payouts_subject ON gateway_payouts (subject, created_at);
CREATE INDEX IF NOT EXISTS gateway_payouts_check ON gateway_payouts (check_at) WHERE check_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS gateway_links (
	id         text PRIMARY KEY,
	account    text NOT NULL,
	url        text NOT NULL,
	created_at {bigint} NOT NULL,
	record     text NOT NULL
);
CREATE INDEX IF NOT EXISTS gateway_links_account ON gateway_links (account, created_at);
CREATE TABLE IF NOT EXISTS gateway_link_sales (
	account text NOT NULL,
	sold    text NOT NULL,
	link    text NOT NULL,
	PRIMARY KEY (account, sold, link)
);
CREATE TABLE IF NOT EXISTS gateway_subscriptions (
	id              text PRIMARY KEY,
	account         text NOT NULL,
	ref             text NOT NULL,
	subscription_id text,
	state           text NOT NULL,
	check_at        {bigint},
	created_at      {bigint} NOT NULL,
	params          text NOT NULL,
	record          text NOT NULL,
	UNIQUE (account, ref),
	UNIQUE (account, subscription_id)
);
CREATE INDEX IF NOT EXISTS gateway_subscriptions_check ON gateway_subscriptions (check_at) WHERE check_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS gateway_facts (
	seq          {id},
	key          text NOT NULL UNIQUE,
	account      text NOT NULL,
	subject      text NOT NULL,
	record       text NOT NULL,
	charge       text NOT NULL,
	kind         text NOT NULL,
	amount       {bigint},
	currency     text NOT NULL,
	about        {bigint} NOT NULL,
	at           {bigint} NOT NULL,
	month        text NOT NULL,
	source       text NOT NULL,
	created_at   {bigint} NOT NULL,
	callback     text NOT NULL,
	delivered_at {bigint},
	due_at       {bigint} NOT NULL,
	attempts     {bigint} NOT NULL,
	error        text NOT NULL
);
CREATE INDEX IF NOT EXISTS gateway_facts_due ON gateway_facts (due_at, seq) WHERE delivered_at IS NULL;
CREATE INDEX IF NOT EXISTS gateway_facts_subject ON gateway_facts (subject, seq);
CREATE INDEX IF NOT EXISTS gateway_facts_month ON gateway_facts (account, month) WHERE amount IS NOT NULL;
CREATE TABLE IF NOT EXISTS gateway_problems (
	id        {id},
	key       text NOT NULL UNIQUE,
	account   text NOT NULL,
	subject   text NOT NULL,
	record    text NOT NULL,
	kind      text NOT NULL,
	text      text NOT NULL,
	since     {bigint} NOT NULL,
	closed_at {bigint}
);
CREATE INDEX IF NOT EXISTS gateway_problems_open ON gateway_problems (id) WHERE closed_at IS NULL;
CREATE INDEX IF NOT EXISTS gateway_problems_subject ON gateway_problems (subject);
CREATE TABLE IF NOT EXISTS gateway_notes (
	id          {id},
	account     text NOT NULL,
	subject     text NOT NULL,
	record      text NOT NULL,
	problem     text NOT NULL,
	kind        text NOT NULL,
	decision    text NOT NULL,
	resource_id text NOT NULL,
	decided_by  text NOT NULL,
	why         text NOT NULL,
	error       text NOT NULL,
	created_at  {bigint} NOT NULL
);
CREATE INDEX IF NOT EXISTS gateway_notes_subject ON gateway_notes (subject);
`

// migrate creates the tables that are missing, and registers the accounts.
func (m *Merchant) migrate(ctx context.Context) error {
	return m.store.transaction(ctx, func(tx *sql.Tx) error {
		c := m.store.in(tx)
		if m.store.driver.Dialect() == operations.DialectPostgres {
			// Two processes that run this at once would disturb each other.
			if _, err := c.exec(ctx, `SELECT CAST(pg_advisory_xact_lock(hashtextextended('migrate gateway_merchant in ' || current_schema(), 0)) AS text)`); err != nil {
				return err
			}
		}
		if err := m.create(ctx, c); err != nil {
			return err
		}
		for _, a := range m.accounts {
			if err := a.register(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// create creates the tables, unless they exist: a role without the right to create any
// may open a database.
func (m *Merchant) create(ctx context.Context, c conn) error {
	exists := `SELECT COUNT(*) FROM sqlite_master WHERE name = 'gateway_problems'`
	if m.store.driver.Dialect() == operations.DialectPostgres {
		exists = `SELECT COUNT(to_regclass('gateway_problems'))`
	}
	var n int
	if _, err := c.first(ctx, exists, nil, &n); err != nil || n > 0 {
		return err
	}
	for statement := range strings.SplitSeq(schema, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := c.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// register adds the account, or checks that it is the one that was registered under its
// name.
func (a *account) register(ctx context.Context, c conn) error {
	is := a.Client.Account()
	if _, err := c.exec(ctx, `INSERT INTO gateway_accounts (name, fingerprint, digest_key, prefix, created_at)
		VALUES (?, ?, ?, ?, {now}) ON CONFLICT DO NOTHING`,
		a.Name, is.Fingerprint, rand.Text(), a.Prefix); err != nil {
		return err
	}
	var fingerprint, prefix string
	found, err := c.first(ctx, `SELECT fingerprint, prefix FROM gateway_accounts WHERE name = ?`, []any{a.Name}, &fingerprint, &prefix)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("%w: another account than %s has the prefix %q: set Account.Prefix to another one", ErrAccount, a.Name, a.Prefix)
	case fingerprint != is.Fingerprint:
		return fmt.Errorf("%w: the records of %s belong to an account at another base URL: give each account and environment its own name; "+
			"if only the address has changed, run UPDATE gateway_accounts SET fingerprint = '%s' WHERE name = '%s'", ErrAccount, a.Name, is.Fingerprint, a.Name)
	case prefix != a.Prefix:
		return fmt.Errorf("%w: the records of %s have references with the prefix %q, and Account.Prefix is %q", ErrAccount, a.Name, prefix, a.Prefix)
	}
	return a.distinct(ctx, c)
}
