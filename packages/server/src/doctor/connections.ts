import type { Config } from '../configuration/config.js'
import { connectionsOf } from '../postgres/connection_target.js'
import type { Database } from '../postgres/database.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'
import { READ_CONNECTIONS } from './doctor_queries.js'

/** Compares the connections that a node of so many processes may open with those that the server allows. */
export async function checkConnections(
  database: Database,
  config: Config,
  workers: number,
): Promise<Diagnosis> {
  const [row] = await database.query(READ_CONNECTIONS, [])
  const limits = [row!.user_limit!, row!.database_limit!].map(Number).filter((limit) => limit >= 0)
  const available = Math.min(Number(row!.limit) - Number(row!.reserved), ...limits)
  const ours = workers * connectionsOf(config)
  const node = workers === 1 ? 'a node opens' : `a node of ${workers} workers opens`
  const found = `${node} up to ${ours}; the server has ${available}, of which ${row!.in_use} are in use`
  const todo =
    'Raise max_connections or the limit of the user or database, or lower ANNALS_DATABASE_CONNECTIONS_MAX; all workers and nodes count.'
  if (ours > available) return wrong('connections', 'failure', found, todo)
  if (ours * 2 > available) return wrong('connections', 'warning', `${found}: enough for one node only`, todo)
  return well('connections', `${found}: room for ${Math.floor(available / ours)} nodes`)
}
