import { isObject, type JsonObject } from '../blob_reading.js'
import { textOf } from '../json/exact_json.js'
import { eventSaysFailed, failureMark, isSomething, valueSaysFailed } from './failures.js'
import type { CallRecord, EntryRecords, ResultRecord } from './records.js'

/** Types of events, without separators. */
const CALL_TYPES = new Set(['toolcall', 'tooluse', 'functioncall'])
const RESULT_TYPES = new Set([
  'toolresult',
  'tooloutput',
  'toolresponse',
  'toolcallresult',
  'toolcalloutput',
  'functionresult',
  'functionresponse',
  'functioncalloutput',
  // Of Codex. It alone says whether a tool of MCP failed.
  'mcptoolcallend',
])

/** The call and the result that an event records. */
export function recordsOf(type: string, data: JsonObject): EntryRecords {
  const kind = type.toLowerCase().replace(/[^a-z]/g, '')
  if (kind === 'otelspan' || kind === 'otellog') return toolOfSpan(data)
  if (CALL_TYPES.has(kind)) {
    const call = callOf(data)
    const is_over = call && (data.result != null || data.output != null || eventSaysFailed(data))
    return { call, result: is_over ? resultOf(data) : undefined }
  }
  return { call: undefined, result: RESULT_TYPES.has(kind) ? resultOf(data) : undefined }
}

/** The call of a tool that a span or a record of OpenTelemetry tells of, once it has ended. */
function toolOfSpan({ tool, error, duration_ms }: JsonObject): EntryRecords {
  if (!isObject(tool) || typeof tool.name !== 'string' || tool.name === '') return NO_RECORDS
  const { name, arguments: given, result, is_error } = tool
  const id = isId(tool.id) ? String(tool.id) : undefined
  const is_failed = is_error === true || (is_error == null && valueSaysFailed(result))
  const took_ms = typeof duration_ms === 'number' ? duration_ms : undefined
  return {
    call: { id, name, arguments: textOf(given) },
    result: { id, is_certain: false, name, text: textOf(result ?? error), is_failed, took_ms },
  }
}

const NO_RECORDS: EntryRecords = { call: undefined, result: undefined }

/** `{ name, arguments }`, `{ id, type, function: { name, arguments } }`, and their common synonyms. */
function callOf(data: JsonObject): CallRecord | undefined {
  const called = isObject(data.function) ? data.function : data
  const name = nameIn(called)
  if (name === undefined) return undefined
  const given = called.arguments ?? called.input ?? called.args ?? called.parameters
  return { id: idsOf(data)[0], name, arguments: textOf(given) }
}

function resultOf(data: JsonObject): ResultRecord {
  const output = data.result ?? data.output ?? data.content ?? data.response
  const [id, is_certain] = idsOf(data)
  const is_failed = failureMark(data) ?? (eventSaysFailed(data) || valueSaysFailed(output))
  // Without an output field, or with an error beside it, the whole data is the tool's output.
  const text = textOf(isSomething(data.error) ? data : (output ?? data))
  const name = nameIn(
    isObject(data.function) ? data.function : isObject(data.invocation) ? data.invocation : data,
  )
  return { id, is_certain, name, text, is_failed }
}

function nameIn(data: JsonObject): string | undefined {
  return [data.name, data.tool_name, data.tool].find((name) => typeof name === 'string' && name !== '') as
    | string
    | undefined
}

/**
 * The id that links a call to its result, and whether it can mean nothing else: a plain `id` may be the event's own.
 */
function idsOf(data: JsonObject): [id: string | undefined, is_certain: boolean] {
  const id = [data.call_id, data.tool_call_id, data.tool_use_id].find(isId)
  return id !== undefined ? [String(id), true] : [isId(data.id) ? String(data.id) : undefined, false]
}

function isId(value: unknown): boolean {
  return (typeof value === 'string' && value !== '') || typeof value === 'number'
}
