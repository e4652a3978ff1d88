import { describe, expect, it } from 'vitest'
import { contextMessage, editBlob, planContext } from '../src/context/index.js'
import { MESSAGE_FORMATS, readMessage } from '../src/index.js'
import { rendered, storedAs } from './stored_run.js'

const CONVERSATION = [
  { role: 'user', content: 'What is the weather in Paris and Rome?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: ['Paris', 'Rome'].map((city, i) => ({
      id: `call_${i}`,
      type: 'function',
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    })),
  },
  { role: 'tool', tool_call_id: 'call_0', content: 'rain, '.repeat(40) },
  { role: 'tool', tool_call_id: 'call_1', content: 'sun, '.repeat(40) },
]

describe('an edited message', () => {
  it.each(MESSAGE_FORMATS)('of %s is a message of that format that says the rest', (format) => {
    const blobs = rendered(storedAs('openai', CONVERSATION), format)
    const before = blobs.flatMap((blob) => readMessage(format, blob).parts)
    const edited = blobs.map((blob, i) => {
      const place = { id: String(i), seq: i + 1, tokens: 10, format, blob: JSON.stringify(blob) }
      const { results, calls } = contextMessage(place)
      return editBlob(format, blob, { results: results.map(() => 'gone'), inputs: calls.map(() => true) })
    })
    const after = edited.flatMap((blob) => readMessage(format, blob).parts)
    expect(after.map(({ type }) => type)).toEqual(before.map(({ type }) => type))
    for (const [i, part] of after.entries()) {
      if (part.type === 'tool-result') expect(part.text).toBe('gone')
      else if (part.type === 'tool-call') expect(part.meta).toEqual({ ...before[i]!.meta, arguments: '{}' })
      else expect(part).toEqual(before[i])
    }
    expect(JSON.stringify(blobs), 'and the message itself is untouched').toContain('rain')
  })

  it('of several items is edited call by call', () => {
    const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'look', arguments: '{"n":1}' })
    const shell = { type: 'shell_call', call_id: 'b', action: { commands: ['ls'] } }
    const items = [{ type: 'reasoning', id: 'r', summary: [] }, call('a'), shell, call('c'), call('d')]
    const known = items.map((item) => contextMessage(itemAt(1, item)))
    expect(known.map(({ calls }) => calls.length)).toEqual([0, 1, 1, 1, 1])
    const inputs = [false, true, true, false]
    expect(editBlob('responses', items, { results: [], inputs })).toEqual(
      items.with(3, { ...call('c'), arguments: '{}' }),
    )
  })
})

const itemAt = (seq: number, item: object) => ({
  id: String(seq),
  seq,
  tokens: 10,
  format: 'responses' as const,
  blob: JSON.stringify(item),
})

describe('a built-in tool of OpenAI', () => {
  it('is called and answers on the same side of a cut', () => {
    const items = [
      { role: 'user', content: 'Go' },
      { type: 'computer_call', call_id: 'a', action: { type: 'screenshot' }, pending_safety_checks: [] },
      { type: 'item_reference', id: 'msg_1' },
      { type: 'computer_call_output', call_id: 'a', output: { type: 'computer_screenshot', file_id: 'f' } },
      { role: 'user', content: 'And now?' },
    ]
    const messages = items.map((item, i) => contextMessage(itemAt(i + 1, item)))
    expect(messages.map(({ speaker }) => speaker)).toEqual(['user', 'assistant', 'user', 'tool', 'user'])
    const from = (tokens_target: number) =>
      planContext(
        { messages, may_grow: false, is_longer: false, instruction_tokens: 0 },
        { tokens_max: 40, tokens_target, tools_excluded: new Set(), inputs_cleared: false },
      )?.from_seq
    expect([from(40), from(30), from(10)]).toEqual([5, 5, 5])
  })
})
