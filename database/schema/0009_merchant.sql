-- Erasure and retention of what is known of buyers. erased_at is since when a record keeps nothing
-- of its buyer; that of an order is also that of a sale by link, a subscription or a payout without
-- an order, and says that no new record of it is stored. purged_at is since when its operations are
-- deleted. An order has not ended before ends_at: it is looked at when a time has passed since. The
-- column buyer is 1 once the digests of the charge's buyer are stored, so that he is found, and 2 if
-- the gateway no longer tells who he is. keep_at is when a process looks for what has ended.
--
-- Table gateway_buyers has digests of documents and e-mail addresses, with the digest key of the
-- record's account, and whose they are: an order, a sale, a subscription or a payout.
CREATE TABLE {s}gateway_buyers (
	digest text NOT NULL,
	book   text NOT NULL,
	kind   text NOT NULL,
	record text NOT NULL,
	PRIMARY KEY (digest, record, kind, book)
);
CREATE INDEX gateway_buyers_record ON {s}gateway_buyers (record, kind, book);
ALTER TABLE {s}gateway_orders ADD COLUMN erased_at {int};
ALTER TABLE {s}gateway_orders ADD COLUMN purged_at {int};
ALTER TABLE {s}gateway_orders ADD COLUMN ends_at {int} NOT NULL DEFAULT 0;
ALTER TABLE {s}gateway_charges ADD COLUMN erased_at {int};
ALTER TABLE {s}gateway_charges ADD COLUMN buyer {int} NOT NULL DEFAULT 0;
ALTER TABLE {s}gateway_payouts ADD COLUMN erased_at {int};
ALTER TABLE {s}gateway_subscriptions ADD COLUMN erased_at {int};
ALTER TABLE {s}gateway_accounts ADD COLUMN keep_at {int};
CREATE INDEX gateway_orders_kept ON {s}gateway_orders (book, ends_at) WHERE erased_at IS NULL;
CREATE INDEX gateway_orders_unpurged ON {s}gateway_orders (book, ends_at) WHERE purged_at IS NULL;
CREATE INDEX gateway_charges_buyer ON {s}gateway_charges (account, id) WHERE buyer = 0 AND transaction_id IS NOT NULL;
CREATE INDEX gateway_adoptions_ended ON {s}gateway_adoptions (subject, book) WHERE state <> 'waiting';
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 9, 4, {now});
