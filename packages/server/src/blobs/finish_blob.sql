-- Adds the last chunk of an upload and makes it a blob. Answer: `stored`, or `known` where the project has the blob by
-- now; the upload is then deleted. Null: the upload took so long that it was given up.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid, p_id uuid, p_n int, p_data bytea, p_sha256 text, p_bytes bigint
) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  is_object boolean;
BEGIN
  BEGIN
    {add_chunk}
    UPDATE blobs AS b SET sha256 = p_sha256, bytes = p_bytes WHERE b.project_id = p_project AND b.id = p_id;
    IF FOUND THEN
      RETURN 'stored';
    END IF;
    RETURN NULL;
  EXCEPTION WHEN unique_violation THEN
    {delete_upload}
    UPDATE blobs AS b SET unreferenced_since = now() WHERE b.project_id = p_project AND b.sha256 = p_sha256 AND b.unreferenced_since IS NOT NULL;
    PERFORM FROM blobs b WHERE b.project_id = p_project AND b.sha256 = p_sha256 FOR KEY SHARE;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the blob was deleted meanwhile' USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN 'known';
  END;
END
$function$
