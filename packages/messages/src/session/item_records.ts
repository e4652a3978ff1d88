import type { JsonObject } from '../blob_reading.js'
import { textOf, writeJson } from '../json/exact_json.js'
import type { DataMeta } from '../parts.js'
import { itemKind } from '../response_items.js'
import { isUnfinished } from '../responses_in.js'
import { isSomething, textSaysFailed } from './failures.js'
import type { EntryRecords, ResultRecord } from './records.js'

/** The call and the result of a built-in tool that an item of the Responses API records: both where OpenAI ran it. */
export function recordsOfItem({ data_type, ...item }: DataMeta): EntryRecords {
  const kind = itemKind(data_type)
  if (kind === 'output') return { call: undefined, result: outputOf(data_type, item) }
  if (kind !== 'call' && kind !== 'hosted_call') return { call: undefined, result: undefined }
  const name = idOf(item.name) ?? data_type.replace(/_call$/, '')
  const id = idOf(item.call_id) ?? idOf(item.id)
  const result = kind === 'hosted_call' ? resultOf(item, id, name) : undefined
  return { call: { id, name, arguments: argumentsOf(item) }, result }
}

function outputOf(data_type: string, item: JsonObject): ResultRecord {
  const own = data_type === 'local_shell_call_output' ? item.id : undefined
  const text = textOf(item.output ?? item.result ?? item.tools)
  return {
    id: idOf(item.call_id) ?? idOf(own),
    is_certain: true,
    name: data_type.replace(/(_call)?_output$/, ''),
    text,
    is_failed: isUnfinished(item) || textSaysFailed(text),
  }
}

/** The result of a call that OpenAI made and answered; undefined while it is running. */
function resultOf(item: JsonObject, id: string | undefined, name: string): ResultRecord | undefined {
  const output = item.output ?? item.outputs ?? item.results
  const has_failed = isSomething(item.error) || isUnfinished(item)
  if (!has_failed && output == null && item.status !== 'completed') return undefined
  const text = textOf(isSomething(item.error) ? item.error : output)
  return { id, is_certain: true, name, text, is_failed: has_failed || textSaysFailed(text) }
}

function argumentsOf(item: JsonObject): string {
  const given = item.arguments ?? item.action ?? item.actions ?? item.operation
  if (given != null) return textOf(given)
  const { queries, code } = item
  return writeJson({ ...(queries != null && { queries }), ...(code != null && { code }) })
}

function idOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
