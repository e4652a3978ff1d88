import type { Annals } from '@annals/client'
import type { McpServer } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ANSWER_LENGTH_MAX, Room } from './shortened.js'
import { addTool, PAGED, SessionId, shownPage, User } from './tools.js'

/** A model takes its time between two calls. */
const TTL_MS_DEFAULT = 300_000
const Name = z.string().min(1).max(256)

/** The tool that shows what waits for an answer. */
export function addRequestsTool(server: McpServer, annals: Annals): void {
  addTool(server, {
    name: 'list_requests',
    title: 'List requests of runners',
    description:
      'Approvals and questions that agents wait for, across sessions, oldest first, page by page. Each has its call_sha256 if it is about a call.',
    input: {
      state: z.enum(['open', 'resolved', 'expired']).default('open'),
      session_id: SessionId.optional(),
      user: User.optional(),
      ...PAGED,
    },
    work: async ({ limit, cursor, ...query }) => {
      const { shown, next_cursor } = await shownPage(
        limit,
        (items) => annals.runs.requests({ ...query, limit: items }).page(cursor),
        (request, room) => room.value(request),
      )
      return { requests: shown, next_cursor }
    },
  })
}

/** The tools that take up work, finish it, and answer requests. */
export function addRunTools(server: McpServer, annals: Annals): void {
  const { runs, sessions } = annals
  addTool(server, {
    name: 'claim_work',
    title: 'Claim a session with due input',
    description:
      'Leases the session that has been waiting for longest, and returns its due input; nobody else is given it meanwhile. Then call finish_work with the fence and the ids of what was done. Without work, claimed is null.',
    writes: true,
    input: {
      owner: Name.describe('Names this runner; keep one name for one runner'),
      ttl_ms: z.int().min(1_000).max(600_000).default(TTL_MS_DEFAULT).describe('How long the lease holds'),
      configs: z
        .record(z.string(), z.unknown())
        .optional()
        .describe('Only sessions whose configs contain this'),
      wait_ms: z.int().min(0).max(30_000).default(0).describe('How long to wait for work'),
    },
    work: async ({ configs, ...work }) => {
      const [claimed] = await runs.claim({
        ...work,
        max: 1,
        ...(configs && { filter_by_configs: configs as Record<string, object> }),
      })
      if (!claimed) return { claimed: null }
      const { inputs, ...lease } = claimed
      const room = new Room(ANSWER_LENGTH_MAX)
      return { claimed: { ...lease, inputs: inputs.map((input) => room.value(input)) } }
    },
  })
  addTool(server, {
    name: 'finish_work',
    title: 'Finish claimed work',
    description:
      'Stores claimed input in the log of its session, with an event about the result if one is given, all in one commit, and releases the lease. It is refused as fenced if somebody else has taken the session meanwhile: then nothing was stored.',
    writes: true,
    input: {
      session_id: SessionId,
      fence: z.int().min(1).describe('As claim_work returned it'),
      apply: z.array(z.uuid()).min(1).max(100).describe('Ids of the inputs that were done'),
      event: z.strictObject({ type: Name, data: z.record(z.string(), z.unknown()) }).optional(),
    },
    work: async ({ session_id, fence, apply, event }) => {
      const entries = event ? [{ kind: 'event' as const, ...event }] : []
      const { items } = await sessions.appendBatch(session_id, entries, { apply, fence })
      // It is stored, whether this gets through or not: the lease ends by itself.
      await runs.releaseLease(session_id, fence).catch(() => {})
      return { seqs: items.map(({ seq }) => seq) }
    },
  })
  addTool(server, {
    name: 'resolve_request',
    title: 'Answer a request',
    description:
      'Answers a request of a runner, once and for all: approve or deny an approval, answer a question. To approve a call, pass the call_sha256 that list_requests showed. Do not approve in the name of a person who was not asked.',
    writes: true,
    input: {
      request_id: z.uuid().describe("The request's id, as list_requests shows it"),
      decision: z.enum(['approve', 'deny', 'answer']),
      answer: z.unknown().optional().describe('Of a question: any JSON'),
      by: Name.optional().describe('Who decided'),
      call_sha256: z.string().optional(),
    },
    work: async ({ request_id, ...resolution }) => {
      const { id, state, decision, resolved_seq } = await runs.resolve(request_id, resolution)
      return { id, state, decision, seq: resolved_seq }
    },
  })
}
