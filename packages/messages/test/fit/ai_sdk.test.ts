import type { ModelMessage, ToolResultPart } from 'ai'
import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { countedContent, MESSAGE_FORMATS, type MessageFormat, readMessage } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

// biome-ignore lint/suspicious/noExplicitAny: it looks into items of any format
type Item = any

/** Messages as AI SDK has them, stored in OpenAI's format, which they look like. */
function sent(to: MessageFormat, messages: readonly ModelMessage[]) {
  const list = new FitToSend(to)
  for (const [nth, blob] of messages.entries())
    list.add({
      id: messageId(nth),
      parent_id: nth === 0 ? null : messageId(nth - 1),
      seq: nth + 1,
      format: 'openai',
      blob: JSON.stringify(blob),
    })
  const { items, omitted } = list.finish()
  const read: Item[] = items.map(({ json }) => JSON.parse(json))
  expect(brokenRules(to, read), JSON.stringify(read)).toEqual([])
  return {
    items: read,
    text: JSON.stringify(read),
    omitted: omitted.map(({ what, reason }) => what ?? reason),
  }
}

const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  Buffer.alloc(9_000),
]).toString('base64')
const PDF = Buffer.from('%PDF-1.7\n').toString('base64')
const asked: ModelMessage = { role: 'user', content: 'x' }
const said = (...content: Exclude<Extract<ModelMessage, { role: 'assistant' }>['content'], string>) =>
  ({ role: 'assistant', content }) satisfies ModelMessage
const look = { type: 'tool-call', toolCallId: 'a', toolName: 'look', input: {} } as const
const returned = (output: ToolResultPart['output']): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'look', output }],
})

describe('what AI SDK has', () => {
  const files: ModelMessage = {
    role: 'user',
    content: [
      { type: 'text', text: 'Look' },
      { type: 'image', image: PNG },
      { type: 'image', image: PNG, mediaType: 'image/*' },
      { type: 'file', data: { type: 'data', data: PNG }, mediaType: 'image' },
      { type: 'file', data: 'https://x.test/a.png', mediaType: 'image/png' },
      { type: 'file', data: { type: 'data', data: PDF }, mediaType: 'application/pdf' },
      { type: 'file', data: { type: 'text', text: 'Written' }, mediaType: 'text/plain' },
    ],
  }

  it('of files and pictures is in every format, whatever it says of their types', () => {
    for (const to of MESSAGE_FORMATS) {
      const { text, omitted } = sent(to, [files])
      expect(omitted, to).toEqual([])
      for (const [piece, times] of [
        [PNG, 3],
        [PDF, 1],
        ['https://x.test/a.png', 1],
        ['Written', 1],
      ] as const)
        expect(text.split(piece), `${to} ${piece.slice(0, 8)}`).toHaveLength(times + 1)
    }
  })

  it('of a result is in the result, with its pictures and files', () => {
    const output: ToolResultPart['output'] = {
      type: 'content',
      value: [
        { type: 'text', text: 'Seen' },
        { type: 'image-data', data: PNG, mediaType: 'image/png' },
        { type: 'file', data: { type: 'data', data: PNG }, mediaType: 'image/png' },
        { type: 'file-data', data: PDF, mediaType: 'application/pdf' },
        { type: 'image-url', url: 'https://x.test/a.png' },
      ],
    }
    for (const to of MESSAGE_FORMATS) {
      const { text, omitted } = sent(to, [asked, said(look), returned(output)])
      expect(omitted, to).toEqual([])
      for (const [piece, times] of [
        [PNG, 2],
        [PDF, 1],
        ['https://x.test/a.png', 1],
      ] as const)
        expect(text.split(piece), `${to} ${piece.slice(0, 8)}`).toHaveLength(times + 1)
    }
  })

  it('of a call that was not allowed is what the user said about it', () => {
    const denied = (reason?: string) => [
      asked,
      said(look),
      returned({ type: 'execution-denied', ...(reason && { reason }) }),
    ]
    expect(sent('openai', denied('Not now.')).items[2].content).toBe('Not now.')
    expect(sent('openai', denied()).items[2].content).toBe('The call was not allowed.')
  })

  it('of thoughts and signatures goes to the provider whose they are', () => {
    const anthropic = said(
      { type: 'reasoning', text: 'Hm', providerOptions: { anthropic: { signature: 'c2ln' } } },
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'ZGF0YQ==' } } },
      look,
    )
    expect(sent('anthropic', [asked, anthropic]).items[1].content.slice(0, 2)).toEqual([
      { type: 'thinking', thinking: 'Hm', signature: 'c2ln' },
      { type: 'redacted_thinking', data: 'ZGF0YQ==' },
    ])
    const google = said(
      { type: 'reasoning', text: 'Hm', providerOptions: { google: { thoughtSignature: 'c2ln' } } },
      { ...look, providerOptions: { google: { thoughtSignature: 'R1NJRw==' } } },
    )
    expect(sent('gemini', [asked, google]).items[1].parts).toEqual([
      { text: 'Hm', thought: true },
      { functionCall: { id: 'a', name: 'look', args: {} }, thoughtSignature: 'R1NJRw==' },
    ])
    for (const to of ['openai', 'anthropic', 'responses'] as const)
      expect(sent(to, [asked, google]).omitted, to).toEqual(['thinking'])
  })

  it('of bytes counts as a picture does, and not as the text of its base64', () => {
    const { text, tokens } = countedContent('openai', readMessage('openai', files), files)
    expect(text).not.toContain(PNG.slice(0, 100))
    expect(tokens + text.length).toBeLessThan(10_000)
  })
})
