import { describe, expect, it } from 'vitest'
import { isShortened, joinedMessage } from '../src/context/index.js'

const whole = (content: unknown) => JSON.stringify({ meta: {}, blob: { role: 'user', content } })

describe('a message that is stored in parts', () => {
  it('is what they hold together, wherever it was cut', () => {
    const text = whole('a "long" text 東京')
    for (let at = 0; at <= text.length; at++)
      expect(joinedMessage('openai', [text.slice(0, at), text.slice(at)])).toBe(
        '{"role":"user","content":"a \\"long\\" text 東京"}',
      )
  })

  it('has U+FFFD for what a log cannot hold, and every other escape as it is', () => {
    const escaped = JSON.stringify({ blob: { role: 'user', content: 'a\0b\ud800c\\u0000\n\ufdd0' } })
    const stored = escaped.replaceAll('\ufdd0', '\ufdd0\ufdd0')
    const { content } = JSON.parse(joinedMessage('openai', [stored])!) as { content: string }
    expect(content).toBe('a\ufffdb\ufffdc\\u0000\n\ufdd0')
  })

  it.each([
    '',
    '{',
    '[1]',
    '"x"',
    '{}',
    '{"blob":1}',
    whole(1),
    `{"blob":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
    whole([
      { type: 'image_url', image_url: { url: { annals_blob: 'a'.repeat(64), media_type: 'image/png' } } },
    ]),
  ])('is none where they hold no message: %.40s', (text) => {
    expect(joinedMessage('openai', [text])).toBeUndefined()
  })

  it('is looked for where an adapter has shortened a text', () => {
    expect(isShortened('{"role": "user", "content": "word… [1200000 characters in all]"}')).toBe(true)
    expect(isShortened('{"role": "user", "content": "word"}')).toBe(false)
  })
})
