import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { hmacWith } from '../src/hmac.js'

test('digests are those of the platform, whatever the key and the text', () => {
  const long = 'ä'.repeat(5_000)
  for (const key of ['', 'k', 'ö'.repeat(20), 'k'.repeat(64), 'k'.repeat(65), long]) {
    const digest = hmacWith(key)
    for (const text of ['', 'EMAIL\nomar@example.com', long, '\ud800'])
      expect(digest(text)).toBe(createHmac('sha256', key).update(text).digest('base64url'))
  }
})
