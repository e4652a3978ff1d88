import pg from 'pg'
import type { Request } from './requests.ts'
import type { Answer } from './send.ts'

/** Reads all that is stored, as one digest a table. */
export class Stored {
  private readonly connection: pg.Client
  private statement = ''

  constructor(databaseUrl: string) {
    this.connection = new pg.Client({ connectionString: databaseUrl })
  }

  /** Every table there is but that of the migrations, so that a new one is watched by itself. */
  async open(): Promise<void> {
    this.connection.on('error', () => {})
    await this.connection.connect()
    const { rows } = await this.connection.query<{ name: string; tenant: boolean }>(
      `SELECT t.tablename AS name, EXISTS (SELECT FROM pg_attribute a
         WHERE a.attrelid = t.tablename::regclass AND a.attname = 'project_id' AND NOT a.attisdropped) AS tenant
       FROM pg_tables t WHERE t.schemaname = 'public' AND t.tablename <> 'schema_migrations' ORDER BY 1`,
    )
    // The project of the round, and, of what an operator makes, everything.
    const tables = rows.map(
      ({ name, tenant }) =>
        `SELECT '${name}' AS name, md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) AS digest
         FROM "${name}" t WHERE ${tenant && name !== 'api_keys' ? 't.project_id = $1' : '$1::uuid IS NOT NULL'}`,
    )
    this.statement = tables.join('\nUNION ALL\n')
  }

  async digest(projectId: string): Promise<string> {
    const { rows } = await this.connection.query<{ name: string; digest: string }>(this.statement, [
      projectId,
    ])
    return rows.map(({ name, digest }) => `${name} ${digest}`).join('\n')
  }

  async close(): Promise<void> {
    await this.connection.end()
  }
}

/**
 * Which of the requests store something although they fail. They are sent again by themselves, all together, and,
 * where that changes what is stored, in ever smaller parts. A part of which a request succeeds this time tells
 * nothing as a whole, and is taken apart as well.
 */
export async function findStoring(
  requests: Request[],
  send: (request: Request) => Promise<Answer>,
  digest: () => Promise<string>,
): Promise<Request[]> {
  if (requests.length === 0) return []
  const before = await digest()
  const answers = await Promise.all(requests.map(send))
  const after = await digest()
  if (before === after) return []
  if (requests.length === 1) return answers[0]!.status >= 400 ? requests : []
  const middle = requests.length >> 1
  const first = await findStoring(requests.slice(0, middle), send, digest)
  return [...first, ...(await findStoring(requests.slice(middle), send, digest))]
}
