-- The inbox of package webhook/sqlstore. A row with the key '' is that of an account: its
-- since is the time from which the table has every completed event.
CREATE TABLE {s}gateway_webhook_events (
	seq       {id},
	key       text NOT NULL,
	account   text NOT NULL,
	event_id  text NOT NULL,
	kind      text NOT NULL,
	resource  text NOT NULL,
	fact      text NOT NULL,
	signed    {int} NOT NULL,
	source    text NOT NULL,
	late      {int} NOT NULL,
	position  {int} NOT NULL,
	digest    text NOT NULL,
	key_id    text NOT NULL,
	trace     text NOT NULL,
	body      {bytes},
	confirmed {bytes},
	state     {int} NOT NULL,
	aside     text NOT NULL DEFAULT '',
	attempts  {int} NOT NULL,
	expired   {int} NOT NULL DEFAULT 0,
	token     text NOT NULL,
	due       {int} NOT NULL,
	lease     {int} NOT NULL,
	since     {int} NOT NULL,
	arrived   {int} NOT NULL,
	stands_in {int},
	matched   text NOT NULL,
	reason    text NOT NULL,
	UNIQUE (key, account)
);
{postgres}-- The first two indexes serve the frontier. Their conditions keep the planner from using them
{postgres}-- for other statements, or other indexes for the frontier's.
{postgres}CREATE INDEX gateway_webhook_events_first ON {s}gateway_webhook_events (account, resource, (due + 0), seq)
{postgres}	WHERE state + 0 = 1 AND resource <> '';
{postgres}CREATE INDEX gateway_webhook_events_lease ON {s}gateway_webhook_events (lease) WHERE state = 2 AND lease > 0;
-- The unique index allows one claimed event of a resource at a time. The indexes latest, fact
-- and event need no account: few rows have the same resource, fact or id.
CREATE UNIQUE INDEX gateway_webhook_events_busy ON {s}gateway_webhook_events (account, resource) WHERE state = 2;
CREATE INDEX gateway_webhook_events_due ON {s}gateway_webhook_events (account, due, seq) WHERE state = 1;
CREATE INDEX gateway_webhook_events_latest ON {s}gateway_webhook_events (resource, position) WHERE state = 3;
CREATE INDEX gateway_webhook_events_done ON {s}gateway_webhook_events (account, since) WHERE state = 3;
CREATE INDEX gateway_webhook_events_dead ON {s}gateway_webhook_events (account, since) WHERE state = 4;
CREATE INDEX gateway_webhook_events_fact ON {s}gateway_webhook_events (fact) WHERE fact <> '';
CREATE INDEX gateway_webhook_events_event ON {s}gateway_webhook_events (event_id) WHERE fact <> '';
CREATE INDEX gateway_webhook_events_aside ON {s}gateway_webhook_events (account, aside, due, seq) WHERE state = 5;
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('events', 3, 3, {now});
