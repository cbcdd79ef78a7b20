-- The outbox of package operations. progress is json, not jsonb: it holds the gateway's
-- responses, which may contain U+0000, and jsonb rejects that character. Once an operation
-- is done or canceled, digest stands for params, which are null. job_id is that of a job
-- queue that wakes the operation.
CREATE TABLE {s}gateway_operations (
	id          {id},
	account     text NOT NULL,
	kind        text NOT NULL,
	key         text NOT NULL,
	resource    text,
	state       text NOT NULL,
	params      {jsonb} NOT NULL,
	progress    {json} NOT NULL,
	refunded    {int},
	claims      {int} NOT NULL,
	lease_until {int},
	due_at      {int} NOT NULL,
	created_at  {int} NOT NULL,
	updated_at  {int} NOT NULL,
	digest      text,
	job_id      {int}
);
CREATE UNIQUE INDEX gateway_operations_key ON {s}gateway_operations (account, kind, key);
-- Operations on a resource are sent one at a time, also across crashes.
CREATE UNIQUE INDEX gateway_operations_in_flight ON {s}gateway_operations (account, resource)
	WHERE state IN ('working', 'sent', 'ambiguous');
CREATE INDEX gateway_operations_resource ON {s}gateway_operations (resource, id) WHERE resource IS NOT NULL;
-- The first part of the condition keeps the planner from using the index for other
-- statements, or other indexes for the rivals of an operation; see operations/store.go.
CREATE INDEX gateway_operations_rivals ON {s}gateway_operations (resource, id)
	WHERE state || '' <> 'done' AND resource IS NOT NULL;
CREATE INDEX gateway_operations_due ON {s}gateway_operations (account, due_at)
	WHERE state IN ('waiting', 'working', 'sent', 'decided');
CREATE INDEX gateway_operations_unfinished ON {s}gateway_operations (account, state, id) WHERE state <> 'done';
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('operations', 2, 2, {now});
