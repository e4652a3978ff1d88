import { isObject, type JsonObject } from '../blob_fields.js'
import { parseObject } from '../tool_arguments.js'

/** How much of a text is examined: an error is named at the beginning. */
const HEAD_MAX = 300

/**
 * `Error: …`, `ValueError: …`, `java.io.IOException: …`, `Error executing tool f`, `Exception in thread "main"`, or
 * nothing but the word. Not a text about errors, such as `Error rates fell` or `Error handling in Rust`. The repeats
 * are bounded, so that a hostile text takes no more time than any other.
 */
const FAILURE =
  /^(?:[Uu]ncaught |[Uu]nhandled |[Ff]atal )?(?:[\w.$]{0,120}(?:Error|Exception)|error|ERROR|exception|EXCEPTION)(?:\s*$|\s*[:([!]|\.?\s*[\r\n]|\.(?:\s|$)|\s+[-–—]\s|\s(?:executing|calling|invoking|running|while|when|during|in|from|code|occurred)\b)/
const TRACEBACK = /^traceback \(most recent call last\)/i

/** A JSON text without any of these cannot report a failure. */
const TELLING_MEMBER = /"(?:error|is_error|isError|ok|success|status)"\s*:/

/** Whether a tool's result, as text, says that the call failed. */
export function textSaysFailed(text: string): boolean {
  const said = text.trimStart()
  if (said.startsWith('{')) return TELLING_MEMBER.test(said) && objectSaysFailed(parseObject(said) ?? {})
  const head = said.slice(said.startsWith('"') ? 1 : 0, HEAD_MAX).replace(/"$/, '')
  return FAILURE.test(head) || TRACEBACK.test(head)
}

/** Whether a tool's result says that the call failed. */
export function valueSaysFailed(value: unknown): boolean {
  if (typeof value === 'string') return textSaysFailed(value)
  return isObject(value) && objectSaysFailed(value)
}

/** Whether an object reports a failure in one of its members. If it has the flag, that decides. */
function objectSaysFailed(object: JsonObject): boolean {
  return (
    failureMark(object) ??
    (isSomething(object.error) ||
      object.ok === false ||
      object.success === false ||
      object.status === 'error')
  )
}

/** Like `objectSaysFailed`, for the data of an event, whose `status` is the call's own. */
export function eventSaysFailed(data: JsonObject): boolean {
  return objectSaysFailed(data) || data.status === 'failed' || data.status === 'failure'
}

/** The flag of MCP and the providers. */
export function failureMark(object: JsonObject): boolean | undefined {
  return [object.is_error, object.isError].find((mark) => typeof mark === 'boolean')
}

/** Whether an `error` is non-empty: null, false, 0 and empty values do not count. */
export function isSomething(error: unknown): boolean {
  if (Array.isArray(error)) return error.length > 0
  if (isObject(error)) return Object.keys(error).length > 0
  return Boolean(error)
}
