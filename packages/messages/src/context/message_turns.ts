import { pushAll } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import type { StoredText } from '../stored_renderer.js'
import type { ContextMessage, StoredSeq } from './context_message.js'
import type { MessageEdit } from './edit_blob.js'

/** Messages of a turn that are joined at most: as many tools as OpenAI lets a model call at once. */
const TURN_MESSAGES_MAX = 128
/** Characters of messages that are joined. */
const TURN_LENGTH_MAX = 256 * 1024

/** Formats in which what a model says and calls in one turn is one message: OpenAI refuses calls that are several. */
const WITH_WHOLE_TURNS: ReadonlySet<MessageFormat> = new Set(['openai', 'anthropic', 'gemini'])

/** A message that may be one of a turn; `json`: its blob. */
interface TurnMessage {
  format?: string
  role?: string
  json: string
}

/** A message as a log has it. */
interface LoggedMessage extends TurnMessage {
  seq: number
  id?: string
  parent_id?: string | null
  tokens?: number
  /** The Message as JSON text, without its parts. */
  whole?: string
}

/**
 * Divides consecutive messages into those that become one in a format. In the Responses API each thing that a model
 * says, thinks or calls is an item, and so a message, of its own. Any other message stays by itself.
 */
export class MessageTurns<Message extends TurnMessage> {
  private readonly joins: boolean
  private open: Message[] = []
  private length = 0

  constructor(format: MessageFormat) {
    this.joins = WITH_WHOLE_TURNS.has(format)
  }

  /** The turns that end before the last of these messages; the one that may go on is kept for what comes next. */
  add(messages: Message[]): Message[][] {
    const turns: Message[][] = []
    for (const message of messages) {
      if (!this.goesOnWith(message)) pushAll(turns, this.end())
      if (this.isOfModel(message)) {
        this.open.push(message)
        this.length += message.json.length
      } else turns.push([message])
    }
    return turns
  }

  /** Takes the turn back that a page would cut before this message; undefined where it cuts none, or has nothing else. */
  takeCut(next: Message, messages: number): Message[] | undefined {
    return this.open.length < messages && this.goesOnWith(next) ? this.end()[0] : undefined
  }

  /** The turn that has not ended yet, if there is one. */
  end(): Message[][] {
    const { open } = this
    this.open = []
    this.length = 0
    return open.length > 0 ? [open] : []
  }

  private goesOnWith(next: Message): boolean {
    const { length } = this.open
    const fits = length < TURN_MESSAGES_MAX && this.length + next.json.length <= TURN_LENGTH_MAX
    return length > 0 && fits && this.isOfModel(next)
  }

  private isOfModel({ format, role }: Message): boolean {
    return this.joins && format === 'responses' && role === 'assistant'
  }
}

/** Cleared parts of messages, and how many calls each has, by seq. */
export interface TurnEdits {
  edits: ReadonlyMap<number, MessageEdit>
  calls: ReadonlyMap<number, number>
}

/**
 * The messages of a turn, oldest first, as the one message that the renderer takes, with what each is shown without. Every
 * member is named: a spread would give each message a shape of its own, and all that reads it would be slow.
 */
export function storedTurn(turn: LoggedMessage[], edits?: TurnEdits): StoredText {
  const [{ id, parent_id = null, format, whole }] = turn as [LoggedMessage]
  const edit = edits && editOfTurn(turn, edits.edits, ({ seq }) => edits.calls.get(seq) ?? 0)
  return { id: id!, parent_id, format: format as MessageFormat, blob: blobOf(turn), whole, edit }
}

/** A message as a plan takes it. */
export function storedSeq({
  id,
  parent_id,
  format,
  json,
  seq,
  tokens,
}: LoggedMessage): StoredSeq & StoredText {
  const place = { id: id!, parent_id: parent_id ?? null }
  return { ...place, format: format as MessageFormat, blob: json, seq, tokens: tokens! }
}

/** A message of a context, and what it is shown without. */
export interface ShownMessage extends ContextMessage {
  stored: StoredText
}

/** The messages of a context, oldest first, as the renderer takes them. */
export function contextTurns(
  messages: ShownMessage[],
  edits: ReadonlyMap<number, MessageEdit>,
  format: MessageFormat,
): StoredText[] {
  const turns = new MessageTurns<TurnMessage & { known: ShownMessage }>(format)
  const parts = messages.map((known) => {
    const { format, blob } = known.stored
    return { known, format, role: known.speaker, json: blob }
  })
  return [...turns.add(parts), ...turns.end()].map((turn) => {
    const [{ known }] = turn as [(typeof turn)[number]]
    const { id, parent_id, format } = known.stored
    const edit = editOfTurn(
      turn.map((one) => one.known),
      edits,
      ({ calls }) => calls.length,
    )
    return { id, parent_id, format, blob: blobOf(turn), ...(edit && { edit }) }
  })
}

/** A turn of several messages holds calls and no results. */
function editOfTurn<Message extends { seq: number }>(
  turn: Message[],
  edits: ReadonlyMap<number, MessageEdit>,
  callsOf: (message: Message) => number,
): MessageEdit | undefined {
  if (turn.length === 1) return edits.get(turn[0]!.seq)
  if (!turn.some(({ seq }) => edits.has(seq))) return undefined
  const inputs = turn.flatMap(
    (message) => edits.get(message.seq)?.inputs ?? Array<boolean>(callsOf(message)).fill(false),
  )
  return { results: [], inputs }
}

/** Several items of one turn are read as an array. */
function blobOf(turn: TurnMessage[]): string {
  const [{ json }] = turn as [TurnMessage]
  return turn.length === 1 ? json : `[${turn.map((message) => message.json).join(',')}]`
}
