-- Chains the entries of a session after a seq that were stored in this transaction by something else than an append of
-- entries (a retraction, a request, a copy), under the lock of its head.
--
-- On a cluster the function runs where its caller does, and is not distributed by its project: so its first parameter has
-- another name.
CREATE OR REPLACE FUNCTION {name}(
  project uuid,
  p_session uuid,
  p_after_seq bigint
)
RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
AS $function$
#variable_conflict use_column
DECLARE
  link bytea;
  one record;
BEGIN
  SELECT h.proof INTO link FROM session_heads h WHERE h.project_id = project AND h.session_id = p_session;
  IF link IS NULL THEN
    IF NOT coalesce((SELECT p.proof FROM projects p WHERE p.id = project), false) THEN
      RETURN;
    END IF;
    SELECT {genesis} INTO link FROM sessions s CROSS JOIN LATERAL (SELECT p_after_seq AS after_seq) g
    WHERE s.project_id = project AND s.id = p_session;
  END IF;
  FOR one IN
    SELECT i.seq, convert_to({frame}, 'UTF8') AS frame, sha256(convert_to({content}, 'UTF8')) AS content
    FROM entries i WHERE i.project_id = project AND i.session_id = p_session AND i.seq > p_after_seq ORDER BY i.seq
  LOOP
    link := sha256(link || one.frame || one.content);
    UPDATE entries AS e SET proof = link WHERE e.project_id = project AND e.session_id = p_session AND e.seq = one.seq;
  END LOOP;
  UPDATE session_heads AS h SET proof = link WHERE h.project_id = project AND h.session_id = p_session;
END
$function$
