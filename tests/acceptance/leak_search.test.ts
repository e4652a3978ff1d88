import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ADMIN_TOKEN, findLeaks, PASSWORD, PAYLOAD } from '../harness/leaks.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'annals-leaks-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const token = () => `sk-annals-${randomBytes(32).toString('base64url')}-abcdef`
const ordinary = ['{"level":30,"msg":"request"}', 'annals_tails 0', 'node annals.js serve', 'sk-annals-…']

it('the search for leaks finds nothing in what is ordinary', () => {
  writeFileSync(join(directory, 'log'), ordinary.join('\n'))
  expect(findLeaks(directory)).toEqual([])
})

it.each<[string, () => string]>([
  ['a token', () => `{"msg":"bad token ${token()}"}`],
  ['a token without its end', () => token().slice(0, -7)],
  ['a header', () => '"authorization":"Bearer sk-x"'],
  ['the admin token', () => `ANNALS_ADMIN_TOKEN=${ADMIN_TOKEN}`],
  ['a payload', () => `Unexpected token in "${PAYLOAD}"`],
  ['a password', () => `connect postgresql://annals:${PASSWORD}@db`],
])('the search for leaks finds %s wherever it stands, and does not repeat it', (_what, line) => {
  const leak = line()
  writeFileSync(join(directory, 'first'), ordinary.join('\n'))
  writeFileSync(join(directory, 'second'), [...ordinary, leak, ...ordinary].join('\n'))
  const found = findLeaks(directory)
  expect(found.length).toBeGreaterThan(0)
  for (const leak of found) expect(leak).toMatch(/^second:5 /)
  expect(found.join('\n')).not.toContain(leak.slice(-20))
})
