import { createHash } from 'node:crypto'
import { stableId } from '@annals/adapter-kit'
import type { RunnableConfig } from '@langchain/core/runnables'
import { getCheckpointId } from '@langchain/langgraph-checkpoint'

/** A namespace of a thread: the graph itself (`''`) or a subgraph. */
export interface Namespace {
  thread_id: string
  checkpoint_ns: string
}

export interface Place extends Namespace {
  checkpoint_id: string
}

/** The place that a config names. `checkpoint_id` is `''` if it names none. */
export function placeOf(config: RunnableConfig, what: string): Place {
  const { thread_id, checkpoint_ns = '' } = config.configurable ?? {}
  if (thread_id === undefined || thread_id === null)
    throw new Error(`${what} needs a thread: pass { configurable: { thread_id: '…' } } with the config.`)
  return { thread_id: String(thread_id), checkpoint_ns, checkpoint_id: getCheckpointId(config) }
}

export function configOf({ thread_id, checkpoint_ns }: Namespace, checkpoint_id: string): RunnableConfig {
  return { configurable: { thread_id, checkpoint_ns, checkpoint_id } }
}

/** The session of a thread. */
export function sessionIdOf(thread_id: string): string {
  return stableId('langgraph', thread_id)
}

/** What the keys of all checkpoints begin with: those of one namespace, or of all. */
export function checkpointPrefix(checkpoint_ns?: string): string {
  return checkpoint_ns === undefined ? 'checkpoint/' : `checkpoint/${digest(checkpoint_ns)}/`
}

/**
 * The key of a checkpoint. Keys are read in ascending order, and the newest checkpoint is the one with the greatest id:
 * so a key has the complement of the id's bytes, and `~`, which sorts after every digit, so that a longer id is before
 * its beginning.
 */
export function checkpointKey({ checkpoint_ns, checkpoint_id }: Place): string {
  const complement = Buffer.from(Buffer.from(checkpoint_id).map((byte) => 255 - byte))
  return `${checkpointPrefix(checkpoint_ns)}${complement.toString('hex')}~`
}

/** What the keys of a checkpoint's pending writes begin with. */
export function writePrefix({ checkpoint_ns, checkpoint_id }: Place): string {
  return `write/${digest(checkpoint_ns)}/${digest(checkpoint_id)}/`
}

export function writeKey(place: Place, task_id: string, idx: number): string {
  return `${writePrefix(place)}${digest(task_id)}/${idx}`
}

/** The entry with a channel's value of one version. */
export function channelEntryId(namespace: Namespace, channel: string, version: string | number): string {
  const { thread_id, checkpoint_ns } = namespace
  return stableId('langgraph/channel', thread_id, checkpoint_ns, channel, JSON.stringify(version))
}

/** Short, whatever the framework's own names are: a key has at most 255 characters. */
function digest(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 32)
}
