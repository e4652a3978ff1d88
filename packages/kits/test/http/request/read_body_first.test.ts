import { afterEach, expect, it, vi } from 'vitest'
import { forgetBody, readBodyFirst, readBodyJson } from '../../../src/http/request/read_body.js'

const body = (text = '{"a":[1.50]}') => Buffer.from(text)
const treeOf = (read: ReturnType<typeof readBodyJson>) => (read as { value: unknown }).value

afterEach(() => {
  vi.useRealTimers()
})

it('a body that is looked through before it is taken is parsed once', () => {
  const first = treeOf(readBodyFirst(body()))
  expect(treeOf(readBodyJson(body()))).toBe(first)
  expect(treeOf(readBodyJson(body())), 'it is taken once').not.toBe(first)
})

it.each<[string, () => void]>([
  ['another body came between', () => readBodyJson(body('{"a":[2.50]}'))],
  ['one that is no JSON came between', () => readBodyFirst(body('{'))],
  ['other work wants the memory', forgetBody],
  ['a second has passed', () => vi.advanceTimersByTime(1_000)],
])('it is parsed again, from its own bytes, if %s', (_why, between) => {
  vi.useFakeTimers()
  const first = treeOf(readBodyFirst(body()))
  between()
  const second = treeOf(readBodyJson(body()))
  expect(second).toEqual(first)
  expect(second).not.toBe(first)
  expect(treeOf(readBodyJson(body('{"b":1}')))).toEqual({ b: 1 })
})
