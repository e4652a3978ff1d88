import { expect } from 'vitest'
import type { Answer } from './http_client.ts'

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/
/** An id that no resource has. */
export const NOBODYS_ID = '01890a5d-ac96-774b-bcce-b302099a8057'

/** The answer is a success in its envelope; gives its data. */
export function expectOk<T>(answer: Answer<T>, status = 200): T {
  expect(answer.status, answer.text).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/json\b/)
  expect(answer.headers['x-request-id']).toMatch(/^\S+$/)
  const { data, ...rest } = answer.json
  expect(rest).toEqual({ code: 0, error: '', msg: 'ok' })
  expect(data).toBeTypeOf('object')
  return data
}

/** The answer is this error in its envelope, and its sentence holds each of the words, in any case. */
export function expectError(
  answer: Answer<unknown>,
  status: number,
  error: string,
  ...words: string[]
): void {
  expect(answer.status, answer.text).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/json\b/)
  expect(answer.headers['x-request-id']).toMatch(/^\S+$/)
  const { msg, ...rest } = answer.json
  expect(rest).toEqual({ code: status, error })
  expect(msg).toMatch(/\S{2,} \S+/)
  for (const word of words) expect(msg.toLowerCase()).toContain(word.toLowerCase())
}
