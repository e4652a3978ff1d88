import { readMessage } from '@annals/messages'
import { describe, expect, it } from 'vitest'
import { countTokens } from '../../../src/log/append/count_tokens.ts'

const count = (content: string) => countTokens(readMessage('openai', { role: 'user', content }).parts)

describe('the tokens of a message', () => {
  it('are those of o200k_base', () => {
    expect(count('')).toBe(0)
    expect(count('Where is my flight?')).toBe(5)
  })

  it('count what looks like a special token as the text that it is', () => {
    expect(count('<|endoftext|>')).toBeGreaterThan(1)
  })

  it('take the time of a moment, also for a mebibyte without a break', () => {
    for (const character of ['a', ' ', '\n', '書', '0']) {
      const started = performance.now()
      expect(count(character.repeat(Math.floor(1_048_576 / Buffer.byteLength(character))))).toBeGreaterThan(0)
      // Twenty times what was seen, so that it fails for quadratic time (minutes) and not for a busy machine.
      expect(performance.now() - started).toBeLessThan(20_000)
    }
  })
})
