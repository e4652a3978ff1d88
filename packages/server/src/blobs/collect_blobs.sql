-- Deletes blobs that nothing has referred to for a day, and uploads that did not end. What is referred to after all is
-- not looked at again. An append that refers to one at the same moment holds it locked, and it is passed over. Answer:
-- how many were looked at.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_blobs_max int) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  old uuid[];
  objects uuid[];
  object uuid;
BEGIN
  SELECT array_agg(l.id) INTO old FROM (
    SELECT b.id FROM blobs b
    WHERE b.project_id = p_project AND b.unreferenced_since < now() - {kept}
    ORDER BY b.unreferenced_since LIMIT p_blobs_max FOR UPDATE SKIP LOCKED
  ) l;
  IF old IS NULL THEN
    RETURN 0;
  END IF;
  UPDATE blobs AS b SET unreferenced_since = NULL WHERE b.project_id = p_project AND b.id = ANY (old) AND EXISTS (
    SELECT FROM blob_references r WHERE r.project_id = p_project AND r.sha256 = b.sha256);
  WITH gone AS (
    DELETE FROM blobs AS b WHERE b.project_id = p_project AND b.id = ANY (old) AND b.unreferenced_since IS NOT NULL
    RETURNING b.id, b.in_object_store
  )
  SELECT array_agg(g.id) INTO objects FROM gone g WHERE g.in_object_store;
  {note_each}
  RETURN cardinality(old);
END
$function$
