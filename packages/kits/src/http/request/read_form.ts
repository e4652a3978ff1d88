import { createHash } from 'node:crypto'
import { type AnnalsError, invalidRequest } from '../../errors.js'
import type { AppServer } from '../app_server.js'
import { placeOf } from '../openapi/schema_words.js'
import type { TakenBytes } from './find_base64.js'

const FILES_MAX = 64
/** Bytes of a part before its content. Its name and type are texts, and parsed as such. */
const HEAD_BYTES_MAX = 16_384
/** The parser uses the same boundary as the count of parts, whatever else is in Content-Type. */
const BOUNDARY = /;[ \t]*boundary=(?:"(?<quoted>[^"\\]{1,70})"|(?<plain>[^\s";]{1,70}))/i

export interface UploadedFile extends TakenBytes {
  media_type: string
  filename: string
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
  return { sha256, bytes, media_type, filename: file.name }
}

/** Reads the fields of a form without files, as a page without script sends it. */
export function readFields(scope: AppServer): void {
  const form = 'application/x-www-form-urlencoded'
  scope.addContentTypeParser(form, { parseAs: 'string' }, (_request, body, done) =>
    done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )
}
