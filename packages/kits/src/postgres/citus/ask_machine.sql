-- Runs a query on each of this machine's shards of the tables that it names in braces, and returns the rows of each shard
-- as JSON. Its parameters, four at most, are texts. The coordinator would ask all machines at once, and fail if one of them is away.
--
-- The project is any that this machine has: Citus runs the function where that project is.
CREATE OR REPLACE FUNCTION {name}(
  p_project uuid,
  p_tables text[],
  p_query text,
  p_values text[]
)
RETURNS text
LANGUAGE plpgsql STABLE AS $function$
DECLARE
  shard record;
  query_here text;
  found_rows text;
  answer text[] := '{}';
BEGIN
  FOR shard IN
    SELECT s.shardid, s.shardminvalue FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
    WHERE s.logicalrelid = p_tables[1]::regclass AND p.groupid = (SELECT l.groupid FROM pg_dist_local_group l)
  LOOP
    query_here := p_query;
    FOR place IN 1 .. cardinality(p_tables) LOOP
      query_here := replace(
        query_here,
        '{' || p_tables[place] || '}',
        (SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard s
         WHERE s.logicalrelid = p_tables[place]::regclass AND s.shardminvalue = shard.shardminvalue));
    END LOOP;
    EXECUTE 'SELECT json_agg(r) FROM (' || query_here || ') r' INTO found_rows
      USING p_values[1], p_values[2], p_values[3], p_values[4];
    IF found_rows IS NOT NULL THEN
      answer := answer || found_rows;
    END IF;
  END LOOP;
  -- It does not know of the shards that it has: silence would pass for an answer.
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no shard of % is here', p_tables[1] USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN '[' || array_to_string(answer, ',') || ']';
END
$function$
