-- Replaces the configs of a session. Answer: its id; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_fence bigint, p_body jsonb) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  head record;
{configs_variables}
BEGIN
  {lock_configs}
  after := p_body -> 'configs';
  {change_configs}
  RETURN before.id;
END
$function$
