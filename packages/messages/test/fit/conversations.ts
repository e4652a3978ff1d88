import fc from 'fast-check'
import type { MessageFormat } from '../../src/index.js'

/** What happens in a conversation, in the order in which it is stored. */
export type Step =
  | { kind: 'user' | 'system' | 'thinking' | 'reply'; text: string }
  | { kind: 'calls'; calls: Array<{ id: string; name: string; input: string }>; are_lines: boolean }
  | {
      kind: 'results'
      ids: string[]
      text: string
      has_image: boolean
      is_error: boolean
      are_lines: boolean
    }

export const text = fc.constantFrom('Find it', 'ok', 'A longer text, with a comma.', '', ' ', 'Zürich 東京')
const name = fc.constantFrom('search', 'book', 'default_api:find', 'a.b', 'f'.repeat(70))
const input = fc.constantFrom('{}', '{"a":1}', '', 'null', '{"a":', '{"n":12345678901234567890}')

interface Shot {
  kind: number
  text: string
  calls: Array<{ id: number; name: string; input: string }>
  style: number
  answered: number
  order: number
  again: boolean
  between: boolean
  flags: boolean[]
}

const shot: fc.Arbitrary<Shot> = fc.record({
  kind: fc.nat(9),
  text,
  calls: fc.array(fc.record({ id: fc.nat(2_000), name, input }), { minLength: 1, maxLength: 4 }),
  style: fc.nat(4),
  answered: fc.nat(5),
  order: fc.nat(3),
  again: fc.boolean(),
  between: fc.boolean(),
  flags: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
})

/** Ids as models and services make them; one in twenty is used again. */
function idOf(style: number, nth: number, seed: number): string {
  if (seed % 20 === 0) return 'call_0'
  return [
    `call_${nth}`,
    `functions.f:${nth}`,
    `toolu_vrtx_${'A'.repeat(60)}${nth}`,
    `resp_1:call_${nth}|fc_${nth}`,
    `é ${nth}`,
  ][style]!
}

/** Random conversations: with parallel calls, interleavings, calls without results, duplicates and orphans. */
export const conversation: fc.Arbitrary<Step[]> = fc
  .array(shot, { minLength: 1, maxLength: 12 })
  .map((shots) => {
    let calls_made = 0
    return shots.flatMap(({ kind, text, calls, style, answered, order, again, between, flags }): Step[] => {
      const [are_lines = false, has_image = false, is_error = false, have_lines = false] = flags
      if (kind === 0) return [{ kind: 'system', text }]
      if (kind <= 3) return [{ kind: 'user', text }]
      if (kind === 4) return [{ kind: 'reply', text }]
      if (kind === 5) return [{ kind: 'thinking', text }]
      const made = calls.map(({ id, name, input }) => ({ id: idOf(style, calls_made++, id), name, input }))
      const ids = made.map(({ id }) => id).slice(0, answered)
      if (order === 1) ids.reverse()
      if (again && ids[0] !== undefined) ids.push(ids[0])
      if (order === 2) ids.unshift('nobody')
      const meanwhile: Step[] = between ? [{ kind: flags[1] ? 'user' : 'reply', text }] : []
      return [
        ...(flags[2] ? [{ kind: 'thinking', text: 'Hm' } as const] : []),
        { kind: 'calls', calls: made, are_lines },
        ...meanwhile,
        ...(ids.length > 0
          ? [{ kind: 'results', ids, text, has_image, is_error, are_lines: have_lines } as const]
          : []),
      ]
    })
  })

const PNG = 'iVBORw0KGgo='

/** The messages of a conversation as a client of a provider would store them. */
export function toldIn(format: MessageFormat, steps: readonly Step[]): object[] {
  return steps.flatMap((step) => TELL[format](step))
}

const TELL: Readonly<Record<MessageFormat, (step: Step) => object[]>> = {
  openai(step) {
    if (step.kind === 'calls') {
      const calls = step.calls.map(({ id, name, input }) => ({
        id,
        type: 'function',
        function: { name, arguments: input },
      }))
      return lines(calls, step.are_lines).map((tool_calls) => ({
        role: 'assistant',
        content: null,
        tool_calls,
        refusal: null,
        annotations: [],
      }))
    }
    if (step.kind === 'results')
      return step.ids.map((id) => ({ role: 'tool', tool_call_id: id, content: step.text }))
    if (step.kind === 'thinking') return [{ role: 'assistant', content: '', reasoning_content: step.text }]
    return [{ role: step.kind === 'reply' ? 'assistant' : step.kind, content: step.text }]
  },
  anthropic(step) {
    if (step.kind === 'calls') {
      const calls = step.calls.map(({ id, name, input }) => ({
        type: 'tool_use',
        id,
        name,
        input: inputOf(input),
      }))
      return lines(calls, step.are_lines).map((content) => answer(content))
    }
    if (step.kind === 'results') {
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
      const results = step.ids.map((id) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: step.has_image ? [{ type: 'text', text: step.text }, image] : step.text,
        ...(step.is_error && { is_error: true }),
        cache_control: { type: 'ephemeral', ...(step.are_lines && { ttl: '1h' }) },
      }))
      return lines(results, step.are_lines).map((content) => ({ role: 'user', content }))
    }
    if (step.kind === 'thinking')
      return [answer([{ type: 'thinking', thinking: step.text, signature: step.text }])]
    if (step.kind === 'system') return [{ role: 'user', content: [{ type: 'text', text: step.text }] }]
    return [
      step.kind === 'reply'
        ? answer([{ type: 'text', text: step.text }])
        : { role: 'user', content: step.text },
    ]
  },
  gemini(step) {
    if (step.kind === 'calls') {
      const calls = step.calls.map(({ id, name, input }) => ({
        functionCall: { ...(id !== 'call_0' && { id }), name, args: inputOf(input) },
      }))
      return lines(calls, step.are_lines).map((parts) => ({ role: 'model', parts }))
    }
    if (step.kind === 'results') {
      const image = { inlineData: { mimeType: 'image/png', data: PNG } }
      const results = step.ids.map((id) => ({
        functionResponse: {
          id,
          response: step.is_error ? { error: step.text } : { output: step.text },
          ...(step.has_image && { parts: [image] }),
        },
      }))
      return lines(results, step.are_lines).map((parts) => ({ role: 'user', parts }))
    }
    if (step.kind === 'thinking') return [{ role: 'model', parts: [{ text: step.text, thought: true }] }]
    return [{ role: step.kind === 'reply' ? 'model' : 'user', parts: [{ text: step.text }] }]
  },
  acontext(step) {
    if (step.kind === 'calls') {
      const calls = step.calls.map(({ id, name, input }) => ({
        type: 'tool-call',
        meta: { id, name, arguments: input },
      }))
      return lines(calls, step.are_lines).map((parts) => ({ role: 'assistant', parts }))
    }
    if (step.kind === 'results') {
      const results = step.ids.map((id) => [
        { type: 'tool-result', text: step.text, meta: { tool_call_id: id, is_error: step.is_error } },
        ...(step.has_image
          ? [{ type: 'image', meta: { media_type: 'image/png', data: PNG, tool_call_id: id } }]
          : []),
      ])
      return lines(results, step.are_lines).map((parts) => ({ role: 'user', parts: parts.flat() }))
    }
    if (step.kind === 'thinking')
      return [{ role: 'assistant', parts: [{ type: 'thinking', text: step.text }] }]
    return [
      { role: step.kind === 'reply' ? 'assistant' : 'user', parts: [{ type: 'text', text: step.text }] },
    ]
  },
  responses(step) {
    if (step.kind === 'calls')
      return step.calls.map(({ id, name, input }, nth) => ({
        type: 'function_call',
        id: `fc_${nth}`,
        call_id: id,
        name,
        arguments: input,
        status: 'completed',
      }))
    if (step.kind === 'results') {
      const image = { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${PNG}` }
      return step.ids.map((id) => ({
        type: 'function_call_output',
        call_id: id,
        output: step.has_image ? [{ type: 'input_text', text: step.text }, image] : step.text,
        ...(step.is_error && { status: 'incomplete' }),
      }))
    }
    if (step.kind === 'thinking')
      return [
        {
          type: 'reasoning',
          id: 'rs_1',
          summary: [{ type: 'summary_text', text: step.text }],
          encrypted_content: 'c2ln',
        },
      ]
    if (step.kind === 'reply')
      return [
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: step.text, annotations: [] }],
        },
      ]
    return [{ role: step.kind, content: step.text }]
  },
}

function inputOf(text: string): unknown {
  try {
    return (JSON.parse(text) ?? {}) as unknown
  } catch {
    return { text }
  }
}

/** A model's answer as the API returns it. */
const answer = (content: object[]) => ({
  id: 'msg_01',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content,
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
})

function lines<Block>(blocks: Block[], are_lines: boolean): Block[][] {
  return are_lines ? blocks.map((block) => [block]) : [blocks]
}
