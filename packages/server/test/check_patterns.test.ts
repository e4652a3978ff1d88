import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const CHECK = fileURLToPath(new URL('../../../.ci/check_patterns.js', import.meta.url))

describe('the check of regular expressions', () => {
  const directory = mkdtempSync(join(tmpdir(), 'annals-patterns-'))
  afterAll(() => rmSync(directory, { recursive: true }))

  const check = (source: string) => {
    const path = join(directory, 'source.ts')
    writeFileSync(path, source)
    const { status, stderr } = spawnSync(process.execPath, [CHECK, path], { encoding: 'utf8' })
    return { status, said: stderr }
  }

  it.each([
    // What once let a caller stop the service with a long name.
    String.raw`export const visible = (name: string) => name.replace(/[\p{Cc}\p{Cf}]|^\p{Z}+|\p{Z}+$/gu, '')`,
    String.raw`const END = new RegExp('\\s+$')`,
    String.raw`const Name = Type.String({ pattern: '^(a+)+$' })`,
  ])('refuses one that takes more than linear time, and names its line: %s', (source) => {
    const { status, said } = check(`\n${source}\n`)
    expect(said).toMatch(/source\.ts:2: .* takes (?:2nd degree polynomial|exponential) time, on /)
    expect(status).toBe(1)
  })

  it('refuses one that is put together, and one that is excused without a reason', () => {
    expect(check('const of = (word: string) => new RegExp(word)').said).toContain('write it out')
    expect(check('// recheck:\nconst END = / +$/').said).toContain('say after "recheck:" why')
  })

  it('lets linear ones pass, and those with a reason', () => {
    const source = String.raw`
      const DIGITS = /^\d+$/
      // recheck: it reads our own file.
      const END = / +$/`
    const { status, said } = check(source)
    expect(said).toContain('2 regular expressions looked at, 0 found wanting')
    expect(status).toBe(0)
  })
})
