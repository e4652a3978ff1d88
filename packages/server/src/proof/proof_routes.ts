import { Between, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { logReadBytes } from '@annals/kits/http/answer/answer.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import type { FastifyRequest } from 'fastify'
import Type from '#typebox'
import { type Anchor, hashOf, pathSteps } from './anchor.js'
import { COUNT_BETWEEN, FIND_ANCHOR, FIND_CHAIN, FIND_LINK, READ_BETWEEN } from './proof_queries.js'
import { Proof } from './proof_schema.js'

/** Between an entry and the head that was anchored after it: what one answer shows at most. */
const STEPS_MAX = 1_000
const STEPS_BYTES_MAX = 8 * 1024 * 1024

const SEQ = Object.assign(Between(1, Number.MAX_SAFE_INTEGER, 'Which entry.'), { examples: [2] })
const FIELDS = ['type', 'role', 'format', 'key', 'occurred_at', 'data', 'meta'] as const

/** @param destination where this process anchors, if it does */
export const proofRoutes = (destination: string | null): ModuleRoutes => ({
  project: operationsOf('Sessions')({
    call: 'GET /session/:session_id/proof',
    id: 'getProof',
    summary: 'Prove an entry of a session',
    description:
      'The entry as it was chained, with the data to compute its link, and the first signed anchor after it. `docs/proof.md` explains how to check it; the verifiers in `examples/proof` take the answer as a file. The project must have `proof` on when the entry is stored.',
    querystring: Strict({ seq: SEQ }),
    returns: 'The proof.',
    data: Type.Ref('Proof'),
    errors: ['entry_not_found', 'not_chained'],
    json: async (request) => {
      const { database, project_id, memory, params, query } = request
      const session_id = params.session_id.toLowerCase()
      await memory.hold(logReadBytes(request))
      const [row] = await database.query(FIND_LINK, [project_id, session_id, query.seq])
      if (!row) throw notFound('session')
      const { seq } = query
      if (row.id == null) throw missing(seq, Number(row.last_seq))
      if (row.link == null) throw unchained(seq)
      const begins = row.before == null
      const before = row.before ?? genesis(session_id, seq, row.forked_proof ?? '')
      const fields = FIELDS.map((name) => `"${name}":${row[name] ?? 'null'}`).join(',')
      const { id, kind, created_at } = row
      const entry = `{"seq":${seq},"id":"${id}","created_at":"${created_at}","kind":"${kind}",${fields}}`
      const begun = JSON.stringify({ session_id, begins, forked_proof: row.forked_proof ?? null, before })
      const head = `{"seq":${row.last_seq},"link":"${row.head}"}`
      const anchor = await anchorOf(request, session_id, seq, destination)
      return `${begun.slice(0, -1)},"entry":${entry},"link":"${row.link}","head":${head},"anchor":${anchor}}`
    },
  }),
  schemas: [Proof],
})

function missing(seq: number, last_seq: number): AnnalsError {
  return new AnnalsError('entry_not_found', `The session has no entry ${seq}: its last one is ${last_seq}.`)
}

function unchained(seq: number): AnnalsError {
  return new AnnalsError(
    'not_chained',
    `Entry ${seq} has no proof: it was stored before proof was switched on, or was copied. For a copied entry, get the proof from the original session.`,
  )
}

function genesis(session_id: string, seq: number, origin: string): string {
  return hashOf(`annals-proof-1\n${session_id}\n${seq - 1}\n${origin}`).toString('hex')
}

/** The first anchor of a head at or after the entry, as JSON. */
async function anchorOf(
  request: FastifyRequest,
  session_id: string,
  seq: number,
  destination: string | null,
): Promise<string> {
  const { database, project_id } = request
  const [own] = destination === null ? [] : await database.query(FIND_CHAIN, [destination])
  const [row] = await database.query(FIND_ANCHOR, [project_id, session_id, seq, own?.chain ?? null])
  if (!row) return 'null'
  const statement = JSON.parse(row.statement!) as Omit<Anchor, 'leaves'>
  const leaf = { session_id, seq: Number(row.seq), head: row.head, state: 'live' }
  const path = pathSteps(Buffer.from(row.path!, 'hex'), Number(row.place), statement.size)
  const between = [project_id, session_id, seq, leaf.seq]
  const [size] = await database.query(COUNT_BETWEEN, between)
  const isFar = leaf.seq - seq > STEPS_MAX || Number(size!.bytes) > STEPS_BYTES_MAX
  const steps = isFar ? undefined : await database.query(READ_BETWEEN, between)
  const text = steps ? `[${steps.map(({ step }) => step).join(',')}]` : 'null'
  return `{"steps":${text},"leaf":${JSON.stringify(leaf)},"path":${JSON.stringify(path)},"statement":${row.statement}}`
}
