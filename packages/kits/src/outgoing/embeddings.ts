import type { Config } from '../configuration/config.js'
import { postForText } from './bounded_fetch.js'

/** What is sent at once: texts, and characters of them. */
const BATCH = { texts: 64, length: 100_000 }
/** Texts that were asked for and failed go in ever smaller batches: 64, 16, 4, and alone. */
const SMALLER = 4
/** How often a text is asked for alone before it is skipped; and how many such texts are remembered, by how they begin. */
const ALONE = { tries: 3, texts_max: 1_000, length: 200 }
/** How long a batch, and a question, may take. */
const ANSWER_MS_MAX = 10_000
const QUESTION_MS_MAX = 500
/** After which time no further batch is begun: whoever has sessions to embed has them for a minute. */
const BATCHES_MS_MAX = 20_000
/** How long an endpoint that is away is left alone. */
const REST_MS = { first: 1_000, max: 60_000, of_questions: 2_000 }
/** Owners whose questions rest at a time. */
const RESTING_MAX = 1_000
const ANSWER_BYTES_MAX = 6 * 1024 * 1024
const PROBE = 'Where is my refund?'

/** A vector as PostgreSQL reads it: an array of reals; and its signs, four to a hexadecimal digit. */
export interface Vector {
  values: string
  sketch: string
}

export interface Vectors {
  dimension: number
  /** In the order of the texts. */
  vectors: Vector[]
}

/** Reads an answer to so many texts, for an owner. */
export type ReadVectors = (owner: string, answer: string, count: number) => Promise<Vectors>

/** The model that the operator has named; undefined if there is none. */
export function openEmbeddings(config: Config, read: ReadVectors): Embeddings | undefined {
  const { embeddings_url: url, embeddings_model: model, embeddings_key: key } = config
  if (url === undefined || model === undefined) return undefined
  const endpoint = `${url.replace(/\/$/, '')}/embeddings`
  const post = (body: string, signal: AbortSignal) =>
    postForText(endpoint, { body, key, bytes_max: ANSWER_BYTES_MAX, signal })
  return new Embeddings(model, post, read)
}

/** Nobody's text is to blame for these: the key, the model's name, or how much is asked. */
const AWAY_STATUSES: ReadonlySet<number> = new Set([401, 403, 404, 405, 429])
const UNREACHED: Readonly<Record<string, readonly [sentence: string, is_away: boolean]>> = {
  TimeoutError: ['The model did not answer in time.', false],
  AnswerTooLong: ['The model answered too much.', false],
}

/** The message may be shown to the operator. */
export class EmbeddingsFailure extends Error {
  override readonly name = 'EmbeddingsFailure'

  /** `is_away`: it would answer no other text either. Where that is not known, another one is asked for. */
  constructor(
    message: string,
    readonly is_away: boolean,
  ) {
    super(message)
  }
}

/**
 * Vectors of texts, of one model. An endpoint that is away is left alone for a while, longer each time. If it only fails at
 * some texts, these go in ever smaller batches, and one that fails alone three times gets no vector.
 */
export class Embeddings {
  private dimension: number | undefined
  private failures = 0
  private rest_until = 0
  /** By owner: a question at which the model fails may be to blame itself, and is no reason to leave those of others. */
  private readonly questions_rest_until = new Map<string, number>()
  /** Texts of a batch, by owner, where the last one failed. */
  private readonly sizes = new Map<string, number>()
  /** How often a text failed alone, by owner and text. */
  private readonly alone = new Map<string, number>()
  private skipped_texts = 0

  constructor(
    private readonly model: string,
    private readonly post: (body: string, signal: AbortSignal) => Promise<{ status: number; text: string }>,
    private readonly read: ReadVectors,
  ) {}

  /** Texts without a vector, because the model failed at them. */
  get skipped(): number {
    return this.skipped_texts
  }

  restMs(): number {
    return Math.max(this.rest_until - performance.now(), 0)
  }

  /** Names the model and the length of its vectors: only those of the same name can be compared. */
  async name(signal: AbortSignal): Promise<string> {
    if (this.dimension === undefined) await this.probe(signal)
    return this.nameOf(this.dimension!)
  }

  /** Undefined if there is none in time. */
  async ofQuestion(owner: string, question: string): Promise<{ name: string; vector: Vector } | undefined> {
    if (this.restMs() > 0 || performance.now() < (this.questions_rest_until.get(owner) ?? 0)) return undefined
    try {
      const { dimension, vectors } = await inTime(QUESTION_MS_MAX, undefined, (signal) =>
        this.ask(owner, [question], signal),
      )
      if (this.dimension !== undefined && this.dimension !== dimension) throw otherLength()
      return { name: this.nameOf(dimension), vector: vectors[0]! }
    } catch {
      if (this.questions_rest_until.size === RESTING_MAX) this.questions_rest_until.clear()
      this.questions_rest_until.set(owner, performance.now() + REST_MS.of_questions)
      return undefined
    }
  }

  /**
   * The vectors of an owner's texts, null for those that were skipped; of the first ones only, where that takes long or one
   * is to be tried again. @throws EmbeddingsFailure when that is the first one, or the endpoint is away
   */
  async of(
    owner: string,
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<{ name: string; vectors: (Vector | null)[] }> {
    const name = await this.name(signal)
    const vectors: (Vector | null)[] = []
    const until = performance.now() + BATCHES_MS_MAX
    while (vectors.length < texts.length && performance.now() < until) {
      const size = this.sizes.get(owner) ?? BATCH.texts
      const batch = batchFrom(texts, vectors.length, size)
      const asked = batch.filter((text) => text !== '')
      try {
        const answered = asked.length === 0 ? [] : await this.vectorsOf(owner, asked, name, signal)
        let next = 0
        vectors.push(...batch.map((text) => (text === '' ? null : answered[next++]!)))
        if (2 * size < BATCH.texts) this.sizes.set(owner, 2 * size)
        else this.sizes.delete(owner)
      } catch (error) {
        await this.passOver(error, signal)
        this.sizes.set(owner, Math.max(1, Math.floor(Math.min(size, batch.length) / SMALLER)))
        if (batch.length > 1) continue
        if (this.failsAgain(`${owner} ${batch[0]!.slice(0, ALONE.length)}`)) vectors.push(null)
        else if (vectors.length === 0) throw error
        else break
      }
    }
    return { name, vectors }
  }

  /** Notes that a text failed alone. Returns whether it is skipped from now on. */
  private failsAgain(text: string): boolean {
    const tries = (this.alone.get(text) ?? 0) + 1
    this.alone.delete(text)
    if (tries === ALONE.tries) this.skipped_texts += 1
    else {
      if (this.alone.size === ALONE.texts_max) this.alone.clear()
      this.alone.set(text, tries)
    }
    return tries === ALONE.tries
  }

  private async vectorsOf(
    owner: string,
    texts: readonly string[],
    name: string,
    signal: AbortSignal,
  ): Promise<Vector[]> {
    const { dimension, vectors } = await this.answered(owner, texts, signal)
    if (this.nameOf(dimension) !== name) throw otherLength()
    return vectors
  }

  /** Finds out whether the endpoint fails at these texts only. @throws EmbeddingsFailure if it is away */
  private async passOver(error: unknown, signal: AbortSignal): Promise<void> {
    if (!(error instanceof EmbeddingsFailure) || signal.aborted) throw error
    if (error.is_away) throw this.away(error)
    await this.probe(signal)
  }

  private async probe(signal: AbortSignal): Promise<void> {
    try {
      const { dimension } = await this.answered('', [PROBE], signal)
      this.dimension ??= dimension
      if (this.dimension !== dimension) throw otherLength()
    } catch (error) {
      throw this.away(error)
    }
  }

  private async answered(owner: string, texts: readonly string[], signal: AbortSignal): Promise<Vectors> {
    const answered = await inTime(ANSWER_MS_MAX, signal, (timely) => this.ask(owner, texts, timely))
    this.failures = 0
    return answered
  }

  /** @throws EmbeddingsFailure */
  private async ask(owner: string, texts: readonly string[], signal: AbortSignal): Promise<Vectors> {
    const body = JSON.stringify({ model: this.model, input: texts, encoding_format: 'float' })
    const { status, text } = await this.post(body, signal).catch((error: Error) => {
      throw new EmbeddingsFailure(
        ...(UNREACHED[error.name] ?? (['The model could not be reached.', true] as const)),
      )
    })
    if (status !== 200)
      throw new EmbeddingsFailure(`The model answered ${status}.`, AWAY_STATUSES.has(status))
    return this.read(owner, text, texts.length).catch((error: Error) => {
      throw new EmbeddingsFailure(error.message, false)
    })
  }

  private nameOf(dimension: number): string {
    return `${dimension} ${this.model}`
  }

  private away(error: unknown): EmbeddingsFailure {
    const rest_ms = Math.min(REST_MS.first * 2 ** Math.min(this.failures, 10), REST_MS.max)
    this.failures += 1
    this.rest_until = performance.now() + rest_ms
    return new EmbeddingsFailure((error as Error).message, true)
  }
}

/** Not AbortSignal.any of a timeout, which Node may forget before it goes off, as nothing else holds on to it. */
async function inTime<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController()
  const end = () => ending.abort(signal?.reason)
  const timer = setTimeout(() => ending.abort(new DOMException('late', 'TimeoutError')), ms)
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  try {
    return await work(ending.signal)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

function otherLength(): EmbeddingsFailure {
  return new EmbeddingsFailure('The model has vectors of another length than before.', false)
}

function batchFrom(texts: readonly string[], from: number, most: number): readonly string[] {
  let to = from
  let length = 0
  while (to < texts.length && to - from < most && (to === from || length + texts[to]!.length <= BATCH.length))
    length += texts[to++]!.length
  return texts.slice(from, to)
}
