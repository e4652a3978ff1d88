-- A blob that is sent again is kept as if it were new. Answer: its bytes; null if there is none.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_sha256 text) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  found_bytes bigint;
BEGIN
  UPDATE blobs AS b SET unreferenced_since = now() WHERE b.project_id = p_project AND b.sha256 = p_sha256 AND b.unreferenced_since IS NOT NULL;
  SELECT b.bytes INTO found_bytes FROM blobs b WHERE b.project_id = p_project AND b.sha256 = p_sha256;
  RETURN found_bytes::text;
END
$function$
