import * as z from 'zod'

/** What is said of tools that only read. */
export const READS = { readOnlyHint: true, openWorldHint: false }

export const SessionId = z.uuid().describe("The session's id, as list_sessions shows it")
