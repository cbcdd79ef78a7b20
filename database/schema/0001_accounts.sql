-- The versions of the schema, by part, and the accounts at the gateway. Times are Unix
-- milliseconds of the database's clock.
CREATE TABLE {s}gateway_schema (
	part       text NOT NULL,
	version    int NOT NULL,
	oldest     int NOT NULL, -- a program that knows an older version of the part must not run
	applied_at {int} NOT NULL,
	PRIMARY KEY (part, version)
);
-- fingerprint is that of the gateway's address, never of the credential. digest_key is the
-- key of the digests by which erased operations are recognized. The other columns are those
-- of package merchant.
CREATE TABLE {s}gateway_accounts (
	name          text NOT NULL PRIMARY KEY,
	fingerprint   text NOT NULL,
	digest_key    text NOT NULL,
	created_at    {int} NOT NULL,
	prefix        text UNIQUE,
	zone          text,
	book          text,
	sweep_at      {int},
	deep_sweep_at {int},
	balance_at    {int}
);
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('accounts', 1, 1, {now});
