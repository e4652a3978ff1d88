import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const TESTS = fileURLToPath(new URL('../../../tests', import.meta.url))
const FIRST_TIER = ['acceptance', 'database']
const STARTS_A_SERVICE = /\b(?:useService|startNode|startServer|startOwnServer)\b/
/** What starts services for whoever calls it. */
const STARTERS = [
  'annals_process.ts',
  'embedded_postgres.ts',
  'global_setup.ts',
  'own_server.ts',
  'service.ts',
]
/** They kill or restart a node in one test of many. */
const ALLOWED = [
  'acceptance/client_log_commands.test.ts',
  'acceptance/event_idempotency.test.ts',
  'acceptance/tail.test.ts',
]

const filesOf = (folder: string) =>
  readdirSync(join(TESTS, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({ name: `${folder}/${name}`, text: readFileSync(join(TESTS, folder, name), 'utf8') }))

describe('the first tier of tests', () => {
  const harness = filesOf('harness')
    .filter(
      ({ name, text }) => !STARTERS.includes(name.slice('harness/'.length)) && STARTS_A_SERVICE.test(text),
    )
    .map(({ name }) => name)
  const files = FIRST_TIER.flatMap(filesOf)

  it('starts no service of its own, except in a few files: others belong in tests/gate', () => {
    expect(files.length).toBeGreaterThan(100)
    const starting = files
      .filter(
        ({ text }) => STARTS_A_SERVICE.test(text) || harness.some((path) => text.includes(`../${path}'`)),
      )
      .map(({ name }) => name)
    expect(starting).toEqual(ALLOWED)
  })

  it('asserts no bounds of time', () => {
    const timed = files.filter(({ text }) => /performance\.now\(\)|Date\.now\(\) - [a-z]/.test(text))
    expect(timed.map(({ name }) => name)).toEqual([])
  })
})
