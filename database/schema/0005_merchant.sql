-- The sums of the entries by month, so that a statement need not read all facts. Table
-- gateway_totals has the sum of each kind, and the number of the first fact that is in it. What
-- is not in it yet are the facts in the ranges of gateway_unsummed: sums are those of both tables,
-- read by one statement. The range with the highest number as its end has the newest facts, and
-- since is when Merchant.Run shortened it last. The others are gaps that Run found in the numbers
-- before: a transaction that was open then may commit a fact in one at any time. A gap is
-- removed when the transactions have ended that were open when it was found, those before xid.
CREATE TABLE {s}gateway_totals (
	account  text NOT NULL,
	month    text NOT NULL,
	currency text NOT NULL,
	kind     text NOT NULL,
	amount   {int} NOT NULL,
	first    {int} NOT NULL,
	PRIMARY KEY (account, month, currency, kind)
);
CREATE TABLE {s}gateway_unsummed (
	last  {int} NOT NULL PRIMARY KEY,
	first {int} NOT NULL,
	since {int} NOT NULL,
	xid   {int} NOT NULL
);
INSERT INTO {s}gateway_unsummed (last, first, since, xid) VALUES (9223372036854775807, -9223372036854775807, 0, 0);
CREATE INDEX gateway_refunds_accepted ON {s}gateway_refunds (charge) WHERE state = 'accepted';
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 5, 4, {now});
