import fc from 'fast-check'
import {
  base64,
  callArguments,
  id,
  is,
  json,
  jsonObject,
  list,
  name,
  orNull,
  shape,
  text,
  unknownBlock,
  url,
} from './arbitrary_values.js'
import { ITEM_VECTORS } from './response_items.js'

const status = fc.constantFrom('in_progress', 'completed', 'incomplete')
const inputText = shape({ type: is('input_text'), text }, { prompt_cache_breakpoint: orNull(jsonObject) })
const media = fc.oneof(
  shape(
    { type: is('input_image') },
    {
      detail: orNull(fc.constantFrom('low', 'high', 'auto', 'original')),
      file_id: orNull(id),
      image_url: orNull(url),
    },
  ),
  shape(
    { type: is('input_file') },
    {
      detail: is('low'),
      file_data: orNull(fc.oneof(url, base64)),
      file_id: orNull(id),
      file_url: orNull(url),
      filename: orNull(fc.constantFrom('a.pdf', 'b.txt', 'c')),
    },
  ),
)
const userContent = fc.oneof(
  inputText,
  media,
  shape({
    type: is('input_audio'),
    input_audio: shape({ data: base64, format: fc.constantFrom('wav', 'mp3') }),
  }),
  unknownBlock,
)
const replyContent = fc.oneof(
  shape({ type: is('output_text'), text, annotations: list(jsonObject) }, { logprobs: list(jsonObject) }),
  shape({ type: is('refusal'), refusal: text }),
)
const output = fc.oneof(text, list(fc.oneof(inputText, media)))
const outputFields = { id: orNull(id), status: orNull(status), caller: orNull(jsonObject) }
/** An item of a type that has no neutral form of its own, with any other values in its fields. */
const otherItem = fc
  .tuple(fc.constantFrom(...ITEM_VECTORS.map(({ item }) => item)), fc.nat(), json)
  .filter(([{ type }]) => type !== undefined && !NEUTRAL.has(type))
  .map(([item, nth, value]) => {
    const keys = Object.keys(item).filter((key) => key !== 'type')
    const key = keys[nth % Math.max(keys.length, 1)]
    return key === undefined ? item : { ...item, [key]: value }
  })
const NEUTRAL = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'reasoning',
  'computer_call_output',
])

/** An item of the Responses API. */
export const responses = fc.oneof(
  shape<object>(
    {
      role: fc.constantFrom('user', 'system', 'developer', 'assistant'),
      content: fc.oneof(text, list(userContent)),
    },
    { type: is('message'), phase: orNull(is('commentary')), status },
  ),
  shape<object>(
    { type: is('message'), id, role: is('assistant'), status, content: list(replyContent) },
    { phase: orNull(is('final_answer')) },
  ),
  shape<object>(
    { type: is('function_call'), call_id: id, name, arguments: callArguments },
    { id, status, namespace: name, caller: orNull(jsonObject) },
  ),
  shape<object>({ type: is('function_call_output'), call_id: id, output }, outputFields),
  shape<object>({ type: is('custom_tool_call'), call_id: id, name, input: text }, { id, namespace: name }),
  shape<object>({ type: is('custom_tool_call_output'), call_id: id, output }, outputFields),
  shape<object>(
    { type: is('reasoning'), id, summary: list(shape({ type: is('summary_text'), text })) },
    { content: list(shape({ type: is('reasoning_text'), text })), encrypted_content: orNull(text), status },
  ),
  shape<object>({
    type: is('computer_call_output'),
    call_id: id,
    output: shape({ type: is('computer_screenshot') }, { image_url: url, file_id: id }),
  }),
  otherItem,
)
