import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS } from '../src/index.js'
import { isShownElsewhere, type LogEntry, SessionReader, textSaysFailed } from '../src/session/index.js'
import { MESSAGES } from './arbitrary_messages.js'
import { callsOf, logOf } from './session_vectors.js'

/** Calls as one model might make them, of few names and arguments, so that they are often alike. */
const call = fc.record({
  name: fc.constantFrom('find', 'book'),
  argument: fc.nat(2),
  result: fc.constantFrom('fine', 'Error: no', undefined),
  /** Whether events tell of it, and when: never, with the messages of the call, or at the end of the session. */
  events: fc.constantFrom('none', 'beside', 'late'),
})
const calls = fc.array(call, { maxLength: 12 })
type Call = (typeof call extends fc.Arbitrary<infer T> ? T : never) & { id: string }

const asMessages = ({ id, name, argument, result }: Call) => [
  {
    kind: 'message',
    format: 'anthropic',
    blob: { role: 'assistant', content: [{ type: 'tool_use', id, name, input: { argument } }] },
  },
  ...(result === undefined
    ? []
    : [
        {
          kind: 'message',
          format: 'openai',
          blob: { role: 'tool', tool_call_id: id, content: result },
        },
      ]),
]

const asEvents = ({ id, name, argument, result }: Call, has_id: boolean) => {
  const tie = has_id ? { id } : { name }
  return [
    { kind: 'event', type: 'tool-call', data: { ...tie, name, arguments: { argument } } },
    ...(result === undefined ? [] : [{ kind: 'event', type: 'tool_result', data: { ...tie, result } }]),
  ]
}

function read(log: LogEntry[]) {
  const reader = new SessionReader()
  return log.map((entry) => reader.read(entry))
}

describe('the calls of any session', () => {
  const told = ({ name, arguments: given, verdict, result }: ReturnType<typeof callsOf>[number]) => ({
    name,
    argument: (JSON.parse(given) as { argument: number }).argument,
    verdict,
    result: result?.text,
  })

  it('are those of its messages, whatever events repeat them by id, beside them or at the end', () => {
    fc.assert(
      fc.property(calls, fc.boolean(), (made, are_events_first) => {
        const known = made.map((one, index) => ({
          ...one,
          id: `call_${index}`,
          // An event ahead of its message is known by its arguments alone, so then each call has one.
          events: are_events_first ? 'beside' : one.events,
        }))
        const of = (one: Call) => (one.events === 'beside' ? asEvents(one, true) : [])
        const entries = [
          ...known.flatMap((one) =>
            are_events_first ? [...of(one), ...asMessages(one)] : [...asMessages(one), ...of(one)],
          ),
          ...known.filter(({ events }) => events === 'late').flatMap((one) => asEvents(one, true)),
        ]
        const found = callsOf(read(logOf({ entries })))
        expect(found.map(told)).toEqual(
          made.map(({ name, argument, result }) => ({
            name,
            argument,
            verdict: result === undefined ? 'open' : result === 'fine' ? 'ok' : 'failed',
            result,
          })),
        )
        expect(found.map(({ number }) => number)).toEqual(made.map((_, index) => index + 1))
      }),
    )
  })

  it('are as many where events repeat every one of them without its id', () => {
    fc.assert(
      fc.property(calls, fc.boolean(), (made, are_late) => {
        const known = made.map((one, index) => ({ ...one, id: `call_${index}` }))
        const entries = are_late
          ? [...known.flatMap(asMessages), ...known.flatMap((one) => asEvents(one, false))]
          : known.flatMap((one) => [...asMessages(one), ...asEvents(one, false)])
        expect(callsOf(read(logOf({ entries })))).toHaveLength(made.length)
      }),
    )
  })
})

describe('a session of anything', () => {
  const message = fc.oneof(
    ...MESSAGE_FORMATS.map((format) => MESSAGES[format].map((blob) => ({ kind: 'message', format, blob }))),
  )
  const nothing_of_ours = fc.record({
    kind: fc.constant('message'),
    format: fc.constantFrom(...MESSAGE_FORMATS),
    blob: fc.object(),
  })
  const word = fc.constantFrom(
    'name',
    'id',
    'call_id',
    'arguments',
    'function',
    'result',
    'error',
    'status',
    'ok',
  )
  const event = fc.record({
    kind: fc.constant('event'),
    type: fc.oneof(fc.constantFrom('tool_call', 'tool_result', 'tool-use'), fc.string()),
    data: fc.dictionary(
      fc.oneof(word, fc.string()),
      fc.oneof(fc.constant('x'), fc.anything({ maxDepth: 2 })),
    ),
  })

  it('is read without a fault, each call once, and each entry says something', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(message, nothing_of_ours, event), { maxLength: 30 }), (entries) => {
        const read_entries = read(logOf({ entries: JSON.parse(JSON.stringify(entries)) }))
        const found = callsOf(read_entries)
        expect(found.map(({ number }) => number)).toEqual(found.map((_, index) => index + 1))
        expect(new Set(found).size).toBe(found.length)
        for (const one of found) {
          expect(one.verdict === 'open').toBe(one.result === undefined)
          if (one.result) expect(one.verdict).toBe(one.result.is_failed ? 'failed' : 'ok')
        }
        for (const entry of read_entries.filter(isShownElsewhere))
          for (const block of entry.blocks) expect('call' in block && block.call).toBeTruthy()
        expect(read_entries.filter(({ kind, blocks }) => kind === 'event' && blocks.length === 0)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('is read, however deep what was stored nests', () => {
    const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    const data = JSON.parse(`{"name":"f","arguments":${deep(990)}}`) as object
    const [entry] = read(logOf({ entries: [{ kind: 'event', type: 'tool_call', data }] }))
    expect(entry?.blocks).toHaveLength(1)
    expect(textSaysFailed(`{"error":${deep(100_000)}}`)).toBe(false)
  })

  it('is remembered for as far as it matters: what was long ago is not repeated', () => {
    const calls_of = (text: string) => [
      { kind: 'event', type: 'tool_call', data: { id: 'first', name: 'f', arguments: { text: 'first' } } },
      ...Array.from({ length: 40 }, (_, index) => ({
        kind: 'event',
        type: 'tool_call',
        data: { id: String(index), name: 'f', arguments: { text: `${index}${text}` } },
      })),
      { kind: 'event', type: 'tool_result', data: { id: 'first', result: 'at last' } },
    ]
    const verdict = (text: string) => callsOf(read(logOf({ entries: calls_of(text) })))[0]?.verdict
    expect(verdict('short')).toBe('ok')
    expect(verdict('long '.repeat(100_000))).toBe('open')
  })
})
