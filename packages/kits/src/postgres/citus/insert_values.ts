const INSERT = 'INSERT INTO '

/**
 * The text of a stored function for a cluster, in which what a SELECT finds is inserted as values.
 *
 * Citus carries out an INSERT … SELECT only after it has locked all shards of the table, also those of other projects on
 * other machines: so a move of any of them that blocks writes would block this one. An INSERT of values locks only the shard
 * that it writes to, and is one command to one machine, however many rows it has.
 */
export function insertValues(text: string): string {
  let values = ''
  let done = 0
  for (let at = text.indexOf(INSERT); at >= 0; at = text.indexOf(INSERT, done || at + 1)) {
    const end = text.indexOf(';', at)
    const insert = readInsert(text.slice(at + INSERT.length, end))
    values += text.slice(done, insert ? at : end) + (insert ? asValues(insert) : '')
    done = insert ? end + 1 : end
  }
  return values + text.slice(done)
}

interface InsertOfSelect {
  target: string
  columns: string
  select: string
  on_conflict: string
}

/** Reads what follows INSERT INTO. Undefined without a SELECT, or if the table stands in braces: that is a shard's place. */
function readInsert(statement: string): InsertOfSelect | undefined {
  const [open, close] = [statement.indexOf('('), statement.indexOf(')')]
  const target = statement.slice(0, open).trim()
  const rest = statement.slice(close + 1).trimStart()
  if (target.startsWith('{') || !rest.startsWith('SELECT')) return undefined
  const conflict = rest.indexOf('ON CONFLICT')
  const from = conflict < 0 ? rest.length : conflict
  return {
    target,
    columns: statement.slice(open + 1, close),
    select: rest.slice('SELECT'.length, from),
    on_conflict: rest.slice(from),
  }
}

function asValues({ target, columns, select, on_conflict }: InsertOfSelect): string {
  const places = columns.split(',').map(() => '%L')
  return `DECLARE found_rows text;
  BEGIN
    SELECT string_agg(format('(${places.join(', ')})', ${columns}), ', ') INTO found_rows
    FROM (SELECT${select}) AS found_row (${columns});
    IF found_rows IS NOT NULL THEN
      EXECUTE 'INSERT INTO ${target} (${columns}) VALUES ' || found_rows || $rest$ ${on_conflict}$rest$;
    END IF;
  END;`
}
