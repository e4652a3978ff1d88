import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { expect } from 'vitest'

export const SOUND = ['Nothing was found.']

const VERIFIER = ts.transpileModule(readFileSync('examples/proof/verify.ts', 'utf8'), {
  compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
}).outputText

/** What the two verifiers that know nothing of Annals say of an export, or of the proof of an entry. */
export function judge(...args: string[]): string[] {
  const [python, node] = [
    { command: 'python3', options: ['examples/proof/verify.py'], input: '' },
    // Node 20 runs no TypeScript, so it gets JavaScript, by its input.
    { command: process.execPath, options: ['--input-type=module', '-'], input: VERIFIER },
  ].map(({ command, options, input }) => {
    const { status, stdout, stderr } = spawnSync(command, [...options, ...args], { encoding: 'utf8', input })
    expect(stderr).toBe('')
    expect(status, stdout).toBe(stdout.endsWith('Nothing was found.\n') ? 0 : 1)
    return stdout
  })
  expect(python).toBe(node)
  return node!.trimEnd().split('\n').slice(1)
}
