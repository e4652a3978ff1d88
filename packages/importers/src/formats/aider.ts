import type { FileFacts, Format, Parser } from '../format.js'
import { digestOf } from '../ids.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const BEGIN = /^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$/
const MODEL = /^(?:Main )?model: (\S+)/i
const TOKENS =
  /^Tokens: ([\d.,]+[kM]?) sent(?:, ([\d.,]+[kM]?) cache write)?(?:, ([\d.,]+[kM]?) cache hit)?, ([\d.,]+[kM]?) received\./
const COST = /Cost: \$([\d.]+) message/
/** Lines of Aider since 2024 end in two spaces, which tells them from headings and quotations of an answer. */
const ENDS = '  '
/** What the user tells Aider, and not the model. */
const COMMAND = /^#### (?:\/[a-z]|!)/
const FENCE = /^`{3,}/
/** Of one block; the rest of a longer one is a block of its own. */
const BLOCK_LENGTH_MAX = 4 * 1024 * 1024

/** The history of Aider: Markdown, in which a heading is what the user says, and a quotation what Aider does. */
export const AIDER: Format = {
  name: 'aider',
  title: "Aider's chat history (.aider.chat.history.md)",
  shape: 'text',
  knows: (_sample, { text }) => /^\s*# aider chat started at \d{4}-/.test(text),
  open: (output, file) => new AiderParser(output, file),
}

type Speaker = 'user' | 'assistant' | 'aider'

class AiderParser implements Parser {
  private started: string | undefined
  private key: string | undefined
  private count = 0
  private model: string | undefined
  private block: { speaker: Speaker; lines: string[]; length: number } | undefined
  /** Whether lines of Aider have their endings; undefined until the user has said something. */
  private is_marked: boolean | undefined
  /** The marks that began the code in which an answer is. */
  private fence = ''
  /** A blank line follows what the user said, which may go on after it. */
  private is_paused = false
  /** Sessions that began in the same second, with the same words. */
  private readonly keys = new Map<string, number>()

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {}

  read(value: unknown): void {
    const line = String(value).replace(/\r$/, '')
    this.out.accept()
    const [, started] = BEGIN.exec(line) ?? []
    if (started !== undefined) {
      this.finish()
      this.started = started
      return
    }
    const speaker = this.speakerOf(line)
    if (line.trim() === '' && speaker === 'user') this.is_paused = true
    else if (line.trim() === '' && speaker !== 'assistant') this.flush()
    else if (speaker === 'user') this.asked(line)
    else if (speaker === 'aider') this.add('aider', line.slice(1).trim())
    else this.answered(line.trimEnd())
  }

  /** The speaker of the line. A blank line belongs to the previous speaker. */
  private speakerOf(line: string): Speaker | undefined {
    const is_marked = line.endsWith(ENDS)
    if (line.trim() === '') return this.block?.speaker
    if (line.startsWith('#### ') || line.trimEnd() === '####') {
      this.is_marked ??= is_marked
      if (is_marked || !this.is_marked) return 'user'
    }
    const is_quoted = line.startsWith('> ') || line.trimEnd() === '>'
    return is_quoted && (is_marked || this.fence === '' || !this.is_marked) ? 'aider' : 'assistant'
  }

  /** Before lines had endings, each line of what was pasted had a blank one after it. */
  private asked(line: string): void {
    if (this.is_paused && (this.is_marked || COMMAND.test(line) || this.isCommand())) this.flush()
    this.is_paused = false
    this.add('user', line.slice(5).trimEnd())
  }

  private isCommand(): boolean {
    return this.block !== undefined && COMMAND.test(`#### ${this.block.lines.at(-1)}`)
  }

  private answered(line: string): void {
    this.add('assistant', line)
    const marks = FENCE.exec(line)?.[0] ?? ''
    if (this.fence === '') this.fence = marks
    else if (marks.length >= this.fence.length && line.trim() === marks) this.fence = ''
  }

  end(): void {
    this.finish()
  }

  private finish(): void {
    this.flush()
    if (this.key !== undefined) this.out.end(this.key)
    this.key = undefined
    this.model = undefined
    this.count = 0
  }

  private add(speaker: Speaker, line: string): void {
    if (this.block && (this.block.speaker !== speaker || this.block.length > BLOCK_LENGTH_MAX)) this.flush()
    this.block ??= { speaker, lines: [], length: 0 }
    this.block.lines.push(line)
    this.block.length += line.length
  }

  private flush(): void {
    const { block } = this
    this.block = undefined
    this.is_paused = false
    if (block?.speaker === 'assistant' && block.length <= BLOCK_LENGTH_MAX) this.fence = ''
    const text = block?.lines.join('\n').trim()
    if (!block || !text) return
    const key = this.open(text)
    const native = this.count++
    // Only the session says when it was.
    const facts = { native, at: this.started }
    if (block.speaker === 'aider') this.told(key, text, facts)
    else this.out.message(key, 'openai', { role: block.speaker, content: text }, facts)
  }

  private open(text: string): string {
    if (this.key === undefined) {
      const named = `${this.started ?? this.file.name} ${digestOf(text)}`
      const count = (this.keys.get(named) ?? 0) + 1
      this.keys.set(named, count)
      this.key = count === 1 ? named : `${named} ${count}`
      this.out.session(this.key, { configs: { agent: 'aider' }, changed_at: this.started })
    }
    return this.key
  }

  /** What Aider says of itself: its model, what an answer used, and which files it changed. */
  private told(key: string, text: string, facts: { native: number; at: unknown }): void {
    const lines = text.split('\n')
    const model = lines.map((line) => MODEL.exec(line)?.[1]).find((one) => one !== undefined)
    if (model !== undefined) {
      this.model = model
      this.out.session(key, { configs: { model } })
    }
    const used = lines.find((line) => TOKENS.test(line))
    if (used === undefined) {
      const is_error = /\b(?:error|exception|failed to apply|did not match)\b/i.test(text)
      this.out.raw(key, is_error ? 'error' : 'output', text, { ...facts, noise: !is_error })
      return
    }
    const [, sent, write, hit, received] = TOKENS.exec(used)!
    const usage: JsonObject = { input_tokens: countIn(sent), output_tokens: countIn(received) }
    if (write) usage.cache_write_tokens = countIn(write)
    if (hit) usage.cached_tokens = countIn(hit)
    const [, cost] = COST.exec(used) ?? []
    const data = {
      operation: 'model',
      name: 'aider',
      ...(this.model !== undefined && { model: this.model }),
      usage,
      ...(cost !== undefined && { cost_usd: Number(cost) }),
      raw: text,
    }
    this.out.event(key, 'otel.span', data, facts)
  }
}

/** Aider rounds: `2.3k`. */
function countIn(text = '0'): number {
  const number = Number(text.replace(/[^\d.]/g, ''))
  return Math.round(number * (text.endsWith('k') ? 1_000 : text.endsWith('M') ? 1_000_000 : 1))
}
