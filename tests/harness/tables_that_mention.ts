import { withConnection } from './sql.ts'

interface Table {
  name: string
  has_project: boolean
}

/**
 * The tables in which a row of the project contains one of the needles, as it is, in hex or without its hyphens. A table
 * without projects is read whole. Rows of other projects are not read: other files share the database, and one of them
 * stores a gigabyte.
 */
export async function tablesThatMention(
  databaseUrl: string,
  projectId: string,
  needles: string[],
): Promise<string[]> {
  const hex = (text: string) => Buffer.from(text).toString('hex')
  const sought = needles.flatMap((needle) => [needle, hex(needle), needle.replaceAll('-', '')])
  const lowered = [...new Set(sought.map((text) => text.toLowerCase()))]
  return withConnection(databaseUrl, async (connection) => {
    const tables = await connection.query<Table>(
      `SELECT c.oid::regclass::text AS name, EXISTS (SELECT FROM pg_attribute AS a
         WHERE a.attrelid = c.oid AND a.attname = 'project_id') AS has_project
       FROM pg_class AS c WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
         AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')`,
    )
    const mentioned: string[] = []
    for (const { name, has_project } of tables.rows) {
      const statement = `SELECT 1 FROM (
          SELECT lower(t::text) AS row FROM ${name} AS t
          WHERE ${has_project ? 'project_id = $2' : '$2::uuid IS NOT NULL'} OFFSET 0
        ) AS rows, unnest($1::text[]) AS needle WHERE position(needle IN row) > 0 LIMIT 1`
      const found = await connection.query(statement, [lowered, projectId])
      if (found.rows.length > 0) mentioned.push(name)
    }
    return mentioned
  })
}
