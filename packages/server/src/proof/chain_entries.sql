-- Chains the entries of a flush that are about to be inserted, within append_entries.sql and under the locks of its heads.
-- What is hashed is specified in docs/proof.md.
--
-- On a cluster the function runs where its caller does, and is not distributed by its project: so its first parameter has
-- another name.
CREATE OR REPLACE FUNCTION {name}(
  project uuid,
  -- By session: which, the seq of its head before the flush, null if nothing is chained here, the time of its entries, and
  -- the head of its chain, null if it has none.
  p_sessions uuid[],
  open_seqs bigint[],
  times timestamptz[],
  p_heads bytea[],
  -- Whether a session without a chain begins one.
  p_begins boolean,
  -- By entry, a session's in the order of their seqs: as in append_entries.sql.
  p_places int[],
  p_behind int[],
  p_ids uuid[],
  p_kinds text[],
  p_types text[],
  p_roles text[],
  p_formats text[],
  p_entry_keys text[],
  p_occurred timestamptz[],
  p_data jsonb,
  p_metas jsonb
)
-- By entry, its link, then by session the new head of its chain; null where nothing is chained.
RETURNS bytea[]
LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
DECLARE
  links bytea[] := array_fill(NULL::bytea, ARRAY[cardinality(p_places) + cardinality(p_sessions)]);
  -- The place of a session's head in it is after those of all entries.
  entries int := cardinality(p_places);
  link bytea;
  one record;
BEGIN
  FOR one IN
    SELECT i.place, i.nth::int AS nth, convert_to({frame}, 'UTF8') AS frame, sha256(convert_to({content}, 'UTF8')) AS content
    FROM (
      SELECT i.*, open_seqs[i.place] + i.behind AS seq, times[i.place] AS created_at FROM ROWS FROM (
        unnest(p_places, p_behind, p_ids, p_kinds, p_types, p_roles, p_formats, p_entry_keys, p_occurred),
        jsonb_array_elements(p_data), jsonb_array_elements(p_metas)
      ) WITH ORDINALITY AS i (place, behind, id, kind, type, role, format, key, occurred_at, data, meta, nth)
      WHERE open_seqs[i.place] IS NOT NULL AND (p_begins OR p_heads[i.place] IS NOT NULL)
    ) i
    ORDER BY i.nth
  LOOP
    link := coalesce(links[entries + one.place], p_heads[one.place]);
    IF link IS NULL THEN
      SELECT {genesis} INTO link FROM sessions s
      CROSS JOIN LATERAL (SELECT open_seqs[one.place] AS after_seq) g
      WHERE s.project_id = project AND s.id = p_sessions[one.place];
    END IF;
    link := sha256(link || one.frame || one.content);
    links[one.nth] := link;
    links[entries + one.place] := link;
  END LOOP;
  RETURN links;
END
$function$
