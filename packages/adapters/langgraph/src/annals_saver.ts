import { randomInt, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  appendToKeyed,
  escapeJson,
  idempotencyKey,
  ifFound,
  type NewEventWithId,
  splitLargeEvent,
  stableId,
  unescapeJson,
} from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import type { RunnableConfig } from '@langchain/core/runnables'
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  copyCheckpoint,
  type PendingWrite,
  type SerializerProtocol,
  WRITES_IDX_MAP,
} from '@langchain/langgraph-checkpoint'
import { CheckpointOrder } from './checkpoint_order.js'
import {
  channelEntryId,
  checkpointKey,
  configOf,
  type Place,
  placeOf,
  sessionIdOf,
  writeKey,
} from './places.js'
import { storedValue } from './stored_values.js'
import { type CheckpointRecord, ThreadReader } from './thread_reader.js'
export interface AnnalsSaverOptions {
  /** The user that new threads belong to, as the service names users. */
  user?: string | undefined
  /** Replaces LangGraph's own serializer, such as by one that encrypts. */
  serde?: SerializerProtocol | undefined
  /** The limit of a body as the service is set, in bytes; default 1 MiB. */
  body_bytes_max?: number | undefined
}

/** How many checkpoints a list reads the values of at once. */
const TUPLES_AT_ONCE = 20
/** A version is a whole number and a random fraction, exact up to 2^22 versions. */
const VERSION_FRACTIONS = 2 ** 30

/** Keeps the threads of LangGraph in Annals: a thread is a session. */
export class AnnalsSaver extends BaseCheckpointSaver {
  readonly #annals: Annals
  readonly #options: AnnalsSaverOptions
  readonly #order = new CheckpointOrder()

  constructor(annals: Annals, options: AnnalsSaverOptions = {}) {
    super(options.serde)
    this.#annals = annals
    this.#options = options
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if (config.configurable?.thread_id === undefined) return undefined
    const place = placeOf(config, 'Reading a checkpoint')
    const reader = this.#reader(place.thread_id)
    const record = await reader.find(place)
    return record && (await reader.tuples([record]))[0]
  }

  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    let left = options.limit ?? Number.POSITIVE_INFINITY
    for await (const thread_id of this.#threads(config)) {
      if (left <= 0) return
      for await (const tuple of this.#listThread(thread_id, config, { ...options, limit: left })) {
        yield tuple
        left -= 1
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const parent = placeOf(config, 'Storing a checkpoint')
    const place = { ...parent, checkpoint_id: checkpoint.id }
    const events = this.#checkpointEvents(parent, copyCheckpoint(checkpoint), metadata, newVersions)
    await this.#order.append(place, events, (made) =>
      this.#append(place, made, idempotencyKey('langgraph/put', made.at(-1)!.id)),
    )
    return configOf(place, place.checkpoint_id)
  }

  /** The channels that are new, and the checkpoint last: in parts, nobody sees it before its channels. */
  async #checkpointEvents(
    parent: Place,
    { channel_values, ...kept }: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<NewEventWithId[]> {
    const place = { ...parent, checkpoint_id: kept.id }
    const channels = Object.entries(newVersions).filter(([channel]) => Object.hasOwn(channel_values, channel))
    const events = await Promise.all(
      channels.map(async ([channel, version]) =>
        newEvent('channel', channelEntryId(place, channel, version), {
          checkpoint_ns: place.checkpoint_ns,
          channel,
          version,
          value: await storedValue(this.serde, channel_values[channel]),
        }),
      ),
    )
    const record = {
      checkpoint_ns: place.checkpoint_ns,
      checkpoint_id: place.checkpoint_id,
      parent_checkpoint_id: parent.checkpoint_id || null,
      checkpoint: await storedValue(this.serde, kept),
      metadata: await storedValue(this.serde, metadata),
    }
    const id = stableId('langgraph/checkpoint', place.thread_id, JSON.stringify(record))
    return [...events, { ...newEvent('checkpoint', id, record), key: checkpointKey(place) }]
  }

  async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = '',
  ): Promise<void> {
    const place = placeOf(config, 'Storing writes')
    if (!place.checkpoint_id)
      throw new Error('Storing writes needs the checkpoint_id that they belong to in config.configurable.')
    const { thread_id, checkpoint_ns, checkpoint_id } = place
    const events = Promise.all(
      writes.map(async ([channel, value], index) => {
        const idx = WRITES_IDX_MAP[channel] ?? index
        // The first write of an index wins. Of errors, interrupts and the like (below 0) the last does: each is new.
        const nth = idx >= 0 ? '' : randomUUID()
        const id = stableId('langgraph/write', thread_id, checkpoint_ns, checkpoint_id, taskId, `${idx}`, nth)
        const stored = await storedValue(this.serde, value)
        const data = {
          checkpoint_ns,
          checkpoint_id,
          task_id: taskId,
          task_path: taskPath,
          idx,
          channel,
          value: stored,
        }
        return { ...newEvent('write', id, data), key: writeKey(place, taskId, idx) }
      }),
    )
    if (writes.length > 0)
      await this.#order.append(place, events, (made) =>
        this.#append(place, made, idempotencyKey('langgraph/writes', JSON.stringify(made))),
      )
  }

  async deleteThread(threadId: string): Promise<void> {
    await ifFound(this.#annals.sessions.delete(sessionIdOf(threadId)), undefined)
  }

  /**
   * A version after `current` that no other run makes: after a fork, two branches of a thread count on from the same
   * version, and each keeps its own values.
   */
  override getNextVersion(current: number | undefined): number {
    return Math.floor(current ?? 0) + 1 + randomInt(VERSION_FRACTIONS) / VERSION_FRACTIONS
  }

  #reader(thread_id: string): ThreadReader {
    return new ThreadReader(this.#annals, this.serde, thread_id, () => this.getNextVersion(undefined))
  }

  async *#threads({ configurable }: RunnableConfig): AsyncGenerator<string> {
    if (configurable?.thread_id !== undefined) return yield String(configurable.thread_id)
    const sessions = this.#annals.sessions.list({ filter_by_configs: { langgraph: {} }, limit: 200 })
    for await (const { configs } of sessions)
      yield unescapeJson(configs as unknown as ThreadConfigs).langgraph.thread_id
  }

  async *#listThread(
    thread_id: string,
    { configurable = {} }: RunnableConfig,
    { limit = Number.POSITIVE_INFINITY, before, filter = {} }: CheckpointListOptions,
  ): AsyncGenerator<CheckpointTuple> {
    const reader = this.#reader(thread_id)
    const beforeId = before?.configurable?.checkpoint_id as string | undefined
    let left = limit
    let records: CheckpointRecord[] = []
    for await (const record of reader.list(configurable.checkpoint_ns)) {
      if (left <= 0) break
      const { checkpoint_id } = record
      if (beforeId !== undefined && checkpoint_id >= beforeId) continue
      if (configurable.checkpoint_id && configurable.checkpoint_id !== checkpoint_id) continue
      const metadata: Record<string, unknown> = { ...(await reader.metadataOf(record)) }
      if (!Object.entries(filter).every(([name, value]) => isDeepStrictEqual(metadata[name], value))) continue
      records.push(record)
      left -= 1
      if (records.length < TUPLES_AT_ONCE) continue
      yield* await reader.tuples(records)
      records = []
    }
    yield* await reader.tuples(records)
  }

  async #append({ thread_id }: Place, events: NewEventWithId[], idempotency_key: string): Promise<void> {
    const { user, body_bytes_max } = this.#options
    const session = {
      use_uuid: sessionIdOf(thread_id),
      configs: escapeJson({ langgraph: { thread_id } }),
      user,
    }
    const entries = events.flatMap((event) => splitLargeEvent(event, body_bytes_max))
    await appendToKeyed(this.#annals, session, entries, {
      idempotency_key,
      keeps_stored: true,
      body_bytes_max,
    })
  }
}

interface ThreadConfigs {
  langgraph: { thread_id: string }
}

function newEvent(what: 'channel' | 'checkpoint' | 'write', id: string, data: object): NewEventWithId {
  return { kind: 'event', type: `langgraph.${what}`, id, data }
}
