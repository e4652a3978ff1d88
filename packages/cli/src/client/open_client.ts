import { setFlagsFromString } from 'node:v8'
import { Annals, AnnalsError } from '@annals/client'
import { parseAnswer, writeJson } from '@annals/messages/json'
import { UsageError } from '../run_command.js'
import { commandLine } from '../terminal/command_name.js'

/** With these errors no connection was made, so nothing was sent. */
const UNCONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])

/**
 * A client for the command line: it keeps all digits, and explains where a refused key came from, which `origin` says
 * in a sentence.
 */
export function openClient(
  url: string,
  token: string,
  origin: string,
  retries: number,
): { annals: Annals; isReached: () => boolean } {
  // Node's fetch reads HTTP with WebAssembly. Before version 24, optimizing that takes 30 MB and saves no time.
  setFlagsFromString('--liftoff-only')
  let is_reached = false
  const send: typeof fetch = async (input, init) => {
    const response = await fetch(input, init).catch((error: unknown) => {
      const code = (error as { cause?: { code?: string } }).cause?.code ?? ''
      is_reached ||= !UNCONNECTED.has(code)
      throw code === 'ECONNREFUSED' ? nothingListens(url, error) : error
    })
    is_reached = true
    if (response.status === 401 && (await isOfAnnals(response.clone())))
      throw new AnnalsError({
        status: 401,
        error: 'unauthorized',
        message: `${url} refused this API key. ${origin}`,
        requestId: response.headers.get('x-request-id') ?? undefined,
      })
    return response
  }
  try {
    const annals = new Annals({ url, token, retries, parse: parseAnswer, stringify: writeJson, fetch: send })
    return { annals, isReached: () => is_reached }
  } catch (error) {
    throw new UsageError(`${JSON.stringify(url)} is not the URL of a service: ${(error as Error).message}.`)
  }
}

function nothingListens(url: string, cause: unknown): AnnalsError {
  const message = `Nothing listens at ${url} (ECONNREFUSED). Start Annals there with \`${commandLine(['serve'])}\`, or name another service with --url.`
  return new AnnalsError({ status: 0, error: 'connection_failed', message, cause })
}

/** A proxy in front may require its own password, and says so in its own words. */
async function isOfAnnals(response: Response): Promise<boolean> {
  try {
    return ((await response.json()) as { error?: unknown }).error === 'unauthorized'
  } catch {
    return false
  }
}
