import { isJsonObject } from '../json/index.js'
import type { LogEntry, LoggedMessage } from './entry.js'

/** Kinds of tokens that have a price of their own. `input` excludes those that were read from or written to a cache. */
const KINDS = ['input', 'output', 'cached_input', 'cache_write', 'cache_write_1h'] as const
type Kind = (typeof KINDS)[number]

/** Millionths of the currency for a million tokens. */
type ModelPrices = Partial<Record<Kind, bigint>>
export interface Prices {
  currency: string
  models: ReadonlyMap<string, ModelPrices>
}

const PRICE_MAX = 1_000_000

/** A price list that cannot be used; `at` is the JSON pointer of what is wrong, and `reason` says what it must be. */
export class InvalidPrices extends Error {
  override readonly name = 'InvalidPrices'

  constructor(
    readonly at: string,
    readonly reason: string,
  ) {
    super(`${at} ${reason}`.trim())
  }
}

/** Reads a price list: `{ currency, models: { [model]: { input, output, cached_input, cache_write } } }`. @throws InvalidPrices */
export function readPriceList(list: unknown): Prices {
  if (!isJsonObject(list)) throw new InvalidPrices('', 'must be an object with `currency` and `models`')
  const { currency, models, ...others } = list
  const [other] = Object.keys(others)
  if (other !== undefined)
    throw new InvalidPrices(`/${other}`, 'is unknown: a price list has `currency` and `models`')
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency))
    throw new InvalidPrices('/currency', 'must be three capital letters, such as "USD"')
  if (!isJsonObject(models)) throw new InvalidPrices('/models', 'must be an object of prices by model')
  const found = new Map<string, ModelPrices>()
  for (const [model, given] of Object.entries(models)) {
    if (!isJsonObject(given)) throw new InvalidPrices(`/models/${model}`, 'must be an object of prices')
    const prices: ModelPrices = {}
    for (const [kind, price] of Object.entries(given)) {
      const at = `/models/${model}/${kind}`
      if (!KINDS.includes(kind as Kind))
        throw new InvalidPrices(at, `is unknown: a model has prices for ${KINDS.join(', ')}`)
      const millionths = millionthsOf(price)
      if (millionths === undefined)
        throw new InvalidPrices(at, `must be 0 to ${PRICE_MAX} with at most six decimals`)
      prices[kind as Kind] = millionths
    }
    found.set(model, prices)
  }
  return { currency, models: found }
}

function millionthsOf(price: unknown): bigint | undefined {
  if (typeof price !== 'number' || !(price >= 0 && price <= PRICE_MAX)) return undefined
  const [, whole, decimals = ''] = /^(\d+)(?:\.(\d{1,6}))?$/.exec(String(price)) ?? []
  return whole === undefined ? undefined : BigInt(whole + decimals.padEnd(6, '0'))
}

interface Call {
  parent: unknown
  /** Undefined: the span is around calls of models, and says what they used together. */
  model?: string
  usage: Partial<Record<string, unknown>>
}

/**
 * Adds up what the calls of models in a log cost, from the usage in their spans, or in the answers of Anthropic's API
 * as coding agents keep them. It is a lower bound as soon as
 * something is not known: a call without counts or with a model or kind of token that has no price, or an answer that
 * belongs to no call.
 */
export class SessionCost {
  private readonly calls = new Map<string, Call>()
  private readonly parents = new Map<string, unknown>()
  /** By the id of its message, under which name an answer's own usage is kept. */
  private readonly answers = new Map<string, string | undefined>()
  private readonly usages = new Map<string, Call>()
  /** By the last answer of a call, how many answers it tells of. */
  private readonly told = new Map<unknown, number>()
  /** In millionths of a millionth of the currency. */
  private sum = 0n
  private is_whole = true

  constructor(private readonly prices: Prices) {}

  add(item: LogEntry): void {
    if (item.kind === 'message') {
      if (item.role === 'assistant') this.addAnswer(item)
      return
    }
    const { data } = item
    if (!isJsonObject(data) || (item.type !== 'otel.span' && item.type !== 'otel.log')) return
    const { operation, model, usage, messages, span_id, parent_span_id } = data
    const is_call = operation === 'model' || operation === 'embeddings'
    // A log may tell of the same call as a span; spans alone are counted.
    if (item.type === 'otel.log') {
      if (is_call || isJsonObject(usage)) this.is_whole = false
      return
    }
    const name = typeof span_id === 'string' ? span_id : `entry ${item.seq}`
    this.parents.set(name, parent_span_id)
    if (!is_call && !isJsonObject(usage)) return
    const is_priced = is_call || operation === undefined
    // Without an answer, the last message is one that the model was sent.
    if (is_priced && isJsonObject(messages) && Number(messages.output) > 0) {
      const output = Number(messages.output)
      this.told.set(messages.last_id, Math.max(output, this.told.get(messages.last_id) ?? 0))
    }
    this.calls.set(name, {
      parent: parent_span_id,
      ...(is_priced && { model: typeof model === 'string' ? model : '' }),
      usage: isJsonObject(usage) ? { ...usage, ...(operation === 'embeddings' && { output_tokens: 0 }) } : {},
    })
  }

  /** An answer may stand in several messages, a block in each, which all have its usage; what is written grows. */
  private addAnswer({ id, format, blob }: LoggedMessage): void {
    this.answers.set(id, undefined)
    if (format !== 'anthropic' || !isJsonObject(blob) || !isJsonObject(blob.usage)) return
    if (typeof blob.model !== 'string') return
    const name = `answer ${typeof blob.id === 'string' ? blob.id : id}`
    const usage = usageOfAnswer(blob.usage)
    const before = countIn(this.usages.get(name)?.usage ?? {}, 'output_tokens') ?? 0
    if (!usage) return
    this.answers.set(id, name)
    if (usage.output_tokens >= before) this.usages.set(name, { parent: undefined, model: blob.model, usage })
  }

  /**
   * Such as `1.25 USD` or `≥ 0.0025 USD`, to a millionth; undefined where the log tells of no model's use, or of none
   * that has a price.
   * @param is_all whether every entry of the log was added
   */
  text(is_all = true): string | undefined {
    if (this.calls.size === 0 && this.answers.size === 0 && this.is_whole) return undefined
    this.is_whole &&= is_all
    const around = this.callsAround()
    for (const [name, call] of this.calls) if (!around.has(name)) this.count(call)
    // Spans that tell of an answer have its usage, too.
    const own = new Set<string>()
    let told = 0
    for (const [id, name] of [...this.answers].reverse()) {
      told = Math.max(told, this.told.get(id) ?? 0)
      if (told > 0) told -= 1
      else if (name === undefined) this.is_whole = false
      else own.add(name)
    }
    for (const name of own) this.count(this.usages.get(name)!)
    if (!this.is_whole && this.sum === 0n) return undefined
    // A lower bound is rounded down, a whole sum to the nearest.
    const millionths = (this.sum + (this.is_whole ? 500_000n : 0n)) / 1_000_000n
    const digits = String(millionths).padStart(7, '0')
    const amount = `${digits.slice(0, -6)}.${digits.slice(-6).replace(/0{1,4}$/, '')}`
    return `${this.is_whole ? '' : '≥ '}${amount} ${this.prices.currency}`
  }

  /** Spans around others that tell their use: theirs is the sum of these. */
  private callsAround(): Set<unknown> {
    const around = new Set<unknown>()
    for (const { parent } of this.calls.values())
      for (let name = parent; typeof name === 'string' && !around.has(name); name = this.parents.get(name))
        around.add(name)
    return around
  }

  private count({ model, usage }: Call): void {
    const prices = model === undefined ? undefined : this.prices.models.get(model)
    const used = tokensOf(usage)
    if (used && KINDS.every((kind) => used[kind] === 0)) return
    if (!prices || !used) {
      this.is_whole = false
      return
    }
    this.is_whole &&= used.is_sure
    for (const kind of KINDS) {
      if (used[kind] === 0) continue
      const price = prices[kind]
      if (price === undefined) this.is_whole = false
      else this.sum += BigInt(used[kind]) * price
    }
  }
}

/** Tokens by kind; undefined where they are not known. Whether `input_tokens` includes those of the cache differs: the total tells. */
function tokensOf(usage: Call['usage']): (Record<Kind, number> & { is_sure: boolean }) | undefined {
  const [input, output] = [countIn(usage, 'input_tokens'), countIn(usage, 'output_tokens')]
  if (input === undefined || output === undefined) return undefined
  const cached_input = countIn(usage, 'cached_tokens') ?? 0
  const cache_write = countIn(usage, 'cache_write_tokens') ?? 0
  const cache_write_1h = countIn(usage, 'cache_write_1h_tokens') ?? 0
  const beside = cached_input + cache_write + cache_write_1h
  const total = countIn(usage, 'total_tokens')
  const is_separate = beside > input || (beside > 0 && total === input + output + beside)
  return {
    input: is_separate ? input : input - beside,
    output,
    cached_input,
    cache_write,
    cache_write_1h,
    is_sure: is_separate || (total === undefined ? beside === 0 : total === input + output),
  }
}

function countIn(usage: Call['usage'], name: string): number | undefined {
  const count = usage[name]
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

/** The usage of an answer of Anthropic's API, in which `input_tokens` excludes those of the cache; undefined if it is of another form. */
function usageOfAnswer(given: Record<string, unknown>) {
  const [input_tokens, output_tokens] = [countIn(given, 'input_tokens'), countIn(given, 'output_tokens')]
  const cached_tokens = countIn(given, 'cache_read_input_tokens')
  const written = countIn(given, 'cache_creation_input_tokens')
  if (input_tokens === undefined || output_tokens === undefined) return undefined
  const by_duration = isJsonObject(given.cache_creation) ? given.cache_creation : {}
  const hour = Math.min(countIn(by_duration, 'ephemeral_1h_input_tokens') ?? 0, written ?? 0)
  return {
    input_tokens,
    output_tokens,
    cached_tokens: cached_tokens ?? 0,
    cache_write_tokens: (written ?? 0) - hour,
    cache_write_1h_tokens: hour,
    total_tokens: input_tokens + output_tokens + (cached_tokens ?? 0) + (written ?? 0),
  }
}
