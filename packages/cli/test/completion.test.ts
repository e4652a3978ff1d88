import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { bashCompletion } from '../src/completion/bash.ts'
import { commandTree } from '../src/completion/command_tree.ts'
import { fishCompletion } from '../src/completion/fish.ts'
import { zshCompletion } from '../src/completion/zsh.ts'
import { annalsProgram } from '../src/program.ts'

const tree = commandTree(annalsProgram())
const directory = mkdtempSync(join(tmpdir(), 'annals-completion-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const run = (shell: string, ...args: string[]) => execFileSync(shell, args, { encoding: 'utf8' })
const isThere = (shell: string) => {
  try {
    return run(shell, '-c', 'echo yes').trim() === 'yes'
  } catch {
    return false
  }
}

/** The words of a command line, the last one unfinished, and some of what completes it. */
const CASES: [string[], string[], string[]][] = [
  [['annals', 'se'], ['serve', 'sessions'], ['show']],
  [['annals', 'sessions', ''], ['list', 'create', 'delete'], ['serve']],
  [['annals', 'sessions', 'list', '--us'], ['--user'], ['--url']],
  [['annals', 'show', '--kind', ''], ['message', 'event'], ['--kind']],
  [['annals', 'show', '--kind', 'event', '--fu'], ['--full'], []],
  [['annals', 'token', 'create', '--sc'], ['--scopes'], []],
  [['npx', 'annals', 'se'], ['serve', 'sessions'], ['show']],
  [['npx', 'annals', 'sessions', 'list', '--us'], ['--user'], ['--url']],
  [['npx', 'annals', 'show', '--kind', ''], ['message', 'event'], ['--kind']],
  [['npx', 'ann'], ['annals'], []],
  [['npx', 'other', 'se'], [], ['serve', 'sessions']],
]

function completed(words: string[], output: string): void {
  const found = CASES.find(([line]) => line === words)!
  const offered = output
    .split('\n')
    .map((line) => line.split('\t')[0]!.trim())
    .filter(Boolean)
  expect(offered).toEqual(expect.arrayContaining(found[1]))
  for (const word of found[2]) expect(offered).not.toContain(word)
}

it('every command is there, and every long option of each', () => {
  const paths = tree.map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining(['annals', 'annals tail', 'annals spaces create']))
  const script = bashCompletion(tree)
  for (const { path, options } of tree) for (const { flag } of options) expect(script, path).toContain(flag)
})

describe.runIf(isThere('bash'))('bash', () => {
  const path = join(directory, 'annals.bash')
  writeFileSync(path, bashCompletion(tree))
  it.each(CASES)('completes %j', (words) => {
    const quoted = words.map((word) => `'${word}'`).join(' ')
    const script = `source ${path}; complete -p annals npx >/dev/null || exit 1
      COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _annals; printf '%s\\n' "\${COMPREPLY[@]}"`
    completed(words, run('bash', '--norc', '-c', script))
  })
})

describe.runIf(isThere('fish'))('fish', () => {
  const path = join(directory, 'annals.fish')
  writeFileSync(path, fishCompletion(tree))
  it.each(CASES)('completes %j', (words) => {
    completed(words, run('fish', '--no-config', '-c', `source ${path}; complete -C '${words.join(' ')}'`))
  })
})

describe.runIf(isThere('zsh'))('zsh', () => {
  const path = join(directory, 'annals.zsh')
  writeFileSync(path, zshCompletion(tree))
  // What zsh's own functions are given is what they show; they themselves only work in a line editor.
  const stubs = `
    compdef() { :; }
    _describe() { eval "print -rl -- \\"\\\${\${@[-1]}[@]%%:*}\\""; }
    compadd() { shift; print -rl -- "$@"; }
    _files() { :; }`
  it.each(CASES)('completes %j', (words) => {
    const quoted = words.map((word) => `'${word}'`).join(' ')
    const script = `${stubs}
      source ${path}; words=(${quoted}); CURRENT=${words.length}; PREFIX='${words.at(-1)}'
      _annals | { grep -- "^$PREFIX" || true; }`
    completed(words, run('zsh', '-f', '-c', script))
  })
})
