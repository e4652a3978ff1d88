import { isObject, type JsonObject } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { beginningOf, textLength } from '../text_bytes.js'
import { cutText } from './fit_ids.js'

/**
 * What the pass has to know of one block. `medium`: it came inside a result, and the target keeps it outside.
 * `hosted_call`, `hosted_result`: of a tool that the provider runs within its own turn.
 */
export type PieceKind =
  | 'call'
  | 'result'
  | 'medium'
  | 'thinking'
  | 'hosted_call'
  | 'hosted_result'
  | 'content'

/** One block of a message, as the target has it: a content block, a part, a tool call, a tool message or an item. */
export interface Piece {
  kind: PieceKind
  block: JsonObject
  /** The call's id in the conversation: of a call, a result or a medium. */
  call?: string
  /** The tool's name, where it is known. */
  name?: string
  /** The text was the whole content, as a string. */
  is_bare?: boolean
  /** The whole item as JSON text, in place of `block`, where it can be sent as it is stored. */
  raw?: string
}

/** Consecutive pieces of one message that one side said. `head`: what an item has beside them. */
export interface Run {
  side: 'model' | 'user'
  head: JsonObject
  pieces: Piece[]
}

export interface SourceRun {
  source: Source
  run: Run
}

/** A message of the list. */
export interface Source {
  id: string
  seq: number
  format: MessageFormat
  tokens?: number | undefined
  /** The provider's own id of the model's answer: lines of one answer have the same. */
  answer_id?: string
  /** The message before it in the session is not in the list. */
  is_after_gap?: boolean
}

export interface SourcePiece {
  piece: Piece
  source: Source
}

/** Why something of a message is not in the list. */
export type OmittedReason =
  | 'not_in_format'
  | 'empty'
  | 'no_call'
  | 'duplicate_result'
  | 'duplicate_item'
  | 'no_result'
  | 'reasoning'
  | 'cache_marks'
  | 'compacted'

/** Why something is in the list that no message has, or has elsewhere. */
export type AddedReason = 'no_result' | 'late_result' | 'turn'

export interface Omitted {
  id: string
  reason: OmittedReason
  /** The type of part, or the name of the field. */
  what?: string
  call_id?: string
}

export interface Added {
  id: string
  reason: AddedReason
  call_id?: string
}

/** The text for a call that nobody answered. */
export const NO_RESULT = 'No result was recorded.'

/** Hears of the kind of a block that a format's requests cannot have, and of the block itself. */
export type OmitBlock = (what: string, block: JsonObject) => void

/** How a format writes what the pass has put in order. */
export interface Shape {
  /** The runs of items of the format. `calls` and `results` are the ids and names of theirs, in their order. */
  split(items: readonly JsonObject[], ids: PieceIds, omit: OmitBlock): Run[]
  /** The model's turn as items, each with the source that it begins with. */
  turn(head: JsonObject, pieces: SourcePiece[]): Item[]
  /** The results of a turn, in the order of their calls. `is_waiting`: a tool of the provider's own waits for them. */
  results(results: SourcePiece[], is_waiting: boolean): Item[]
  /** Text of a user or of an instruction. */
  said(run: Run, source: Source): Item[]
  /** The same block of a call or a result with another id and name. */
  renamed(piece: Piece, id: string, name: string | undefined): JsonObject
  /** The result in the form that the call wants; undefined where it has none: the call counts as unanswered. */
  answering?(call: Piece, result: JsonObject): JsonObject | undefined
  /** The result of a call that has none; undefined where the format has no such form: the call is left out. */
  noResult(call: Piece): JsonObject | undefined
  /** The text of a result. */
  textOf(result: JsonObject): string
  /** Other content of a result, as something that the user says. */
  mediaOf(result: JsonObject): Piece[]
  /** A text of the user's. */
  text(text: string): Run
  /** So many calls a turn may have: further ones are another turn. */
  calls_max?: number
  /** Whether consecutive turns of the model have to be one, also without calls. */
  joins_all: boolean
  /** Whether a list begins with the user. */
  begins_with_user: boolean
  /** Whether what a message says beside all results of a turn goes into their item. */
  says_beside_results: boolean
}

/** The calls and results of a message, the last one first: a shape pops them, which costs the same however many there are. */
export interface PieceIds {
  calls: Array<{ id: string; name: string }>
  results: Array<{ id: string; name: string | undefined }>
}

/** An item of the list, and the message that it begins with. */
export interface Item {
  source: Source
  item: JsonObject
  raw?: string
}

/** A copy with only these fields, in the object's order, and without those that are null or undefined. */
export function only(object: JsonObject, fields: ReadonlySet<string>): JsonObject {
  const kept: JsonObject = {}
  for (const [key, value] of Object.entries(object)) if (fields.has(key) && value != null) kept[key] = value
  return kept
}

/** A copy without the fields that are null or undefined. */
export function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value != null))
}

/** OpenAI takes no longer text. */
const TEXT_LENGTH_MAX = 10 * 1024 * 1024
const CUT = '\n[The rest is too long.]'

/** A result as OpenAI takes it. */
export function cutResult(text: string): string {
  const isShort = textLength(text) <= TEXT_LENGTH_MAX
  return isShort ? text : beginningOf(text, TEXT_LENGTH_MAX - CUT.length, cutText) + CUT
}

export function isBlank(text: unknown): boolean {
  return typeof text !== 'string' || text.trim() === ''
}

/** A `data:` URL of no bytes. */
const NO_BYTES = /^(data:[^,]*,)?$/i

/** Whether an image or a file has nothing where its bytes or its address belong, which every provider refuses. */
export function isEmptyMedium(block: JsonObject): boolean {
  const places = [block, block.source, block.image_url, block.input_audio, block.file].filter(isObject)
  return places.some(({ data, url, file_data, image_url }) =>
    [data, url, file_data, image_url].some((text) => typeof text === 'string' && isNothing(text)),
  )
}

function isNothing(text: string): boolean {
  return text.length < 256 && NO_BYTES.test(text)
}
