import { isError, readByIds, readEventData } from '@annals/adapter-kit'
import type { Annals, LatestQuery, TimelineItem } from '@annals/client'
import {
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  compareWritesSortKeys,
  maxChannelVersion,
  type SerializerProtocol,
  TASKS,
  writesSortKey,
} from '@langchain/langgraph-checkpoint'
import {
  channelEntryId,
  checkpointKey,
  checkpointPrefix,
  configOf,
  type Place,
  sessionIdOf,
  writePrefix,
} from './places.js'
import { givenValue, type StoredValue } from './stored_values.js'

/** The data of an event `langgraph.checkpoint`. `checkpoint` is without its channel values. */
export interface CheckpointRecord {
  checkpoint_ns: string
  checkpoint_id: string
  parent_checkpoint_id: string | null
  checkpoint: StoredValue
  metadata: StoredValue
}

/** The data of an event `langgraph.channel`: what a channel holds from one version on. */
export interface ChannelRecord {
  checkpoint_ns: string
  channel: string
  version: string | number
  value: StoredValue
}

/** The data of an event `langgraph.write`: what a task wrote that no checkpoint contains yet. */
export interface WriteRecord {
  checkpoint_ns: string
  checkpoint_id: string
  task_id: string
  task_path: string
  idx: number
  channel: string
  value: StoredValue
}

const PAGE_LIMIT = 200

/** Reads one thread. */
export class ThreadReader {
  readonly #session_id: string

  constructor(
    private readonly annals: Annals,
    private readonly serde: SerializerProtocol,
    private readonly thread_id: string,
    private readonly firstVersion: () => number,
  ) {
    this.#session_id = sessionIdOf(thread_id)
  }

  /** The checkpoint at a place; the newest of the namespace if the place names none. */
  async find(place: Place): Promise<CheckpointRecord | undefined> {
    const query = place.checkpoint_id
      ? { key: checkpointKey(place) }
      : { key_prefix: checkpointPrefix(place.checkpoint_ns), limit: 1 }
    for await (const record of this.#latest<CheckpointRecord>(query)) return record
    return undefined
  }

  /** The checkpoints of a namespace, newest first, or of all namespaces, one after the other. */
  list(checkpoint_ns: string | undefined, limit = PAGE_LIMIT): AsyncGenerator<CheckpointRecord> {
    const key_prefix = checkpointPrefix(checkpoint_ns)
    return this.#latest<CheckpointRecord>({ key_prefix, limit: Math.max(1, Math.min(limit, PAGE_LIMIT)) })
  }

  async metadataOf({ metadata }: CheckpointRecord): Promise<CheckpointMetadata> {
    return (await givenValue(this.serde, metadata)) as CheckpointMetadata
  }

  async tuples(records: CheckpointRecord[]): Promise<CheckpointTuple[]> {
    const checkpoints = await Promise.all(
      records.map(({ checkpoint }) => givenValue(this.serde, checkpoint) as Promise<Checkpoint>),
    )
    const channels = await this.#channels(records, checkpoints)
    return Promise.all(
      records.map(async (record, index) => {
        const checkpoint = checkpoints[index]!
        const place = { ...record, thread_id: this.thread_id }
        const { parent_checkpoint_id } = record
        const parent =
          parent_checkpoint_id === null ? undefined : { ...place, checkpoint_id: parent_checkpoint_id }
        const [pendingWrites, metadata] = await Promise.all([
          this.#pendingWrites(place),
          this.metadataOf(record),
          this.#fillIn(checkpoint, record, channels),
        ])
        if (checkpoint.v < 4 && parent) await this.#moveSends(checkpoint, parent)
        return {
          config: configOf(place, record.checkpoint_id),
          checkpoint,
          metadata,
          pendingWrites,
          ...(parent && { parentConfig: configOf(parent, parent.checkpoint_id) }),
        }
      }),
    )
  }

  /** The stored values of all channels that some checkpoints have, by the ids of their entries. */
  async #channels(
    records: CheckpointRecord[],
    checkpoints: Checkpoint[],
  ): Promise<Map<string, ChannelRecord>> {
    const ids = new Set(
      checkpoints.flatMap((checkpoint, index) => this.#entryIds(checkpoint, records[index]!)),
    )
    const entries = await readByIds(this.annals, this.#session_id, [...ids])
    return new Map(
      await Promise.all(
        entries.map(async (entry) => [entry.id, await this.#read<ChannelRecord>(entry)] as const),
      ),
    )
  }

  #entryIds({ channel_versions }: Checkpoint, { checkpoint_ns }: CheckpointRecord): string[] {
    const namespace = { thread_id: this.thread_id, checkpoint_ns }
    return Object.entries(channel_versions).map(([channel, version]) =>
      channelEntryId(namespace, channel, version),
    )
  }

  async #fillIn(
    checkpoint: Checkpoint,
    record: CheckpointRecord,
    stored: Map<string, ChannelRecord>,
  ): Promise<void> {
    const found = this.#entryIds(checkpoint, record).flatMap((id) => stored.get(id) ?? [])
    const values = found.map(async ({ channel, value }) => [channel, await givenValue(this.serde, value)])
    checkpoint.channel_values = Object.fromEntries(await Promise.all(values))
  }

  /** In the order in which a run applies them. */
  async #pendingWrites(place: Place): Promise<CheckpointPendingWrite[]> {
    const writes: WriteRecord[] = []
    const query = { key_prefix: writePrefix(place), limit: PAGE_LIMIT }
    for await (const write of this.#latest<WriteRecord>(query)) writes.push(write)
    writes.sort((a, b) =>
      compareWritesSortKeys(
        writesSortKey(a.task_path, a.task_id, a.idx),
        writesSortKey(b.task_path, b.task_id, b.idx),
      ),
    )
    return Promise.all(
      writes.map(async ({ task_id, channel, value }): Promise<CheckpointPendingWrite> => {
        return [task_id, channel, await givenValue(this.serde, value)]
      }),
    )
  }

  /** Before version 4 of the format, what a step sent to tasks stood only in the writes of the checkpoint before. */
  async #moveSends(checkpoint: Checkpoint, parent: Place): Promise<void> {
    const writes = await this.#pendingWrites(parent)
    const versions = Object.values(checkpoint.channel_versions)
    checkpoint.channel_values[TASKS] = writes
      .filter(([, channel]) => channel === TASKS)
      .map(([, , value]) => value)
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.firstVersion()
  }

  async *#latest<Record>(query: LatestQuery): AsyncGenerator<Record> {
    try {
      for await (const item of this.annals.sessions.latest(this.#session_id, query))
        yield await this.#read<Record>(item)
    } catch (error) {
      if (!isError(error, 'session_not_found')) throw error
    }
  }

  async #read<Record>(item: TimelineItem): Promise<Record> {
    if (item.kind !== 'event')
      throw new Error(`Entry ${item.id} of thread ${this.thread_id} is not LangGraph's.`)
    return (await readEventData(this.annals, this.#session_id, item)) as Record
  }
}
