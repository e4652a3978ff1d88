import { createHash, randomBytes } from 'node:crypto'
import { NEEDS_PROC, watchMemory } from '../memory.ts'
import type { Part } from '../part.ts'
import { type BenchDatabase, withConnection } from '../postgres.ts'
import type { Service } from '../service.ts'

const MEGABYTE = 1_000_000
const CHUNK_BYTES = 256 * 1024

/** A blob in and out, against the driver's own bytea of the same chunks, and what many uploads take. */
export const blobs: Part = {
  name: 'blobs',
  describe: 'a blob of 20 MB in and out against the same chunks with `pg` alone; the memory of 50 uploads',
  run: async (ctx) => {
    const [megabytes, senders] = ctx.quick ? [1, 10] : [20, 50]
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const newBytes = () => randomBytes(megabytes * MEGABYTE)
    await database.query(
      'CREATE TABLE plain_chunks (id text, n int, data bytea NOT NULL, PRIMARY KEY (id, n))',
    )
    await database.query('ALTER TABLE plain_chunks ALTER COLUMN data SET STORAGE EXTERNAL')
    await send(service, newBytes())
    const rounds = []
    for (let round = 0; round <= ctx.rounds; round++) {
      const bytes = newBytes()
      const ours_ms = await timeOf(async () => receive(service, await send(service, bytes)))
      rounds.push({ ours_ms, pg_ms: await timeOf(() => withPgAlone(database, String(round), bytes)) })
    }
    ctx.detail('in and out', rounds)
    ctx.say(`${senders} uploads at once`)
    const one = newBytes()
    const uploads = Array.from({ length: senders }, (_, n) => Buffer.concat([Buffer.from([n]), one]))
    // One that has done nothing yet.
    const fresh = await ctx.startService(database)
    const seen = await watchMemory(fresh.pid, () => Promise.all(uploads.map((bytes) => send(fresh, bytes))))
    ctx.detail('uploads', seen)
    return [
      {
        name: `blob of ${megabytes} MB in and out ÷ the same chunks with pg alone`,
        unit: 'ratio',
        better: 'higher',
        // The first round warms both.
        values: rounds.slice(1).map(({ ours_ms, pg_ms }) => pg_ms / ours_ms),
        at_least: 0.7,
        aim: 0.9,
      },
      {
        name: `memory during ${senders} uploads of ${megabytes} MB, above idle`,
        unit: 'MB',
        better: 'lower',
        at_least: 100,
        aim: 50,
        ...(seen ? { values: [seen.peak_mb - seen.before_mb] } : { values: [], note: NEEDS_PROC }),
      },
    ]
  },
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

async function send({ url, token }: Service, bytes: Buffer): Promise<string> {
  const path = `${url}/api/v1/blobs/${createHash('sha256').update(bytes).digest('hex')}`
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(path, { method: 'PUT', headers, body: bytes as Uint8Array<ArrayBuffer> })
  if (answer.status !== 201) throw new Error(`${path} answered ${answer.status}`)
  await answer.text()
  return path
}

async function receive({ token }: Service, path: string): Promise<void> {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${token}` } })
  for await (const _ of answer.body ?? []);
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
}

/** Each chunk as one row in one transaction, and read back one by one: what a program without a service would write. */
async function withPgAlone({ url }: BenchDatabase, id: string, bytes: Buffer): Promise<void> {
  await withConnection(url, async (connection) => {
    createHash('sha256').update(bytes).digest()
    const count = Math.ceil(bytes.length / CHUNK_BYTES)
    await connection.query('BEGIN')
    for (let n = 0; n < count; n++) {
      const data = bytes.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES)
      await connection.query('INSERT INTO plain_chunks (id, n, data) VALUES ($1, $2, $3)', [id, n, data])
    }
    await connection.query('COMMIT')
    for (let n = 0; n < count; n++)
      await connection.query('SELECT data FROM plain_chunks WHERE id = $1 AND n = $2', [id, n])
  })
}
