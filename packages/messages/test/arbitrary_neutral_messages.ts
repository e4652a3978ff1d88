import fc from 'fast-check'
import {
  base64,
  cached,
  callArguments,
  id,
  is,
  json,
  list,
  mediaType,
  name,
  orNull,
  shape,
  text,
  url,
} from './arbitrary_values.js'

const media = {
  url,
  media_type: mediaType,
  data: base64,
  detail: is('low'),
  type: fc.constantFrom('url', 'file'),
}
const givenPart = (
  type: string,
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
) =>
  shape(
    { type: is(type), meta: shape(required, { ...optional, extra: json }) },
    { text: orNull(text), asset: is(null as never), filename: orNull(text) },
  )
const acontextPart = fc.oneof(
  shape({ type: is('text'), text }, { meta: orNull(shape({}, { is_refusal: fc.boolean(), ...cached })) }),
  givenPart('image', { url }, media),
  givenPart('image', { data: base64, media_type: mediaType }, cached),
  shape({
    type: is('audio'),
    meta: shape({ data: base64, format: fc.constantFrom('wav', 'mp3', 'flac') }),
  }),
  shape({ type: is('audio'), meta: shape({ id }) }, { text }),
  givenPart('video', { url }, { media_type: mediaType }),
  givenPart('file', { file_data: fc.oneof(url, base64) }, media),
  givenPart('file', { file_id: id }, { type: is('file') }),
  givenPart(
    'tool-call',
    { id, name, arguments: callArguments },
    { type: fc.constantFrom('function', 'custom') },
  ),
  givenPart('tool-result', { tool_call_id: id }, { name, is_error: fc.boolean() }),
  givenPart('data', { data_type: text }),
  shape(
    { type: is('thinking'), text },
    { meta: orNull(shape({}, { signature: text, type: is('thought') })) },
  ),
  givenPart('redacted_thinking', { data: text }),
)
/** A message in the neutral form. */
export const acontext = shape<object>(
  { role: fc.constantFrom('user', 'assistant'), parts: list(acontextPart) },
  { meta: orNull(shape({}, { provider_role: fc.constantFrom('system', 'developer'), name })) },
)
