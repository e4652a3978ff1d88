-- Lists that are filtered by configs or meta: an ordered index of terms, in place of the GIN indexes.
--
-- Why: a GIN index gives all rows that contain a value, of every project, in no order; a list wants the next 20
-- of one project, in the order of time. Where a value is frequent and far away, either way of joining the two
-- reads a great deal: 150 to 330 ms were seen. Here each value that a document contains is a row of its own,
-- and the primary key is the order of the list, once for each value: a page begins anywhere at the same price.
--
-- What a term is: a hash of the path to a value and of the value, with the value's level in its last three
-- bits. Elements of an array share the array's path, so that what `@>` takes for contained always has all terms
-- of the filter. The opposite does not hold (a hash may collide, two elements of an array may share the terms of
-- a filter between them), so that each row is still compared with `@>`: terms only say where to look.
--   * Values are hashed with hashtextextended, which does not change between versions of PostgreSQL (hash
--     partitions rest on it). Numbers are hashed as they are written without trailing zeros: 1 and 1.0 are equal.
--   * A container is a term as well, so that {"a":{}} finds what has any object at a.
--   * Only 7 levels are looked into; below them the container at level 7 stands for what it holds, in a filter too.
--   * A document has at most 256 terms: those of its first levels, as many levels as fit. A document that was
--     cut off has one term more, the number of the level behind which its terms are missing (0 to 6). A filter
--     that is entered by a term of a deeper level looks at such documents as well.
--   * The user is a term, at level 0, so that a user together with values is found in the same way.
--
-- signature: three bits for each term of the document. A row whose signature lacks a bit of the filter's other
-- terms is left out without a look at the document. A document that was cut off has all bits.
--
-- The functions are part of the index: whoever changes what they give must write the whole table anew.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

-- The terms of a document; of a filter only those that do not follow from others of it: a container that is not
-- empty is found by what it contains.
CREATE FUNCTION json_terms(list text, document jsonb, is_filter boolean) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = 'force_generic_plan' AS $function$
BEGIN
  RETURN (
    WITH RECURSIVE walked (value, kind, path, level) AS (
      SELECT document, 'object', hashtextextended(list, 0), 0
      UNION ALL
      SELECT c.value, jsonb_typeof(c.value), c.path, w.level + 1
      FROM walked w CROSS JOIN LATERAL (
        SELECT o.value, hashtextextended(o.key, w.path) AS path
        FROM jsonb_each(CASE WHEN w.kind = 'object' THEN w.value END) AS o
        UNION ALL
        SELECT a.value, hashtextextended('[', ~w.path)
        FROM jsonb_array_elements(CASE WHEN w.kind = 'array' THEN w.value END) AS a
      ) c
      WHERE w.kind IN ('object', 'array') AND w.level < 7
    )
    SELECT coalesce(array_agg(DISTINCT hashtextextended(CASE w.kind
      WHEN 'object' THEN '{'
      WHEN 'array' THEN '['
      WHEN 'string' THEN '"' || (w.value #>> '{}')
      WHEN 'number' THEN trim_scale(w.value::text::numeric)::text
      ELSE w.value::text
    END, w.path) & -8 | w.level), '{}')
    FROM walked w
    WHERE w.level > 0 AND (NOT is_filter OR w.kind NOT IN ('object', 'array') OR w.value IN ('{}', '[]') OR w.level = 7)
  );
END
$function$;

CREATE FUNCTION user_term(list text, user_id uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $function$
  SELECT hashtextextended(user_id::text, hashtextextended(list, 1)) & -8
$function$;

-- The bits that a term sets in a signature.
CREATE FUNCTION term_bits(term bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $function$
  SELECT 1::bigint << (term >> 3 & 63)::integer | 1::bigint << (term >> 9 & 63)::integer | 1::bigint << (term >> 15 & 63)::integer
$function$;

-- What the index holds of a row: its terms, and the signature that stands beside each.
CREATE FUNCTION index_terms(list text, document jsonb, user_id uuid, OUT terms bigint[], OUT signature bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET plan_cache_mode = 'force_generic_plan' AS $function$
DECLARE
  term bigint;
BEGIN
  terms := json_terms(list, document, false);
  signature := 0;
  IF cardinality(terms) > 256 THEN
    WITH levels AS (
      SELECT n AS level, (SELECT count(*) FROM unnest(terms) AS t WHERE t & 7 <= n) AS terms_so_far FROM generate_series(0, 7) AS n
    ), last AS (
      SELECT max(l.level) AS level FROM levels l WHERE l.terms_so_far <= 256
    )
    SELECT ARRAY(SELECT t FROM unnest(terms) AS t WHERE t & 7 <= l.level) || l.level::bigint INTO terms FROM last l;
    signature := -1;
  END IF;
  IF user_id IS NOT NULL THEN
    terms := terms || user_term(list, user_id);
  END IF;
  FOREACH term IN ARRAY terms LOOP
    signature := signature | term_bits(term);
  END LOOP;
END
$function$;

CREATE TABLE list_terms (
  project_id uuid NOT NULL,
  term bigint NOT NULL,
  created_at timestamptz NOT NULL,
  item_id uuid NOT NULL,
  signature bigint NOT NULL,
  PRIMARY KEY (project_id, term, created_at, item_id) INCLUDE (signature)
);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves this one with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_function('json_terms(text, jsonb, boolean)');
      PERFORM create_distributed_function('user_term(text, uuid)');
      PERFORM create_distributed_function('term_bits(bigint)');
      PERFORM create_distributed_function('index_terms(text, jsonb, uuid)');
      PERFORM create_distributed_table('list_terms', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

INSERT INTO list_terms AS t (project_id, term, created_at, item_id, signature)
SELECT s.project_id, x.term, s.created_at, s.id, i.signature
FROM sessions s
CROSS JOIN LATERAL index_terms('sessions', s.configs, s.user_id) AS i
CROSS JOIN LATERAL unnest(i.terms) AS x (term);

INSERT INTO list_terms AS t (project_id, term, created_at, item_id, signature)
SELECT l.project_id, x.term, l.created_at, l.id, i.signature
FROM learning_spaces l
CROSS JOIN LATERAL index_terms('learning_spaces', l.meta, l.user_id) AS i
CROSS JOIN LATERAL unnest(i.terms) AS x (term);

DROP INDEX sessions_by_configs;
DROP INDEX learning_spaces_by_meta;
