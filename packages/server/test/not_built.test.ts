import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'

const BIN = fileURLToPath(new URL('../bin/annals.js', import.meta.url))
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'annals-not-built-'))
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  cpSync(BIN, join(directory, 'bin', 'annals.js'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const run = () => spawnSync(process.execPath, [join(directory, 'bin', 'annals.js')], { encoding: 'utf8' })

it('annals says that it is not built, and how to build it, without a stack', () => {
  const { status, stderr } = run()
  expect(stderr).toMatch(/^annals: Annals is not built yet: run npm run build .*\n$/)
  expect(status).toBe(1)
})

it('annals shows any other module that is missing as it is', () => {
  mkdirSync(join(directory, 'dist', 'bundle'), { recursive: true })
  writeFileSync(join(directory, 'dist', 'bundle', 'annals.js'), "import 'nowhere-to-be-found'")
  const { status, stderr } = run()
  expect(stderr).toContain("Cannot find package 'nowhere-to-be-found'")
  expect(status).not.toBe(0)
})
