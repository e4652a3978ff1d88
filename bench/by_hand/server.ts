import Fastify from 'fastify'
import pg from 'pg'

/*
 * What people write instead of using a store: a table of sessions, a table of events that are numbered without gaps by
 * their session's head, one transaction per append, fastify and `pg`. It has no keys, no request log, no metrics, no
 * limits and no checks. The paths are those of the API, so that both get the same requests.
 */
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const app = Fastify({ bodyLimit: 1024 * 1024 })

interface Listing {
  limit?: string
  cursor?: string
  time_desc?: string
  user?: string
  filter_by_configs?: string
}
type OfSession = { Params: { id: string } }
interface Event {
  type: string
  data: object
}

async function append(session_id: string, events: Event[]): Promise<unknown[]> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const head = await client.query({
      name: 'head',
      text: 'UPDATE hand_sessions SET last_seq = last_seq + $2, updated_at = now() WHERE id = $1 RETURNING last_seq',
      values: [session_id, events.length],
    })
    const first = Number(head.rows[0].last_seq) - events.length
    const { rows } = await client.query({
      name: 'insert',
      text: `INSERT INTO hand_events (session_id, seq, type, data)
        SELECT $1, $2::bigint + n, e ->> 'type', e -> 'data' FROM jsonb_array_elements($3::jsonb) WITH ORDINALITY AS a (e, n)
        RETURNING session_id, seq, id, type, data, created_at, updated_at`,
      values: [session_id, first, JSON.stringify(events)],
    })
    await client.query('COMMIT')
    return rows
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const ok = (data: unknown) => ({ code: 0, error: '', msg: 'ok', data })

app.post<OfSession & { Body: Event }>('/api/v1/session/:id/events', async ({ params, body }) =>
  ok((await append(params.id, [body]))[0]),
)

app.post<OfSession & { Body: { entries: Event[] } }>(
  '/api/v1/session/:id/entries',
  async ({ params, body }, reply) =>
    reply.code(201).send(ok({ items: await append(params.id, body.entries) })),
)

app.get<OfSession & { Querystring: Listing }>('/api/v1/session/:id/timeline', async ({ params, query }) => {
  const { limit = '50', time_desc } = query
  const order = time_desc === 'true' ? 'DESC' : 'ASC'
  const { rows } = await pool.query({
    name: `events_${order}`,
    text: `SELECT session_id, seq, id, type, data, created_at, updated_at FROM hand_events
      WHERE session_id = $1 ORDER BY seq ${order} LIMIT $2`,
    values: [params.id, Number(limit) + 1],
  })
  const items = rows.slice(0, Number(limit))
  const has_more = rows.length > items.length
  return ok({ items, has_more, next_cursor: has_more ? String(items.at(-1).seq) : '' })
})

app.get<{ Querystring: Listing }>('/api/v1/session', async ({ query }) => {
  const { limit = '20', cursor, time_desc, user, filter_by_configs } = query
  const [order, behind] = time_desc === 'true' ? ['DESC', '<'] : ['ASC', '>']
  const values: unknown[] = [Number(limit) + 1]
  const conditions = []
  if (user !== undefined) conditions.push(`user_id = $${values.push(user)}`)
  if (filter_by_configs !== undefined) conditions.push(`configs @> $${values.push(filter_by_configs)}::jsonb`)
  if (cursor !== undefined) {
    const [created_at, id] = Buffer.from(cursor, 'base64url').toString().split('|')
    conditions.push(`(created_at, id) ${behind} ($${values.push(created_at)}, $${values.push(id)})`)
  }
  const { rows } = await pool.query({
    // How many rows a filter leaves depends on its value, so those are planned anew each time.
    name: filter_by_configs === undefined ? `list_${order}_${conditions.length}_${values.length}` : undefined,
    text: `SELECT id, user_id, configs, created_at, updated_at, created_at::text AS position FROM hand_sessions
      ${conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''} ORDER BY created_at ${order}, id ${order} LIMIT $1`,
    values,
  })
  const items = rows.slice(0, Number(limit))
  const last = items.at(-1)
  const next_cursor =
    rows.length > items.length ? Buffer.from(`${last.position}|${last.id}`).toString('base64url') : ''
  return ok({ items, has_more: next_cursor !== '', next_cursor })
})

process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
