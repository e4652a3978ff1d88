import { escapeJson, stableId, unescapeJson } from '@annals/adapter-kit'
import { Annals } from '@annals/client'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()
/** Text in which what PostgreSQL cannot hold, the escape itself, and what looks like an escape are frequent. */
const hostileText = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\0',
        '\uD800',
        '\uDFFF',
        '\uDBFF',
        '\uDC00',
        '\uFDD0',
        '\uFDD00',
        '\\u0000',
        '\\',
        'd800',
        '😀',
        '"',
      ),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(''))
const hostileJson = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    hostileText,
    fc.integer(),
    fc.constantFrom(null, true, 0.1),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(hostileText, tie('value'), { maxKeys: 4 }),
  ),
})).value

describe('escaped JSON', () => {
  it('returns every value, and contains nothing that PostgreSQL cannot hold', () => {
    fc.assert(
      fc.property(hostileJson, (given) => {
        const value = JSON.parse(JSON.stringify(given))
        const escaped = JSON.stringify(escapeJson(value))
        expect(JSON.parse(escaped)).toEqual(escapeJson(value))
        expect(escaped.replaceAll('\\\\', '')).not.toMatch(/\\u(?:0000|d[89a-f])/)
        expect(unescapeJson(JSON.parse(escaped))).toEqual(value)
      }),
      { numRuns: 500 },
    )
  })

  it('is stored by a service and comes back', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const { id } = await annals.sessions.create()
    const values = fc.sample(hostileJson, 200)
    const { items } = await annals.sessions.appendBatch(
      id,
      values.map((value) => ({ kind: 'event', type: 'hostile', data: escapeJson({ value }) })),
    )
    const read = await annals.sessions.timeline(id, { limit: 1_000 }).page()
    expect(read.items.map(({ id }) => id)).toEqual(items.map(({ id }) => id))
    const data = read.items.map((item) => (item.kind === 'event' ? unescapeJson(item.data).value : undefined))
    expect(data).toEqual(JSON.parse(JSON.stringify(values)))
  })

  it('is the same object if there was nothing to escape', () => {
    const value = { text: 'plain\n"text" \\u0000 😀' }
    expect(escapeJson(value)).toBe(value)
    expect(unescapeJson(value)).toBe(value)
  })
})

describe('a stable id', () => {
  it('is a UUIDv5 that no version may change, in any language', () => {
    expect(stableId('langgraph', 'thread-1')).toBe('ea2fc2ca-028f-5b50-8905-ef28b368d8cd')
    expect(stableId('langgraph', 'thread-1', '"é\u2028😀\u0001')).toBe('c4ab44eb-0e56-5883-8b3f-3529ec1f07a9')
  })

  it('keeps lists apart whose joined strings are equal', () => {
    expect(stableId('a', 'b', 'c')).not.toBe(stableId('a', 'b","c'))
    expect(stableId('a', 'b', 'c')).not.toBe(stableId('a', 'bc'))
  })
})
