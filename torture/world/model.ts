import { createHash } from 'node:crypto'
import { honest } from '../../lab/model_scripts.ts'
import { type Asked, type ModelServer, type Reply, startModelServer } from '../../lab/model_server.ts'
import type { Random } from '../../lab/random.ts'
import { Line } from './line.ts'

/** Of calls, how many meet with trouble. */
const TROUBLE = 0.04
const TROUBLES: Reply[] = [{ status: 429 }, { status: 500 }, 'reset', 'silent']
const DIGITS = 'abcdefghij'

/** An input, as the ledger names it, and when it was sent. */
export interface SentInput {
  hash: string
  /** performance.now(), in ms. */
  at: number
  /** Of a session, whether its outcome was shown. */
  with_outcome: boolean
}

/**
 * The model that learning spaces ask, behind an address that stays the same while it is killed. Of each run it says
 * something that it never says again, so that a run that was learnt twice shows, and something that other runs of the
 * same task say as well.
 */
export class Model {
  readonly url: string
  /** All that was sent to it. */
  readonly sent: SentInput[] = []
  private readonly sessions = new Map<string, string>()
  /** By what was said of them: the sessions that were shown. */
  private readonly shown = new Map<string, string[]>()
  private readonly line: Line
  private readonly random: Random
  private server: ModelServer | undefined

  private constructor(line: Line, random: Random) {
    this.url = `http://127.0.0.1:${line.port}/v1`
    this.line = line
    this.random = random
  }

  static async open(random: Random): Promise<Model> {
    const model = new Model(await Line.open(random.fork('line')), random)
    await model.start()
    return model
  }

  async start(): Promise<void> {
    this.server = await startModelServer((asked) => this.reply(asked))
    this.line.target = Number(new URL(this.server.url).port)
  }

  /** Breaks off what it is asked. */
  async kill(): Promise<void> {
    this.line.target = undefined
    await this.server?.close()
  }

  async close(): Promise<void> {
    await this.kill()
    this.line.close()
  }

  /** Tells it whose run begins with which words. */
  expect(session_id: string, first_words: string): void {
    this.sessions.set(first_words, session_id)
  }

  private reply(asked: Asked): Reply {
    const session_ids = this.sessionsOf(asked)
    const { system, user } = asked.prompt
    // As the ledger does: a curator's question is the same whichever session leads to it.
    const about = asked.step === 'curate' ? [] : session_ids
    const hash = createHash('sha256').update(JSON.stringify([asked.step, about, system, user]))
    const with_outcome = asked.data.runs?.[0]?.outcome !== 'unknown'
    this.sent.push({ hash: hash.digest('hex'), at: performance.now(), with_outcome })
    if (this.random.chance(TROUBLE)) return this.random.pick(TROUBLES)
    if (asked.step === 'curate') return honest(asked)
    const [{ run, entries }] = asked.data.runs as [NonNullable<Asked['data']['runs']>[number]]
    const { seq, text } = entries.find(({ by }) => by === 'agent')!
    const own = `${OWN} ${inLetters(this.sent.length)}.`
    this.shown.set(own, session_ids)
    const statements = [own, `${SHARED} ${taskOf(text)} every day.`].map((words) => ({
      kind: 'fact',
      text: words,
      tool: null,
      cites: [{ run, seq, quote: text }],
    }))
    return { answer: { statements } }
  }

  private sessionsOf({ data: { runs, candidates } }: Asked): string[] {
    if (runs) return runs.map(({ entries }) => this.sessions.get(entries[0]!.text) ?? '')
    return candidates!.flatMap(({ text }) => this.shown.get(text) ?? [])
  }
}

/** How what the model says begins, of one run and of several. */
export const OWN = 'This was seen only once, by call'
export const SHARED = 'Agents are asked about the task'

/** The task of which an agent's words speak: those after the last colon. */
function taskOf(words: string): string {
  return words.slice(words.lastIndexOf(':') + 1).trim()
}

/** A number without digits, which a statement about no particular record has not. */
export function inLetters(number: number): string {
  return [...String(number)].map((digit) => DIGITS[Number(digit)]).join('')
}
