import { Empty } from '@annals/kits/contract/schema.js'
import { AnnalsError } from '@annals/kits/errors.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import Type from '#typebox'
import { runOf } from '../log/follow/feed.js'
import { longPoll } from '../log/follow/long_poll.js'
import { mayRead } from '../projects/authenticate.js'
import { CHANGE_LEASE, CLAIM_WORK } from './run_queries.js'
import { Claimed, ReleaseQuery, RUN_BODIES } from './run_schema.js'
import { accepted, callFor, linesOf, type RunParts, refusalIn, told } from './runs.js'

const operation = operationsOf('Runs')

/** The fields of a free lease: no owner, and nothing that depends on one. */
const NONE = [null, null, null, null]

/** A row of CLAIM_WORK, before its items. */
type Claim = { sessions: string[]; skipped: number; next_ms: number | null }

export const leaseRoutes = (parts: RunParts) =>
  allOf(
    operation({
      call: 'POST /session/:session_id/lease',
      id: 'takeLease',
      body: RUN_BODIES.takeLease,
      summary: "Take a session's lease",
      description:
        "One runner at a time: the answer's `fence` is higher than all before it, and writes that carry it as `Annals-Fence` are refused once another runner has taken the lease. All times are the database's. Asking again under the same `owner` takes the lease again, with a new fence, so a retry after a lost answer, or a restarted process, does not wait for itself. An expired lease stays with its holder until another runner takes it.",
      returns: 'The lease.',
      data: Type.Ref('Lease'),
      errors: ['leased', 'quota_exceeded'],
      json: async (request, reply, body) => {
        const { owner, ttl_ms, wait_ms = 0, progress = false, requires_fence = false, steal = false } = body
        const { project_id, params } = request
        if (steal && !(request.grant!.scopes as ReadonlySet<string>).has('admin'))
          throw new AnnalsError(
            'insufficient_scope',
            'Only an API key with the scope "admin" may steal a lease. Wait for it with wait_ms.',
          )
        const wanted = [null, ttl_ms, owner, progress, requires_fence, steal]
        const attempt = async () => {
          const answer = await callFor(request, CHANGE_LEASE, ...wanted)
          return { answer, again_ms: refusalIn(answer)?.left_ms }
        }
        const name = runOf(params.session_id)
        const isMine = (answer: string) => refusalIn(answer)?.owner === owner
        const polled = { name, wait_ms, what: `${project_id} ${name}`, isMine }
        const taken = accepted(await longPoll(parts, reply, polled, attempt))
        told(parts, project_id, [params.session_id])
        return taken
      },
    }),

    operation({
      call: 'PUT /session/:session_id/lease',
      id: 'renewLease',
      body: RUN_BODIES.renewLease,
      summary: 'Renew a lease',
      description:
        'This works even for an expired lease, if nobody has taken it since. With `progress`, a renewal only sets `ttl_ms`.',
      returns: 'The lease.',
      data: Type.Ref('Lease'),
      errors: ['fenced'],
      json: async (request, _reply, { fence, ttl_ms }) =>
        accepted(await callFor(request, CHANGE_LEASE, fence, ttl_ms, ...NONE), fence),
    }),

    operation({
      call: 'DELETE /session/:session_id/lease',
      id: 'releaseLease',
      summary: 'Release a lease',
      description: 'If the lease is no longer held under this fence, nothing happens.',
      querystring: ReleaseQuery,
      returns: 'It is not held under this fence.',
      data: Empty,
      json: async (request) => {
        const { project_id, params, query } = request
        const answer = await callFor(request, CHANGE_LEASE, query.fence, null, ...NONE)
        if (answer !== '') told(parts, project_id, [params.session_id], { isWork: true })
      },
    }),

    operation({
      call: 'POST /work/claim',
      id: 'claimWork',
      body: RUN_BODIES.claimWork,
      summary: 'Claim sessions with due input',
      description:
        'Leases sessions that have due input and no valid lease, the longest due first, and returns them with it. Two claimers never get the same session. With `filter_by_configs`, it examines the 10,000 sessions that have been due longest or, if few sessions have a value of the filter, exactly those. The key also needs the scope `read`.',
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
        const attempt = async () => {
          const claim = (await call(database, CLAIM_WORK, project_id, owner, ttl_ms, max, filter))!
          const [{ sessions, skipped, next_ms }, items] = linesOf<Claim>(claim)
          const again_ms = sessions.length > 0 ? undefined : skipped > 0 ? 0 : next_ms
          return { answer: { sessions, items }, again_ms }
        }
        const polled = { name: runOf(project_id), wait_ms, what: `${project_id} ${filter}` }
        const { sessions, items } = await longPoll(parts, reply, polled, attempt)
        if (sessions.length > 0) {
          request.shows?.(sessions)
          told(parts, project_id, sessions)
        }
        return items
      },
    }),
  )
