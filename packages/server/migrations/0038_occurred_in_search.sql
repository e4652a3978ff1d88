-- The earliest time at which an entry of a segment happened. A search for what happened up to a time goes through the
-- segments that begin by then, and through those with entries that were stored later and happened by then.
-- search_entries.first_at is now the earliest time at which an entry of the run was stored or happened.

ALTER TABLE search_segments ADD COLUMN first_at timestamptz;
