-- Sessions below other sessions.
--
-- parent_id: the session with which this one is deleted. It is set when the session is created and never changes, so
--   that there are no cycles. There is no foreign key: creating a session locks the head of its parent, and deleting
--   the parent deletes that head first and then its children, which sessions_by_parent finds.
-- sessions_roots: the list of sessions without a parent.
--
-- The parent is a term of list_terms (0004), as the user is, so that the children of a session can be listed together
-- with other filters, and in the order of their last activity (0010). Other sessions keep the terms that they have.
--
-- Takes the time to build an index of all sessions; nothing is written meanwhile.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE sessions ADD COLUMN parent_id uuid;
CREATE INDEX sessions_by_parent ON sessions (project_id, parent_id, created_at, id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_roots ON sessions (project_id, created_at, id) WHERE parent_id IS NULL;

CREATE FUNCTION parent_term(list text, parent_id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $function$
  SELECT hashtextextended(parent_id::text, hashtextextended(list, 2)) & -8
$function$;

-- What the index holds of a row that may have a parent.
CREATE FUNCTION index_terms(list text, document jsonb, user_id uuid, parent_id uuid, OUT terms bigint[], OUT signature bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = 'force_generic_plan' AS $function$
BEGIN
  SELECT i.terms, i.signature INTO terms, signature FROM index_terms(list, document, user_id) AS i;
  IF parent_id IS NOT NULL THEN
    terms := terms || parent_term(list, parent_id);
    signature := signature | term_bits(parent_term(list, parent_id));
  END IF;
END
$function$;

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_function('parent_term(text, uuid)');
      PERFORM create_distributed_function('index_terms(text, jsonb, uuid, uuid)');
    END IF;
  END IF;
END
$citus$;
