import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS, type MessageFormat } from '../src/index.js'
import { callArguments, text } from './arbitrary_values.js'
import { rendered, renderMessages, storedAs } from './stored_run.js'

/** One exchange: what the user says, the calls that it leads to, and their results. */
interface Exchange {
  question: string
  answer: string
  calls: { name: string; arguments: string; result: string }[]
  areResultsTogether: boolean
}

const call = fc.record({ name: fc.constantFrom('search', 'book'), arguments: callArguments, result: text })
const exchange: fc.Arbitrary<Exchange> = fc.record({
  question: text,
  answer: text,
  calls: fc.array(call, { maxLength: 4 }),
  areResultsTogether: fc.boolean(),
})
const conversation = fc.array(exchange, { minLength: 1, maxLength: 5 })

/** The conversation as a client of the provider would store it. */
const TOLD: Readonly<Record<MessageFormat, (exchanges: readonly Exchange[]) => object[]>> = {
  openai: (exchanges) =>
    exchanges.flatMap(({ question, answer, calls }, e) => [
      { role: 'user', content: question },
      {
        role: 'assistant',
        content: answer,
        ...(calls.length > 0 && {
          tool_calls: calls.map((call, c) => ({
            id: `call_${e}_${c}`,
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
      },
      ...calls.map(({ result }, c) => ({ role: 'tool', tool_call_id: `call_${e}_${c}`, content: result })),
    ]),
  anthropic: (exchanges) =>
    exchanges.flatMap(({ question, answer, calls, areResultsTogether }, e) => {
      const results = calls.map(({ result }, c) => ({
        type: 'tool_result',
        tool_use_id: `toolu_${e}_${c}`,
        content: result,
      }))
      return [
        { role: 'user', content: question },
        {
          role: 'assistant',
          content: [
            { type: 'text', text: answer },
            ...calls.map(({ name }, c) => ({
              type: 'tool_use',
              id: `toolu_${e}_${c}`,
              name,
              input: { e, c },
            })),
          ],
        },
        ...together(results, areResultsTogether).map((content) => ({ role: 'user', content })),
      ]
    }),
  gemini: (exchanges) =>
    exchanges.flatMap(({ question, answer, calls, areResultsTogether }, e) => {
      const results = calls.map(({ name, result }) => ({
        functionResponse: { name, response: { output: result } },
      }))
      return [
        { role: 'user', parts: [{ text: question }] },
        {
          role: 'model',
          parts: [
            { text: answer },
            ...calls.map(({ name }, c) => ({ functionCall: { name, args: { e, c } } })),
          ],
        },
        ...together(results, areResultsTogether).map((parts) => ({ role: 'user', parts })),
      ]
    }),
  acontext: (exchanges) =>
    exchanges.flatMap(({ question, answer, calls, areResultsTogether }, e) => {
      const results = calls.map(({ result }, c) => ({
        type: 'tool-result',
        text: result,
        meta: { tool_call_id: `${e}-${c}` },
      }))
      return [
        { role: 'user', parts: [{ type: 'text', text: question }] },
        {
          role: 'assistant',
          parts: [
            { type: 'text', text: answer },
            ...calls.map(({ name, arguments: text }, c) => ({
              type: 'tool-call',
              meta: { id: `${e}-${c}`, name, arguments: text },
            })),
          ],
        },
        ...together(results, areResultsTogether).map((parts) => ({ role: 'user', parts })),
      ]
    }),
  responses: (exchanges) =>
    exchanges.flatMap(({ question, answer, calls }, e) => [
      { role: 'user', content: question },
      {
        type: 'message',
        id: `msg_${e}`,
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: answer, annotations: [] }],
      },
      ...calls.map((call, c) => ({
        type: 'function_call',
        id: `fc_${e}_${c}`,
        call_id: `call_${e}_${c}`,
        name: call.name,
        arguments: call.arguments,
      })),
      ...calls.map(({ result }, c) => ({
        type: 'function_call_output',
        call_id: `call_${e}_${c}`,
        output: result,
      })),
    ]),
}

function together<Result>(results: Result[], areTogether: boolean): Result[][] {
  return areTogether && results.length > 0 ? [results] : results.map((result) => [result])
}

/** The calls (+) and results (-) of rendered messages, by id, and what else comes in between (.). */
const SEQUENCE: Readonly<Record<MessageFormat, (message: never) => string[]>> = {
  openai: (message: { role: string; tool_call_id?: string; tool_calls?: { id: string }[] }) =>
    message.role === 'tool'
      ? [`-${message.tool_call_id}`]
      : ['.', ...(message.tool_calls ?? []).map(({ id }) => `+${id}`)],
  anthropic: ({ content }: { content: { type: string; id?: string; tool_use_id?: string }[] }) =>
    content.map(({ type, id, tool_use_id }) =>
      type === 'tool_use' ? `+${id}` : type === 'tool_result' ? `-${tool_use_id}` : '.',
    ),
  gemini: ({ parts }: { parts: { functionCall?: { id: string }; functionResponse?: { id: string } }[] }) =>
    parts.map(({ functionCall, functionResponse }) =>
      functionCall ? `+${functionCall.id}` : functionResponse ? `-${functionResponse.id}` : '.',
    ),
  acontext: ({ parts }: { parts: { type: string; meta: { id?: string; tool_call_id?: string } }[] }) =>
    parts.map(({ type, meta }) =>
      type === 'tool-call' ? `+${meta.id}` : type === 'tool-result' ? `-${meta.tool_call_id}` : '.',
    ),
  responses: ({ type, call_id }: { type: string; call_id?: string }) => [
    type === 'function_call' ? `+${call_id}` : type === 'function_call_output' ? `-${call_id}` : '.',
  ],
}

const PAIRS = MESSAGE_FORMATS.flatMap((from) =>
  MESSAGE_FORMATS.filter((to) => to !== from).map((to) => [from, to] as const),
)

describe.each(PAIRS)('a conversation stored as %s and read as %s', (from, to) => {
  it('has each result right after the calls, under the id of its own, and every id once', () => {
    fc.assert(
      fc.property(conversation, (exchanges) => {
        const messages = rendered(storedAs(from, TOLD[from](exchanges)), to)
        const sequence = messages.flatMap((message) => SEQUENCE[to](message as never))
        const calls = sequence.filter((step) => step.startsWith('+')).map((step) => step.slice(1))
        expect(new Set(calls).size).toBe(calls.length)
        expect(calls.length).toBe(exchanges.flatMap(({ calls }) => calls).length)
        // Without the rest, each run of calls must be followed by its own results, in order.
        const expected = exchanges.flatMap(({ calls: { length } }, e) => {
          const start = exchanges.slice(0, e).reduce((sum, { calls }) => sum + calls.length, 0)
          const ids = calls.slice(start, start + length)
          return [...ids.map((id) => `+${id}`), ...ids.map((id) => `-${id}`)]
        })
        expect(sequence.filter((step) => step !== '.')).toEqual(expected)
        expect(sequence.join(' ')).not.toMatch(/\+\S* (\.+ )+-/)
      }),
      { numRuns: 100 },
    )
  })

  it('returns at least one item for each message', () => {
    fc.assert(
      fc.property(conversation, (exchanges) => {
        const stored = storedAs(from, TOLD[from](exchanges))
        const items = renderMessages(stored, to)
        expect([...new Set(items.map(({ index }) => index))]).toEqual(stored.map((_, i) => i))
      }),
      { numRuns: 50 },
    )
  })
})

describe('a page of a conversation', () => {
  const withResultsTogether = conversation.map((exchanges) =>
    exchanges.map((exchange) => ({ ...exchange, areResultsTogether: true })),
  )

  it.each(['openai', 'anthropic', 'acontext', 'responses'] as const)(
    'reads in %s as it does in the whole of it, wherever it begins, though Gemini gave no ids',
    (to) => {
      fc.assert(
        fc.property(withResultsTogether, fc.nat(), (exchanges, start) => {
          const stored = storedAs('gemini', TOLD.gemini(exchanges))
          const from = start % stored.length
          const whole = renderMessages(stored, to).filter(({ index }) => index >= from)
          const page = renderMessages(stored.slice(from), to)
          expect(page.map(({ message }) => ids(message))).toEqual(whole.map(({ message }) => ids(message)))
        }),
        { numRuns: 100 },
      )
    },
  )

  function ids(message: unknown): string[] {
    return JSON.stringify(message).match(/call_0190d3a8[0-9a-f]{24}_\d+/g) ?? []
  }
})
