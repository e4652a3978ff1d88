import { spawnSync } from 'node:child_process'
import { expect } from 'vitest'

export const SOUND = ['Nothing was found.']

/** What the two verifiers that know nothing of Annals say of an export, or of the proof of an entry. */
export function judge(...args: string[]): string[] {
  const [python, node] = [
    ['python3', 'examples/proof/verify.py'],
    [process.execPath, 'examples/proof/verify.mjs'],
  ].map(([command, script]) => {
    const { status, stdout, stderr } = spawnSync(command!, [script!, ...args], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status, stdout).toBe(stdout.endsWith('Nothing was found.\n') ? 0 : 1)
    return stdout
  })
  expect(python).toBe(node)
  return node!.trimEnd().split('\n').slice(1)
}
