-- When the charges of an account are listed next, or 1 in walking and until when a process lists
-- them. When its disputes are, and until when its charges are read one by one, because its lists
-- can't be relied on.
ALTER TABLE {s}gateway_accounts ADD COLUMN walk_at {int};
ALTER TABLE {s}gateway_accounts ADD COLUMN walking {int};
ALTER TABLE {s}gateway_accounts ADD COLUMN disputes_at {int};
ALTER TABLE {s}gateway_accounts ADD COLUMN singly_until {int};
ALTER TABLE {s}gateway_accounts ADD COLUMN singly_why text;
INSERT INTO {s}gateway_schema (part, version, oldest, applied_at)
	VALUES ('merchant', 6, 4, {now});
