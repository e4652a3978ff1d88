import Type, { type TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import type { MessageFormat } from '../src/index.js'

/**
 * What a provider accepts in a request, as strictly as its SDK's types and its API's documented rules put it:
 * the fields that the renderers use and no others, no empty content, no blank text where it is refused.
 */
const record = (properties: Record<string, TSchema>) =>
  Type.Object(properties, { additionalProperties: false })
const maybe = Type.Optional
const text = Type.String()
const someText = Type.String({ minLength: 1 })
const visibleText = Type.String({ pattern: /\S/ })
const anyObject = Type.Record(Type.String(), Type.Unknown())
const oneOf = (...values: string[]) => Type.Union(values.map((value) => Type.Literal(value)))
const is = (value: string) => Type.Literal(value)
const some = (item: TSchema) => Type.Array(item, { minItems: 1 })
const publicUrl = Type.String({ pattern: /^https?:\/\//i })

const openAiText = record({ type: is('text'), text: someText })
const openAiRefusal = record({ type: is('refusal'), refusal: someText })
const openAiUserContent = Type.Union([
  openAiText,
  record({
    type: is('image_url'),
    image_url: record({
      url: Type.String({ pattern: /^(https?:\/\/|data:[^,]*;base64,)/i }),
      detail: maybe(oneOf('auto', 'low', 'high')),
    }),
  }),
  record({ type: is('input_audio'), input_audio: record({ data: text, format: oneOf('wav', 'mp3') }) }),
  record({ type: is('file'), file: record({ file_id: text }) }),
  record({
    type: is('file'),
    file: record({ file_data: Type.String({ pattern: /^data:/ }), filename: text }),
  }),
])
const openAiCall = Type.Union([
  record({
    id: text,
    type: is('function'),
    function: record({ name: text, arguments: text }),
    extra_content: maybe(record({ google: record({ thought_signature: text }) })),
  }),
  record({ id: text, type: is('custom'), custom: record({ name: text, input: text }) }),
])
const openai = Type.Union([
  record({
    role: oneOf('system', 'developer'),
    content: Type.Union([text, some(openAiText)]),
    name: maybe(text),
  }),
  record({ role: is('user'), content: Type.Union([text, some(openAiUserContent)]), name: maybe(text) }),
  record({
    role: is('assistant'),
    content: Type.Union([text, some(Type.Union([openAiText, openAiRefusal]))]),
    tool_calls: maybe(some(openAiCall)),
    audio: maybe(record({ id: text })),
    name: maybe(text),
  }),
  // Content may only be null beside a call or a spoken reply.
  record({
    role: is('assistant'),
    content: Type.Null(),
    tool_calls: some(openAiCall),
    audio: maybe(record({ id: text })),
    name: maybe(text),
  }),
  record({ role: is('assistant'), content: Type.Null(), audio: record({ id: text }), name: maybe(text) }),
  record({ role: is('tool'), tool_call_id: text, content: text }),
])

const cacheControl = maybe(record({ type: is('ephemeral'), ttl: maybe(oneOf('5m', '1h')) }))
const textBlock = record({ type: is('text'), text: visibleText, cache_control: cacheControl })
const imageBlock = record({
  type: is('image'),
  source: Type.Union([
    record({
      type: is('base64'),
      media_type: oneOf('image/jpeg', 'image/png', 'image/gif', 'image/webp'),
      data: text,
    }),
    record({ type: is('url'), url: publicUrl }),
    record({ type: is('file'), file_id: text }),
  ]),
  cache_control: cacheControl,
})
const documentBlock = record({
  type: is('document'),
  source: Type.Union([
    record({ type: is('base64'), media_type: is('application/pdf'), data: text }),
    record({ type: is('text'), media_type: is('text/plain'), data: visibleText }),
    record({ type: is('url'), url: publicUrl }),
    record({ type: is('file'), file_id: text }),
  ]),
  title: maybe(someText),
  cache_control: cacheControl,
})
const resultContent = some(Type.Union([textBlock, imageBlock, documentBlock]))
const resultBlock = Type.Union([
  record({
    type: is('tool_result'),
    tool_use_id: text,
    content: Type.Union([text, resultContent]),
    cache_control: cacheControl,
  }),
  record({
    type: is('tool_result'),
    tool_use_id: text,
    is_error: Type.Literal(true),
    content: Type.Union([visibleText, resultContent]),
    cache_control: cacheControl,
  }),
])
const anthropic = Type.Union([
  record({
    role: is('user'),
    content: some(Type.Union([textBlock, imageBlock, documentBlock, resultBlock])),
  }),
  record({
    role: is('assistant'),
    content: some(
      Type.Union([
        textBlock,
        record({ type: is('tool_use'), id: text, name: text, input: anyObject, cache_control: cacheControl }),
        record({ type: is('thinking'), thinking: text, signature: someText }),
        record({ type: is('redacted_thinking'), data: text }),
      ]),
    ),
  }),
])

const geminiContentPart = [
  record({ text: someText }),
  record({ text, thoughtSignature: text }),
  record({ inlineData: record({ mimeType: someText, data: text }), thoughtSignature: maybe(text) }),
  record({
    fileData: record({ fileUri: text, mimeType: maybe(someText) }),
    thoughtSignature: maybe(text),
  }),
]
const gemini = Type.Union([
  record({
    role: is('user'),
    parts: some(
      Type.Union([
        ...geminiContentPart,
        record({
          functionResponse: record({
            id: text,
            name: text,
            response: anyObject,
            parts: maybe(some(Type.Union(geminiContentPart.slice(2)))),
          }),
        }),
      ]),
    ),
  }),
  record({
    role: is('model'),
    parts: some(
      Type.Union([
        ...geminiContentPart,
        record({ text, thought: Type.Literal(true), thoughtSignature: maybe(text) }),
        record({
          functionCall: record({ id: text, name: text, args: anyObject }),
          thoughtSignature: maybe(text),
        }),
      ]),
    ),
  }),
])

const inputText = record({ type: is('input_text'), text: someText })
const inputImage = { type: is('input_image'), detail: oneOf('low', 'high', 'auto', 'original') }
const inputContent = some(
  Type.Union([
    inputText,
    record({ ...inputImage, image_url: Type.String({ pattern: /^(https?:\/\/|data:[^,]*;base64,)/i }) }),
    record({ ...inputImage, file_id: text }),
    record({ type: is('input_file'), file_id: text }),
    record({ type: is('input_file'), file_url: publicUrl }),
    record({ type: is('input_file'), file_data: Type.String({ pattern: /^data:/ }), filename: text }),
  ]),
)
const responses = Type.Union([
  record({
    type: is('message'),
    role: oneOf('system', 'developer'),
    content: Type.Union([text, some(inputText)]),
  }),
  record({ type: is('message'), role: is('user'), content: Type.Union([text, inputContent]) }),
  record({ type: is('message'), role: is('assistant'), content: text }),
  record({ type: is('function_call'), call_id: text, name: text, arguments: text }),
  record({
    type: is('function_call_output'),
    call_id: text,
    output: Type.Union([text, inputContent]),
    status: maybe(is('incomplete')),
  }),
  record({
    type: is('reasoning'),
    id: text,
    summary: Type.Array(record({ type: is('summary_text'), text: someText })),
    encrypted_content: maybe(text),
  }),
])

const acontext = record({
  role: oneOf('user', 'assistant'),
  parts: Type.Array(
    record({
      type: oneOf(
        'text',
        'image',
        'audio',
        'video',
        'file',
        'tool-call',
        'tool-result',
        'data',
        'thinking',
        'redacted_thinking',
      ),
      text: Type.Union([text, Type.Null()]),
      asset: Type.Null(),
      filename: Type.Union([text, Type.Null()]),
      meta: Type.Union([anyObject, Type.Null()]),
    }),
  ),
  meta: maybe(record({ provider_role: maybe(oneOf('system', 'developer')), name: maybe(text) })),
})

const VALIDATORS = {
  openai: Compile(openai),
  anthropic: Compile(anthropic),
  gemini: Compile(gemini),
  acontext: Compile(acontext),
  responses: Compile(responses),
}

/** Whether a provider would take the message. */
export function isValidFor(format: MessageFormat, message: unknown): boolean {
  return VALIDATORS[format].Check(message) && (format !== 'anthropic' || hasResultsFirst(message))
}

/** Anthropic refuses a user message whose results do not stand ahead of the rest. */
function hasResultsFirst(message: unknown): boolean {
  const types = (message as { content: { type: string }[] }).content.map(({ type }) => type)
  return types.lastIndexOf('tool_result') < types.filter((type) => type === 'tool_result').length
}
