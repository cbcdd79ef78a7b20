-- What the shop itself stores. Amounts are in cents. The money, and what was sent to the
-- gateway, is in the tables of package merchant, which begin with gateway_.

SELECT pg_advisory_xact_lock(hashtext('shop schema')); -- several processes may start together

CREATE TABLE IF NOT EXISTS orders (
	id         text PRIMARY KEY, -- part of the gateway's external_ref
	sku        text NOT NULL,
	quantity   bigint NOT NULL,
	amount     bigint NOT NULL,
	name       text NOT NULL,
	email      text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
);

-- What the warehouse works from. The state is what the callback goods was told last: paid if the
-- buyer is owed the goods, else refunded or disputed. A dispute that is won makes it paid again.
CREATE TABLE IF NOT EXISTS shipments (
	id         text PRIMARY KEY, -- of the order, or of the charge of a sale by link
	state      text NOT NULL,
	sent_at    timestamptz,
	sku        text NOT NULL,
	quantity   bigint NOT NULL,
	name       text NOT NULL,
	email      text NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	task       text NOT NULL GENERATED ALWAYS AS (CASE
		WHEN state = 'paid' AND sent_at IS NULL THEN 'send'
		WHEN state <> 'paid' AND sent_at IS NOT NULL THEN 'ask_back' -- it was sent before
		ELSE 'none' END) STORED
);

-- A member has access until access_until.
CREATE TABLE IF NOT EXISTS members (
	id           text PRIMARY KEY,
	name         text NOT NULL,
	email        text NOT NULL,
	state        text NOT NULL DEFAULT 'new',
	ends         boolean NOT NULL DEFAULT false, -- it is not renewed
	access_until timestamptz
);

CREATE TABLE IF NOT EXISTS invoices (
	charge     text PRIMARY KEY,
	member_id  text NOT NULL REFERENCES members,
	amount     bigint NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS payouts (
	id     text PRIMARY KEY,
	amount bigint NOT NULL,
	state  text NOT NULL DEFAULT 'pending', -- then paid, failed, canceled or rejected
	reason text NOT NULL DEFAULT ''
);
