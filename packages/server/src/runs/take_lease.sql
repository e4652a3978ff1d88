-- Answer: the lease as JSON, or `refused`: leased, by whom and for how long; null if there is no such session.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_session uuid,
  p_owner text,
  p_ttl_ms int,
  p_progress boolean,
  p_requires boolean,
  p_steal boolean
)
RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
DECLARE{run_variables}
BEGIN
  {lock_run}
  {read_lease}
  IF ends_at > at AND lease.owner <> p_owner AND NOT p_steal THEN
    RETURN json_build_object('refused', 'leased', 'owner', lease.owner, 'expires_at', {ends_at_text},
      'left_ms', ceil(extract(epoch FROM ends_at - at) * 1000));
  END IF;
  {take_run}
  RETURN json_build_object('fence', next_fence, 'owner', p_owner, 'expires_at', {ends_at_text});
END
$function$
