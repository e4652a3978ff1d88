import { isObject, type JsonObject } from '../blob_reading.js'
import { textOf } from '../json/exact_json.js'
import { openedValue } from './framework_messages.js'

/** A framework's state beside messages, such as a checkpoint: its kind, a summary in one line, and all of it. */
export interface KeptState {
  title: string
  summary: string
  is_failed: boolean
  value: unknown
}

const SUMMARY_LENGTH_MAX = 160
const KEYS_SHOWN_MAX = 4

const STATES = new Map<string, (data: JsonObject) => KeptState>([
  ['langgraph.checkpoint', checkpoint],
  ['langgraph.channel', ({ channel, value }) => named('channel', channel, openedValue(value))],
  ['langgraph.write', ({ channel, value }) => named('write', channel, openedValue(value))],
  ['adk.state', ({ name, value }) => named('state', name, value)],
  ['ai_sdk.stream', (data) => state('stream', inOneLine(data.stream_id), data)],
  ['ai_sdk.stream_end', streamEnd],
  ['pydantic_ai.record', (data) => state('record', inOneLine(data), data)],
  ['otel.span', telemetry],
  ['otel.log', telemetry],
  ['adapter.part', (data) => state('part of a larger entry', sizeOf(data.text), data)],
])

/** The state that an event of a framework's adapter keeps; undefined for all other events. */
export function keptState(type: string, data: JsonObject): KeptState | undefined {
  if (Array.isArray(data.adapter_parts)) {
    const { length } = data.adapter_parts
    return state(type, `large: stored in ${length} entries before this one`, data)
  }
  return STATES.get(type)?.(data)
}

function checkpoint(data: JsonObject): KeptState {
  const [checkpoint, metadata] = [openedValue(data.checkpoint), openedValue(data.metadata)]
  const { step = null, source = null } = isObject(metadata) ? metadata : {}
  const said = [step !== null && `step ${textOf(step)}`, textOf(source), textOf(data.checkpoint_ns)]
  return state('checkpoint', inOneLine(said.filter(Boolean).join(' · ')), { ...data, checkpoint, metadata })
}

function named(what: string, name: unknown, value: unknown): KeptState {
  return state(`${what} ${inOneLine(name)}`, inOneLine(value), value, name === '__error__')
}

/** A span or a record of OpenTelemetry: its name, and what it says of a model, tokens, time and failure. */
function telemetry(data: JsonObject): KeptState {
  const { name, operation, model, usage, duration_ms, status, error } = data
  const { input_tokens, output_tokens } = isObject(usage) ? usage : {}
  const is_failed = error != null || (isObject(status) && status.code === 'error')
  const said = [
    textOf(name),
    textOf(model),
    input_tokens !== undefined && `${textOf(input_tokens)} tokens in`,
    output_tokens !== undefined && `${textOf(output_tokens)} out`,
    typeof duration_ms === 'number' && `${Math.round(duration_ms).toLocaleString('en')} ms`,
    is_failed && (textOf(error) || 'failed'),
  ]
  const title = textOf(operation) || 'span'
  return state(title, inOneLine(said.filter(Boolean).join(' · ')), data, is_failed)
}

function streamEnd(data: JsonObject): KeptState {
  const is_failed = data.status === 'failed' || data.status === 'interrupted'
  return state('stream ended', inOneLine(data.status), data, is_failed)
}

function state(title: string, summary: string, value: unknown, is_failed = false): KeptState {
  return { title, summary, is_failed, value }
}

function inOneLine(value: unknown): string {
  if (Array.isArray(value)) return value.length === 1 ? '1 item' : `${value.length} items`
  if (!isObject(value)) return (textOf(value) || 'null').slice(0, SUMMARY_LENGTH_MAX)
  if (typeof value.base64 === 'string') return `${textOf(value.type)}, ${sizeOf(value.base64)}`
  const keys = Object.keys(value)
  const more = keys.length > KEYS_SHOWN_MAX ? ', …' : ''
  return (keys.slice(0, KEYS_SHOWN_MAX).join(', ') + more).slice(0, SUMMARY_LENGTH_MAX) || 'empty'
}

function sizeOf(text: unknown): string {
  return `${textOf(text).length.toLocaleString('en')} characters`
}
