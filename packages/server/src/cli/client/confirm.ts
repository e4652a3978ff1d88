import { StartError } from '../../errors.js'
import { UsageError } from '../run_command.js'
import { ask } from '../terminal/ask.js'
import { visibleLine } from '../terminal/visible.js'

/** Continues only if `word` is typed at the terminal, or `--yes` was given. */
export async function confirm(what: string, word: string, yes: boolean | undefined): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY) throw new UsageError(`${what} There is no terminal to confirm on: use --yes.`)
  const answer = await ask(`${visibleLine(what)} Type ${visibleLine(word)} to confirm: `)
  if (answer !== word) throw new StartError('The confirmation did not match. Nothing was done.')
}
