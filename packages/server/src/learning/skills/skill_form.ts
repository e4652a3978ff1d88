import { isRefusal } from '@annals/messages/json'
import { readForm } from '../../blobs/read_form.js'
import { AnnalsError, invalidRequest } from '../../errors.js'
import { placeOf } from '../../http/openapi/schema_words.js'
import type { FormBody } from '../../http/request/take_on_thread.js'
import { readJson } from '../../json/read_json.js'
import { SKILL_FIELD_BYTES_MAX, ZIP_BYTES_MAX } from './skill_schema.js'

/** Reads a skill that was sent as a form: a zip in the field `file`, and fields of which `meta` is JSON. */
export async function readSkillForm(content_type: string, body: Buffer): Promise<FormBody | AnnalsError> {
  const form = await readForm(content_type, body)
  if (form instanceof AnnalsError) return form
  const file = form.files.get('file')
  if (!file || form.files.size > 1) return invalidRequest('The form must have one file, in the field file.')
  if (file.bytes.length > ZIP_BYTES_MAX) return tooLarge('file', ZIP_BYTES_MAX)
  const long = Object.entries(form.texts).find(([, text]) => text.length > SKILL_FIELD_BYTES_MAX)
  if (long) return tooLarge(placeOf('body', long[0]), SKILL_FIELD_BYTES_MAX)
  const { meta = 'null', ...others } = form.texts
  const text = JSON.stringify(others)
  const fields = Buffer.from(`${text.slice(0, -1)}${text === '{}' ? '' : ','}"meta":${meta}}`)
  const json = readJson(fields)
  if (isRefusal(json))
    return invalidRequest(`/meta must be a JSON object that can be stored: ${json.reason}.`)
  return { body: fields, taken: [file] }
}

function tooLarge(field: string, bytes_max: number): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `/${field} has more than ${bytes_max} bytes. Send a smaller one.`,
  )
}
