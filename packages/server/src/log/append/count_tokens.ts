import { readFileSync } from 'node:fs'
import type { CountedContent } from '@annals/messages'
import { countTokens as countIn, type TokenTable, tokenTable } from '@annals/messages/tokens'
import { packagedFile } from '../../version.js'

let table: TokenTable | undefined

/**
 * Tokens of all that is sent with a message: its text in o200k_base, and what images, documents and recordings have by the
 * formulas of their provider. Runs of more than 128 characters without a break are counted in pieces, so their count may be
 * a few tokens too high.
 */
export function countTokens({ text, tokens }: CountedContent): number {
  if (text === '') return tokens
  table ??= tokenTable(readFileSync(packagedFile('dist/o200k_base.bin')))
  return tokens + countIn(table, text)
}
