-- The books of package merchant. The column record of a charge or refund has all that is
-- known about it; the other columns are what queries need. An order's sums are those of its
-- facts with an amount. Facts are never changed, apart from their delivery, or deleted.
--
-- Each account belongs to a book, that of one company. The IDs of orders, refunds, payouts,
-- subscriptions and links are unique in a book, so every key with one has the book. It comes
-- second: of an index that begins with the book the planner, whose statistics may be old, might
-- read all that a company has. The IDs of charges are unique in all books.
--
-- A refund belongs to the account of its charge, so no refund can belong to another one. The
-- index gateway_charges_open allows one charge of an order whose outcome is not known. The
-- charges of a subscription are the gateway's and have no reference. The column params has
-- the request for a subscription until its customer exists. Table gateway_link_sales has what
-- a sale by each link looks like, at each version of its products. Table gateway_balances has
-- balances at the gateway, and the sum of the account's entries at the same time. Table
-- gateway_checks has when a charge, payout or subscription is compared with the gateway; one
-- that is not compared any more has no row. A comparison that has begun holds a lease, which is
-- in no index, so that PostgreSQL need not change one. Its key begins with the ID: whatever the
-- planner takes the table for, it can't read all comparisons of a kind. Table gateway_skipped
-- counts the facts of a day (since 1970) that no process had a callback for. The columns told
-- have what the merchant heard last of the goods or of the access. The version of an order
-- counts the changes of it and of its charges and refunds.
CREATE TABLE {s}gateway_balances (
	account  text NOT NULL,
	currency text NOT NULL,
	at       {int} NOT NULL,
	balance  {int} NOT NULL,
	booked   {int} NOT NULL,
	PRIMARY KEY (account, currency, at)
);
CREATE TABLE {s}gateway_orders (
	book       text NOT NULL,
	subject    text NOT NULL,
	currency   text NOT NULL,
	paid       {int} NOT NULL,
	fee        {int} NOT NULL,
	refunded   {int} NOT NULL,
	disputed   {int} NOT NULL,
	paid_out   {int} NOT NULL,
	adjusted   {int} NOT NULL,
	settled_by text NOT NULL,
	current    text NOT NULL DEFAULT '',
	price      {int} NOT NULL DEFAULT 0,
	price_in   text NOT NULL DEFAULT '',
	interest   {int} NOT NULL DEFAULT 0,
	owed       {int} NOT NULL DEFAULT 0,
	owed_facts {int} NOT NULL DEFAULT 0,
	told       {int} NOT NULL DEFAULT 0,
	version    {int} NOT NULL DEFAULT 0,
	closed_at  {int},
	PRIMARY KEY (subject, book)
);
CREATE TABLE {s}gateway_charges (
	id             text PRIMARY KEY,
	account        text NOT NULL,
	book           text NOT NULL,
	subject        text NOT NULL,
	attempt        {int} NOT NULL,
	ref            text,
	transaction_id text,
	end_to_end_id  text,
	state          text NOT NULL,
	created_at     {int} NOT NULL,
	record         text NOT NULL,
	UNIQUE (account, ref),
	UNIQUE (transaction_id, account)
);
CREATE UNIQUE INDEX gateway_charges_open ON {s}gateway_charges (subject, book)
	WHERE state IN ('new', 'unknown', 'ambiguous') AND ref IS NOT NULL;
CREATE INDEX gateway_charges_subject ON {s}gateway_charges (subject, book, attempt);
CREATE INDEX gateway_charges_end_to_end ON {s}gateway_charges (end_to_end_id) WHERE end_to_end_id IS NOT NULL;
CREATE TABLE {s}gateway_refunds (
	book       text NOT NULL,
	id         text NOT NULL,
	charge     text NOT NULL REFERENCES {s}gateway_charges (id),
	state      text NOT NULL,
	created_at {int} NOT NULL,
	record     text NOT NULL,
	PRIMARY KEY (id, book)
);
CREATE INDEX gateway_refunds_charge ON {s}gateway_refunds (charge, created_at);
CREATE TABLE {s}gateway_payouts (
	book        text NOT NULL,
	id          text NOT NULL,
	account     text NOT NULL,
	subject     text NOT NULL,
	ref         text NOT NULL,
	transfer_id text,
	state       text NOT NULL,
	created_at  {int} NOT NULL,
	record      text NOT NULL,
	PRIMARY KEY (id, book),
	UNIQUE (account, ref),
	UNIQUE (account, transfer_id)
);
CREATE INDEX gateway_payouts_subject ON {s}gateway_payouts (subject, book, created_at);
CREATE TABLE {s}gateway_links (
	book       text NOT NULL,
	id         text NOT NULL,
	account    text NOT NULL,
	url        text NOT NULL,
	created_at {int} NOT NULL,
	record     text NOT NULL,
	PRIMARY KEY (id, book)
);
CREATE INDEX gateway_links_account ON {s}gateway_links (account, created_at);
CREATE TABLE {s}gateway_link_sales (
	account text NOT NULL,
	sold    text NOT NULL,
	link    text NOT NULL,
	PRIMARY KEY (account, sold, link)
);
CREATE TABLE {s}gateway_subscriptions (
	book            text NOT NULL,
	id              text NOT NULL,
	account         text NOT NULL,
	ref             text NOT NULL,
	subscription_id text,
	state           text NOT NULL,
	created_at      {int} NOT NULL,
	params          text NOT NULL,
	record          text NOT NULL,
	told            text NOT NULL DEFAULT '',
	PRIMARY KEY (id, book),
	UNIQUE (account, ref),
	UNIQUE (account, subscription_id)
);
CREATE TABLE {s}gateway_checks (
	kind        text NOT NULL,
	id          text NOT NULL,
	account     text NOT NULL,
	lane        {int} NOT NULL,
	check_at    {int} NOT NULL,
	lease_until {int},
	PRIMARY KEY (id, kind, account)
{postgres}) WITH (fillfactor = 70);
{sqlite});
CREATE INDEX gateway_checks_due ON {s}gateway_checks (account, lane, check_at);
CREATE TABLE {s}gateway_facts (
	seq          {id},
	key          text NOT NULL,
	account      text NOT NULL,
	book         text NOT NULL,
	subject      text NOT NULL,
	stream       text NOT NULL,
	record       text NOT NULL,
	charge       text NOT NULL,
	kind         text NOT NULL,
	amount       {int},
	currency     text NOT NULL,
	about        {int} NOT NULL,
	at           {int} NOT NULL,
	month        text NOT NULL,
	source       text NOT NULL,
	created_at   {int} NOT NULL,
	callback     text NOT NULL,
	delivered_at {int},
	skipped      {int} NOT NULL DEFAULT 0,
	due_at       {int} NOT NULL,
	attempts     {int} NOT NULL,
	error        text NOT NULL,
	UNIQUE (key, book)
);
CREATE INDEX gateway_facts_due ON {s}gateway_facts (due_at, seq) WHERE delivered_at IS NULL;
CREATE INDEX gateway_facts_open ON {s}gateway_facts (subject, book, stream, seq) WHERE (delivered_at + 0) IS NULL;
CREATE INDEX gateway_facts_subject ON {s}gateway_facts (subject, book, seq);
CREATE INDEX gateway_facts_month ON {s}gateway_facts (account, month) WHERE amount IS NOT NULL;
CREATE TABLE {s}gateway_skipped (
	account  text NOT NULL,
	callback text NOT NULL,
	day      {int} NOT NULL,
	n        {int} NOT NULL,
	PRIMARY KEY (account, callback, day)
);
CREATE TABLE {s}gateway_problems (
	id        {id},
	key       text NOT NULL,
	account   text NOT NULL,
	book      text NOT NULL,
	subject   text NOT NULL,
	record    text NOT NULL,
	about     text NOT NULL DEFAULT '',
	kind      text NOT NULL,
	text      text NOT NULL,
	since     {int} NOT NULL,
	closed_at {int},
	UNIQUE (key, book)
);
CREATE INDEX gateway_problems_open ON {s}gateway_problems (id) WHERE closed_at IS NULL;
CREATE INDEX gateway_problems_subject ON {s}gateway_problems (subject, book);
CREATE TABLE {s}gateway_notes (
	id          {id},
	account     text NOT NULL,
	book        text NOT NULL,
	subject     text NOT NULL,
	record      text NOT NULL,
	problem     text NOT NULL,
	kind        text NOT NULL,
	decision    text NOT NULL,
	resource_id text NOT NULL,
	decided_by  text NOT NULL,
	why         text NOT NULL,
	call        text NOT NULL UNIQUE, -- by which a call that is repeated after a lost COMMIT finds its note
	error       text NOT NULL,
	created_at  {int} NOT NULL
);
CREATE INDEX gateway_notes_subject ON {s}gateway_notes (subject, book);
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 4, 4, {now});
