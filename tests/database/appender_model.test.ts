import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AppendOutcome, AppendRequest } from '../../packages/server/src/log/append/append_request.ts'
import type { Appender } from '../../packages/server/src/log/append/appender.ts'
import { batchRequest, eventRequest, type StoredEntry, useLog } from './log_fixture.ts'

const log = useLog()
const SESSIONS = 3
let nodes: Appender[]
let project: string

beforeAll(async () => {
  nodes = [log.newNode(), log.newNode()]
  project = await log.newProject()
})

/** What one client does: through which node, on which session (one of them does not exist), and how. */
type Step = { node: number; session: number } & (
  | { how: 'plain' }
  | { how: 'if_match'; expected: number }
  | { how: 'keyed'; key: number; variant: number }
  | { how: 'batch'; size: number }
  | { how: 'given ids'; ids: number[] }
)

const place = { node: fc.nat(1), session: fc.nat(SESSIONS) }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ ...place, how: fc.constant('plain' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ ...place, how: fc.constant('if_match' as const), expected: fc.nat(8) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      ...place,
      how: fc.constant('keyed' as const),
      key: fc.nat(3),
      variant: fc.nat(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...place,
      how: fc.constant('batch' as const),
      size: fc.integer({ min: 1, max: 9 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...place,
      how: fc.constant('given ids' as const),
      ids: fc.uniqueArray(fc.nat(4), { minLength: 1, maxLength: 4 }),
    }),
  },
)

interface Done {
  step: Step
  request: AppendRequest
  marks: string[]
  outcome: AppendOutcome | undefined
  error: string | undefined
}

/** One run: sessions of its own, and the same key or id always stands for the same request. */
class Run {
  readonly sessions: string[] = []
  private readonly name = randomUUID()
  private readonly givenIds = Array.from({ length: 5 }, () => randomUUID())

  async prepare(): Promise<void> {
    for (let n = 0; n < SESSIONS; n++) this.sessions.push(await log.newSession(project))
    this.sessions.push(randomUUID())
  }

  async perform(step: Step): Promise<Done> {
    const { request, marks } = this.requestOf(step)
    const done: Done = { step, request, marks, outcome: undefined, error: undefined }
    try {
      done.outcome = await nodes[step.node]!.append(request)
    } catch (error) {
      done.error = (error as { error?: string }).error ?? String(error)
    }
    return done
  }

  private requestOf(step: Step): { request: AppendRequest; marks: string[] } {
    const session_id = this.sessions[step.session]!
    if (step.how === 'batch' || step.how === 'given ids') {
      const ids = step.how === 'given ids' ? step.ids.map((n) => this.givenIds[n]!) : []
      const marks = step.how === 'given ids' ? ids : Array.from({ length: step.size }, () => randomUUID())
      return { request: batchRequest(project, session_id, marks, ids), marks }
    }
    const keyed =
      step.how === 'keyed' ? `${this.name} ${step.session} ${step.key} ${step.variant}` : undefined
    const mark = keyed ?? randomUUID()
    const request = eventRequest(project, session_id, {
      data: JSON.stringify({ mark }),
      if_match: step.how === 'if_match' ? step.expected : undefined,
      idempotency:
        step.how === 'keyed' ? { key: `${this.name} ${step.key}`, request_hash: keyed! } : undefined,
    })
    return { request, marks: [mark] }
  }
}

function expectTimeGoesOn(entries: StoredEntry[]): void {
  const times = entries.map((entry) => Number(entry.created_at))
  expect(times).toEqual([...times].sort((a, b) => a - b))
}

function expectAnswersKept(done: Done, stored: StoredEntry[]): void {
  const { outcome, marks, step } = done
  if (!outcome) return
  const seqs = outcome.entries.map((entry) => entry.seq)
  expect(seqs.map((seq) => stored[seq - 1]?.data.mark)).toEqual(marks)
  const answers = outcome.entries.map(
    (entry) => JSON.parse(entry.json) as { seq: number; data: unknown; id: string },
  )
  expect(answers.map((answer) => answer.seq)).toEqual(seqs)
  expect(answers.map((answer) => answer.id)).toEqual(seqs.map((seq) => stored[seq - 1]!.id))
  if (step.how === 'batch') expect(seqs).toEqual(seqs.map((_, index) => seqs[0]! + index))
  if (step.how === 'if_match') expect(seqs).toEqual([step.expected + 1])
}

/** The errors that each way of appending may meet. */
const MAY_FAIL: Record<Step['how'], string[]> = {
  plain: [],
  if_match: ['seq_conflict'],
  keyed: ['idempotency_key_reused'],
  batch: [],
  'given ids': [],
}

async function expectModelHolds(run: Run, all: Done[]): Promise<void> {
  for (const [index, session_id] of run.sessions.entries()) {
    const ofSession = all.filter((done) => done.step.session === index)
    const { last_seq, entries } = await log.readSession(project, session_id)
    if (index === SESSIONS) {
      expect(entries).toEqual([])
      for (const { error, step } of ofSession)
        expect(['session_not_found', ...(step.how === 'keyed' ? MAY_FAIL.keyed : [])]).toContain(error)
      continue
    }
    // Gapless, in order, never back in time, and the head says where the log ends.
    expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, at) => at + 1))
    expect(last_seq).toBe(entries.length)
    expectTimeGoesOn(entries)
    // Nothing twice, and nothing that was not acknowledged.
    const marks = entries.map((entry) => entry.data.mark)
    expect(new Set(marks).size).toBe(marks.length)
    const acknowledged = new Set(ofSession.flatMap((done) => (done.outcome ? done.marks : [])))
    expect(new Set(marks)).toEqual(acknowledged)
    for (const done of ofSession) {
      if (done.error !== undefined) expect(MAY_FAIL[done.step.how]).toContain(done.error)
      expectAnswersKept(done, entries)
    }
  }
  expectKeysKept(all)
}

/** Of the requests with one key, those of one kind were stored, once, and all of that kind got that answer. */
function expectKeysKept(all: Done[]): void {
  const byKey = new Map<string, Done[]>()
  for (const done of all) {
    if (done.step.how !== 'keyed' || done.step.session === SESSIONS) continue
    const { key } = done.request.idempotency!
    byKey.set(key, [...(byKey.get(key) ?? []), done])
  }
  for (const done of byKey.values()) {
    const answered = done.filter(({ outcome }) => outcome)
    expect(new Set(answered.map(({ request }) => request.idempotency!.request_hash)).size).toBe(1)
    expect(answered.filter(({ outcome }) => !outcome!.replayed)).toHaveLength(1)
    const answers = answered.map(({ outcome }) => JSON.parse(outcome!.entries[0]!.json) as unknown)
    for (const answer of answers) expect(answer).toEqual(answers[0])
    const winner = answered[0]!.request.idempotency!.request_hash
    for (const { request, error } of done)
      expect(error).toBe(request.idempotency!.request_hash === winner ? undefined : 'idempotency_key_reused')
  }
}

describe('appends from many clients through two nodes', () => {
  it('leave every log gapless and in order, with each acknowledged entry in it exactly once', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 3 }),
        async (waves) => {
          const run = new Run()
          await run.prepare()
          const all: Done[] = []
          for (const wave of waves) all.push(...(await Promise.all(wave.map((one) => run.perform(one)))))
          await expectModelHolds(run, all)
        },
      ),
      { numRuns: 40, interruptAfterTimeLimit: 10_000 },
    )
  }, 30_000)

  it('hold with all of them on one session, as fast as the nodes take them', async () => {
    const session_id = await log.newSession(project)
    const requests = Array.from({ length: 1_000 }, () => eventRequest(project, session_id))
    const outcomes = await Promise.all(requests.map((request, n) => nodes[n % 2]!.append(request)))
    const { last_seq, entries } = await log.readSession(project, session_id)
    expect(last_seq).toBe(1_000)
    expect(entries.map((entry) => entry.seq)).toEqual(requests.map((_, n) => n + 1))
    expectTimeGoesOn(entries)
    const ids = outcomes.map((outcome) => entries[outcome.entries[0]!.seq - 1]!.id)
    expect(ids).toEqual(requests.map((request) => request.entries[0]!.id))
  })

  it('lock their sessions in one order, whatever order they name them in', async () => {
    const sessions = await Promise.all(Array.from({ length: 8 }, () => log.newSession(project)))
    for (let round = 0; round < 10; round++) {
      const [one, other] = [sessions, sessions.toReversed()].map((order, node) =>
        Promise.all(order.map((session_id) => nodes[node]!.append(eventRequest(project, session_id)))),
      )
      await Promise.all([one, other])
    }
    for (const session_id of sessions) expect((await log.readSession(project, session_id)).last_seq).toBe(20)
  })

  it('keep a client’s own order where it waits for each answer', async () => {
    const session_id = await log.newSession(project)
    const seqs: number[] = []
    for (let n = 0; n < 20; n++)
      seqs.push(
        (await nodes[n % 2]!.append(eventRequest(project, session_id, { if_match: n }))).entries[0]!.seq,
      )
    expect(seqs).toEqual(seqs.map((_, n) => n + 1))
  })
})
