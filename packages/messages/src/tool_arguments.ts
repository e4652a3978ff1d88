import { isObject, type JsonObject } from './blob_reading.js'
import { parseMarkedJson, textLength, writeMarkedJson } from './text_bytes.js'

/**
 * OpenAI has a call's arguments as the text that the model wrote; Anthropic and Gemini have an object. Text that is
 * not a JSON object (models write a cut-off `{"a":`, or `[1]`) is stored under this key, and is restored from it
 * unchanged. Nothing at all, or null, is what models write for a tool without parameters.
 */
const UNPARSED_ARGUMENTS = 'unparsed_arguments'

/** Arguments as an object. A number that no double holds is an `ExactNumber`, for `writeJson`. */
export function argumentsAsObject(text: string): JsonObject {
  const said = text.trim()
  if (said === '' || said === 'null') return {}
  const value = parseObject(text)
  return value === undefined || unparsed(value) !== undefined ? { [UNPARSED_ARGUMENTS]: text } : value
}

/** Arguments as the text of an object, which many services that take OpenAI's formats read and refuse anything else. */
export function textOfArguments(given: unknown): string {
  const text = typeof given === 'string' ? given : writeMarkedJson(given ?? null)
  return parseObject(text) ? text : writeMarkedJson(argumentsAsObject(text))
}

/** OpenAI takes no longer arguments. */
const ARGUMENTS_LENGTH_MAX = 1024 * 1024

/** The same where they are not too long for OpenAI, else without white space between their members; undefined if that is not enough. */
export function sentArguments(given: unknown): string | undefined {
  const text = textOfArguments(given)
  if (textLength(text) <= ARGUMENTS_LENGTH_MAX) return text
  const compact = writeMarkedJson(parseObject(text))
  return textLength(compact) <= ARGUMENTS_LENGTH_MAX ? compact : undefined
}

/** Whether the input of a custom tool's call is too long for OpenAI. */
export function isLongInput(text: unknown): boolean {
  return typeof text === 'string' && textLength(text) > ARGUMENTS_LENGTH_MAX
}

/** The longest name of a member that OpenAI takes in an object of arguments. */
const NAME_LENGTH_MAX = 256

/** The object of a call's arguments, or its text where a model wrote names that are none. */
export function sentObject(given: JsonObject): JsonObject {
  return hasLongName(given) ? { [UNPARSED_ARGUMENTS]: writeMarkedJson(given) } : given
}

function hasLongName(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasLongName)
  if (!isObject(value)) return false
  return Object.entries(value).some(([name, member]) => name.length > NAME_LENGTH_MAX || hasLongName(member))
}

/** Arguments as text. */
export function argumentsAsText(value: unknown): string {
  // Streams are collected as text, which may be cut off: that is not encoded again.
  if (typeof value === 'string') return value || '{}'
  return value === null ? '{}' : (unparsed(value) ?? writeMarkedJson(value))
}

/**
 * The text that `argumentsAsObject` put under the key. Text that is an object was put there only if that object
 * itself looks like one made so; otherwise the key is one of the tool's own.
 */
function unparsed(value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1) return undefined
  const text = value[UNPARSED_ARGUMENTS]
  if (typeof text !== 'string') return undefined
  const inner = parseObject(text)
  return inner === undefined || unparsed(inner) !== undefined ? text : undefined
}

/** The text's JSON object, if it is one. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseMarkedJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
