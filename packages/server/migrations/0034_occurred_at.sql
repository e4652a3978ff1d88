-- When what an entry says happened, as its caller states it. Null: it happened when it was stored, as is true of most
-- entries. seq and created_at still say in which order and when entries were committed; lists, cursors and expiry go by
-- these alone.

ALTER TABLE entries ADD COLUMN occurred_at timestamptz;
