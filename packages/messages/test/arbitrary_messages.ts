import fc from 'fast-check'
import type { MessageFormat } from '../src/index.js'
import { acontext } from './arbitrary_neutral_messages.js'
import { responses } from './arbitrary_response_items.js'
import {
  base64,
  cached,
  callArguments,
  id,
  is,
  json,
  jsonObject,
  list,
  mediaType,
  name,
  orNull,
  shape,
  text,
  unknownBlock,
  url,
} from './arbitrary_values.js'

/** Messages of every shape that the providers' SDK types allow, in requests and in responses. */

// OpenAI

const openAiText = shape(
  { type: is('text'), text },
  { prompt_cache_breakpoint: fc.constant({ mode: 'explicit' }) },
)
const openAiUserContent = fc.oneof(
  openAiText,
  shape({
    type: is('image_url'),
    image_url: shape({ url }, { detail: fc.constantFrom('auto', 'low', 'high') }),
  }),
  shape({
    type: is('input_audio'),
    input_audio: shape({ data: base64, format: fc.constantFrom('wav', 'mp3') }),
  }),
  shape({
    type: is('file'),
    file: shape(
      {},
      { file_id: id, file_data: fc.oneof(url, base64), filename: fc.constantFrom('a.pdf', 'b.txt', 'c') },
    ),
  }),
  unknownBlock,
)
const openAiCall = fc.oneof(
  shape({ id, type: is('function'), function: shape({ name, arguments: callArguments }) }),
  shape({ id, type: is('custom'), custom: shape({ name, input: text }) }),
)
const functionCall = shape({ name, arguments: callArguments })
const openAiAssistant = shape<object>(
  { role: is('assistant') },
  {
    content: orNull(
      fc.oneof(text, list(fc.oneof(openAiText, shape({ type: is('refusal'), refusal: text })))),
    ),
    tool_calls: orNull(list(openAiCall)),
    function_call: orNull(functionCall),
    refusal: orNull(text),
    audio: orNull(shape({ id }, { data: base64, transcript: text, expires_at: fc.nat() })),
    annotations: orNull(list(jsonObject)),
    name,
  },
)
const openai = fc.oneof(
  shape<object>(
    { role: fc.constantFrom('system', 'developer'), content: fc.oneof(text, list(openAiText)) },
    { name },
  ),
  shape<object>({ role: is('user'), content: fc.oneof(text, list(openAiUserContent)) }, { name }),
  openAiAssistant,
  shape<object>({ role: is('tool'), tool_call_id: id, content: fc.oneof(text, list(openAiText)) }, { name }),
  shape<object>({ role: is('function'), name, content: orNull(text) }),
)

// Anthropic

const textBlock = shape({ type: is('text'), text }, { ...cached, citations: orNull(list(jsonObject)) })
const imageBlock = shape(
  {
    type: is('image'),
    source: fc.oneof(
      shape({ type: is('base64'), media_type: mediaType, data: base64 }),
      shape({ type: is('url'), url }),
      shape({ type: is('file'), file_id: id }),
    ),
  },
  cached,
)
const documentBlock = shape(
  {
    type: is('document'),
    source: fc.oneof(
      shape({ type: is('base64'), media_type: is('application/pdf'), data: base64 }),
      shape({ type: is('text'), media_type: is('text/plain'), data: text }),
      shape({ type: is('content'), content: fc.oneof(text, list(fc.oneof(textBlock, imageBlock))) }),
      shape({ type: is('url'), url }),
      shape({ type: is('file'), file_id: id }),
    ),
  },
  { ...cached, title: orNull(text), context: orNull(text), citations: orNull(jsonObject) },
)
const searchResult = shape(
  { type: is('search_result'), content: list(textBlock), source: text, title: text },
  cached,
)
const toolUse = shape(
  { type: is('tool_use'), id, name, input: fc.oneof(jsonObject, json) },
  { ...cached, toolset_name: orNull(text) },
)
const toolResult = shape(
  { type: is('tool_result'), tool_use_id: id },
  {
    ...cached,
    content: fc.oneof(
      text,
      list(
        fc.oneof(
          textBlock,
          imageBlock,
          documentBlock,
          searchResult,
          shape({ type: is('tool_reference'), tool_name: name }),
        ),
      ),
    ),
    is_error: fc.boolean(),
  },
)
const anthropicBlock = fc.oneof(
  textBlock,
  imageBlock,
  documentBlock,
  searchResult,
  toolUse,
  toolResult,
  shape({ type: is('thinking'), thinking: text, signature: text }),
  shape({ type: is('redacted_thinking'), data: text }),
  shape({ type: is('server_tool_use'), id, name: is('web_search'), input: json }),
  shape({ type: is('web_search_tool_result'), tool_use_id: id, content: list(jsonObject) }),
  unknownBlock,
)
const anthropicContent = fc.oneof(text, list(anthropicBlock))
const anthropic = fc.oneof(
  shape<object>({ role: fc.constantFrom('user', 'assistant'), content: anthropicContent }),
  shape<object>({ role: is('system'), content: fc.oneof(text, list(textBlock)) }),
  shape<object>({
    id: text,
    type: is('message'),
    role: is('assistant'),
    model: text,
    content: list(anthropicBlock),
    stop_reason: orNull(is('end_turn')),
    stop_sequence: orNull(text),
    usage: jsonObject,
  }),
)

// Gemini

const blob = fc.oneof(
  shape({}, { data: base64, mimeType: mediaType, displayName: text }),
  shape({}, { data: base64, mime_type: mediaType, display_name: orNull(text) }),
)
const fileData = fc.oneof(
  shape({}, { fileUri: url, mimeType: mediaType, displayName: text }),
  shape({}, { file_uri: url, mime_type: mediaType }),
)
const geminiCall = shape({}, { id, name, args: jsonObject })
const responseParts = list(fc.oneof(shape({ inlineData: blob }), shape({ fileData })))
const response = fc.oneof(
  jsonObject,
  fc.oneof(text, json).map((output) => ({ output })),
  text.map((error) => ({ error })),
)
const geminiResponse = shape({}, { id, name, response, parts: responseParts, willContinue: fc.boolean() })
const geminiPart = fc.oneof(
  shape({ text }, { thought: fc.boolean(), thoughtSignature: base64 }),
  shape({ inlineData: blob }, { videoMetadata: jsonObject }),
  shape({ inline_data: blob }),
  shape({ fileData }),
  shape({ file_data: fileData }),
  shape({ functionCall: geminiCall }, { thoughtSignature: base64 }),
  shape({ function_call: geminiCall }, { thought_signature: orNull(base64) }),
  shape({ functionResponse: geminiResponse }),
  shape({ function_response: geminiResponse }),
  shape({ executableCode: shape({}, { code: text, language: is('PYTHON') }) }),
  shape({ codeExecutionResult: shape({}, { outcome: is('OUTCOME_OK'), output: text }) }),
  shape({}, { text, functionCall: geminiCall, functionResponse: geminiResponse, inlineData: blob }),
)
const gemini = fc.oneof(
  shape<object>({ parts: list(geminiPart) }, { role: fc.constantFrom('user', 'model', 'function') }),
  shape<object>({ role: fc.constantFrom('user', 'model') }),
)

/** As a request body brings them: what JSON cannot hold is gone. */
function asSent(message: fc.Arbitrary<object>): fc.Arbitrary<object> {
  return message.map((value) => JSON.parse(JSON.stringify(value)) as object)
}

export const MESSAGES: Readonly<Record<MessageFormat, fc.Arbitrary<object>>> = {
  openai: asSent(openai),
  anthropic: asSent(anthropic),
  gemini: asSent(gemini),
  acontext: asSent(acontext),
  responses: asSent(responses),
}
