-- What events of an account were about that matches no record of package merchant: a transaction, a
-- transfer, a subscription or something else, by the gateway's ID in lower case. event is the last
-- event, and events is how many there were.
CREATE TABLE {s}gateway_unknown (
	account  text NOT NULL,
	family   text NOT NULL,
	id       text NOT NULL,
	ref      text NOT NULL,
	kind     text NOT NULL,
	event    text NOT NULL,
	events   {int} NOT NULL,
	first_at {int} NOT NULL,
	last_at  {int} NOT NULL,
	PRIMARY KEY (account, family, id)
);
CREATE INDEX gateway_unknown_last ON {s}gateway_unknown (account, last_at);
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 7, 4, {now});
