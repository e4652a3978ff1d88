import { AnnalsError, type Page } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import type { CallToolResult } from '@modelcontextprotocol/server'

/** The service refuses a tool's read of more than it takes into memory for one. */
const ANSWER_TOO_LARGE = 'payload_too_large'

/** What a tool answers: JSON as text, with every digit of its numbers; or what the service refused. */
export async function answerOf(work: () => Promise<object>): Promise<CallToolResult> {
  try {
    return { content: [{ type: 'text', text: writeJson(await work()) }] }
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error
    return { content: [{ type: 'text', text: `${error.error}: ${error.message}` }], isError: true }
  }
}

/**
 * Reads a page of at most `limit` items, and of fewer as long as their size is more than an answer may have.
 * @throws AnnalsError payload_too_large if a single item is
 */
export async function readPage<P extends Page<unknown>>(
  limit: number,
  read: (limit: number) => Promise<P>,
): Promise<P> {
  for (let items = limit; ; items = Math.floor(items / 4) || 1) {
    try {
      return await read(items)
    } catch (error) {
      if (items === 1 || !isTooLarge(error)) throw error
    }
  }
}

export function isTooLarge(error: unknown): boolean {
  return error instanceof AnnalsError && error.error === ANSWER_TOO_LARGE
}
