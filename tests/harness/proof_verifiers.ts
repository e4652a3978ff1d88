import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, expect } from 'vitest'

export const SOUND = ['Nothing was found.']

const SOURCE = 'examples/proof/verify.ts'
/** Node 20 runs no TypeScript. */
const runs = (process.features as { typescript?: unknown }).typescript
const folder = runs ? undefined : mkdtempSync(join(tmpdir(), 'annals-verifier-'))
const script = folder ? join(folder, 'verify.mjs') : SOURCE
if (folder) {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }
  writeFileSync(script, ts.transpileModule(readFileSync(SOURCE, 'utf8'), { compilerOptions }).outputText)
  afterAll(() => rmSync(folder, { recursive: true }))
}

/** What the two verifiers that know nothing of Annals say of an export, or of the proof of an entry. */
export function judge(...args: string[]): string[] {
  const [python, node] = [
    ['python3', 'examples/proof/verify.py'],
    [process.execPath, script],
  ].map(([command, file]) => {
    const { status, stdout, stderr } = spawnSync(command!, [file!, ...args], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status, stdout).toBe(stdout.endsWith('Nothing was found.\n') ? 0 : 1)
    return stdout
  })
  expect(python).toBe(node)
  return node!.trimEnd().split('\n').slice(1)
}
