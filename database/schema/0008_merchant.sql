-- What other code made at the gateway and the books are to have: a transaction, a subscription or a
-- transfer, by the gateway's ID in lower case. request is the adoption, encoded by package merchant,
-- and state is waiting, done or failed. The column adopting counts the adoptions that an order waits
-- for; adopt_at is until when a process works on those of an account. Table gateway_adopted has the
-- sum of the entries with which resources came into the books: the account's balance had changed
-- before. The key begins with the ID: whatever the planner takes the table for, it can't read all
-- adoptions of an account to find some.
CREATE TABLE {s}gateway_adoptions (
	account  text NOT NULL,
	kind     text NOT NULL,
	resource text NOT NULL,
	book     text NOT NULL,
	subject  text NOT NULL,
	request  text NOT NULL,
	state    text NOT NULL,
	since    {int} NOT NULL,
	due_at   {int} NOT NULL,
	attempts {int} NOT NULL,
	error    text NOT NULL,
	PRIMARY KEY (resource, kind, account)
);
CREATE INDEX gateway_adoptions_due ON {s}gateway_adoptions (account, due_at) WHERE state = 'waiting';
CREATE INDEX gateway_adoptions_subject ON {s}gateway_adoptions (subject, book) WHERE state = 'waiting';
CREATE TABLE {s}gateway_adopted (
	account  text NOT NULL,
	currency text NOT NULL,
	amount   {int} NOT NULL,
	PRIMARY KEY (account, currency)
);
ALTER TABLE {s}gateway_orders ADD COLUMN adopting {int} NOT NULL DEFAULT 0;
ALTER TABLE {s}gateway_accounts ADD COLUMN adopt_at {int};
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 8, 4, {now});
