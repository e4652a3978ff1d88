import type { FileFacts, Format, Parser } from '../format.js'
import { digestOf } from '../ids.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

const BEGIN = /^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$/
const MODEL = /^(?:Main )?model: (\S+)/i
const TOKENS =
  /^Tokens: ([\d.,]+[kM]?) sent(?:, ([\d.,]+[kM]?) cache write)?(?:, ([\d.,]+[kM]?) cache hit)?, ([\d.,]+[kM]?) received\./
const COST = /Cost: \$([\d.]+) message/
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
  /** Sessions that began in the same second, with the same words. */
  private readonly keys = new Map<string, number>()

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {}

  read(value: unknown): void {
    const line = String(value)
    this.out.accept()
    const [, started] = BEGIN.exec(line) ?? []
    if (started !== undefined) {
      this.finish()
      this.started = started
      return
    }
    if (line.startsWith('#### ') || line.trimEnd() === '####') this.add('user', line.slice(5).trimEnd())
    else if (line.startsWith('>')) this.add('aider', line.slice(1).trim())
    else if (line.trim() === '' && this.block?.speaker !== 'assistant') this.flush()
    else this.add('assistant', line.trimEnd())
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
