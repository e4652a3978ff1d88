import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { parseId } from '@annals/kits/ids.js'
import { NAME_LENGTH_MAX } from '@annals/kits/limits.js'
import { isJsonObject, parseJson } from '@annals/messages/json'
import { InvalidArgumentError } from 'commander'
import { UsageError } from '../run_command.js'
import { momentOf, msOf } from '../terminal/times.js'

/** A session's or learning space's id. */
export function parseUuid(value: string): string {
  const id = parseId(value)
  if (id === undefined) throw new InvalidArgumentError('It must be a UUID, as in the lists.')
  return id
}

/** A session's id, or the beginning of one, which `findSession` completes. */
export function parseSession(value: string): string {
  if (/^[0-9a-f][0-9a-f-]{3,35}$/i.test(value)) return value.toLowerCase()
  throw new InvalidArgumentError("It must be a session's UUID, or at least the first 4 characters of one.")
}

/** A session's parent as `parseSession` takes it, or `none`. */
export function parseParent(value: string): string {
  return value === 'none' ? value : parseSession(value)
}

/** The address of a service. */
export function parseUrl(value: string): string {
  if (/^https?:\/\/[^\s/]/.test(value) && URL.canParse(value)) return value
  throw new InvalidArgumentError('It must be a URL such as https://annals.example.com.')
}

/** A name of a project or of a key, as the API takes it. */
export function parseName(value: string): string {
  if (value === '' || value.length > NAME_LENGTH_MAX)
    throw new InvalidArgumentError(`A name has 1 to ${NAME_LENGTH_MAX} characters.`)
  return value
}

/** A whole number from 1. */
export function parseCount(value: string): number {
  const count = Number(value)
  if (!/^\d+$/.test(value) || count < 1 || !Number.isSafeInteger(count))
    throw new InvalidArgumentError('It must be a whole number from 1.')
  return count
}

/** A seq, or 0 for before the first. */
export function parseSeq(value: string): number {
  return value === '0' ? 0 : parseCount(value)
}

/** A seq, or `<seq>@<created_at>`, with which the service tells whether that entry is still the same. */
export function parsePosition(value: string): number | { seq: number; created_at: string } {
  const [seq = '', created_at] = value.split('@')
  if (created_at === undefined) return parseSeq(seq)
  if (Number.isNaN(Date.parse(created_at)))
    throw new InvalidArgumentError('It must be a seq, or a position as `annals tail` prints it at its end.')
  return { seq: parseSeq(seq), created_at }
}

/** A duration, in seconds. */
export function parseSeconds(value: string): number {
  const ms = msOf(value) ?? 0
  if (ms < 1_000) throw new InvalidArgumentError('It must be a duration such as 30s, 5m, 2h or 30d.')
  return Math.floor(ms / 1_000)
}

/** A moment, in ms since 1970. */
export function parseMoment(value: string): number {
  const moment = momentOf(value)
  if (moment === undefined)
    throw new InvalidArgumentError('It must be a duration such as 30s, 5m, 2h or 1d, or a time in RFC 3339.')
  return moment
}

/**
 * A JSON object, or `key=value` pairs separated by commas, which need no quoting: `outcome=failed`, `stage=2`. A
 * value that is a JSON number, true, false or null has that type; any other is a string.
 */
export function parseObject(value: string): Record<string, unknown> {
  if (!value.trimStart().startsWith('{')) return parsePairs(value)
  let parsed: unknown
  try {
    parsed = parseJson(value)
  } catch (error) {
    throw new InvalidArgumentError(`It is not JSON (${(error as Error).message}).`)
  }
  return parsed as Record<string, unknown>
}

function parsePairs(value: string): Record<string, unknown> {
  const pairs = value.split(',').map((pair): [string, unknown] => {
    const at = pair.indexOf('=')
    if (at < 1) throw new InvalidArgumentError(`It must be a JSON object, or key=value; ${pair} is neither.`)
    const text = pair.slice(at + 1)
    const isLiteral = /^(-?\d+(\.\d+)?|true|false|null)$/.test(text)
    return [pair.slice(0, at).trim(), isLiteral ? parseJson(text) : text]
  })
  return Object.fromEntries(pairs)
}

/** A JSON object, given directly, in a file (`@name`), or on stdin (`-`). */
export async function readObject(source: string): Promise<Record<string, unknown>> {
  const json = await readSource(source)
  let value: unknown
  try {
    value = parseJson(json)
  } catch (error) {
    throw new UsageError(`--data is not JSON: ${(error as Error).message}.`)
  }
  if (!isJsonObject(value)) throw new UsageError('--data must be a JSON object.')
  return value
}

/** A text, given directly, in a file (`@name`), or on stdin (`-`). */
export async function readSource(source: string): Promise<string> {
  if (source === '-') return text(process.stdin)
  return source.startsWith('@') ? (await readGiven(source.slice(1))).toString('utf8') : source
}

/** The bytes of a file that was named. @throws UsageError */
export async function readGiven(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as Error).message}).`)
  }
}
