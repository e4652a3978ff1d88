/** An INSERT of what a SELECT finds: its target, columns, and the rest. A target in braces is a shard's place. */
const INSERT_OF_SELECT = /INSERT INTO (\w+ AS \w+)\s+\(([^)]*)\)\s+SELECT\b([^;]*);/g

/**
 * The text of a stored function for a cluster, in which what a SELECT finds is inserted as values.
 *
 * Citus carries out an INSERT … SELECT only after it has locked all shards of the table, also those of other projects on
 * other machines: so a move of any of them that blocks writes would block this one. An INSERT of values locks only the shard
 * that it writes to, and is one command to one machine, however many rows it has.
 */
export function insertValues(text: string): string {
  return text.replace(INSERT_OF_SELECT, (_, target: string, columns: string, rest: string) => {
    const conflict = /\bON CONFLICT\b/.exec(rest)?.index ?? rest.length
    const places = columns.split(',').map(() => '%L')
    return `DECLARE found_rows text;
  BEGIN
    SELECT string_agg(format('(${places.join(', ')})', ${columns}), ', ') INTO found_rows
    FROM (SELECT${rest.slice(0, conflict)}) AS found_row (${columns});
    IF found_rows IS NOT NULL THEN
      EXECUTE 'INSERT INTO ${target} (${columns}) VALUES ' || found_rows || $rest$ ${rest.slice(conflict)}$rest$;
    END IF;
  END;`
  })
}
