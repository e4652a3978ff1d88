import { setTimeout } from 'node:timers/promises'
import { stableId } from '@annals/adapter-kit'
import { Annals, type TimelineItem } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import { Annotation, END, START, StateGraph } from '@langchain/langgraph'
import { type Checkpoint, emptyCheckpoint, uuid6 } from '@langchain/langgraph-checkpoint'
import { describe, expect, it } from 'vitest'
import { useService, useSharedService } from '../../../../tests/harness/service.ts'

const shared = useSharedService()
/** As many as the figures in the docs are of, where there is time for it. */
const [CHECKPOINTS, STEPS] = process.env.TEST_THOROUGH === '1' ? [1_000, 200] : [300, 40]
const metadata = { source: 'loop' as const, step: 0, parents: {} }

/** A saver of a new project, and how many requests it has sent. */
async function newSaver(beforeRequest: (nth: number) => Promise<void> = async () => {}) {
  const { token } = await shared.newProject()
  const sent = { requests: 0 }
  const counted: typeof fetch = async (input, init) => {
    sent.requests += 1
    await beforeRequest(sent.requests)
    return fetch(input, init)
  }
  const annals = new Annals({ url: shared.node.url, token, fetch: counted })
  return { annals, saver: new AnnalsSaver(annals), sent }
}

function checkpoint(
  n: number,
  channel_values: Record<string, unknown>,
  channel_versions: object,
): Checkpoint {
  return { ...emptyCheckpoint(), id: uuid6(n), channel_values, channel_versions: { ...channel_versions } }
}

async function entriesOf(annals: Annals, thread_id: string): Promise<TimelineItem[]> {
  return collect(annals.sessions.timeline(stableId('langgraph', thread_id), { limit: 1_000 }))
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

/** A graph that counts to `steps`, one a step, beside a value that it never changes. */
function counter(saver: AnnalsSaver, steps: number, onStep: (n: number) => Promise<void> = async () => {}) {
  const State = Annotation.Root({
    n: Annotation<number>(),
    seen: Annotation<number[]>({ reducer: (all, more) => [...all, ...more], default: () => [] }),
    book: Annotation<string>(),
  })
  return new StateGraph(State)
    .addNode('count', async ({ n }) => {
      await onStep(n)
      return { n: n + 1, seen: [n] }
    })
    .addEdge(START, 'count')
    .addConditionalEdges('count', ({ n }) => (n < steps ? 'count' : END))
    .compile({ checkpointer: saver })
}

describe('a thread', () => {
  it(`gives the newest of ${CHECKPOINTS} checkpoints with three requests, whatever the order in which they were stored`, async () => {
    const { saver, sent } = await newSaver()
    const config = { configurable: { thread_id: 'long', checkpoint_ns: '' } }
    const all = Array.from({ length: CHECKPOINTS }, (_, n) => checkpoint(n, { n }, { n: n + 1 }))
    const newest = all
      .map(({ id }) => id)
      .sort()
      .at(-1)!
    for (let from = 0; from < all.length; from += 50)
      await Promise.all(
        all
          .slice(from, from + 50)
          .map((one) => saver.put(config, one, metadata, { ...one.channel_versions })),
      )
    sent.requests = 0
    const tuple = await saver.getTuple(config)
    expect(tuple?.checkpoint.id).toBe(newest)
    expect(tuple?.checkpoint.channel_values).toEqual(all.find(({ id }) => id === newest)!.channel_values)
    expect(sent.requests).toBeLessThanOrEqual(3)
    const listed = await collect(saver.list(config, { limit: 3 }))
    expect(listed.map(({ checkpoint }) => checkpoint.id)).toEqual(
      all
        .map(({ id }) => id)
        .sort()
        .reverse()
        .slice(0, 3),
    )
  })

  it(`stores what changed: ${STEPS} steps beside a value of 100 KB store it once`, async () => {
    const { annals, saver } = await newSaver()
    const config = { configurable: { thread_id: 'steps' }, recursionLimit: 300 }
    const book = 'b'.repeat(100_000)
    const { n } = await counter(saver, STEPS).invoke({ n: 0, book }, config)
    expect(n).toBe(STEPS)
    const entries = await entriesOf(annals, 'steps')
    const bytes = (some: TimelineItem[]) => JSON.stringify(some).length
    const holding = entries.filter((entry) => JSON.stringify(entry).includes('bbbbbbbb'))
    // As the input, as the write of the input's step, and as what the channel holds from then on.
    expect(holding).toHaveLength(3)
    expect(bytes(entries) - bytes(holding)).toBeLessThan(STEPS * 7_000)
  })

  it('reads in the order in which it happened, although a graph goes on while it is stored', async () => {
    // Every other request is overtaken by those that are sent after it.
    const { annals, saver } = await newSaver((nth) => setTimeout(nth % 2 ? 30 : 0))
    const config = { configurable: { thread_id: 'order' }, recursionLimit: 100 }
    await counter(saver, 12).invoke({ n: 0, book: '' }, config)
    const entries = await entriesOf(annals, 'order')
    const written = entries.flatMap((entry) =>
      entry.kind === 'event' && entry.type === 'langgraph.write' && entry.data.channel === 'n'
        ? [(entry.data.value as { json: number }).json]
        : [],
    )
    expect(written).toEqual(Array.from({ length: 13 }, (_, n) => n))
  })

  it('keeps the values of two branches apart that count on from the same version', async () => {
    const { saver } = await newSaver()
    const config = { configurable: { thread_id: 'branches' } }
    const graph = counter(saver, 3)
    await graph.invoke({ n: 0, book: 'first' }, config)
    const history = await collect(graph.getStateHistory(config))
    const start = history.find(({ values }) => values.n === 1)!
    const fork = await graph.updateState(start.config, { n: 2, book: 'second' })
    const forked = await graph.invoke(null, fork)
    expect([forked.book, forked.seen]).toEqual(['second', [0, 2]])
    const before = await graph.getState(history[0]!.config)
    expect([before.values.book, before.values.seen]).toEqual(['first', [0, 1, 2]])
  })

  it('keeps text that PostgreSQL cannot hold, bytes, and values larger than a body', async () => {
    const { saver } = await newSaver()
    const config = { configurable: { thread_id: '\0\uD800', checkpoint_ns: '' } }
    const values = {
      text: 'nul \0, half \uD83D, \uFDD0',
      bytes: new Uint8Array([0, 255, 7]),
      large: 'é'.repeat(1_500_000),
    }
    const versions = { text: 1, bytes: 1, large: 1 }
    const stored = await saver.put(config, checkpoint(1, values, versions), metadata, versions)
    await saver.putWrites(stored, [['large', values.large]], 'task')
    const tuple = await saver.getTuple(config)
    expect(tuple?.checkpoint.channel_values.text).toBe(values.text)
    expect(tuple?.checkpoint.channel_values.bytes).toEqual(values.bytes)
    expect(tuple?.checkpoint.channel_values.large === values.large).toBe(true)
    expect(tuple?.pendingWrites?.[0]?.[2] === values.large).toBe(true)
    const listed = await collect(saver.list({ configurable: {} }))
    expect(listed.map(({ config }) => config.configurable?.thread_id)).toEqual(['\0\uD800'])
  })

  it("keeps the first of a task's writes with an index, and the last of its errors", async () => {
    const { saver } = await newSaver()
    const config = await saver.put(
      { configurable: { thread_id: 'writes', checkpoint_ns: '' } },
      checkpoint(1, {}, {}),
      metadata,
      {},
    )
    await saver.putWrites(config, [['a', 1]], 'task')
    await saver.putWrites(
      config,
      [
        ['a', 2],
        ['b', 3],
      ],
      'task',
    )
    for (const error of ['x', 'y', 'x']) await saver.putWrites(config, [['__error__', error]], 'task')
    const tuple = await saver.getTuple(config)
    expect(tuple?.pendingWrites).toEqual([
      ['task', '__error__', 'x'],
      ['task', 'a', 1],
      ['task', 'b', 3],
    ])
  })

  it('can be stored again after it was deleted', async () => {
    const { saver } = await newSaver()
    const config = { configurable: { thread_id: 'again', checkpoint_ns: '' } }
    const one = checkpoint(1, { a: 1 }, { a: 1 })
    for (const _ of [1, 2]) {
      await saver.put(config, one, metadata, { a: 1 })
      expect((await saver.getTuple(config))?.checkpoint.channel_values).toEqual({ a: 1 })
      await saver.deleteThread('again')
      expect(await saver.getTuple(config)).toBeUndefined()
      await saver.deleteThread('again')
    }
  })
})

describe('a service that is killed in the middle of a run', () => {
  const service = useService()

  it('loses and doubles nothing', async () => {
    const { token } = await service.newProject()
    const first = service.node
    const { port } = new URL(first.url)
    const annals = new Annals({ url: first.url, token, retries: 200, timeout_ms: 120_000 })
    const config = { configurable: { thread_id: 'killed' }, recursionLimit: 100 }
    const graph = counter(new AnnalsSaver(annals), 30, async (n) => {
      if (n === 10) await first.kill()
    })
    const run = graph.invoke({ n: 0, book: 'b' }, config)
    await first.exited
    await service.startNode({ PORT: port })
    expect((await run).seen).toEqual(Array.from({ length: 30 }, (_, n) => n))
    const history = await collect(graph.getStateHistory(config))
    expect(history.map(({ values }) => values.n ?? null)).toEqual([
      ...Array.from({ length: 31 }, (_, n) => 30 - n),
      null,
    ])
    const entries = await entriesOf(annals, 'killed')
    const keys = entries.flatMap(({ key }) => (key?.startsWith('checkpoint/') ? key : []))
    expect(new Set(keys).size).toBe(keys.length)
  })
})
