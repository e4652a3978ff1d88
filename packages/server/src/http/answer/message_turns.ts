import type { MessageFormat, StoredText } from '@annals/messages'
import type { ReadEntry } from '../../log/read/read_log.js'

/** Messages of a turn that are joined at most: as many tools as OpenAI lets a model call at once. */
const TURN_MESSAGES_MAX = 128
/** Characters of messages that are joined. */
const TURN_LENGTH_MAX = 256 * 1024

/** Formats in which what a model says and calls in one turn is one message: OpenAI refuses calls that are several. */
const WITH_WHOLE_TURNS: ReadonlySet<MessageFormat> = new Set(['openai', 'anthropic', 'gemini'])

/**
 * Divides consecutive messages into those that become one in a format. In the Responses API each thing that a model
 * says, thinks or calls is an item, and so a message, of its own. Any other message stays by itself.
 */
export class MessageTurns {
  private readonly joins: boolean
  private open: ReadEntry[] = []
  private length = 0

  constructor(format: MessageFormat) {
    this.joins = WITH_WHOLE_TURNS.has(format)
  }

  /** The turns that end before the last of these messages; the one that may go on is kept for what comes next. */
  add(messages: ReadEntry[]): ReadEntry[][] {
    const turns: ReadEntry[][] = []
    for (const message of messages) {
      if (!this.goesOnWith(message)) turns.push(...this.end())
      if (this.isOfModel(message)) {
        this.open.push(message)
        this.length += message.json.length
      } else turns.push([message])
    }
    return turns
  }

  /** Takes the turn back that a page would cut before this message; undefined where it cuts none, or has nothing else. */
  takeCut(next: ReadEntry, messages: number): ReadEntry[] | undefined {
    return this.open.length < messages && this.goesOnWith(next) ? this.end()[0] : undefined
  }

  /** The turn that has not ended yet, if there is one. */
  end(): ReadEntry[][] {
    const { open } = this
    this.open = []
    this.length = 0
    return open.length > 0 ? [open] : []
  }

  private goesOnWith(next: ReadEntry): boolean {
    const { length } = this.open
    const fits = length < TURN_MESSAGES_MAX && this.length + next.json.length <= TURN_LENGTH_MAX
    return length > 0 && fits && this.isOfModel(next)
  }

  private isOfModel({ format, role }: ReadEntry): boolean {
    return this.joins && format === 'responses' && role === 'assistant'
  }
}

/** The messages of a turn, oldest first, as the one message that the renderer takes. */
export function storedTurn([first, ...rest]: ReadEntry[]): StoredText {
  const { id, parent_id, format, json } = first!
  const blob = rest.length === 0 ? json : `[${[json, ...rest.map((message) => message.json)].join(',')}]`
  return { id: id!, parent_id: parent_id ?? null, format: format as MessageFormat, blob }
}
