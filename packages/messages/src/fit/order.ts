import type { JsonObject } from '../blob_reading.js'
import { pushAll } from '../blob_reading.js'
import type { MessageFormat } from '../formats.js'
import { parseJson } from '../json/exact_json.js'
import { NO_CONTENT } from '../turns.js'
import { limitCacheMarks } from './cache_marks.js'
import { citeAllOrNone } from './cited_documents.js'
import { isCompaction } from './compacted.js'
import { withResultsAfterCalls } from './early_results.js'
import { FitIds, fitName } from './fit_ids.js'
import { hostedPairs, withKnownCaller } from './hosted_pairs.js'
import { type LinkedCall, type Links, linkCalls, Segments } from './link_calls.js'
import type { Added, Item, Omitted, Piece, Run, Shape, Source, SourcePiece, SourceRun } from './pieces.js'
import { placeSystemMessages } from './system_places.js'

/** A turn of the model: what it says and calls, with the results. */
interface Turn {
  kind: 'turn'
  head: JsonObject
  pieces: SourcePiece[]
  /** Media that came inside its results and stand beside them. */
  media: SourcePiece[]
  segment: number
  is_thought: boolean
  has_calls: boolean
  has_unanswered: boolean
  /** A result has come: what the model says from here on is another turn. */
  is_answered: boolean
}

/** Text of a user or of an instruction. `is_media`: it came inside results of the turn before. */
interface Said {
  kind: 'said'
  run: Run
  source: Source
  is_media: boolean
}

interface PutInOrder {
  items: Item[]
  omitted: Omitted[]
  added: Added[]
  /** Pieces of `runs` that are not in the list. */
  left: SourcePiece[]
  names: Map<string, string>
  sent_seqs: number[]
}

/** Puts a list in the order that its format wants: turns of the model, directly after each its results, and what is said. */
export function putInOrder(
  given: readonly SourceRun[],
  format: MessageFormat,
  shape: Shape,
  {
    begun_seq = Number.POSITIVE_INFINITY,
    sent_seqs = [],
  }: { begun_seq?: number | undefined; sent_seqs?: readonly number[] | undefined },
): PutInOrder {
  const texts = format === 'openai' ? onlyTexts(given) : undefined
  if (texts) return texts
  const runs = withResultsAfterCalls(given)
  const segments = new Segments(sent_seqs)
  const links = linkCalls(runs, segments)
  const blocks = new Blocks(format, shape, segments, links)
  for (const { source, run } of runs) {
    if (run.side === 'model') blocks.addModel(run, source)
    else blocks.addUser(run, source)
  }
  const turns = blocks.all.map((block) => (block.kind === 'turn' ? block.pieces : undefined))
  const hosted = hostedPairs(turns, format)
  const writer = new BlockWriter(format, shape, links, hosted)
  for (const [index, block] of blocks.all.entries()) writer.write(block, blocks.all[index + 1])
  const placed =
    format === 'anthropic' ? placeSystemMessages(writer.items) : { items: writer.items, omitted: [] }
  if (format === 'anthropic') citeAllOrNone(placed.items)
  const marks = format === 'anthropic' ? limitCacheMarks(placed.items, begun_seq) : []
  return {
    items: placed.items,
    omitted: [...links.omitted, ...writer.omitted, ...placed.omitted, ...marks],
    added: [...blocks.added, ...writer.added],
    left: [...links.left, ...blocks.left, ...writer.left],
    names: writer.names,
    sent_seqs: segments.kept(),
  }
}

/** A list of nothing but texts as they are stored, in a format that leaves each where it is. */
function onlyTexts(runs: readonly SourceRun[]): PutInOrder | undefined {
  const items: Item[] = []
  for (const { source, run } of runs) {
    const raw = run.pieces.length === 1 ? run.pieces[0]!.raw : undefined
    if (raw === undefined) return undefined
    items.push({ source, item: NO_ITEM, raw })
  }
  return { items, omitted: [], added: [], left: [], names: new Map(), sent_seqs: [] }
}

const NO_ITEM: JsonObject = {}

class Blocks {
  readonly all: Array<Turn | Said> = []
  readonly added: Added[] = []
  readonly left: SourcePiece[] = []
  private readonly turns = new Map<Piece, Turn>()
  /** The message that the last result came from. */
  private latest_answer: Source | undefined

  constructor(
    private readonly format: MessageFormat,
    private readonly shape: Shape,
    private readonly segments: Segments,
    private readonly links: Links,
  ) {}

  addModel(run: Run, source: Source): void {
    const segment = this.segments.of(source)
    const last = this.all.at(-1)
    const turn = last?.kind === 'turn' && this.goesOn(last, run, source, segment) ? last : this.begin(segment)
    turn.head = mergedHeads(turn.head, run.head)
    turn.segment = segment
    for (const piece of run.pieces) this.addPiece(turn, piece, source)
  }

  private addPiece(turn: Turn, piece: Piece, source: Source): void {
    turn.pieces.push({ piece, source })
    turn.is_thought &&= piece.kind === 'thinking'
    turn.has_calls ||= isCall(piece)
    if (piece.kind !== 'call') return
    this.turns.set(piece, turn)
    turn.has_unanswered ||= !this.links.calls.get(piece)?.result
  }

  private begin(segment: number): Turn {
    const turn: Turn = {
      kind: 'turn',
      head: {},
      pieces: [],
      media: [],
      segment,
      is_thought: true,
      has_calls: false,
      has_unanswered: false,
      is_answered: false,
    }
    this.all.push(turn)
    return turn
  }

  /** Whether what the model says belongs to the turn that it spoke last. */
  private goesOn(turn: Turn, run: Run, source: Source, segment: number): boolean {
    if (turn.is_answered) return false
    // Thoughts go with what follows them, wherever it was stored: alone they are not shown.
    if (turn.is_thought) return true
    const last = turn.pieces.at(-1)!.source
    const is_one = last.format === 'responses' && source.format === 'responses'
    const wanted = this.shape.joins_all || is_one || turn.has_calls || run.pieces.some(isCall)
    if (!wanted || this.isOver(turn, last, source)) return false
    if (turn.segment === segment) return true
    this.segments.keepEndOf(turn.segment)
    return false
  }

  /** Whether another answer of the model follows a call that nobody answered. */
  private isOver(turn: Turn, last: Source, source: Source): boolean {
    if (!turn.has_unanswered || last === source) return false
    return last.answer_id !== undefined && source.answer_id !== undefined
      ? last.answer_id !== source.answer_id
      : last.format === 'openai' && source.format === 'openai'
  }

  addUser(run: Run, source: Source): void {
    const media = new Map<string, Turn>()
    const late = new Set<string>()
    for (const piece of run.pieces) {
      const place = piece.kind === 'result' ? this.links.results.get(piece) : undefined
      if (!place) continue
      if (place.is_late) {
        if (place.is_replaced) continue
        late.add(piece.call!)
        this.addLate(place.call, piece, source)
      } else {
        const answers = this.turns.get(place.call.piece)!
        answers.is_answered = true
        if (place.is_replaced) continue
        this.latest_answer = source
        media.set(piece.call!, answers)
      }
    }
    for (const piece of run.pieces)
      if (piece.kind === 'medium') {
        const { media: beside } = media.get(piece.call!) ?? { media: late.has(piece.call!) ? [] : this.left }
        beside.push({ piece, source })
      }
    const is_late = ({ call }: Piece) => late.has(call!)
    const pieces = run.pieces.filter(
      (piece) => piece.kind !== 'result' && (piece.kind !== 'medium' || is_late(piece)),
    )
    if (pieces.length === 0) return
    const is_media =
      this.latest_answer === source && pieces.some(({ block }) => MEDIA.has(String(block.type)))
    this.say({ kind: 'said', run: { ...run, pieces }, source, is_media })
  }

  /** A result of a call that was sent as unanswered, or with another result. */
  private addLate({ piece: { name, call } }: LinkedCall, result: Piece, source: Source): void {
    const of = name === undefined ? call : `${fitName(name, this.format)} (${call})`
    const run = this.shape.text(
      `Result of the call ${of}, which came later:\n${this.shape.textOf(result.block)}`,
    )
    const media = this.shape.mediaOf(result.block)
    this.all.push({
      kind: 'said',
      run: { ...run, pieces: [...run.pieces, ...media] },
      source,
      is_media: false,
    })
    this.added.push({ id: source.id, reason: 'late_result', call_id: call ?? '' })
  }

  /** Media of results come ahead of what was said while the tools ran. */
  private say(said: Said): void {
    let at = this.all.length
    if (said.is_media) while (at > 0 && isSaidMeanwhile(this.all[at - 1]!)) at--
    this.all.splice(at, 0, said)
  }
}

const MEDIA = new Set(['image_url', 'input_audio', 'file'])

function isSaidMeanwhile(block: Turn | Said): boolean {
  return block.kind === 'said' && !block.is_media
}

/** Whether a call of the provider's own tools has no result in its turn. */
function isWaiting(pieces: readonly SourcePiece[]): boolean {
  const answered = new Set(pieces.flatMap(({ piece }) => (piece.kind === 'hosted_result' ? piece.call : [])))
  return pieces.some(({ piece: { kind, call } }) => kind === 'hosted_call' && !answered.has(call))
}

function isCall({ kind }: Piece): boolean {
  return kind === 'call' || kind === 'hosted_call' || kind === 'hosted_result'
}

/** The fields of two messages that become one: texts one after the other, of others the later one. */
function mergedHeads(first: JsonObject, second: JsonObject): JsonObject {
  const merged = { ...first }
  for (const [key, value] of Object.entries(second)) {
    const before = merged[key]
    merged[key] =
      typeof before === 'string' && typeof value === 'string' && key.startsWith('reason')
        ? `${before}\n${value}`
        : Array.isArray(before) && Array.isArray(value)
          ? [...before, ...value]
          : value
  }
  return merged
}

class BlockWriter {
  readonly items: Item[] = []
  readonly omitted: Omitted[] = []
  readonly added: Added[] = []
  readonly left: SourcePiece[] = []
  /** Of tools whose names had to change: their own by those in the list. */
  readonly names = new Map<string, string>()
  private readonly ids: FitIds
  /** Ids of the provider's own calls in the list, which others may be called by. */
  private readonly callers = new Set<string>()
  /** The last item is the model's. */
  private is_models = false
  /** Text beside the results, which is written with them. */
  private written: Said | undefined

  constructor(
    private readonly format: MessageFormat,
    private readonly shape: Shape,
    private readonly links: Links,
    private readonly hosted: ReadonlySet<Piece>,
  ) {
    this.ids = new FitIds(format)
  }

  write(block: Turn | Said, next: Turn | Said | undefined): void {
    if (block.kind === 'turn') this.writeTurn(block, next)
    else if (block !== this.written) {
      pushAll(this.items, this.said(block))
      this.is_models = false
    }
  }

  private said({ run, source }: Said): Item[] {
    const [only] = run.pieces
    if (run.pieces.length === 1 && only!.raw !== undefined) return [{ source, item: {}, raw: only!.raw }]
    return this.shape.said({ ...run, pieces: run.pieces.map((piece) => this.parsed(piece)) }, source)
  }

  private writeTurn(turn: Turn, next: Turn | Said | undefined): void {
    const shown = this.shownPieces(turn)
    const [first] = shown
    if (!first) return
    this.separate(first)
    // As it is stored, and never parsed.
    if (shown.length === 1 && first.piece.raw !== undefined) {
      this.items.push({ source: first.source, item: {}, raw: first.piece.raw })
      this.is_models = true
      return
    }
    const results: SourcePiece[] = []
    const pieces = shown.map(({ piece, source }, nth) => {
      const said = withKnownCaller(this.parsed(piece), this.callers)
      if (piece.kind === 'hosted_call') this.callers.add(piece.call ?? '')
      if (piece.kind !== 'call') return { piece: said, source }
      const name = piece.name === undefined ? undefined : this.nameOf(piece.name)
      const id = this.ids.take(piece.call!, `${source.id} ${nth}`)
      results.push(this.resultOf(piece, source, id, name))
      return { source, piece: { ...said, block: this.shape.renamed(said, id, name) } }
    })
    const { calls_max = Number.POSITIVE_INFINITY } = this.shape
    this.is_models = results.length === 0
    if (results.length > calls_max) this.writeInParts(turn, pieces, results, calls_max)
    else pushAll(this.items, this.shape.turn(turn.head, pieces))
    this.writeResults(turn, results.splice(0), next, isWaiting(pieces))
  }

  /** A turn of more calls than the format takes: all but the last ones go ahead, with their results. */
  private writeInParts(
    { head }: Turn,
    pieces: SourcePiece[],
    results: SourcePiece[],
    calls_max: number,
  ): void {
    const calls = pieces.filter(({ piece }) => piece.kind === 'call')
    const said = pieces.filter(({ piece }) => piece.kind !== 'call')
    const parts = Math.ceil(calls.length / calls_max)
    for (let part = 0; part < parts; part++) {
      const some = calls.slice(part * calls_max, (part + 1) * calls_max)
      pushAll(this.items, this.shape.turn(part === 0 ? head : {}, part === 0 ? [...said, ...some] : some))
      if (part < parts - 1) pushAll(this.items, this.shape.results(results.splice(0, calls_max), false))
    }
  }

  private writeResults(
    turn: Turn,
    results: SourcePiece[],
    next: Turn | Said | undefined,
    is_waiting: boolean,
  ): void {
    if (results.length === 0) return
    const beside =
      this.shape.says_beside_results &&
      next?.kind === 'said' &&
      results.every(({ source }) => source === next.source) &&
      next.run.head.role === undefined
        ? next
        : undefined
    if (beside) this.written = beside
    const said = beside?.run.pieces.map((piece) => ({ piece, source: beside.source })) ?? []
    pushAll(this.items, this.shape.results([...results, ...turn.media, ...said], is_waiting))
  }

  /** Puts a turn of the user's ahead where one has to be. */
  private separate({ source, piece }: SourcePiece): void {
    const { begins_with_user, joins_all } = this.shape
    const is_needed = this.items.length === 0 ? begins_with_user : joins_all && this.is_models
    // Nothing may be ahead of a compaction of the provider's.
    if (!is_needed || isCompaction(piece)) return
    this.items.push(...this.shape.said(this.shape.text(NO_CONTENT), source))
    this.added.push({ id: source.id, reason: 'turn' })
  }

  /** The pieces of a turn that can be sent: no call that must go, no half of a pair, no thought that nothing follows. */
  private shownPieces({ pieces }: Turn): SourcePiece[] {
    const shown: SourcePiece[] = []
    /** How many of the last pieces are thoughts. */
    let thoughts = 0
    for (const one of pieces) {
      const { kind, call: id = '' } = one.piece
      const is_hosted = kind === 'hosted_call' || kind === 'hosted_result'
      const is_unanswered = kind === 'call' && !this.answerOf(one.piece) && !this.shape.noResult(one.piece)
      if (is_unanswered || (is_hosted && !this.hosted.has(one.piece))) {
        const reason = is_unanswered || kind === 'hosted_call' ? 'no_result' : 'no_call'
        this.omitted.push({ id: one.source.id, reason, call_id: id })
        this.left.push(one)
        if (!is_unanswered) continue
        this.omitThoughts(shown.splice(shown.length - thoughts))
        thoughts = 0
        continue
      }
      shown.push(one)
      thoughts = kind === 'thinking' ? thoughts + 1 : 0
    }
    if (thoughts > 0) this.omitThoughts(shown.splice(shown.length - thoughts))
    return shown
  }

  /** The result that a call has in the form that it wants. */
  private answerOf(call: Piece): SourcePiece | undefined {
    const linked = this.links.calls.get(call)
    const result = linked?.result
    if (!result || !this.shape.answering) return result
    const block = this.shape.answering(call, result.piece.block)
    if (block) return { ...result, piece: { ...result.piece, block } }
    this.omitted.push({ id: result.source.id, reason: 'no_call', call_id: call.call! })
    this.left.push(result)
    delete linked.result
    return undefined
  }

  private omitThoughts(thoughts: SourcePiece[]): void {
    const [first] = thoughts
    if (first) this.omitted.push({ id: first.source.id, reason: 'reasoning' })
    pushAll(this.left, thoughts)
  }

  private nameOf(name: string): string {
    const fit = fitName(name, this.format)
    if (fit !== name) this.names.set(fit, name)
    return fit
  }

  private resultOf(call: Piece, source: Source, id: string, name: string | undefined): SourcePiece {
    const result = this.answerOf(call)
    if (result) {
      const said = withKnownCaller(result.piece, this.callers)
      return { source: result.source, piece: { ...said, block: this.shape.renamed(said, id, name) } }
    }
    this.added.push({ id: source.id, reason: 'no_result', call_id: call.call! })
    const named = {
      ...call,
      block: this.shape.renamed(withKnownCaller(call, this.callers), id, name),
      call: id,
      ...(name !== undefined && { name }),
    }
    return { source, piece: { kind: 'result', block: this.shape.noResult(named)! } }
  }

  /** A piece whose item was not parsed, as one that can stand beside others. */
  private parsed(piece: Piece): Piece {
    if (piece.raw === undefined) return piece
    const [run] = this.shape.split([parseJson(piece.raw) as JsonObject], { calls: [], results: [] }, () => {})
    return run!.pieces[0]!
  }
}
