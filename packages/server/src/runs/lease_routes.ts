import Type from '#typebox'
import { Empty } from '../contract/schema.js'
import { AnnalsError, notFound } from '../errors.js'
import { allOf, operationsOf } from '../http/operation.js'
import { runOf } from '../log/follow/feed.js'
import { call } from '../postgres/stored_function.js'
import { mayRead } from '../projects/authenticate.js'
import { CLAIM_WORK } from './inbox_queries.js'
import { RELEASE_LEASE, RENEW_LEASE, TAKE_LEASE } from './lease_queries.js'
import { longPoll, type Tried } from './long_poll.js'
import { Claimed, ReleaseQuery, RUN_BODIES } from './run_schema.js'
import { fencedError, type RunParts, told } from './runs.js'

const operation = operationsOf('Runs')

interface Refused {
  refused?: string
  owner?: string | null
  expires_at?: string
  left_ms?: number
  fence?: number
}

export const leaseRoutes = (parts: RunParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/lease',
      id: 'takeLease',
      body: RUN_BODIES.takeLease,
      summary: "Take a session's lease",
      description:
        "One runner at a time: the answer's `fence` is greater than all before it, and every write that carries it as `Annals-Fence` is refused once somebody else has taken the lease. All times are the database's. Whoever asks again under the same `owner` gets the lease anew, with a new fence: a retry after a lost answer, or a process that was restarted, does not wait for itself. A lease that has expired stays with its holder until somebody else takes it.",
      returns: 'The lease.',
      data: Type.Ref('Lease'),
      errors: ['leased', 'quota_exceeded'],
      json: async (request, reply, body) => {
        const { owner, ttl_ms, wait_ms = 0, progress = false, requires_fence = false, steal = false } = body
        const { database, project_id } = request
        const { session_id } = request.params
        if (steal && !(request.grant!.scopes as ReadonlySet<string>).has('admin'))
          throw new AnnalsError(
            'insufficient_scope',
            'Only an API key with the scope "admin" may steal a lease. Wait for it with wait_ms.',
          )
        const attempt = async (): Promise<Tried<string>> => {
          const answer = await call(
            database,
            TAKE_LEASE,
            project_id,
            session_id,
            owner,
            ttl_ms,
            progress,
            requires_fence,
            steal,
          )
          if (answer === null) throw notFound('session')
          return { answer, again_ms: (JSON.parse(answer) as Refused).left_ms }
        }
        const taken = await longPoll(parts, reply, { name: runOf(session_id), wait_ms }, attempt)
        const refused = JSON.parse(taken) as Refused
        if (refused.refused !== undefined)
          throw new AnnalsError(
            'leased',
            `The session is leased to ${JSON.stringify(refused.owner)} until ${refused.expires_at}. Wait with wait_ms, or try again then.`,
          )
        told(parts, project_id, [session_id])
        return taken
      },
    }),

    operation({
      call: 'PUT /session/:session_id/lease',
      id: 'renewLease',
      body: RUN_BODIES.renewLease,
      summary: 'Renew a lease',
      description:
        'Also one that has expired, if nobody has taken it since. With `progress`, a renewal only sets `ttl_ms`.',
      returns: 'The lease.',
      data: Type.Ref('Lease'),
      errors: ['fenced'],
      json: async (request, _reply, { fence, ttl_ms }) => {
        const { database, project_id, params } = request
        const answer = await call(database, RENEW_LEASE, project_id, params.session_id, fence, ttl_ms)
        if (answer === null) throw notFound('session')
        const refused = JSON.parse(answer) as Refused
        if (refused.refused === undefined) return answer
        if (refused.fence !== fence) throw fencedError(refused.fence!, fence)
        throw new AnnalsError(
          'fenced',
          refused.owner == null
            ? 'The lease was released. Take it again.'
            : 'The lease has ended: nothing was appended under its fence for ttl_ms. Take it again.',
        )
      },
    }),

    operation({
      call: 'DELETE /session/:session_id/lease',
      id: 'releaseLease',
      summary: 'Release a lease',
      description: 'Nothing happens if it is no longer held under this fence.',
      querystring: ReleaseQuery,
      returns: 'It is not held under this fence.',
      data: Empty,
      json: async (request) => {
        const { database, project_id, params, query } = request
        const answer = await call(database, RELEASE_LEASE, project_id, params.session_id, query.fence)
        if (answer === null) throw notFound('session')
        if (answer !== '') told(parts, project_id, [params.session_id], { isWork: true })
      },
    }),

    operation({
      call: 'POST /work/claim',
      id: 'claimWork',
      body: RUN_BODIES.claimWork,
      summary: 'Claim sessions with due input',
      description:
        'Leases sessions that have due input and no valid lease, the longest due first, and returns them with it. Two claimers never get the same session. With `filter_by_configs` it looks at the 10,000 sessions that are due for longest. The key also needs the scope `read`.',
      returns: 'The sessions; none if there is no work.',
      data: Claimed,
      errors: ['quota_exceeded'],
      json: async (request, reply, { owner, ttl_ms, max = 1, wait_ms = 0, filter }) => {
        if (!mayRead(request))
          throw new AnnalsError(
            'insufficient_scope',
            'Claiming work returns input, so the API key needs the scope "read" as well.',
          )
        const { database, project_id } = request
        const attempt = async (): Promise<Tried<string>> => {
          const answer = (await call(database, CLAIM_WORK, project_id, owner, ttl_ms, max, filter))!
          const at = answer.lastIndexOf(',"skipped":')
          const { skipped, next_ms } = JSON.parse(`{${answer.slice(at + 1)}`) as {
            skipped: number
            next_ms: number | null
          }
          const items = `${answer.slice(0, at)}}`
          if (items !== '{"items":[]}') return { answer: items }
          return { answer: items, again_ms: skipped > 0 ? 0 : next_ms }
        }
        const claimed = await longPoll(parts, reply, { name: runOf(project_id), wait_ms }, attempt)
        if (claimed !== '{"items":[]}') {
          const session_ids = [...claimed.matchAll(CLAIMED)].map(([, id]) => id!)
          request.shows?.(session_ids)
          told(parts, project_id, session_ids)
        }
        return claimed
      },
    }),
  )

/** Where a claim names a session: inputs name theirs after their ids. */
const CLAIMED = /\{"session_id":"([0-9a-f-]{36})","fence":/g
