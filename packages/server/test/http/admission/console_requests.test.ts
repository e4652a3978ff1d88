import fc from 'fast-check'
import { expect, it } from 'vitest'
import { beginOfAdminSession, signAdminSession } from '../../../src/http/admission/console_requests.ts'

const ADMIN_TOKEN = 'a'.repeat(32)

it('a session of the administrator is known by its signature, and only with the same admin token', () => {
  const began_ms = Date.now() - 1_000
  const value = signAdminSession(ADMIN_TOKEN, began_ms)
  expect(beginOfAdminSession(value, ADMIN_TOKEN)).toBe(began_ms)
  expect(beginOfAdminSession(value, 'b'.repeat(32))).toBeUndefined()
})

it('a forged session of any characters is refused without an error', () => {
  const [began, used, signature] = signAdminSession(ADMIN_TOKEN).split('.')
  const character = fc.integer({ min: 0, max: 0xff }).map((code) => String.fromCharCode(code))
  const forged = fc.oneof(
    fc.string({ unit: character }),
    fc.string({ unit: character, minLength: signature!.length, maxLength: signature!.length }),
  )
  fc.assert(
    fc.property(forged, (text) => {
      fc.pre(text !== signature)
      expect(beginOfAdminSession(`${began}.${used}.${text}`, ADMIN_TOKEN)).toBeUndefined()
      expect(beginOfAdminSession(text, ADMIN_TOKEN)).toBeUndefined()
    }),
  )
})
