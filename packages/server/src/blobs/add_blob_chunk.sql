-- Adds the next chunk of an upload; the first one begins it. Its commit does not wait for the disk: that of FINISH_BLOB
-- does, and what was committed before it is then on the disk as well.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_id uuid, p_n int, p_data bytea) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  {add_chunk}
  RETURN '';
END
$function$
