import { readFile } from 'node:fs/promises'
import type { TimelineItem } from '@annals/client'
import { UsageError } from '../run_command.js'

/** Kinds of tokens that have a price of their own. `input` excludes those that were read from or written to a cache. */
const KINDS = ['input', 'output', 'cached_input', 'cache_write'] as const
type Kind = (typeof KINDS)[number]

/** Millionths of the currency for a million tokens. */
type ModelPrices = Partial<Record<Kind, bigint>>
export interface Prices {
  currency: string
  models: ReadonlyMap<string, ModelPrices>
}

const PRICE_MAX = 1_000_000
const CHARACTERS_MAX = 1_000_000

/** The price list that ANNALS_PRICES names or is; undefined without one. @throws UsageError that names the place */
export async function readPrices(value = process.env.ANNALS_PRICES): Promise<Prices | undefined> {
  if (!value?.trim()) return undefined
  const is_text = value.trimStart().startsWith('{')
  const place = is_text ? 'ANNALS_PRICES' : `ANNALS_PRICES (${value})`
  const fail = (at: string, what: string) => new UsageError(`${place}${at && ` at ${at}`} ${what}.`)
  let list: unknown
  try {
    const text = is_text ? value : await readFile(value, 'utf8')
    if (text.length > CHARACTERS_MAX) throw new Error(`it has more than ${CHARACTERS_MAX} characters`)
    list = JSON.parse(text)
  } catch (error) {
    throw fail('', `cannot be read: ${(error as Error).message}`)
  }
  if (!isObject(list)) throw fail('', 'must be an object with `currency` and `models`')
  const { currency, models, ...others } = list
  const [other] = Object.keys(others)
  if (other !== undefined) throw fail(`/${other}`, 'is unknown: a price list has `currency` and `models`')
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency))
    throw fail('/currency', 'must be three capital letters, such as "USD"')
  if (!isObject(models)) throw fail('/models', 'must be an object of prices by model')
  const found = new Map<string, ModelPrices>()
  for (const [model, given] of Object.entries(models)) {
    if (!isObject(given)) throw fail(`/models/${model}`, 'must be an object of prices')
    const prices: ModelPrices = {}
    for (const [kind, price] of Object.entries(given)) {
      if (!KINDS.includes(kind as Kind))
        throw fail(`/models/${model}/${kind}`, `is unknown: a model has prices for ${KINDS.join(', ')}`)
      const millionths = millionthsOf(price)
      if (millionths === undefined)
        throw fail(`/models/${model}/${kind}`, `must be 0 to ${PRICE_MAX} with at most six decimals`)
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
 * Adds up what the calls of models in a log cost, from the usage that their spans tell. It is a lower bound as soon as
 * something is not known: a call without counts or with a model or kind of token that has no price, or an answer that
 * belongs to no call.
 */
export class SessionCost {
  private readonly calls = new Map<string, Call>()
  private readonly parents = new Map<string, unknown>()
  private readonly answers = new Set<string>()
  private readonly told = new Set<unknown>()
  /** In millionths of a millionth of the currency. */
  private sum = 0n
  private is_whole = true

  constructor(private readonly prices: Prices) {}

  add(item: TimelineItem): void {
    if (item.kind === 'message') {
      if (item.role === 'assistant') this.answers.add(item.id)
      return
    }
    const { data } = item
    if (!isObject(data) || (item.type !== 'otel.span' && item.type !== 'otel.log')) return
    const { operation, model, usage, messages, span_id, parent_span_id } = data
    const is_call = operation === 'model' || operation === 'embeddings'
    // A log may tell of the same call as a span; spans alone are counted.
    if (item.type === 'otel.log') {
      if (is_call || isObject(usage)) this.is_whole = false
      return
    }
    const name = typeof span_id === 'string' ? span_id : `entry ${item.seq}`
    this.parents.set(name, parent_span_id)
    if (!is_call && !isObject(usage)) return
    const is_priced = is_call || operation === undefined
    // Without an answer, the last message is one that the model was sent.
    if (is_priced && isObject(messages) && Number(messages.output) > 0) this.told.add(messages.last_id)
    this.calls.set(name, {
      parent: parent_span_id,
      ...(is_priced && { model: typeof model === 'string' ? model : '' }),
      usage: isObject(usage) ? { ...usage, ...(operation === 'embeddings' && { output_tokens: 0 }) } : {},
    })
  }

  /** Such as `1.25 USD` or `≥ 0.0025 USD`, to a millionth; undefined where the log tells of no model's use. */
  text(): string | undefined {
    if (this.calls.size === 0 && this.answers.size === 0 && this.is_whole) return undefined
    const around = this.callsAround()
    for (const [name, call] of this.calls) if (!around.has(name)) this.count(call)
    for (const id of this.answers) this.is_whole &&= this.told.has(id)
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
    const used = prices && tokensOf(usage)
    if (!used) {
      this.is_whole = false
      return
    }
    this.is_whole &&= used.is_sure
    for (const kind of KINDS) {
      const price = prices[kind]
      if (used[kind] === 0) continue
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
  const beside = cached_input + cache_write
  const total = countIn(usage, 'total_tokens')
  const is_separate = beside > input || (beside > 0 && total === input + output + beside)
  return {
    input: is_separate ? input : input - beside,
    output,
    cached_input,
    cache_write,
    is_sure: is_separate || (total === undefined ? beside === 0 : total === input + output),
  }
}

function countIn(usage: Call['usage'], name: string): number | undefined {
  const count = usage[name]
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
