import { randomUUID } from 'node:crypto'
import { breakOf, bytePlaces, MESSAGE_FORMATS, type MessageFormat, typeOfBytes } from '@annals/messages'
import { isJsonObject, isRefusal, readStorable } from '@annals/messages/json'
import { type Base64Run, type FoundString, findBase64, findInTexts, type TakenBytes } from './find_base64.js'

/**
 * Takes long base64 out of the messages in a JSON text, wherever their formats have binary content, and leaves references
 * to the bytes. If the rest is still too long, it is taken out of all their texts, too. What could not be put back to the
 * character, such as base64 with odd bits at its end, stays. The text is parsed without long strings: whatever its length, that
 * takes as long as parsing the rest.
 */
export function takeOutBytes(
  body: Buffer,
  rest_bytes_max: number,
  blob_bytes_max: number,
): { body: Buffer; taken: TakenBytes[] } {
  const none = { body, taken: [] }
  const whole = findBase64(body, blob_bytes_max)
  const rest = whole.length > 0 && lengthWithout(body, whole) <= rest_bytes_max
  const placed = rest ? takeOut(body, whole, false) : none
  if (placed.body.length <= rest_bytes_max) return placed
  const texts = findInTexts(body, blob_bytes_max)
  const is_enough = texts.length > 0 && lengthWithout(body, texts) <= rest_bytes_max
  return is_enough ? takeOut(body, texts, true) : none
}

function lengthWithout(body: Buffer, found: readonly FoundString[]): number {
  return found.flatMap(({ runs }) => runs).reduce((sum, { from, to }) => sum - (to - from), body.length)
}

function takeOut(
  body: Buffer,
  found: readonly FoundString[],
  in_texts: boolean,
): { body: Buffer; taken: TakenBytes[] } {
  // No caller can write what stands in its place meanwhile.
  const name = randomUUID()
  const rest = withInstead(body, found, (_, index) => `"${name}${index}"`)
  const json = readStorable(rest)
  if (isRefusal(json)) return { body: rest, taken: [] }
  const byName = new Map(found.map((one, index) => [name + index, one]))
  const references = new Map<FoundString, string>()
  const types = new Map<FoundString, string>()
  const messages = messagesIn(json.value)
  for (const { holder, key, holds, media_type } of messages.flatMap(placesIn)) {
    const one = byName.get(holder[key] as string)
    const run = one && wholeRun(one)
    if (one && media_type !== undefined) types.set(one, media_type)
    if (run && holds !== (run.prefix === '' ? 'url' : 'data'))
      references.set(one, referenceTo(run, media_type))
  }
  if (in_texts)
    for (const text of stringsIn(messages.map(({ blob }) => blob))) {
      const one = byName.get(text)
      if (one?.runs.every(({ is_varied }) => is_varied) && !references.has(one))
        references.set(one, textWithBytes(body, one, types.get(one)))
    }
  return {
    body: withInstead(body, found, (one) => references.get(one) ?? body.subarray(one.from, one.to)),
    taken: [...references.keys()].flatMap(({ runs }) => runs.map(({ sha256, bytes }) => ({ sha256, bytes }))),
  }
}

/** The base64 that is the whole of a string, but for the beginning of a `data:` URL. */
function wholeRun({ from, to, runs }: FoundString): Base64Run | undefined {
  const [run] = runs
  return run && !run.lines && run.from === from + 1 && run.to === to - 1 ? run : undefined
}

/** As PostgreSQL writes it: blob_bytes.ts looks for this text. */
function referenceTo(run: Base64Run, media_type?: string, size = ''): string {
  const type = JSON.stringify(typeOf(run, media_type))
  const encoding = run.encoding === undefined ? '' : `"encoding": "${run.encoding}", `
  const fields = `"media_type": ${type}, "annals_blob": "${run.sha256}", "annals_inline": "${run.prefix}"`
  return `{${size}${encoding}${fields}}`
}

/** A text with references where it has base64. They say how many bytes that is, as the text is no shorter without them. */
function textWithBytes(body: Buffer, { from, to, runs }: FoundString, media_type?: string): string {
  let at = from + 1
  const textTo = (end: number) => (end > at ? [`"${body.toString('utf8', at, end)}"`] : [])
  const pieces = runs.flatMap((run) => {
    const before = textTo(run.from)
    at = run.to
    const { lines } = run
    const [line_break, width] = lines
      ? [`"break": ${JSON.stringify(breakOf(lines))}, `, `"width": ${lines.width}, `]
      : ['', '']
    return [...before, referenceTo(run, media_type, `${line_break}"bytes": ${run.bytes.length}, ${width}`)]
  })
  return `{"annals_text": [${[...pieces, ...textTo(to - 1)].join(', ')}]}`
}

/** All strings in a value, names of members aside. A loop: it may nest deeper than the stack. */
function* stringsIn(root: unknown): Generator<string> {
  const left = [root]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string') yield value
    else if (typeof value === 'object' && value !== null)
      for (const one of Object.values(value)) left.push(one)
  }
}

/** The type of bytes as the message says it, but of an image or a PDF what it is: many are something else. */
function typeOf({ bytes, media_type }: Base64Run, beside: string | undefined): string {
  const said = media_type || beside || ''
  return (
    (/^(image\/|application\/pdf$|$)/i.test(said) && typeOfBytes(bytes)) || said || 'application/octet-stream'
  )
}

function withInstead(
  body: Buffer,
  found: readonly FoundString[],
  instead: (one: FoundString, index: number) => string | Buffer,
): Buffer {
  let at = 0
  const pieces = found.flatMap((one, index) => {
    const before = body.subarray(at, one.from)
    at = one.to
    return [before, Buffer.from(instead(one, index))]
  })
  return Buffer.concat([...pieces, body.subarray(at)])
}

/** The messages in a body: one, or those of a batch, of several, or of a summary. */
function messagesIn(value: unknown): Array<{ format: unknown; blob: unknown }> {
  if (!isJsonObject(value)) return []
  const { blob, format = 'openai' } = value
  const inner = [value.entries, value.appends, value.summary].flat()
  return [{ format, blob }, ...inner.flatMap(messagesIn)]
}

function placesIn({ format, blob }: { format: unknown; blob: unknown }) {
  return MESSAGE_FORMATS.includes(format as MessageFormat) ? bytePlaces(format as MessageFormat, blob) : []
}
