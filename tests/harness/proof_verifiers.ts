import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { expect } from 'vitest'

export const SOUND = ['Nothing was found.']

/** The verifier in JavaScript, because Node 20 runs no TypeScript. */
const FILES = ['verify', 'anchors'].map((name) => {
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    rewriteRelativeImportExtensions: true,
  }
  const program = readFileSync(`examples/proof/${name}.ts`, 'utf8')
  return [`${name}.js`, ts.transpileModule(program, { compilerOptions }).outputText] as const
})

/** What the two verifiers that know nothing of Annals say of an export, or of the proof of an entry. */
export function judge(...args: string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'annals-verifier-'))
  try {
    writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
    for (const [name, text] of FILES) writeFileSync(join(directory, name), text)
    const name =
      args.length === 1 && readFileSync(args[0]!, 'utf8').includes('annals_export') ? 'verify' : 'anchors'
    const python = run('python3', `examples/proof/${name}.py`, ...args)
    expect(python).toBe(run(process.execPath, join(directory, `${name}.js`), ...args))
    return python.trimEnd().split('\n').slice(1)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function run(command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status, stdout).toBe(stdout.endsWith('Nothing was found.\n') ? 0 : 1)
  return stdout
}
