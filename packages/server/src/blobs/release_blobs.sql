-- Deletes references of some owners, and in the same transaction the blobs that nothing else refers to. Answer: how many
-- references and how many blobs, separated by a comma.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_owners uuid[], p_references_max int) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  hashes text[];
  locked uuid[];
  released bigint;
  deleted bigint;
  objects uuid[];
  object uuid;
BEGIN
  WITH gone AS (
    DELETE FROM blob_references AS r WHERE r.project_id = p_project AND r.ctid = ANY (ARRAY(
      SELECT o.ctid FROM blob_references o WHERE o.project_id = p_project AND o.owner_id = ANY (p_owners) LIMIT p_references_max))
    RETURNING r.sha256
  )
  SELECT count(*), array_agg(DISTINCT g.sha256) INTO released, hashes FROM gone g;
  IF released = 0 THEN
    RETURN '0,0';
  END IF;
  {delete_unreferenced}
  RETURN released || ',' || deleted;
END
$function$
