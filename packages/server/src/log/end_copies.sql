-- Takes copies from their writers, with their keys. Which: those of some ids, or of some sources.
-- Answer: the ids of the copies, separated by commas, or null.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, {ids} uuid[]) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  ended uuid[] := '{}';
  copy uuid;
BEGIN
  FOR copy IN
    UPDATE erased_sessions AS x SET leased_until = NULL
    WHERE x.project_id = p_project AND x.leased_until IS NOT NULL AND {which}
    RETURNING x.session_id
  LOOP
    ended := ended || copy;
  END LOOP;
  IF cardinality(ended) > 0 THEN
    DELETE FROM idempotency_keys AS k WHERE k.project_id = p_project AND k.owner_id = ANY (ended);
  END IF;
  RETURN nullif(array_to_string(ended, ','), '');
END
$function$
