import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import module from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const BIN = fileURLToPath(new URL('../bin/annals.js', import.meta.url))

it.skipIf(!('enableCompileCache' in module))('annals keeps what it compiled below the user’s home', () => {
  const home = mkdtempSync(join(tmpdir(), 'annals-home-'))
  try {
    const run = (more: object) =>
      spawnSync(process.execPath, [BIN, '--version'], { env: { PATH: process.env.PATH, ...more } }).status
    expect(run({ HOME: home })).toBe(0)
    const compiled = join(home, '.cache', 'annals', 'compiled')
    expect(readdirSync(compiled)).toHaveLength(1)
    expect(run({})).toBe(0)
    // A home that cannot be written to is no reason to fail.
    expect(run({ HOME: BIN })).toBe(0)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
