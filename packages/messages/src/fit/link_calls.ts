import type { Omitted, Piece, Source, SourcePiece, SourceRun } from './pieces.js'

/** A call of the list, and the result that counts. */
export interface LinkedCall {
  piece: Piece
  source: Source
  result?: SourcePiece
}

/** What became of a result: it stands at its call, it comes later as a text, or it is left out. */
export type ResultPlace = { call: LinkedCall; is_late: boolean; is_replaced: boolean }

export interface Links {
  calls: Map<Piece, LinkedCall>
  /** Results of calls in the list. */
  results: Map<Piece, ResultPlace>
  omitted: Omitted[]
  /** The results that `omitted` names. */
  left: SourcePiece[]
}

/** Divides a log where lists of it ended that were sent: what stood in them does not change any more. */
export class Segments {
  private readonly effective = new Set<number>()

  constructor(private readonly sent_seqs: readonly number[]) {}

  /** The number of the segment that a message is in, from 0. */
  of({ seq }: Source): number {
    let low = 0
    let high = this.sent_seqs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.sent_seqs[middle]! < seq) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Notes that something would stand elsewhere, had the list not been sent that ended this segment. */
  keepEndOf(segment: number): void {
    this.effective.add(this.sent_seqs[segment]!)
  }

  kept(): number[] {
    return this.sent_seqs.filter((seq) => this.effective.has(seq))
  }
}

/** Something of one id: a call, or a result of one. */
interface OfId extends SourcePiece {
  segment: number
  /** How often somebody else than the model had spoken before. */
  stretch: number
}

/** Calls of one id that nobody but the model and its tools spoke between. `passed`: there were fewer results than calls. */
interface Row {
  calls: LinkedCall[]
  /** For each call, where those of its message begin. */
  begins: number[]
  next: number
  passed: LinkedCall[]
  stretch: number
}

/**
 * Links results to calls by their ids. Models use an id again: what was not answered when somebody else spoke counts as
 * abandoned once a newer call has the id. Of calls in a row the last messages are answered, as many as there are results
 * for, in their order. A result of no open call replaces that of the last call that was answered. A result that came
 * after its call was sent without it is late.
 */
export function linkCalls(runs: readonly SourceRun[], segments: Segments): Links {
  const links: Links = { calls: new Map(), results: new Map(), omitted: [], left: [] }
  const by_id = new Map<string, OfId[]>()
  let stretch = 0
  for (const { source, run } of runs)
    for (const piece of run.pieces) {
      if (piece.kind === 'content' && run.side === 'user') stretch++
      if (piece.kind !== 'call' && piece.kind !== 'result') continue
      const one = { piece, source, segment: segments.of(source), stretch }
      const id = piece.call ?? ''
      const known = by_id.get(id)
      if (known) known.push(one)
      else by_id.set(id, [one])
    }
  for (const [id, pieces] of by_id) linkOne(id, pieces, links, segments)
  return links
}

function linkOne(id: string, pieces: readonly OfId[], links: Links, segments: Segments): void {
  const open: Row[] = []
  let answered: LinkedCall | undefined
  const latest = new Map<LinkedCall, OfId>()
  const more = resultsFrom(pieces)
  for (const [at, one] of pieces.entries()) {
    const { piece, source, segment, stretch } = one
    if (piece.kind === 'call') {
      const call = { piece, source }
      links.calls.set(piece, call)
      if (open.at(-1)?.stretch !== stretch) open.push({ calls: [], begins: [], next: 0, passed: [], stretch })
      addOpen(open.at(-1)!, call)
      continue
    }
    const { count, is_cut } = more[at]!
    const taken = takeOpen(open, count)
    if (taken.has_passed && is_cut) segments.keepEndOf(segment)
    const call = taken.call ?? answered
    if (call === undefined) {
      links.omitted.push({ id: source.id, reason: 'no_call', call_id: id })
      links.left.push({ piece, source })
      continue
    }
    answered = call
    const before = latest.get(call)
    const segment_of_call = segments.of(call.source)
    const segment_before = before?.segment ?? segment_of_call
    if (segment > segment_before) segments.keepEndOf(segment_before)
    else if (before) {
      links.results.get(before.piece)!.is_replaced = true
      links.omitted.push({ id: before.source.id, reason: 'duplicate_result', call_id: id })
      links.left.push({ piece: before.piece, source: before.source })
    }
    const is_late = segment > segment_of_call
    if (!is_late) call.result = { piece, source }
    links.results.set(piece, { call, is_late, is_replaced: false })
    latest.set(call, one)
  }
}

/** Results of an id that follow each other within a segment. `is_cut`: in the next segment there are more. */
interface Results {
  count: number
  is_cut: boolean
}

/** For each result, those until the next call of the id, itself included. */
function resultsFrom(pieces: readonly OfId[]): Results[] {
  const all: Results[] = []
  for (let at = pieces.length - 1; at >= 0; at--) {
    const next = pieces[at + 1]
    const is_last = next?.piece.kind !== 'result'
    const is_cut = !is_last && next.segment !== pieces[at]!.segment
    all[at] = is_last || is_cut ? { count: 1, is_cut } : { ...all[at + 1]!, count: all[at + 1]!.count + 1 }
  }
  return all
}

function addOpen({ calls, begins }: Row, call: LinkedCall): void {
  const is_one = calls.at(-1)?.source === call.source
  begins.push(is_one ? begins.at(-1)! : calls.length)
  calls.push(call)
}

/** Takes, of the newest calls in a row, the first one of the messages that there are results for. */
function takeOpen(open: Row[], count: number): { call?: LinkedCall; has_passed: boolean } {
  let has_passed = false
  for (let row = open.at(-1); row; row = open.at(-1)) {
    const first = row.begins[row.calls.length - count] ?? 0
    if (row.next < first) {
      has_passed = true
      // One by one: a message may have more calls than a function takes arguments.
      for (; row.next < first; row.next++) row.passed.push(row.calls[row.next]!)
    }
    const call = row.next < row.calls.length ? row.calls[row.next++] : row.passed.pop()
    if (call) return { call, has_passed }
    open.pop()
  }
  return { has_passed }
}
