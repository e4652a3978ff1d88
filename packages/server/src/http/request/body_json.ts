import { isRefusal } from '@annals/messages/json'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { readJson } from '../../json/read_json.js'

/** A body's text as it was sent, and its value. `bytes`: of the text as PostgreSQL will write it. */
export interface BodyJson {
  text: string
  value: unknown
  bytes: number
}

/** Reads a body that must be storable JSON, or returns why it is refused. */
export function readBodyJson(body: Buffer): BodyJson | AnnalsError {
  const json = readJson(body)
  if (!isRefusal(json)) return { text: json.text, value: json.value, bytes: body.length + json.expansion }
  if (json.refused === 'not_json')
    return new AnnalsError('invalid_json', `The body is not JSON: ${json.reason}.`)
  return invalidRequest(`The body cannot be stored: at ${json.pointer || '/'} ${json.reason}.`)
}

export function bodyTooLarge(bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `The body has more than ${bytes_max} bytes, apart from attachments in base64 where messages have them. Send less per request.`,
  )
}
