import { createHash } from 'node:crypto'
import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { placeOf } from '@annals/kits/http/openapi/schema_words.js'
import type { TakenBytes } from '@annals/kits/http/request/find_base64.js'
import type { FormBody } from '@annals/kits/http/request/take_on_thread.js'
import { isJsonObject, isRefusal, parseJson, readStorable, writeJson } from '@annals/messages/json'
import { blobTooLarge } from './blob_store.js'

const FILES_MAX = 64
/** Bytes of a part before its content. Its name and type are texts, and parsed as such. */
const HEAD_BYTES_MAX = 16_384
/** The parser uses the same boundary as the count of parts, whatever else is in Content-Type. */
const BOUNDARY = /;[ \t]*boundary=(?:"(?<quoted>[^"\\]{1,70})"|(?<plain>[^\s";]{1,70}))/i
/** The replacement character of UTF-8 decoding. */
const REPLACEMENT = '\ufffd'

interface UploadedFile extends TakenBytes {
  reference: { annals_blob: string; media_type: string; filename: string }
}

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

/** The texts and the files of a form, each by a name that it has once. */
export async function readForm(content_type: string, body: Buffer) {
  const { quoted, plain } = BOUNDARY.exec(content_type)?.groups ?? {}
  const boundary = quoted ?? plain ?? ''
  const refusal = wrongParts(boundary, body)
  if (refusal) return refusal
  let form: FormData
  try {
    const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` }
    form = await new Response(new Uint8Array(body), { headers }).formData()
  } catch {
    return invalidRequest('The body does not match its Content-Type, multipart/form-data.')
  }
  const texts: Record<string, string> = {}
  const files = new Map<string, UploadedFile>()
  for (const [name, value] of form) {
    if (Object.hasOwn(texts, name) || files.has(name))
      return invalidRequest(`The form has the field ${placeOf('body', name)} twice. Send it once.`)
    // Also where it is called __proto__.
    if (typeof value === 'string') Object.defineProperty(texts, name, { value, enumerable: true })
    else files.set(name, await uploaded(value))
  }
  return { texts, files }
}

/** Checks the number of parts and their headers, before any part is read. */
function wrongParts(boundary: string, body: Buffer): AnnalsError | undefined {
  const delimiter = `--${boundary}`
  let parts = -1
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + 1)) {
    parts += 1
    if (parts > FILES_MAX + 1)
      return invalidRequest(`The form has too many fields: it takes ${FILES_MAX} files. Send fewer.`)
    const head = body.subarray(at, at + HEAD_BYTES_MAX)
    if (head.length === HEAD_BYTES_MAX && !head.includes('\r\n\r\n'))
      return invalidRequest(`A part of the form has more than ${HEAD_BYTES_MAX} bytes of headers.`)
  }
  return undefined
}

async function uploaded(file: File): Promise<UploadedFile> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const media_type = file.type || 'application/octet-stream'
  return { sha256, bytes, reference: { annals_blob: sha256, media_type, filename: file.name } }
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
    const { media_type, filename } = file.reference
    const meta = isJsonObject(part.meta) ? part.meta : {}
    delete part.file_field
    Object.assign(part, { filename, meta: { media_type, ...meta, data: file.reference } })
  }
  const unused = [...files.keys()].find((name) => !used.has(name))
  if (unused !== undefined)
    return invalidRequest(`No part of the message has the file_field ${placeOf('body', unused)}.`)
  return { body: Buffer.from(writeJson(payload)), taken: [...files.values()] }
}
