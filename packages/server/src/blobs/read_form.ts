import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { placeOf } from '@annals/kits/http/openapi/schema_words.js'
import { readForm, type UploadedFile } from '@annals/kits/http/request/read_form.js'
import type { FormBody } from '@annals/kits/http/request/take_on_thread.js'
import { isJsonObject, isRefusal, parseJson, readStorable, writeJson } from '@annals/messages/json'
import { blobTooLarge } from './blob_store.js'

/** The replacement character of UTF-8 decoding. */
const REPLACEMENT = '\ufffd'

/**
 * Reads a message that was sent as multipart/form-data, as existing clients send files: the field `payload` is the JSON,
 * and a part of the message names the file that belongs to it in `file_field`.
 */
export async function readMessageForm(
  content_type: string,
  body: Buffer,
  blob_bytes_max: number,
): Promise<FormBody | AnnalsError> {
  const form = await readForm(content_type, body)
  if (form instanceof AnnalsError) return form
  const { payload, ...others } = form.texts
  if (payload === undefined)
    return invalidRequest('The form must have one field payload, the JSON of the message.')
  if (payload.includes(REPLACEMENT) && !body.includes(REPLACEMENT))
    return new AnnalsError('invalid_json', 'The field payload is not valid UTF-8.')
  const [other] = Object.keys(others)
  if (other !== undefined)
    return invalidRequest(`The field ${placeOf('body', other)} of the form is not a file.`)
  if ([...form.files.values()].some(({ bytes }) => bytes.length > blob_bytes_max))
    return blobTooLarge(blob_bytes_max)
  if (form.files.size === 0 || isRefusal(readStorable(payload)))
    return { body: Buffer.from(payload), taken: [] }
  return withFiles(parseJson(payload), form.files)
}

/** Puts references where parts of the message name files. */
function withFiles(payload: unknown, files: ReadonlyMap<string, UploadedFile>): FormBody | AnnalsError {
  const { format, blob } = isJsonObject(payload) ? payload : {}
  if (format !== 'acontext')
    return invalidRequest('Only messages in the format acontext can be sent with files.')
  const used = new Set<string>()
  const { parts } = isJsonObject(blob) ? blob : {}
  for (const [index, part] of (Array.isArray(parts) ? parts : []).entries()) {
    if (!isJsonObject(part) || typeof part.file_field !== 'string') continue
    const { file_field } = part
    const file = files.get(file_field)
    if (!file) return invalidRequest(`/blob/parts/${index}/file_field names no file of the form.`)
    used.add(file_field)
    const { sha256, media_type, filename } = file
    const reference = { annals_blob: sha256, media_type, filename }
    const meta = isJsonObject(part.meta) ? part.meta : {}
    delete part.file_field
    Object.assign(part, { filename, meta: { media_type, ...meta, data: reference } })
  }
  const unused = [...files.keys()].find((name) => !used.has(name))
  if (unused !== undefined)
    return invalidRequest(`No part of the message has the file_field ${placeOf('body', unused)}.`)
  return { body: Buffer.from(writeJson(payload)), taken: [...files.values()] }
}
