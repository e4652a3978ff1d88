import { readFile } from 'node:fs/promises'
import { InvalidPrices, readPriceList } from '@annals/messages/session'
import { StartError } from '../errors.js'

const CHARACTERS_MAX = 1_000_000

/**
 * The price list of models that ANNALS_PRICES is, or whose file it names; undefined without one.
 * @throws StartError that names the place
 */
export async function readPrices(value: string | undefined): Promise<unknown> {
  if (!value?.trim()) return undefined
  const is_text = value.trimStart().startsWith('{')
  const place = is_text ? 'ANNALS_PRICES' : `ANNALS_PRICES (${value})`
  try {
    const text = is_text ? value : await readFile(value, 'utf8')
    if (text.length > CHARACTERS_MAX) throw new Error(`it has more than ${CHARACTERS_MAX} characters`)
    const list: unknown = JSON.parse(text)
    readPriceList(list)
    return list
  } catch (error) {
    throw new StartError(
      error instanceof InvalidPrices
        ? `${place}${error.at && ` at ${error.at}`} ${error.reason}. Correct it.`
        : `${place} cannot be read: ${(error as Error).message}. Correct it.`,
      { cause: error },
    )
  }
}
