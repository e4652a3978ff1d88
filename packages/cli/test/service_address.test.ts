import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { forgetAddress, keepAddress, keptAddress } from '../src/service/service_address.ts'

const [ONE, OTHER] = ['http://127.0.0.1:1001', 'http://127.0.0.1:1002'] as const
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'annals-address-'))
})

afterEach(() => rmSync(directory, { recursive: true }))

it('is found until the service stops', () => {
  expect(keptAddress(directory)).toBeUndefined()
  keepAddress(directory, ONE)
  expect(keptAddress(directory)).toBe(ONE)
  forgetAddress(directory, ONE)
  expect(keptAddress(directory)).toBeUndefined()
  expect(readdirSync(directory)).toEqual([])
})

it('is that of the service that still runs after a second one in the same directory has stopped', () => {
  keepAddress(directory, ONE)
  keepAddress(directory, OTHER)
  expect(keptAddress(directory)).toBe(OTHER)
  forgetAddress(directory, OTHER)
  expect(keptAddress(directory)).toBe(ONE)
})

it('is stored once, as the newest, by a service that starts again after it was killed', () => {
  keepAddress(directory, ONE)
  keepAddress(directory, OTHER)
  keepAddress(directory, ONE)
  expect(keptAddress(directory)).toBe(ONE)
  forgetAddress(directory, ONE)
  expect(keptAddress(directory)).toBe(OTHER)
})
