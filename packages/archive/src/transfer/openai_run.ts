import { createHash } from 'node:crypto'
import { InvalidMessage, type Part, readMessage } from '@annals/messages'
import { elementSlices, isJsonObject, memberTexts } from '@annals/messages/json'
import { OBJECT_BYTES_MAX, USER_IDENTIFIER_LENGTH_MAX } from 'annals/dist/limits.js'
import { readLine } from './export_format.js'
import { wrongLine } from './export_line.js'

/** A recorded run: a line `{ user, configs, messages }`, whose messages are in OpenAI's chat format. */
export interface OpenAiRun {
  number: number
  session_id: string
  user: string | undefined
  /** JSON text. */
  configs: string
  messages: RunMessage[]
}

export interface RunMessage {
  id: string
  /** The message as JSON text. */
  blob: string
  role: string
  parts: Part[]
}

const MEMBERS = ['user', 'configs', 'messages']

/**
 * Reads a line. Its ids are derived from the line and its number, so the same file gives the same ids, and what an
 * earlier import stored is recognized. @throws StartError that says what is wrong with it
 */
export function readOpenAiRun(source: Buffer, number: number): OpenAiRun {
  const { text, value } = readLine(source, number)
  const unknown = Object.keys(value).find((name) => !MEMBERS.includes(name))
  if (unknown !== undefined) {
    throw wrongLine(number, `a run has ${MEMBERS.join(', ')} and no ${JSON.stringify(unknown)}.`)
  }
  const { user, configs, messages } = value
  if (user != null && !isIdentifier(user)) {
    throw wrongLine(number, `user must be a string of 1 to ${USER_IDENTIFIER_LENGTH_MAX} characters.`)
  }
  if (configs != null && !isJsonObject(configs)) throw wrongLine(number, 'configs must be an object.')
  if (!Array.isArray(messages)) throw wrongLine(number, 'messages must be an array.')
  const raw = memberTexts(text)
  const rawConfigs = configs == null ? '{}' : raw.get('configs')!
  if (Buffer.byteLength(rawConfigs) > OBJECT_BYTES_MAX) {
    throw wrongLine(number, `configs must not exceed ${OBJECT_BYTES_MAX} bytes.`)
  }
  const session_id = derivedId(`run ${number} ${createHash('sha256').update(source).digest('hex')}`)
  const list = raw.get('messages')!
  const blobs = elementSlices(list)
  return {
    number,
    session_id,
    user: user == null ? undefined : (user as string),
    configs: rawConfigs,
    messages: messages.map((message: unknown, index) => ({
      id: derivedId(`message ${index} of ${session_id}`),
      blob: list.slice(blobs[index]!.from, blobs[index]!.to),
      ...readBlob(message, index, number),
    })),
  }
}

function readBlob(message: unknown, index: number, number: number): { role: string; parts: Part[] } {
  try {
    const { role, parts } = readMessage('openai', message)
    return { role, parts }
  } catch (error) {
    if (!(error instanceof InvalidMessage)) throw error
    throw wrongLine(
      number,
      `/messages/${index}${error.pointer} is invalid in a message of openai format: it ${error.reason}.`,
    )
  }
}

function isIdentifier(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && [...value].length <= USER_IDENTIFIER_LENGTH_MAX
}

/** A UUID of version 8 (RFC 9562: its bits are application-defined): the first bits of a name's SHA-256. */
export function derivedId(name: string): string {
  const bytes = createHash('sha256').update(`annals openai-runs ${name}`).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
