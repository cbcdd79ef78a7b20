-- For PostgreSQL and SQLite. The primary key of gateway_events makes a second delivery of an
-- event harmless. Event ids are unique within an account of the gateway: give each account
-- tables of its own.
CREATE TABLE IF NOT EXISTS orders (
  ref TEXT PRIMARY KEY,                   -- the external_ref of the charge; stored before the charge is made
  amount INTEGER NOT NULL,                -- cents
  currency TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending',  -- then paid, and what your shop adds
  transaction_id TEXT                     -- the transaction that paid it
);
CREATE TABLE IF NOT EXISTS gateway_events (
  id TEXT PRIMARY KEY,                    -- the event's id
  kind TEXT NOT NULL,                     -- such as transaction.paid
  resource_id TEXT NOT NULL,              -- of the transaction, transfer or subscription
  data TEXT NOT NULL,                     -- JSON
  problem TEXT,                           -- why a person must look at it; usually null
  received_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
