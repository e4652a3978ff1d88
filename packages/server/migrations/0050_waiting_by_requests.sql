-- Which sessions wait is read from their open requests: an answer to a request wrote a third row, and an index of all
-- sessions with input, to keep a count of them. Open and resolved requests of a session have an index each, so that
-- counting the open ones passes no resolved ones.
--
-- session_runs.open_requests and waiting_since are not used any more. They stay, since nodes of earlier versions write them.

ALTER TABLE session_runs ALTER COLUMN open_requests SET DEFAULT 0;
DROP INDEX session_runs_by_waiting;

CREATE INDEX session_requests_open_of_session ON session_requests (project_id, session_id, created_at, id)
  WHERE decision IS NULL;
CREATE INDEX session_requests_resolved_of_session ON session_requests (project_id, session_id, created_at, id)
  WHERE decision IS NOT NULL;
DROP INDEX session_requests_by_session;
