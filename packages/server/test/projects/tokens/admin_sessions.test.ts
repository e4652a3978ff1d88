import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AdminSessions } from '../../../src/projects/tokens/admin_sessions.ts'

const ADMIN_TOKEN = 'a'.repeat(32)

/** Sessions in a database that finds whatever it is asked for, and how often it was asked. */
function sessionsOf(admin_token: string) {
  const asked: string[] = []
  const query = async ({ name }: { name: string }) => {
    asked.push(name)
    return [{ id: 'found' }]
  }
  return { sessions: new AdminSessions({ query } as never, admin_token), asked }
}

it('a session of the administrator is known by its signature, and only with the same admin token', async () => {
  const token = await sessionsOf(ADMIN_TOKEN).sessions.begin()
  expect(await sessionsOf(ADMIN_TOKEN).sessions.isOpen(token)).toBe(true)
  expect(await sessionsOf('b'.repeat(32)).sessions.isOpen(token)).toBe(false)
})

it('a forged session of any characters is refused without an error and without a look-up', async () => {
  const { sessions, asked } = sessionsOf(ADMIN_TOKEN)
  const [id, signature] = (await sessions.begin()).split('.')
  asked.length = 0
  const character = fc.integer({ min: 0, max: 0xff }).map((code) => String.fromCharCode(code))
  const forged = fc.oneof(
    fc.string({ unit: character }),
    fc.string({ unit: character, minLength: signature!.length, maxLength: signature!.length }),
  )
  await fc.assert(
    fc.asyncProperty(forged, async (text) => {
      fc.pre(text.split('.')[0] !== signature)
      expect(await sessions.isOpen(`${id}.${text}`)).toBe(false)
      expect(await sessions.renew(text)).toBe(false)
      await sessions.end(text)
    }),
  )
  expect(asked).toEqual([])
})
