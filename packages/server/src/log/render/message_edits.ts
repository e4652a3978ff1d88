import { setImmediate as turn } from 'node:timers/promises'
import { type AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import {
  type ContextMessage,
  EditedMessages,
  type EditStrategy,
  storedSeq,
  type TurnEdits,
} from '@annals/messages/context'
import type { ReadEntry } from '../read/entry_columns.js'
import { contextMessages } from './page_renderer.js'

/** Limits of one edit: each message is kept in memory, and the plan looks at each on the event loop. */
const MESSAGES_MAX = 20_000
const TOOL_USES_MAX = 10_000
/** Bytes of memory that this takes at most. */
export const EDITED_BYTES_MAX = 12 * 1024 * 1024

export interface Editing {
  strategies: readonly EditStrategy[]
  /** The last message that is edited; undefined: all are. */
  pin_id: string | undefined
  pin_seq: number | undefined
}

/** Edits by seq. */
export interface PageEdits extends TurnEdits {
  dropped: ReadonlySet<number>
  tokens: ReadonlyMap<number, number>
}

/**
 * Plans how the messages of a page are edited. Each strategy has a turn of the event loop.
 * @throws AnnalsError invalid_request if the page has too many of them
 */
export async function editsOf(
  turns: AsyncGenerator<ReadEntry[][]>,
  thread: WorkThread,
  project_id: string,
  { strategies, pin_seq = Number.POSITIVE_INFINITY }: Editing,
): Promise<PageEdits> {
  const messages: ContextMessage[] = []
  let uses = 0
  for await (const piece of turns) {
    for (const message of await contextMessages(thread, project_id, piece.flat().map(storedSeq))) {
      messages.push(message)
      uses += message.calls.length + message.results.length
    }
    if (messages.length > MESSAGES_MAX || uses > TOOL_USES_MAX) throw tooMany()
  }
  await turn()
  const after = messages.findIndex(({ seq }) => seq > pin_seq)
  const edited = new EditedMessages(messages, after < 0 ? messages.length : after)
  for (const strategy of strategies) {
    await turn()
    edited.apply(strategy)
  }
  const { edits, tokens } = edited.cleared
  return {
    dropped: edited.dropped,
    edits,
    tokens: new Map(messages.map(({ seq }, index) => [seq, tokens[index]!])),
    calls: new Map(messages.map(({ seq, calls }) => [seq, calls.length])),
  }
}

function tooMany(): AnnalsError {
  return invalidRequest(
    `Query parameter edit_strategies edits at most ${MESSAGES_MAX} messages, and ${TOOL_USES_MAX} tool calls and results, at once. Send a limit, or use GET /session/{id}/context.`,
  )
}
