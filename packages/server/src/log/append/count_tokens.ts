import { readFileSync } from 'node:fs'
import { countedText, type Part } from '@annals/messages'
import { countTokens as countIn, type TokenTable, tokenTable } from '@annals/messages/tokens'
import { packagedFile } from '../../version.js'

let table: TokenTable | undefined

/**
 * Tokens of a message's text, tool calls and tool results in o200k_base. Runs of more than 128 characters without a
 * break are counted in pieces, so their count may be a few tokens too high.
 */
export function countTokens(content: Part[]): number {
  const text = countedText(content)
  if (text === '') return 0
  table ??= tokenTable(readFileSync(packagedFile('dist/o200k_base.bin')))
  return countIn(table, text)
}
