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

/** Runs one statement and returns its rows. */
export async function queryRows<Row extends pg.QueryResultRow>(
  databaseUrl: string,
  statement: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return withConnection(
    databaseUrl,
    async (connection) => (await connection.query<Row>(statement, values)).rows,
  )
}

/** Runs one statement for its effect. */
export async function execute(databaseUrl: string, statement: string, values: unknown[] = []): Promise<void> {
  await queryRows(databaseUrl, statement, values)
}
