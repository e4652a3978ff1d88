
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_id uuid) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  is_object boolean;
BEGIN
  {delete_upload}
  RETURN NULL;
END
$function$
