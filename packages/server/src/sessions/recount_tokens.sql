-- Writes the tokens of messages of a session where others are stored, and moves its total by the difference. The head is
-- locked first, as in every change of a session, so that nothing is retracted meanwhile; doing it again changes nothing.
-- A retracted message has its tokens for copies that end before its retraction. Answer: the difference; null without
-- such a session.
CREATE OR REPLACE FUNCTION {name}(p_project uuid, p_session uuid, p_seqs bigint[], p_tokens int[]) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $function$
#variable_conflict use_column
DECLARE
  before record;
  counted int;
  difference bigint := 0;
  is_changed boolean := false;
BEGIN
  PERFORM FROM session_heads h WHERE h.project_id = p_project AND h.session_id = p_session FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  FOR place IN 1 .. cardinality(p_seqs) LOOP
    SELECT e.tokens, e.retracted_by INTO before FROM entries e
    WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq = p_seqs[place];
    -- In a variable: to set a column to an element of an array ends a Citus worker by a segmentation fault.
    counted := p_tokens[place];
    CONTINUE WHEN NOT FOUND OR before.tokens = counted;
    UPDATE entries AS e SET tokens = counted
    WHERE e.project_id = p_project AND e.session_id = p_session AND e.seq = p_seqs[place];
    is_changed := true;
    IF before.retracted_by IS NULL THEN
      difference := difference + counted - before.tokens;
    END IF;
  END LOOP;
  -- Also where it moves by nothing: pages show the tokens of each message, and by its head they know that they have changed.
  IF is_changed THEN
    UPDATE session_heads AS h SET total_tokens = h.total_tokens + difference
    WHERE h.project_id = p_project AND h.session_id = p_session;
  END IF;
  RETURN difference::text;
END
$function$
