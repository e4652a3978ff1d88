import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

// biome-ignore lint/suspicious/noExplicitAny: it looks into items of any format
type Item = any

/** `left_out`: the places of messages that the list lacks. */
function fitted(from: MessageFormat, to: MessageFormat, blobs: readonly object[], left_out: number[] = []) {
  const list = new FitToSend(to)
  for (const [nth, blob] of blobs.entries())
    if (!left_out.includes(nth))
      list.add({
        id: messageId(nth),
        parent_id: nth === 0 ? null : messageId(nth - 1),
        seq: nth + 1,
        format: from,
        blob: JSON.stringify(blob),
      })
  const { items, omitted } = list.finish()
  const read: Item[] = items.map(({ json }) => JSON.parse(json))
  expect(brokenRules(to, read), `${from} in ${to}`).toEqual([])
  return { items: read, omitted }
}

const PNG = 'iVBORw0KGgo='
const BLOCKS = {
  openai: [
    { type: 'text', text: 'said' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' } },
  ],
  anthropic: [
    { type: 'text', text: 'said' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
    { type: 'tool_result', tool_use_id: 'a', content: 'done' },
    { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
  ],
  responses: [
    { type: 'input_text', text: 'said' },
    { type: 'input_image', image_url: `data:image/png;base64,${PNG}` },
    { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' },
  ],
  langchain: [
    { type: 'text-plain', text: 'said' },
    { type: 'image', source_type: 'base64', mime_type: 'image/png', data: PNG },
    { type: 'media', mime_type: 'application/pdf', data: 'JVBERi0=' },
    { type: 'non_standard', value: {} },
  ],
}
const HOLDERS: ReadonlyArray<[MessageFormat, (blocks: object[]) => object]> = [
  ['openai', (content) => ({ role: 'user', content })],
  ['anthropic', (content) => ({ role: 'user', content })],
  ['responses', (content) => ({ type: 'message', role: 'user', content })],
  ['gemini', (parts) => ({ role: 'user', parts })],
]

/** What is no message at all: a picture of Anthropic's without a source, and Gemini's file that is a text. */
const REFUSED = new Set(['langchain in anthropic', 'responses in gemini'])

describe('blocks of one format in a list of another', () => {
  const mixed = HOLDERS.flatMap(([from, holder]) =>
    Object.entries(BLOCKS).map(([kind, blocks]) => ({ from, kind, blob: holder(blocks) })),
  ).filter(({ from, kind }) => !REFUSED.has(`${kind} in ${from}`))
  it.each(mixed)('say in every format what those of $kind say in $from', ({ from, kind, blob }) => {
    for (const to of MESSAGE_FORMATS) {
      // Gemini's parts have no types: those of others are no parts in the neutral form.
      if (from === 'gemini' && to !== 'gemini') continue
      const { items } = fitted(from, to, [blob])
      const text = JSON.stringify(items)
      expect(text, `${kind} in ${to}`).toContain('said')
      expect(text, `${kind} in ${to}`).toContain(PNG)
      expect(text, `${kind} in ${to}`).toContain('JVBERi0=')
      expect(items.every(({ role }) => role !== 'assistant' && role !== 'model')).toBe(true)
    }
  })

  it('stay where services take them that speak the format, or where nobody knows them', () => {
    const video = { type: 'video_url', video_url: { url: 'https://x.test/a.mp4' } }
    expect(fitted('openai', 'openai', [{ role: 'user', content: [video] }]).items[0].content).toEqual([video])
  })

  it('are named where no form says them', () => {
    const blob = { role: 'assistant', content: [{ type: 'output_text', text: 'y' }, { type: 'reasoning' }] }
    const { items, omitted } = fitted('openai', 'openai', [{ role: 'user', content: 'x' }, blob])
    expect(items[1].content).toEqual([{ type: 'text', text: 'y' }])
    expect(omitted).toEqual([{ id: messageId(1), reason: 'not_in_format', what: 'reasoning' }])
  })
})

const thought = (thinking: string) => ({ type: 'thinking', thinking, signature: 'c2ln' })
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const done = (...ids: string[]) => ({
  role: 'user',
  content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: 'done' })),
})
const kindsIn = (item: Item) =>
  item.content.map(({ thinking, id, text }: Item) => thinking ?? id ?? text).join(' ')

describe('thoughts between the calls of an answer', () => {
  const asked = { role: 'user', content: 'x' }
  const answer = (...content: object[]) => ({ role: 'assistant', content })

  it('stay where Claude thought them, because the API refuses a change', () => {
    const whole = [asked, answer(thought('1'), use('a'), thought('2'), use('b')), done('a', 'b')]
    expect(kindsIn(fitted('anthropic', 'anthropic', whole).items[1])).toBe('1 a 2 b')
    const lines = [thought('1'), use('a'), thought('2'), use('b')].map((block) => ({
      id: 'msg_1',
      ...answer(block),
    }))
    const stored = [asked, ...lines, done('a', 'b')]
    expect(kindsIn(fitted('anthropic', 'anthropic', stored).items[1])).toBe('1 a 2 b')
  })

  it('have what was said at the end ahead of the last calls, because the API refuses it there', () => {
    const said = { type: 'text', text: 't' }
    const last = [asked, answer(thought('1'), use('a'), thought('2'), use('b'), said), done('a', 'b')]
    expect(kindsIn(fitted('anthropic', 'anthropic', last).items[1])).toBe('1 a 2 t b')
    const one = [asked, answer(thought('1'), use('a'), said), done('a')]
    expect(kindsIn(fitted('anthropic', 'anthropic', one).items[1])).toBe('1 t a')
    const between = [asked, answer(use('a'), said, thought('2'), use('b')), done('a', 'b')]
    expect(kindsIn(fitted('anthropic', 'anthropic', between).items[1])).toBe('t a 2 b')
    const nothing = [asked, answer(thought('1'), use('a'), thought('2'), said), done('a')]
    expect(kindsIn(fitted('anthropic', 'anthropic', nothing).items[1])).toBe('1 2 t a')
  })
})

describe('items of the Responses API whose reasoning is not in the list', () => {
  const asked = { type: 'message', role: 'user', content: 'x' }
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], status: 'completed' }
  const call = { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'look', arguments: '{}' }
  const output = { type: 'function_call_output', call_id: 'a', output: 'done' }
  const content = [{ type: 'output_text', text: 'y', annotations: [] }]
  const said = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
  const ids = (...left_out: number[]) =>
    fitted('responses', 'responses', [asked, reasoning, call, output, said], left_out).items.map(
      ({ id, type }) => id ?? type,
    )

  it('have no ids, by which the API would know them', () => {
    expect(ids()).toEqual(['message', 'rs_1', 'fc_1', 'function_call_output', 'msg_1'])
    expect(ids(1)).toEqual(['message', 'function_call', 'function_call_output', 'msg_1'])
    expect(ids(0, 1)).toEqual(['function_call', 'function_call_output', 'msg_1'])
    expect(ids(1, 2, 3)).toEqual(['message', 'message'])
  })

  it('go without the status of reasoning, which only answers have', () => {
    const { items } = fitted('responses', 'responses', [asked, reasoning, call, output])
    expect(items[1]).toEqual({ type: 'reasoning', id: 'rs_1', summary: [] })
  })
})
