import { objectIn, without } from './json.js'
import type { Output } from './output.js'
import type { JsonObject } from './records.js'

/** A call of a model, as the message that it made tells of it. */
export interface ModelCall {
  usage: JsonObject
  cost_usd?: unknown
  model?: string | undefined
}

/** Stores what a call used, so that it has a cost. `last_id` is the last of the messages that it made. */
export function storeModelCall(
  out: Output,
  key: string,
  { usage, cost_usd, model }: ModelCall,
  {
    native,
    at,
    output,
    last_id,
  }: { native: string; at: unknown; output: number; last_id: string | undefined },
): void {
  const messages = output > 0 && last_id !== undefined ? { output, last_id } : undefined
  const data = without({ operation: 'model', name: 'answer', model, usage, cost_usd, messages })
  out.event(key, 'otel.span', data, { native, at })
}

const HOLDERS = ['message', 'info', 'data', 'kwargs', 'llm_message']
const USAGES = ['usage', 'tokens', 'usage_metadata', 'metrics']

/** What a message of any agent says that its call used. */
export function usedFor(given: JsonObject): Omit<ModelCall, 'model'> | undefined {
  const { model_response } = objectIn(given.tool_call_metadata)
  for (const about of [given, ...HOLDERS.map((name) => objectIn(given[name])), objectIn(model_response)])
    for (const name of USAGES) {
      const used = objectIn(about[name])
      const usage = usageIn(used)
      if (!usage) continue
      const costs = [objectIn(used.cost).total, used.cost, used.cost_usd, about.cost]
      const cost_usd = costs.find((cost) => typeof cost === 'number')
      return { usage, ...(cost_usd !== undefined && { cost_usd }) }
    }
  return undefined
}

/**
 * Counts of tokens, whatever they are called. The total tells whether those of a cache are part of the input. Undefined
 * where nothing was used.
 */
export function usageIn(used: JsonObject): JsonObject | undefined {
  const cache = objectIn(used.cache)
  const input = count(used, 'input_tokens', 'inputTokens', 'prompt_tokens', 'promptTokens', 'input')
  const output = count(
    used,
    'output_tokens',
    'outputTokens',
    'completion_tokens',
    'completionTokens',
    'output',
  )
  if (input === undefined || output === undefined) return undefined
  const apart =
    count(used, 'cacheRead', 'cacheReadInputTokens', 'cache_read_input_tokens') ?? count(cache, 'read')
  const details = { ...objectIn(used.prompt_tokens_details), ...objectIn(used.input_token_details) }
  const within = count(used, 'cached_tokens', 'cached') ?? count(details, 'cached_tokens', 'cache_read')
  const written =
    count(used, 'cacheWrite', 'cacheCreationInputTokens', 'cache_creation_input_tokens') ??
    count(cache, 'write')
  // Gemini counts thoughts, and what tools were told, beside the rest.
  const thoughts = count(used, 'thoughts') ?? 0
  const input_tokens = input + (count(used, 'tool') ?? 0)
  const reasoning =
    count({ ...used, ...objectIn(used.completion_tokens_details) }, 'reasoning_tokens', 'reasoning') ??
    thoughts
  const beside = apart === undefined ? 0 : apart + (written ?? 0)
  // OpenCode does as well, which its total tells.
  const is_apart = count(used, 'total') === input_tokens + output + beside + reasoning
  const output_tokens = output + (is_apart ? reasoning : thoughts)
  const usage = without({
    input_tokens,
    output_tokens,
    cached_tokens: apart ?? within,
    cache_write_tokens: written,
    reasoning_tokens: reasoning > 0 ? reasoning : undefined,
    total_tokens: input_tokens + output_tokens + beside,
  })
  return Object.values(usage).every((one) => one === 0) ? undefined : usage
}

function count(used: JsonObject, ...names: string[]): number | undefined {
  return names
    .map((name) => used[name])
    .find((one) => typeof one === 'number' && Number.isSafeInteger(one)) as number | undefined
}
