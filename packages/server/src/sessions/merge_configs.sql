-- Merges into the configs of a session, unless the result exceeds `p_bytes_max`. Answer: the merged configs, empty if
-- they are too large; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_session uuid, p_fence bigint, p_body jsonb, p_bytes_max int
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  head record;
{configs_variables}
BEGIN
  {lock_configs}
{merge_configs}
  IF octet_length(after::text) > p_bytes_max THEN
    RETURN '';
  END IF;
  {change_configs}
  RETURN after;
END
$function$
