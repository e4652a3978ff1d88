import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { EXIT_CODES } from '../exit_codes.js'

/** Asks for a line on the terminal. */
export async function ask(question: string): Promise<string> {
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
    const take = (chunk: string) => {
      for (const key of chunk) {
        if (key === '\r' || key === '\n' || key === '\u0004') {
          stdin.removeListener('data', take)
          resolve(secret)
          return
        }
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
