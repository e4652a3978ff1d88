import { createHash } from 'node:crypto'
import { parseJson, writeJson } from '@annals/messages/json'
import type { TakenBytes } from '../../blobs/take_out_bytes.js'
import { AnnalsError } from '../../errors.js'
import { isJsonObject, isRefusal, readJson } from '../../json/read_json.js'

const FILES_MAX = 64
/** What stands for an invalid sequence of bytes where UTF-8 is read. */
const REPLACEMENT = '\ufffd'

interface UploadedFile extends TakenBytes {
  reference: { annals_blob: string; media_type: string; filename: string }
}

/** The JSON of a message that was sent as a form, with references to its files. */
export interface FormMessage {
  body: Buffer
  taken: TakenBytes[]
}

/**
 * Reads a message that was sent as multipart/form-data, as existing clients send files: the field `payload` is the JSON,
 * and a part of the message names the file that belongs to it in `file_field`.
 */
export async function readForm(content_type: string, body: Buffer): Promise<FormMessage | AnnalsError> {
  if (countParts(content_type, body) > FILES_MAX + 1)
    return invalid(`The form has too many fields: a message takes ${FILES_MAX} files.`)
  let form: FormData
  try {
    form = await new Response(new Uint8Array(body), { headers: { 'content-type': content_type } }).formData()
  } catch {
    return invalid('The body is not the multipart/form-data that its Content-Type announces.')
  }
  const fields = [...form]
  const [payload, ...others] = form.getAll('payload')
  if (typeof payload !== 'string' || others.length > 0)
    return invalid('The form must have one field payload, the JSON of the message.')
  if (payload.includes(REPLACEMENT) && !body.includes(REPLACEMENT))
    return new AnnalsError('invalid_json', 'The field payload is not valid UTF-8.')
  const json = readJson(payload)
  if (isRefusal(json)) return { body: Buffer.from(payload), taken: [] }
  const files = new Map<string, UploadedFile>()
  for (const [name, file] of fields) {
    if (name === 'payload') continue
    if (typeof file === 'string') return invalid(`The field ${name} of the form is not a file.`)
    if (files.has(name)) return invalid(`The form has several files ${name}.`)
    files.set(name, await uploaded(file))
  }
  return files.size === 0 ? { body: Buffer.from(payload), taken: [] } : withFiles(parseJson(payload), files)
}

/** One more than there are fields, or as many as are counted at most. */
function countParts(content_type: string, body: Buffer): number {
  const boundary = /boundary="?([^";]+)/i.exec(content_type)?.[1] ?? ''
  let parts = 0
  for (let at = -1; parts <= FILES_MAX + 2; parts++) {
    at = body.indexOf(`--${boundary}`, at + 1)
    if (at < 0) break
  }
  return parts - 1
}

async function uploaded(file: File): Promise<UploadedFile> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const media_type = file.type || 'application/octet-stream'
  return { sha256, bytes, reference: { annals_blob: sha256, media_type, filename: file.name } }
}

/** Puts references where parts of the message name files. */
function withFiles(payload: unknown, files: ReadonlyMap<string, UploadedFile>): FormMessage | AnnalsError {
  const { format, blob } = isJsonObject(payload) ? payload : {}
  if (format !== 'acontext') return invalid('Files can be sent with a message of acontext format only.')
  const used = new Set<string>()
  const { parts } = isJsonObject(blob) ? blob : {}
  for (const [index, part] of (Array.isArray(parts) ? parts : []).entries()) {
    if (!isJsonObject(part) || typeof part.file_field !== 'string') continue
    const { file_field } = part
    const file = files.get(file_field)
    if (!file) return invalid(`/blob/parts/${index}/file_field names no file of the form.`)
    used.add(file_field)
    const { media_type, filename } = file.reference
    const meta = isJsonObject(part.meta) ? part.meta : {}
    delete part.file_field
    Object.assign(part, { filename, meta: { media_type, ...meta, data: file.reference } })
  }
  const unused = [...files.keys()].find((name) => !used.has(name))
  if (unused !== undefined) return invalid(`No part of the message has the file_field ${unused}.`)
  return { body: Buffer.from(writeJson(payload)), taken: [...files.values()] }
}

function invalid(sentence: string): AnnalsError {
  return new AnnalsError('invalid_request', sentence)
}
