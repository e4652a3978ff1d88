import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  InvalidMessage,
  MESSAGE_FORMATS,
  type MessageFormat,
  type Part,
  readMessage,
  type StoredMessage,
} from '../src/index.js'
import { MessageReader } from '../src/message_format.js'
import { MESSAGES } from './arbitrary_messages.js'
import { isValidFor } from './message_schemas.js'
import { messageId, rendered, renderMessages, storedAs } from './stored_run.js'
import { whatWasSaid } from './what_was_said.js'

const RUNS = { numRuns: process.env.TEST_THOROUGH ? 200 : 80 }

describe.each(MESSAGE_FORMATS)('any %s message', (from) => {
  const message = MESSAGES[from]
  const others = MESSAGE_FORMATS.filter((format) => format !== from)

  it('is accepted, and comes back whole', () => {
    fc.assert(
      fc.property(message, (blob) => {
        const before = structuredClone(blob)
        readMessage(from, blob)
        const stored = storedAs(from, [blob])
        expect(renderMessages(stored, from)).toStrictEqual([{ index: 0, message: before }])
      }),
      RUNS,
    )
  })

  it('comes back whole from among messages of other formats', () => {
    const foreign: StoredMessage = {
      format: others[0]!,
      blob: { role: 'user', content: 'Hi' },
      id: messageId(9),
    }
    fc.assert(
      fc.property(message, (blob) => {
        const before = structuredClone(blob)
        const [, last] = renderMessages([foreign, ...storedAs(from, [blob])], from)
        expect(last).toStrictEqual({ index: 1, message: before })
      }),
      { numRuns: 100 },
    )
  })

  it.each(others)('is valid for %s', (to) => {
    fc.assert(
      fc.property(message, (blob) => {
        const messages = rendered(storedAs(from, [blob]), to)
        if (!isSilent(from, blob)) expect(messages.length).toBeGreaterThan(0)
        for (const each of messages) {
          expect(isValidFor(to, each), JSON.stringify(each)).toBe(true)
          readMessage(to, each)
        }
      }),
      RUNS,
    )
  })

  it.each(others)('says the same in %s, and back again', (to) => {
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 5 }), (blobs) => {
        const stored = storedAs(from, blobs)
        const said = whatWasSaid(readRun(stored))
        const there = storedAs(to, rendered(stored, to))
        expect(whatWasSaid(readRun(there))).toStrictEqual(said)
        const back = storedAs(from, rendered(there, from))
        expect(whatWasSaid(readRun(back))).toStrictEqual(said)
      }),
      RUNS,
    )
  })
})

/** The messages' neutral forms, as a run: results find their calls. */
function readRun(stored: readonly StoredMessage[]): { parts: Part[] }[] {
  const [first] = stored
  const reader = new MessageReader()
  if (first?.format === 'acontext') return stored.map((message) => reader.read(message)!)
  return rendered(stored, 'acontext') as { parts: Part[] }[]
}

describe('a blob that is no message', () => {
  it('is refused by InvalidMessage and nothing else, and what is accepted renders in every format', () => {
    const blob = fc.oneof(
      ...MESSAGE_FORMATS.map((format) => MESSAGES[format]),
      ...MESSAGE_FORMATS.map((format) => damaged(MESSAGES[format])),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(fc.constantFrom(...MESSAGE_FORMATS), blob, (from, value) => {
        if (!isAccepted(from, value)) {
          expect(() => renderMessages(storedAs(from, [value, value]), 'acontext')).not.toThrow()
          return
        }
        for (const to of MESSAGE_FORMATS.filter((format) => format !== from)) {
          const messages = rendered(storedAs(from, [value]), to)
          if (!isSilent(from, value)) expect(messages.length).toBeGreaterThan(0)
          for (const each of messages) expect(isValidFor(to, each), JSON.stringify(each)).toBe(true)
        }
      }),
      { numRuns: process.env.TEST_THOROUGH ? 2_000 : 800 },
    )
  })
})

/** Whether a message has nothing that another format could say: it may be left out whole. */
function isSilent(format: MessageFormat, blob: unknown): boolean {
  const { parts } = readMessage(format, blob)
  return parts.length > 0 && parts.every(({ type }) => type === 'data')
}

function isAccepted(format: MessageFormat, value: unknown): boolean {
  try {
    readMessage(format, value)
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidMessage)
    return false
  }
}

/** The message with one value in it, at any depth, replaced or removed. */
function damaged(message: fc.Arbitrary<object>): fc.Arbitrary<unknown> {
  return fc
    .tuple(message, fc.nat(), fc.option(fc.jsonValue({ maxDepth: 1 }), { nil: undefined }))
    .map(([blob, nth, value]) => {
      const copy = structuredClone(blob)
      const places = placesOf(copy)
      const place = places[nth % Math.max(places.length, 1)]
      if (place === undefined) return value
      const [holder, key] = place
      if (value === undefined) delete holder[key]
      else holder[key] = value
      return JSON.parse(JSON.stringify(copy)) as unknown
    })
}

function placesOf(value: unknown): [Record<string, unknown>, string][] {
  if (typeof value !== 'object' || value === null) return []
  const holder = value as Record<string, unknown>
  return Object.keys(holder).flatMap((key) => [
    [holder, key] as [Record<string, unknown>, string],
    ...placesOf(holder[key]),
  ])
}
