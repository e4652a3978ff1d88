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

/** Calls of one id in one message that wait for their results. */
interface OpenCalls {
  source: Source
  calls: LinkedCall[]
  next: number
}

/**
 * Links results to calls: each to the first open call of its id in the latest message that has one, else to the last one
 * that was answered, whose earlier result is left out. A result that came after its call was sent without it is late.
 */
export function linkCalls(runs: readonly SourceRun[], segments: Segments): Links {
  const links: Links = { calls: new Map(), results: new Map(), omitted: [], left: [] }
  const open = new Map<string, OpenCalls[]>()
  const answered = new Map<string, LinkedCall>()
  const latest = new Map<LinkedCall, { piece: Piece; source: Source; segment: number }>()
  for (const { source, run } of runs)
    for (const piece of run.pieces) {
      const { kind, call: id = '' } = piece
      if (kind === 'call') {
        const call = { piece, source }
        links.calls.set(piece, call)
        addOpen(open, id, call)
      }
      if (kind !== 'result') continue
      const call = takeOpen(open, id) ?? answered.get(id)
      if (call === undefined) {
        links.omitted.push({ id: source.id, reason: 'no_call', call_id: id })
        links.left.push({ piece, source })
        continue
      }
      answered.set(id, call)
      const segment = segments.of(source)
      const before = latest.get(call)
      const segment_before = before?.segment ?? segments.of(call.source)
      if (segment > segment_before) segments.keepEndOf(segment_before)
      else if (before) {
        links.results.get(before.piece)!.is_replaced = true
        links.omitted.push({ id: before.source.id, reason: 'duplicate_result', call_id: id })
        links.left.push({ piece: before.piece, source: before.source })
      }
      const is_late = segment > segments.of(call.source)
      if (!is_late) call.result = { piece, source }
      links.results.set(piece, { call, is_late, is_replaced: false })
      latest.set(call, { piece, source, segment })
    }
  return links
}

function addOpen(open: Map<string, OpenCalls[]>, id: string, call: LinkedCall): void {
  const groups = open.get(id)
  const group = groups?.at(-1)
  if (group?.source === call.source) group.calls.push(call)
  else if (groups) groups.push({ source: call.source, calls: [call], next: 0 })
  else open.set(id, [{ source: call.source, calls: [call], next: 0 }])
}

function takeOpen(open: Map<string, OpenCalls[]>, id: string): LinkedCall | undefined {
  const groups = open.get(id)
  while (groups && groups.length > 0) {
    const group = groups.at(-1)!
    if (group.next < group.calls.length) return group.calls[group.next++]
    groups.pop()
  }
  return undefined
}
