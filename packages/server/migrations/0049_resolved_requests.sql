-- Resolved requests have an index of their own: a list of them looked at every open request before the first resolved one,
-- and opening a request wrote to an index that only this list read.

CREATE INDEX session_requests_resolved ON session_requests (project_id, created_at, id) WHERE decision IS NOT NULL;
DROP INDEX session_requests_by_created;
