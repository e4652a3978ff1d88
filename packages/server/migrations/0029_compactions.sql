-- The compactions of a session (events that say what stands for the entries before them in a context) that are valid:
-- every context begins with the newest one, and every retraction looks for those that cover what it retracts. Only they
-- are in the index, so nothing else pays for it.

CREATE INDEX entries_compactions ON entries (project_id, session_id, seq)
  WHERE type = 'annals.compaction' AND retracted_by IS NULL;
