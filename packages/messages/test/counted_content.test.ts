import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countedContent, type MessageFormat, mediaFacts, readMessage } from '../src/index.js'
import { MESSAGES } from './arbitrary_messages.js'

/** What is counted of a message: its text and further tokens. */
function counted(format: MessageFormat, blob: object) {
  return countedContent(format, readMessage(format, blob), blob)
}

const WORDS = 'word '.repeat(400)
const assistant = (...content: object[]) => ({ role: 'assistant', content })
const png = (width: number, height: number) => {
  const bytes = Buffer.alloc(64)
  bytes.write('\x89PNG\r\n\x1a\n', 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

describe('the tokens of a message', () => {
  it.each<[string, MessageFormat, object]>([
    ['thinking', 'anthropic', assistant({ type: 'thinking', thinking: WORDS, signature: 's' })],
    [
      "an MCP tool's result",
      'anthropic',
      assistant({ type: 'mcp_tool_result', tool_use_id: 'm', content: [{ type: 'text', text: WORDS }] }),
    ],
    [
      'a fetched page',
      'anthropic',
      assistant({
        type: 'web_fetch_tool_result',
        tool_use_id: 'w',
        content: {
          type: 'web_fetch_result',
          content: { type: 'document', source: { type: 'text', media_type: 'text/plain', data: WORDS } },
        },
      }),
    ],
    [
      'a document',
      'anthropic',
      {
        role: 'user',
        content: [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data: WORDS } }],
      },
    ],
    ['thoughts that other services add', 'openai', { role: 'assistant', reasoning_content: WORDS }],
    [
      'thoughts that a gateway adds with their signatures',
      'openai',
      { role: 'assistant', thinking_blocks: [{ type: 'thinking', thinking: WORDS, signature: 's' }] },
    ],
    [
      'thoughts that a gateway adds as details',
      'openai',
      { role: 'assistant', reasoning_details: [{ type: 'reasoning.summary', summary: WORDS }] },
    ],
    ['an MCP call', 'responses', { type: 'mcp_call', id: 'm', name: 'q', output: WORDS }],
    [
      "a shell's output",
      'responses',
      { type: 'shell_call_output', call_id: 'c', output: [{ stdout: WORDS, stderr: '' }] },
    ],
    [
      'reasoning',
      'responses',
      { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: WORDS }] },
    ],
    ['code', 'gemini', { role: 'model', parts: [{ executableCode: { code: WORDS, language: 'PYTHON' } }] }],
  ])('are also those of %s', (_, format, blob) => {
    expect(counted(format, blob).text).toContain(WORDS)
  })

  it('are those of the same thoughts under several names once, and those of encrypted ones beside them', () => {
    const reasoning_details = [
      { type: 'reasoning.text', text: WORDS, signature: 's' },
      { type: 'reasoning.encrypted', data: 'x'.repeat(1_600) },
    ]
    const beside = { role: 'assistant', content: 'ok', reasoning_content: WORDS, reasoning_details }
    expect(counted('openai', beside).text.split(WORDS)).toHaveLength(2)
    expect(counted('openai', beside).tokens).toBe(300)
  })

  it.each<[MessageFormat, number, number, number]>([
    // Each by the formula that its provider publishes; see media_facts.ts.
    ['anthropic', 1_000, 1_000, 1_334],
    ['anthropic', 200, 200, 54],
    ['anthropic', 8_000, 8_000, 1_600],
    ['openai', 1_024, 1_024, 765],
    ['openai', 2_048, 4_096, 1_105],
    ['gemini', 384, 384, 258],
    ['gemini', 1_536, 768, 516],
  ])('of an image in %s with %i × %i pixels are %4$i', (format, width, height, tokens) => {
    const data = png(width, height).toString('base64')
    const blobs: Partial<Record<MessageFormat, object>> = {
      anthropic: {
        role: 'user',
        content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
      },
      openai: {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }],
      },
      gemini: { parts: [{ inlineData: { mimeType: 'image/png', data } }] },
    }
    expect(counted(format, blobs[format]!)).toEqual({ text: '', tokens })
  })

  it('of a PDF go by its pages, or by its bytes where it does not show them', () => {
    const document = (bytes: Buffer) => ({
      role: 'user',
      content: [
        {
          type: 'document',
          source: { type: 'base64', media_type: 'application/pdf', data: bytes.toString('base64') },
        },
      ],
    })
    const pages = '%PDF-1.7 <</Type /Pages /Count 2>> <</Type /Page>> <</Type/Page /Rotate 0>>'
    expect(counted('anthropic', document(Buffer.from(pages))).tokens).toBe(6_000)
    const opaque = Buffer.concat([Buffer.from('%PDF-1.7'), Buffer.alloc(120_000)])
    expect(counted('anthropic', document(opaque)).tokens).toBe(9_000)
  })

  it('are never less than none, whatever is in it, and each text in a part that is sent is in the text', () => {
    for (const [format, message] of Object.entries(MESSAGES) as [MessageFormat, fc.Arbitrary<object>][])
      fc.assert(
        fc.property(message, (blob) => {
          const { text, tokens } = counted(format, blob)
          expect(Number.isInteger(tokens) && tokens >= 0).toBe(true)
          for (const part of readMessage(format, blob).parts)
            if (part.type === 'text' || part.type === 'thinking' || part.type === 'tool-result')
              expect(text).toContain(part.text)
        }),
        { numRuns: 100 },
      )
  })
})

describe('the facts of bytes', () => {
  it('are the size that each format of images has in its header', () => {
    const gif = Buffer.from('GIF89a\x40\x01\xf0\x00', 'latin1')
    const jpeg = Buffer.from('ffd8ffe000040000ffc0001108012c0190', 'hex')
    const webp = Buffer.concat([
      Buffer.from('RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0', 'latin1'),
      Buffer.from('8f01002b0100', 'hex'),
    ])
    expect(mediaFacts(png(640, 480))).toMatchObject({ width: 640, height: 480 })
    expect(mediaFacts(gif)).toMatchObject({ width: 320, height: 240 })
    expect(mediaFacts(jpeg)).toMatchObject({ width: 400, height: 300 })
    expect(mediaFacts(webp)).toMatchObject({ width: 400, height: 300 })
  })

  it('are at least their number, also of bytes that end anywhere', () => {
    const begins = fc.constantFrom(
      '\x89PNG\r\n\x1a\n',
      'GIF89a',
      '\xff\xd8\xff\xff',
      'RIFF....WEBPVP8 ',
      '%PDF-/Type',
    )
    fc.assert(
      fc.property(begins, fc.uint8Array({ maxLength: 40 }), (begin, rest) => {
        const bytes = Buffer.concat([Buffer.from(begin, 'latin1'), rest])
        expect(mediaFacts(bytes).bytes).toBe(bytes.length)
      }),
    )
  })
})
