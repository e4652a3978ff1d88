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

  /** Looks at sources, each in a file of its own: starting the check takes longer than it. */
  const check = (...sources: string[]) => {
    const paths = sources.map((source, at) => {
      const path = join(directory, `source_${at}.ts`)
      writeFileSync(path, source)
      return path
    })
    const { status, stderr } = spawnSync(process.execPath, [CHECK, ...paths], { encoding: 'utf8' })
    return { status, said: stderr }
  }

  it('refuses those that take more than linear time, are put together, or excused without a reason', () => {
    const slow = [
      // What once let a caller stop the service with a long name.
      String.raw`export const visible = (name: string) => name.replace(/[\p{Cc}\p{Cf}]|^\p{Z}+|\p{Z}+$/gu, '')`,
      String.raw`const END = new RegExp('\\s+$')`,
      "const Name = Type.String({ pattern: '^(a+)+$' })",
    ]
    const { status, said } = check(
      ...slow.map((source) => `\n${source}\n`),
      'const of = (word: string) => new RegExp(word)',
      '// recheck:\nconst END = / +$/',
    )
    for (const at of slow.keys()) {
      const line = said.split('\n').find((line) => line.includes(`source_${at}.ts:2: `))
      expect(line).toMatch(/ takes (?:2nd degree polynomial|exponential) time, on /)
    }
    expect(said).toMatch(/source_3\.ts:1: .*write it out/)
    expect(said).toMatch(/source_4\.ts:\d+: .*say after "recheck:" why/)
    expect(status).toBe(1)
  })

  it('lets linear ones pass, and those with a reason', () => {
    const source = String.raw`
      const DIGITS = /^\d+$/
      // recheck: it reads our own file.
      const END = / +$/`
    const { status, said } = check(source)
    expect(said).toMatch(/^2 regular expressions, \d of them new, 0 found wanting$/m)
    expect(status).toBe(0)
  })
})
