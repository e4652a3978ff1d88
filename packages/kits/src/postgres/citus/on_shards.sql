-- What a cluster has in place of a stored function that names some of its tables in braces.
--
-- Within a function on a worker, Citus plans each statement on a distributed table again, and carries out an INSERT …
-- SELECT by COPY: a flush cost a worker twice what it costs one PostgreSQL. So the function that does the work has the
-- names of the project's shards in it. It belongs to the connection, which creates it when it first needs it: planning its
-- statements each time would cost as much as carrying them out.
--
-- The lock is that which Citus takes for a write, one for all shards that lie beside each other: they can no longer be
-- moved. If another machine has them by now, the function has the names of the tables, and Citus finds the shards.
CREATE OR REPLACE FUNCTION {name}({parameters}) RETURNS text
LANGUAGE plpgsql AS $on_shards$
DECLARE
  tables text[] := '{{tables}}';
  names text[] := tables;
  shard bigint := get_shard_id_for_distribution_column(tables[1]::regclass, p_project);
  is_here boolean;
  own_name text;
  definition text;
  answer text;
BEGIN
  PERFORM lock_shard_metadata(5, ARRAY[shard]);
  is_here := EXISTS (
    SELECT FROM pg_dist_placement p
    WHERE p.shardid = shard AND p.groupid = (SELECT l.groupid FROM pg_dist_local_group l)
  );
  own_name := 'pg_temp.{name}_' || CASE WHEN is_here THEN shard::text ELSE 'elsewhere' END;
  IF to_regproc(own_name) IS NULL THEN
    definition := replace(
      CASE WHEN is_here THEN $definition${definition}$definition$ ELSE $elsewhere${elsewhere}$elsewhere$ END,
      '{' || 'name}', own_name);
    FOR place IN 1 .. cardinality(tables) LOOP
      IF is_here THEN
        names[place] := shard_name(
          tables[place]::regclass, get_shard_id_for_distribution_column(tables[place]::regclass, p_project));
      END IF;
      definition := replace(definition, '{' || tables[place] || '}', names[place]);
    END LOOP;
    PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    EXECUTE definition;
  END IF;
  EXECUTE 'SELECT ' || own_name || '({numbers})' INTO answer USING {arguments};
  RETURN answer;
END
$on_shards$
