import { isJsonObject } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { byEnd, firstText, parsed, type Span, Traces } from '../traces.js'

const TYPES = new Set([
  'GENERATION',
  'SPAN',
  'EVENT',
  'TOOL',
  'AGENT',
  'CHAIN',
  'RETRIEVER',
  'EMBEDDING',
  'EVALUATOR',
  'GUARDRAIL',
])

/** Traces with their observations, as the API returns them, and tables of observations, as the page exports them. */
export const LANGFUSE: Format = {
  name: 'langfuse',
  title: 'traces and observations exported from Langfuse',
  knows: (sample) =>
    answered(sample).some(
      (one) =>
        isTrace(one) || isObservation(one) || isColumns(one) || isTrace({ ...one, ...objectIn(one.trace) }),
    ),
  open: (output) => new LangfuseParser(output, new Traces(output, 'told')),
}

class LangfuseParser implements Parser {
  constructor(
    private readonly out: Output,
    private readonly traces: Traces,
  ) {}

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    const all = answered(value)
    if (all[0] !== value) for (const one of all) this.read(one)
    else if (isColumns(value)) this.traces.store(spanOf(camelCased(value), {}))
    else if (isObservation(value)) this.traces.store(spanOf(value, {}))
    else this.trace({ ...value, ...objectIn(value.trace) })
  }

  end(): void {
    this.traces.end()
  }

  private trace({ observations, scores, ...about }: JsonObject): void {
    const { id, timestamp, name, userId, sessionId } = about
    const key = firstText(sessionId, id) ?? 'trace'
    this.out.session(key, {
      user: userId,
      configs: { agent: name, trace: id, tags: about.tags, environment: about.environment },
      changed_at: about.updatedAt ?? timestamp,
    })
    const rest = Array.isArray(observations)
      ? objectsIn(observations).length === observations.length
      : observations == null
    this.out.raw(key, 'trace', rest ? about : { ...about, observations }, {
      native: `trace ${id}`,
      at: timestamp,
      noise: true,
    })
    for (const one of byEnd(observations, 'startTime', 'endTime')) this.traces.store(spanOf(one, about))
    const scored = objectsIn(scores)
    for (const [index, score] of scored.entries()) {
      const { name: what, value, stringValue, comment } = score
      const data = { ...without({ name: what, value: value ?? stringValue, comment }), raw: score }
      this.out.outcome(key, data, {
        native: `score ${textIn(score.id) ?? `${id} ${index}`}`,
        at: score.timestamp ?? score.createdAt,
      })
    }
    if (scores != null && scored.length === 0 && !Array.isArray(scores)) this.out.raw(key, 'scores', scores)
  }
}

/** What an answer of the API has in its `data`: a page of a list, or one trace, also in an envelope of somebody else's. */
function answered(value: JsonObject): JsonObject[] {
  if (isTrace(value) || isObservation(value)) return [value]
  const data = isJsonObject(value.data) && !isTrace(value.data) ? value.data.data : value.data
  return Array.isArray(data) ? objectsIn(data) : isJsonObject(data) ? [data] : [value]
}

function spanOf(observation: JsonObject, trace: JsonObject): Span {
  const { id, traceId, parentObservationId, type, name, startTime, endTime, level, statusMessage } =
    observation
  const tool = toolOf(observation)
  const kind = type === 'GENERATION' ? 'model' : tool !== undefined ? 'tool' : 'other'
  const output = parsed(observation.output)
  return {
    id: String(id),
    trace_id: firstText(traceId, trace.id) ?? String(id),
    parent_id: textIn(parentObservationId),
    session: firstText(observation.sessionId, trace.sessionId),
    user: observation.userId ?? trace.userId,
    name: tool?.name ?? textIn(name) ?? String(type),
    kind,
    start: startTime,
    end: endTime,
    model: observation.model ?? observation.providedModelName ?? undefined,
    usage: observation.usageDetails ?? observation.usage,
    error: level === 'ERROR' ? (statusMessage ?? 'error') : undefined,
    input: parsed(observation.input),
    output: kind === 'tool' && isResult(output) ? objectIn(output).content : output,
    call_id: tool?.id,
    configs: without({ agent: trace.name }),
    raw: observation,
  }
}

/**
 * What was called, where the observation is a call of a tool: it says so itself, or by the attributes with which it was
 * sent, or by its output, which is a message of LangChain.
 */
function toolOf({ type, metadata, output }: JsonObject): { name?: string; id?: string } | undefined {
  const sent = objectIn(parsed(objectIn(parsed(metadata)).attributes))
  const message = objectIn(parsed(output))
  const own = textIn(sent['gen_ai.tool.name'])
  const name = own ?? textIn(sent['tool.name']) ?? (isResult(message) ? textIn(message.name) : undefined)
  const is_tool =
    type === 'TOOL' ||
    own !== undefined ||
    isResult(message) ||
    (name !== undefined && sent['openinference.span.kind'] === 'TOOL')
  const id = textIn([sent['gen_ai.tool.call.id'] ?? message.tool_call_id].flat().at(-1))
  return is_tool ? { ...(name !== undefined && { name }), ...(id !== undefined && { id }) } : undefined
}

function isResult(output: unknown): boolean {
  const { type, tool_call_id } = objectIn(output)
  return type === 'tool' && typeof tool_call_id === 'string'
}

function isTrace(sample: JsonObject): boolean {
  return (
    Array.isArray(sample.observations) && 'id' in sample && ('timestamp' in sample || 'projectId' in sample)
  )
}

function isObservation(sample: JsonObject): boolean {
  return TYPES.has(sample.type as string) && 'traceId' in sample && 'startTime' in sample
}

/** A row of the table of observations, whose columns are called in another way. */
function isColumns(sample: JsonObject): boolean {
  return TYPES.has(sample.type as string) && 'trace_id' in sample && 'start_time' in sample
}

function camelCased(row: JsonObject): JsonObject {
  const names = Object.entries(row).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  return { ...Object.fromEntries(names), usageDetails: parsed(row.usage_details) }
}
