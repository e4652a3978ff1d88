import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../../.ci/remove_stale_output.js', import.meta.url))

it('removes what was compiled of a source that is gone, and nothing else', () => {
  const root = mkdtempSync(join(tmpdir(), 'annals-stale-'))
  try {
    const folder = join(root, 'packages/adapters/one')
    const names = ['gone', 'kept', 'view', 'in/gone'].flatMap((stem) =>
      ['.js', '.js.map', '.d.ts'].map((ending) => `dist/${stem}${ending}`),
    )
    for (const name of [...names, 'dist/made.js', 'dist/.tsbuildinfo', 'src/kept.ts', 'src/view.tsx']) {
      mkdirSync(join(folder, name, '..'), { recursive: true })
      writeFileSync(join(folder, name), '')
    }
    execFileSync(process.execPath, [SCRIPT, root])
    const left = readdirSync(join(folder, 'dist'), { recursive: true, encoding: 'utf8' }).sort()
    const kept = ['kept', 'view'].flatMap((stem) => [`${stem}.d.ts`, `${stem}.js`, `${stem}.js.map`])
    expect(left).toEqual(['.tsbuildinfo', 'in', ...kept, 'made.js'].sort())
  } finally {
    rmSync(root, { recursive: true })
  }
})
