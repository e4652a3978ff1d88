import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { StartError } from '@annals/kits/errors.js'
import { EXIT_CODES } from '../exit_codes.js'
import { UsageError } from '../run_command.js'
import { visibleLine } from './visible.js'

/** Asks for a line on the terminal. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  lines.once('SIGINT', () => {
    process.stderr.write('\n')
    process.exit(EXIT_CODES.interrupted)
  })
  try {
    return (await lines.question(question)).trim()
  } finally {
    lines.close()
  }
}

/** Reads a secret from the terminal without showing it, or from a pipe. */
export async function askSecret(question: string): Promise<string> {
  const { stdin, stderr } = process
  if (!stdin.isTTY) return (await text(stdin)).trim()
  // Before the question, so that even fast typing or pasting does not show the secret.
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stderr.write(question)
  try {
    return (await readSecret()).trim()
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}

/** Reads keys up to Enter. The terminal is in raw mode, so Ctrl-C and the like must be handled here. */
function readSecret(): Promise<string> {
  const { stdin, stderr } = process
  return new Promise((resolve) => {
    let secret = ''
    const end = (read: string) => {
      stdin.removeListener('data', take)
      resolve(read)
    }
    const take = (chunk: string) => {
      for (const key of chunk) {
        if (key === '\r' || key === '\n' || key === '\u0004') return end(secret)
        if (key === '\u0003') {
          stdin.setRawMode(false)
          stderr.write('\n')
          process.exit(EXIT_CODES.interrupted)
        }
        secret = key === '\u007f' || key === '\b' ? secret.slice(0, -1) : secret + key
      }
    }
    stdin.on('data', take)
  })
}

/** Continues only if `word` is typed at the terminal, or `--yes` was given. */
export async function confirm(what: string, word: string, yes: boolean | undefined): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY) throw new UsageError(`${what} There is no terminal to confirm on: use --yes.`)
  const answer = await ask(`${visibleLine(what)} Type ${visibleLine(word)} to confirm: `)
  if (answer !== word) throw new StartError('The confirmation did not match. Nothing was done.')
}
