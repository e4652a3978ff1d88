import { createHash } from 'node:crypto'
import {
  Between,
  Count,
  cursorQuery,
  Flag,
  JsonInQuery,
  JsonObject,
  OneOf,
  optional,
  pageQuery,
  Strict,
  Text,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { whole } from '@annals/kits/http/request/read_body.js'
import { checkObjectBytes, timeInUtc } from '@annals/kits/http/request/validate.js'
import { newId } from '@annals/kits/ids.js'
import { OBJECT_BYTES_MAX } from '@annals/kits/limits.js'
import type { FactsOf } from '@annals/messages'
import { canonicalJson, ExactNumber, memberTexts, parseJson } from '@annals/messages/json'
import Type, { type Static } from '#typebox'
import { takeEntry } from '../log/append_bodies.js'
import { EntryKey, EventData, EventType, Fence, Seq } from '../log/event_schema.js'
import { MessageFormat as Format, MessageBlob, MessageMeta } from '../log/message_schema.js'

const Owner = Text(
  256,
  'Names the runner: one name for each process, such as a host and a process id.',
  'worker-3/8121',
)
const Ttl = {
  ...Between(1_000, 600_000, 'How long the lease holds unless it is renewed, in ms.'),
  examples: [30_000],
}
const Wait = Between(0, 30_000, 'How long to wait if the lease is held, in ms.', 0)

export const Lease = Type.Object(
  {
    fence: Fence,
    owner: Owner,
    expires_at: Timestamp("When it ends unless it is renewed, by the database's clock."),
  },
  { $id: 'Lease' },
)

const TakeLeaseBody = Strict({
  owner: Owner,
  ttl_ms: Ttl,
  ...optional({
    wait_ms: Wait,
    progress: Flag(
      'Renewals alone do not keep the lease: it ends `ttl_ms` after the last append under its fence.',
    ),
    requires_fence: Flag(
      'Until the lease is released or taken again, appends, requests and changes of configs without the header `Annals-Fence` are refused.',
    ),
    steal: Flag('Takes the lease from its holder. The key needs the scope `admin`.'),
  }),
})

export const ReleaseQuery = Strict({ fence: Fence })

const RenewLeaseBody = Strict({ fence: Fence, ttl_ms: Ttl })

const Mode = OneOf(
  ['queue', 'steer', 'interrupt'],
  'What the runner should do with it: take it after its turn, during it, or stop for it. The service treats all three the same.',
)

const inputMembers = {
  id: Uuid('An id for the input, and for the entry that it becomes. It makes a retry safe.'),
  not_before: Timestamp('When it becomes due. By default at once.'),
  expires_at: Timestamp('When it stops being pending. By default never.'),
  key: EntryKey,
}

const AddInputBody = Type.Union(
  [
    Strict({
      kind: Type.Literal('event'),
      mode: Mode,
      type: EventType,
      data: EventData,
      ...optional(inputMembers),
    }),
    Strict({
      kind: Type.Literal('message'),
      mode: Mode,
      blob: MessageBlob,
      ...optional({ ...inputMembers, format: Format, meta: MessageMeta }),
    }),
  ],
  { 'x-discriminator': 'kind', examples: [{ kind: 'event', mode: 'interrupt', type: 'stop', data: {} }] },
)

export const InboxInput = Type.Object(
  {
    id: Uuid('The input, and the entry that it becomes.'),
    session_id: Uuid('The session.'),
    place: Type.Integer({ minimum: 1, description: 'Its place: inputs of a session are in this order.' }),
    mode: Mode,
    state: OneOf(
      ['pending', 'withdrawn', 'expired'],
      'Its state. Input that was applied is an entry of the log.',
    ),
    kind: OneOf(['event', 'message'], 'The kind of entry that it becomes.'),
    ...optional({
      type: EventType,
      data: EventData,
      key: EntryKey,
      role: Type.String({ description: 'Of a message.' }),
      format: Format,
      blob: MessageBlob,
      meta: MessageMeta,
      reason: Type.String({ description: 'Why it was withdrawn.' }),
      expires_at: Timestamp('From then on it is no longer pending.'),
    }),
    created_at: Timestamp('When it was added.'),
    not_before: Timestamp('When it is due.'),
  },
  { $id: 'InboxInput' },
)

export const AddedInput = Type.Object({
  state: OneOf(
    ['pending', 'withdrawn', 'expired', 'applied'],
    'applied: an append has already stored it, as the entry `seq`.',
  ),
  id: Uuid('The input.'),
  ...optional({ input: Type.Ref('InboxInput'), seq: Seq }),
})

export const WithdrawQuery = Strict(
  optional({ reason: Type.String({ maxLength: 1_024, description: 'Why.' }) }),
)

export const InboxQuery = Strict({
  ...optional({
    state: OneOf(
      ['pending', 'due', 'withdrawn'],
      'By default `pending`; `due`: of these, those whose `not_before` has passed.',
    ),
  }),
  ...cursorQuery(),
})

export const TailHeaders = Type.Object(
  optional({
    'last-event-id': Type.String({
      pattern: '^(0|[1-9][0-9]{0,15})$',
      description: 'The id of the last frame that was seen.',
    }),
  }),
)

const ClaimBody = Strict({
  owner: Owner,
  ttl_ms: Ttl,
  ...optional({
    max: Between(1, 20, 'Most sessions.', 1),
    wait_ms: Wait,
    filter_by_configs: JsonObject('Only sessions whose `configs` contain it.', { agent: 'support' }),
  }),
})

export const Claimed = Type.Object({
  items: Type.Array(
    Type.Object({
      session_id: Uuid('The session.'),
      ...Lease.properties,
      inputs: Type.Array(Type.Ref('InboxInput'), { description: 'Its due input, in order.' }),
      has_more: Type.Boolean({ description: 'Whether more is due than fits here: read the inbox.' }),
    }),
  ),
})

const Call = Strict({
  name: Text(256, 'The tool.'),
  arguments: Type.Unsafe<unknown>({ description: 'Its arguments: any JSON.' }),
})
const RequestKind = OneOf(
  ['approval', 'question'],
  'An approval is answered with yes or no, a question with an answer.',
)
const Decision = OneOf(['approve', 'deny', 'answer'], '`approve` or `deny` an approval, `answer` a question.')
const CallDigest = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'The SHA-256 of `{ "name", "arguments" }` in the canonical form of RFC 8785, in hexadecimal.',
})
const By = Text(256, 'Who decided.', 'ada')
const asked = {
  call: Call,
  text: Type.String({ maxLength: 16_384, description: 'The question, for a person to read.' }),
  options: Type.Array(Type.String({ maxLength: 1_024 }), {
    maxItems: 50,
    description: 'Answers to choose from.',
  }),
}

const OpenRequestBody = Strict({
  kind: RequestKind,
  ...optional({
    id: Uuid('An id for the request. It makes a retry safe.'),
    ...asked,
    expires_at: Timestamp('When it stops being answerable.'),
  }),
})

export const RunnerRequest = Type.Object(
  {
    id: Uuid('The request.'),
    session_id: Uuid('The session.'),
    seq: Seq,
    state: OneOf(['open', 'resolved', 'expired'], 'Whether it can be answered.'),
    kind: RequestKind,
    ...optional({
      ...asked,
      call_sha256: CallDigest,
      expires_at: Timestamp('When it stops being answerable.'),
      decision: Decision,
      answer: Type.Unsafe<unknown>({ description: 'The answer: any JSON.' }),
      by: By,
      resolved_at: Timestamp('When it was answered.'),
      resolved_seq: Seq,
    }),
    created_at: Timestamp('When it was opened.'),
  },
  { $id: 'RunnerRequest' },
)

const resolution = {
  decision: Decision,
  ...optional({
    answer: Type.Unsafe<unknown>({ description: 'Any JSON.' }),
    by: By,
    call_sha256: CallDigest,
    id: Uuid('An id for the answer, and for its event. It makes a retry safe.'),
  }),
}
const ResolveRequestBody = Strict(resolution)
const ResolveRequestsBody = Strict({
  resolutions: Type.Array(Strict({ request_id: Uuid('The request.'), ...resolution }), {
    minItems: 1,
    maxItems: 20,
  }),
})

export const RequestsQuery = Strict({
  ...optional({
    state: OneOf(['open', 'resolved', 'expired'], 'By default `open`.'),
    user: UserIdentifier,
    session_id: Uuid('Only requests of this session.'),
  }),
  ...pageQuery(),
})

export const RunsQuery = Strict({
  state: OneOf(
    ['running', 'waiting', 'queued'],
    'running: with a valid lease. waiting: with an open request. queued: with due input and no valid lease.',
  ),
  ...optional({
    filter_by_configs: JsonInQuery(
      'A JSON object, URL-encoded: only sessions whose `configs` contain it.',
      '{"agent":"support"}',
    ),
  }),
  ...cursorQuery(),
})

export const Run = Type.Object(
  {
    state: OneOf(['running', 'waiting', 'queued', 'idle'], 'running, else waiting, else queued, else idle.'),
    fence: Count('The fence of the last lease; 0: there never was one.'),
    pending: Count('Pending inputs, including those that are not due yet.'),
    open_requests: Count('Requests that can be answered.'),
    ...optional({
      owner: Owner,
      expires_at: Timestamp('When the lease ends.'),
      taken_at: Timestamp('When it was taken.'),
    }),
  },
  {
    $id: 'Run',
    description:
      "The session's runner, and what is waiting. Absent: it never had a lease, an input or a request. Lists of sessions leave it out.",
  },
)

export const RunItem = Type.Object({
  session_id: Uuid('The session.'),
  since: Timestamp('Since when, for the order of the list.'),
  run: Type.Ref('Run'),
})

/** `blobs`: those that it refers to. */
const takeInput = (body: Static<typeof AddInputBody>, text: string, bytes: number, factsOf?: FactsOf) => {
  const entry = takeEntry(body, memberTexts(text), bytes, '', factsOf)
  const { id, kind, type, key, role, format, tokens, data, meta, references: blobs = [] } = entry
  const json = JSON.stringify({
    ...{ id, mode: body.mode, kind, type, key, role, format, bytes, tokens },
    blobs: [...new Set(blobs.map(({ sha256 }) => sha256))].sort(),
    not_before: timeInUtc('/not_before', body.not_before),
    expires_at: timeInUtc('/expires_at', body.expires_at),
  })
  return { id, bytes, blobs, json: `${json.slice(0, -1)},"data":${data},"meta":${meta}}` }
}

/**
 * RFC 8785 takes numbers for doubles, so two calls that differ beyond that would have one digest: such a number is
 * refused, and has to be sent as a string. @throws AnnalsError invalid_request
 */
function digestOfCall(text: string): string {
  const canonical = canonicalJson(parseJson(text))
  if (canonical instanceof ExactNumber)
    throw invalidRequest(
      `/call has the number ${canonical.digits.slice(0, 40)}, which RFC 8785 cannot hold exactly. Send it as a string.`,
    )
  return createHash('sha256').update(canonical).digest('hex')
}

function refuseLong(bytes: number, what: string): void {
  if (bytes > OBJECT_BYTES_MAX)
    throw new AnnalsError(
      'payload_too_large',
      `${what} may have ${OBJECT_BYTES_MAX} bytes; there are ${bytes}.`,
    )
}

/** What OPEN_REQUEST takes after the fence. */
const takeRequest = (body: Static<typeof OpenRequestBody>, text: string, bytes: number) => {
  refuseLong(bytes, 'A request')
  if (body.kind === 'question' && body.call)
    throw invalidRequest('/call belongs to an approval, not to a question. Leave it out.')
  const digest = body.call ? digestOfCall(memberTexts(text).get('call')!) : null
  const id = body.id?.toLowerCase() ?? newId()
  return { bytes, asked: [id, newId(), text, digest, timeInUtc('/expires_at', body.expires_at) ?? null] }
}

/** `json`: an array of the resolutions. `list`: where the body has them, if it has several; each then names its request. */
function takeEach(
  resolutions: ReadonlyArray<Static<typeof ResolveRequestBody> & { request_id?: string }>,
  json: string,
  bytes: number,
  list?: string,
) {
  refuseLong(bytes, 'Resolutions')
  const seen = new Set<string>()
  const event_ids = resolutions.map(({ decision, answer, ...sent }, index) => {
    const place = list === undefined ? '' : `${list}/${index}`
    for (const name of ['request_id', 'id'] as const) {
      const value = sent[name]?.toLowerCase()
      if (value === undefined) continue
      if (seen.has(`${name} ${value}`))
        throw invalidRequest(`${place}/${name} is already that of an earlier element. Send each once.`)
      seen.add(`${name} ${value}`)
    }
    if ((decision === 'answer') !== (answer !== undefined))
      throw invalidRequest(`${place}/answer is only for the decision "answer". Leave it out.`)
    return sent.id?.toLowerCase() ?? newId()
  })
  return { resolutions: json, event_ids, bytes }
}

const takeResolution = (body: Static<typeof ResolveRequestBody>, text: string, bytes: number) =>
  takeEach([body], `[${text}]`, bytes)

const takeResolutions = (body: Static<typeof ResolveRequestsBody>, text: string, bytes: number) =>
  takeEach(body.resolutions, memberTexts(text).get('resolutions')!, bytes, '/resolutions')

const takeClaim = (body: Static<typeof ClaimBody>, text: string) => {
  checkObjectBytes('/filter_by_configs', body.filter_by_configs, text)
  return { ...body, filter: memberTexts(text).get('filter_by_configs') ?? null }
}

export const RUN_BODIES = {
  takeLease: whole(TakeLeaseBody),
  renewLease: whole(RenewLeaseBody),
  addInput: [AddInputBody, takeInput],
  claimWork: [ClaimBody, takeClaim],
  openRequest: [OpenRequestBody, takeRequest],
  resolveRequest: [ResolveRequestBody, takeResolution],
  resolveRequests: [ResolveRequestsBody, takeResolutions],
} as const
