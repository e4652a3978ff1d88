-- What a statement was worded from.
--
-- statements.origins: an object whose keys are the ids of the sessions that its words may come from: all that a model was
--   shown, whether the statement cites them or not, or the one in which a rule saw how an error was mended. It loses
--   these words when one of them is deleted. Null: there is none, or a person wrote the words.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE statements ADD COLUMN origins jsonb;
CREATE INDEX statements_by_origin ON statements USING gin (origins) WHERE origins IS NOT NULL;

-- Of what is there, as much as the ledger still knows.
UPDATE statements AS s SET origins = o.origins FROM (
  SELECT c.project_id, c.statement_id,
    coalesce(jsonb_object_agg(k.session_id::text, true) FILTER (WHERE k.session_id IS NOT NULL), '{}')
      || coalesce(jsonb_object_agg(k.other_session_id::text, true) FILTER (WHERE k.other_session_id IS NOT NULL), '{}') AS origins
  FROM statement_cites c JOIN learning_calls k ON k.project_id = c.project_id AND k.learning_space_id = c.learning_space_id
    AND k.step = 'reflect' AND (k.session_id = c.session_id OR k.other_session_id = c.session_id)
  WHERE c.is_origin GROUP BY c.project_id, c.statement_id
) o
WHERE s.project_id = o.project_id AND s.id = o.statement_id AND s.author = 'model' AND NOT s.pinned;
