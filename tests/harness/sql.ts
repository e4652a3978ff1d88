import pg from 'pg'

/** Runs the action with one connection of its own, which is closed afterwards whatever happens. */
export async function withConnection<T>(
  databaseUrl: string,
  action: (connection: pg.Client) => Promise<T>,
): Promise<T> {
  const connection = new pg.Client({ connectionString: databaseUrl })
  connection.on('error', () => {})
  await connection.connect()
  try {
    return await action(connection)
  } finally {
    await connection.end()
  }
}

const DEADLOCK = '40P01'
const ATTEMPTS_MAX = 5
/** A new connection costs more than most statements. One that is idle is closed soon, for it may be all that a server waits for. */
const IDLE_MS_MAX = 1_000
const pools = new Map<string, pg.Pool>()

/** Runs one statement and returns its rows. */
export async function queryRows<Row extends pg.QueryResultRow>(
  databaseUrl: string,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  let pool = pools.get(databaseUrl)
  if (!pool) {
    pool = new pg.Pool({
      connectionString: databaseUrl,
      max: 20,
      idleTimeoutMillis: IDLE_MS_MAX,
      allowExitOnIdle: true,
    })
    // The next statement gets another one.
    pool.on('error', () => {})
    pools.set(databaseUrl, pool)
  }
  for (let attempts = 1; ; attempts++) {
    try {
      return (await pool.query<Row>(statement, values)).rows
    } catch (error) {
      // Of those that deadlock, as writers of a table that Citus copies to all machines may, one is rolled back.
      if ((error as pg.DatabaseError).code !== DEADLOCK || attempts === ATTEMPTS_MAX) throw error
    }
  }
}

/** Runs one statement for its effect. */
export async function execute(databaseUrl: string, statement: string, values: unknown[] = []): Promise<void> {
  await queryRows(databaseUrl, statement, values)
}
