import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { standardBase64 } from '../src/attachments.js'
import { converted } from './stored_run.js'

describe('base64 in the URL-safe alphabet', () => {
  it('is in the standard one for every other provider', () => {
    const blob = { role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: '-----___vw==' } }] }
    const data = '+++++///vw=='
    expect(converted('gemini', 'anthropic', blob)).toEqual([
      {
        role: 'user',
        content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }],
      },
    ])
    expect(converted('gemini', 'openai', blob)).toEqual([
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }],
      },
    ])
    expect(converted('gemini', 'acontext', blob)).toMatchObject([{ parts: [{ meta: { data } }] }])
    expect(converted('gemini', 'gemini', blob)).toEqual([blob])
  })

  it('says the same bytes in the standard one, by itself or in a data: URL; other text stays', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.boolean(),
        fc.constantFrom('', 'data:a/b;base64,'),
        (bytes, isPadded, prefix) => {
          const standard = Buffer.from(bytes).toString('base64')
          const safe = standard.replaceAll('+', '-').replaceAll('/', '_')
          const sent = isPadded || !/[-_]/.test(safe) ? safe : safe.replace(/=+$/, '')
          expect(standardBase64(prefix + sent)).toBe(prefix + standard)
        },
      ),
    )
    for (const text of ['', 'https://example.com/a-b_c', 'a-b c', 'file-1.pdf'])
      expect(standardBase64(text)).toBe(text)
  })
})
