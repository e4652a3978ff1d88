import { parseJson, writeJson } from '@annals/messages/json'
import {
  type Block,
  isShownElsewhere,
  type Medium,
  type ReadEntry,
  type ToolCall,
  type ToolResult,
} from '@annals/messages/session'
import type { Paint, Style } from '../terminal/paint.js'
import { cutTo, linesOf, padTo, widthOf } from '../terminal/text.js'
import { clockOf, dayOf, durationOf } from '../terminal/times.js'
import { visible, visibleJson, visibleLine } from '../terminal/visible.js'

const WIDTH_MAX = 120
const SPEAKER_WIDTH = 14
/** Width of the column next to a text: seq, time and speaker; in a list of calls, a margin. */
const MARGIN = 5 + 2 + 8 + 2 + SPEAKER_WIDTH + 1
const CALL_MARGIN = 4
const TEXT_WIDTH_MIN = 24
const LINES_MAX = 16
const THINKING_LINES_MAX = 4
/** Pauses of at least this length are shown. */
const GAP_MS_MIN = 2_000

/** The name of the format from which an importer took an event. */
const SOURCE = /^source\.[\w-]+\./

const SPEAKER_STYLES: Record<string, Style> = {
  user: 'green',
  assistant: 'blue',
  system: 'magenta',
  developer: 'magenta',
  tool: 'dim',
}

/** How entries are written. */
export interface TextOptions {
  width: number
  paint: Paint
  /** Nothing is shortened. */
  full: boolean
  /** A known result is shown with its call, and not again at its own place. */
  joins: boolean
}

/**
 * Formats entries for people: a column of seq, time and speaker, beside it the text, and a pause between two entries
 * on its own line. All stored text is made visible, so that the terminal interprets none of it.
 */
export class TimelineText {
  private text_width: number
  private readonly indent = ' '.repeat(MARGIN)
  private last: ReadEntry | undefined
  /** Calls that were printed with their results. */
  private readonly told = new WeakSet<ToolCall>()

  constructor(private readonly options: TextOptions) {
    this.text_width = this.beside(MARGIN)
  }

  /** The lines of an entry, and of the pause before it. */
  entry(entry: ReadEntry): string[] {
    const { paint } = this.options
    const lines = this.between(entry)
    const body = entry.blocks.flatMap((block) => this.block(block))
    // Nothing left to print: its results are shown with their calls.
    if (body.length === 0 && isShownElsewhere(entry)) return []
    this.last = entry
    const speaker = entry.name ? `${entry.speaker} ${entry.name}` : entry.speaker
    const name = cutTo(visibleLine(speaker), SPEAKER_WIDTH)
    const style = styleOf(entry)
    const head = `${paint('dim', `${String(entry.seq).padStart(5)}  ${clockOf(entry.created_at)}`)}  ${paint(style, padTo(name, SPEAKER_WIDTH))} `
    const [first = '', ...rest] = body
    return [...lines, (head + first).trimEnd(), ...rest.map((line) => (this.indent + line).trimEnd())]
  }

  /** One line for entries that follow each other and are of little use to a reader, such as progress. */
  folded(entries: readonly ReadEntry[]): string[] {
    const { paint } = this.options
    const [first] = entries as [ReadEntry]
    const lines = this.between(first)
    this.last = entries.at(-1)
    const counts = new Map<string, number>()
    for (const { speaker } of entries) {
      const name = speaker.replace(SOURCE, '')
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    const told = [...counts].map(([name, count]) => `${count} × ${visibleLine(name)}`).join(', ')
    const head = `${String(first.seq).padStart(5)}  ${clockOf(first.created_at)}  `
    return [...lines, paint('dim', `${head}${cutTo(told, this.text_width + SPEAKER_WIDTH)}`)]
  }

  /** A call with its result, for a list of calls. */
  call(call: ToolCall): string[] {
    const { paint } = this.options
    this.text_width = this.beside(CALL_MARGIN)
    const where = call.result ? `#${call.seq} → #${call.result.seq}` : `#${call.seq}, no result`
    const [title = '', ...rest] = this.callLines(call)
    return [`${title}  ${paint('dim', where)}`, ...rest.map((line) => `  ${line}`), '']
  }

  private beside(margin: number): number {
    return Math.max(TEXT_WIDTH_MIN, Math.min(this.options.width, WIDTH_MAX) - margin)
  }

  private between(entry: ReadEntry): string[] {
    const { paint } = this.options
    if (!this.last) return [paint('dim', `${' '.repeat(7)}${dayOf(entry.created_at)}`)]
    const lines: string[] = []
    if (dayOf(this.last.created_at) !== dayOf(entry.created_at))
      lines.push(paint('dim', `${' '.repeat(7)}${dayOf(entry.created_at)}`))
    const gap = Date.parse(entry.created_at) - Date.parse(this.last.created_at)
    if (gap >= GAP_MS_MIN) lines.push(paint('dim', `${' '.repeat(7)}┄ ${durationOf(gap)} later`))
    return lines
  }

  private block(block: Block): string[] {
    const { paint } = this.options
    switch (block.kind) {
      case 'text':
        return this.wrapped(visible(block.text.trimEnd()), LINES_MAX)
      case 'thinking':
        return this.thought(block.text ?? '(redacted)')
      case 'streamed':
        return this.streamed(block)
      case 'state': {
        const { title, summary, is_failed, value } = block
        const line = `${visibleLine(title)}  ${visibleLine(summary)}`
        const all = this.options.full ? this.json(value, this.text_width) : []
        return [...this.wrapped(line, 2).map((one) => paint(is_failed ? 'red' : 'bold', one)), ...all]
      }
      case 'medium':
        return this.wrapped(`[${visibleLine(describeMedium(block.part))}]`, 2).map((line) =>
          paint('cyan', line),
        )
      case 'data':
        return this.json(block.value, this.text_width)
      case 'call':
        return block.is_repeat ? this.repeatLines(block.call, block.call.seq) : this.callLines(block.call)
      case 'result':
        if (block.call && this.told.has(block.call)) return []
        if (block.is_repeat) return this.repeatLines(block.call!, block.call!.result!.seq)
        return this.resultLines(block.result, block.call)
    }
  }

  /** Where entries are joined, the whole text at its first entry, otherwise what each adds. */
  private streamed({ text, whole, is_repeat }: Extract<Block, { kind: 'streamed' }>): string[] {
    const told = this.options.joins ? (is_repeat ? '' : whole.text) : text
    if (told === '') return []
    if (!whole.is_thinking) return this.wrapped(visible(told.trimEnd()), LINES_MAX)
    return this.thought(told)
  }

  private thought(text: string): string[] {
    const { paint } = this.options
    return this.wrapped(`(thinks) ${visible(text)}`, THINKING_LINES_MAX).map((line) => paint('dim', line))
  }

  /** An entry that repeats another one is printed once. */
  private repeatLines(call: ToolCall, seq: number): string[] {
    const { joins, paint } = this.options
    return joins ? [] : [paint('dim', `call ${this.numberOf(call)}${visibleLine(call.name)}, as in #${seq}`)]
  }

  private numberOf({ number }: ToolCall): string {
    return number === undefined ? '' : `${number} `
  }

  private callLines(call: ToolCall): string[] {
    const { paint, joins } = this.options
    const number = this.numberOf(call)
    const name = visibleLine(call.name)
    const title = `${paint('dim', `call ${number}`)}${paint('bold', name)}`
    const args = this.jsonText(call.arguments, this.text_width - 2)
    const room = this.text_width - widthOf(`call ${number}${name} `)
    const lines =
      args.length === 1 && widthOf(args[0]!) <= room
        ? [`${title} ${args[0]}`]
        : [title, ...args.map((line) => `  ${line}`)]
    if (!joins || !call.result) return lines
    this.told.add(call)
    return [...lines, ...this.resultLines(call.result, call, true)]
  }

  private resultLines(result: ToolResult, call: ToolCall | undefined, is_joined = false): string[] {
    const { paint } = this.options
    const style: Style = result.is_failed ? 'red' : 'green'
    // Entries stored at the same moment, as in a batch, tell nothing about durations.
    const took = result.duration_ms > 0 ? ` ${durationOf(result.duration_ms)}` : ''
    const of = is_joined
      ? ` (#${result.seq})`
      : call
        ? ` of ${this.numberOf(call)}${visibleLine(call.name)}`
        : ''
    const label = `${result.is_failed ? '✗ error' : '✓ result'}${of}${took}`
    const body = this.jsonText(result.text, this.text_width - 2)
    const room = this.text_width - widthOf(`${label}  `)
    if (body.length === 1 && widthOf(body[0]!) <= room) return [`${paint(style, label)}  ${body[0]}`]
    return [paint(style, label), ...body.map((line) => `  ${line}`)]
  }

  /** A text that is usually JSON: on one line if it fits, otherwise one member per line; any other text unchanged. */
  private jsonText(text: string, width: number): string[] {
    if (text.trim() === '') return ['']
    try {
      const value = parseJson(text)
      if (typeof value === 'object' && value !== null) return this.json(value, width)
    } catch {
      // Not JSON: models and tools may write anything.
    }
    return this.wrapped(visible(text.trimEnd()), LINES_MAX, width)
  }

  private json(value: unknown, width: number): string[] {
    const compact = visibleJson(writeJson(value))
    if (widthOf(compact) <= width) return [compact]
    return this.wrapped(indentedJson(value), LINES_MAX, width)
  }

  private wrapped(text: string, lines_max: number, width = this.text_width): string[] {
    const lines = linesOf(text, width)
    if (this.options.full || lines.length <= lines_max) return lines
    const more = lines.length - lines_max + 1
    return [
      ...lines.slice(0, lines_max - 1),
      this.options.paint('dim', `… ${more} more lines; --full shows all`),
    ]
  }
}

/** Describes an image or a file, which a terminal cannot show. */
function describeMedium(part: Medium): string {
  const { url, data, media_type, file_id } = part.meta
  const filename = part.filename ?? ('filename' in part.meta ? part.meta.filename : undefined)
  const size = data ? `${Math.floor((data.length * 3) / 4).toLocaleString('en')} bytes` : undefined
  const where = url?.startsWith('data:') ? `${url.slice(5, url.search(/[;,]/))}, inline` : url
  return [part.type, filename, media_type, size, where, file_id].filter(Boolean).join(', ')
}

/** Failures should stand out, whatever the caller calls them. */
function styleOf({ kind, speaker }: ReadEntry): Style {
  if (kind === 'message') return SPEAKER_STYLES[speaker] ?? 'cyan'
  return /fail|error|exceed|refus|abort/i.test(speaker) ? 'red' : 'yellow'
}

/** JSON with one member per line, small values on one line. */
function indentedJson(value: unknown, indent = ''): string {
  const inner = `${indent}  `
  if (Array.isArray(value) && value.length > 0) {
    const items = value.map((item) => inner + indentedJson(item, inner))
    return `[\n${items.join(',\n')}\n${indent}]`
  }
  const isObject =
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  const members = isObject ? Object.entries(value) : []
  if (members.length === 0) return visibleJson(writeJson(value))
  const compact = visibleJson(writeJson(value))
  if (indent !== '' && compact.length <= 60) return compact
  const lines = members.map(
    ([key, member]) => `${inner}${visibleJson(JSON.stringify(key))}: ${indentedJson(member, inner)}`,
  )
  return `{\n${lines.join(',\n')}\n${indent}}`
}
