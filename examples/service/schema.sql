-- Amounts are in cents. Times are the database's, so that processes agree.

CREATE TABLE IF NOT EXISTS orders (
	id             TEXT PRIMARY KEY,           -- external_ref without its prefix
	amount         BIGINT NOT NULL,
	method         TEXT NOT NULL,
	buyer_name     TEXT NOT NULL,
	buyer_email    TEXT NOT NULL,
	document_type  TEXT NOT NULL DEFAULT '',   -- personal data, cleared once the
	document       TEXT NOT NULL DEFAULT '',   -- charge exists or the order failed
	state          TEXT NOT NULL DEFAULT 'new', -- see order.go
	refunded       BIGINT NOT NULL DEFAULT 0,  -- so far; the order stays paid until all of it is
	transaction_id TEXT UNIQUE,
	pix_code       TEXT NOT NULL DEFAULT '',
	challenge      TEXT NOT NULL DEFAULT '',   -- 3-D Secure, for the payment element
	reason         TEXT NOT NULL DEFAULT '',
	created_at     TIMESTAMPTZ NOT NULL DEFAULT now(),
	compared_at    TIMESTAMPTZ NOT NULL DEFAULT now() -- with the transaction; see reconcile.go
);
CREATE INDEX IF NOT EXISTS orders_paid ON orders (compared_at) WHERE state = 'paid';
CREATE INDEX IF NOT EXISTS orders_open ON orders (created_at) WHERE state IN ('new', 'pending', 'refunding');

-- What the warehouse works from.
CREATE TABLE IF NOT EXISTS shipments (
	order_id   TEXT PRIMARY KEY REFERENCES orders,
	created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS members (
	id              TEXT PRIMARY KEY,
	name            TEXT NOT NULL,
	email           TEXT NOT NULL,
	state           TEXT NOT NULL DEFAULT 'new', -- or the subscription's
	customer_id     TEXT UNIQUE,
	subscription_id TEXT UNIQUE,
	paid_until      TIMESTAMPTZ,
	created_at      TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The charges of subscriptions, by the gateway's transaction.
CREATE TABLE IF NOT EXISTS charges (
	transaction_id TEXT PRIMARY KEY,
	member_id      TEXT NOT NULL REFERENCES members,
	amount         BIGINT NOT NULL,
	created_at     TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS payouts (
	id          TEXT PRIMARY KEY,
	amount      BIGINT NOT NULL,
	key_type    TEXT NOT NULL,
	key_value   TEXT NOT NULL,
	state       TEXT NOT NULL DEFAULT 'new', -- pending, paid, failed, canceled, rejected
	transfer_id TEXT UNIQUE,
	reason      TEXT NOT NULL DEFAULT '',
	created_at  TIMESTAMPTZ NOT NULL DEFAULT now()
);
