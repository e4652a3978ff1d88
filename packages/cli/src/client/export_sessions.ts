import { fileOutput, OutputClosed, streamOutput } from '@annals/archive'
import type { Annals, Session } from '@annals/client'
import type { ExportFormat, Omissions } from '@annals/importers'
import { AnnalsError } from '@annals/kits/errors.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countOf } from '../terminal/count.js'
import { showProgress } from '../terminal/progress.js'
import { visible } from '../terminal/visible.js'
import { type ConnectionOptions, connect } from './connection.js'
import { findSession } from './pick_session.js'

const RETRIES = 5
const PAGE_MAX = 200
/** The end of a session's file, which has what was left out. */
const END_BYTES = 256 * 1024
const LEFT_OUT = '"omitted":'

export interface ExportSessionsOptions extends ConnectionOptions {
  format: ExportFormat
  user?: string
  session?: string
  output: string
}

/** Writes sessions in another format, read through a service, and says what the format left out. */
export async function exportSessions(options: ExportSessionsOptions, signal: AbortSignal): Promise<void> {
  const { annals } = await connect(options, RETRIES)
  const output = options.output === '-' ? streamOutput(process.stdout) : await fileOutput(options.output)
  const progress = showProgress('Exporting', 'sessions', 0)
  const omitted: Omissions = new Map()
  let count = 0
  try {
    for await (const { id } of sessionsOf(annals, options)) {
      let end = Buffer.alloc(0)
      for await (const piece of annals.sessions.export(id, { format: options.format }, { signal })) {
        await output.write(Buffer.from(piece))
        end = Buffer.concat([end, piece]).subarray(-END_BYTES)
      }
      addOmissions(omitted, options.format === 'jsonl' ? '' : String(end))
      count += 1
      progress.update(count)
    }
    await output.finish()
  } catch (error) {
    await output.abandon().catch(() => {})
    if (error instanceof OutputClosed) {
      process.exitCode = EXIT_CODES.pipe_closed
      return
    }
    throw error
  } finally {
    progress.stop()
  }
  process.stderr.write(`Exported ${countOf(count, 'sessions')}.\n${leftOut(options.format, omitted)}`)
}

/** Adds what the end of a file names. */
function addOmissions(omitted: Omissions, end: string): void {
  const from = end.lastIndexOf(LEFT_OUT)
  if (from < 0) return
  const text = end.slice(from + LEFT_OUT.length)
  // A kind of event may have braces in its name.
  for (let to = text.indexOf('}'); to >= 0; to = text.indexOf('}', to + 1)) {
    const counts = /^[}\s]*$/.test(text.slice(to + 1)) ? parsed(text.slice(0, to + 1)) : undefined
    if (counts === undefined) continue
    for (const [what, many] of Object.entries(counts)) omitted.set(what, (omitted.get(what) ?? 0) + many)
    return
  }
}

function parsed(text: string): Record<string, number> | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function* sessionsOf(annals: Annals, options: ExportSessionsOptions): AsyncGenerator<Session> {
  if (options.session !== undefined) {
    yield await annals.sessions.get(await findSession(annals, options.session))
    return
  }
  let found = false
  for await (const session of annals.sessions.list({ user: options.user, limit: PAGE_MAX })) {
    found = true
    yield session
  }
  if (!found && options.user !== undefined)
    throw new AnnalsError(
      'user_not_found',
      `No session has the user ${JSON.stringify(options.user)}: see \`annals users list\`.`,
    )
}

/** Kinds that the format cannot express; in ATIF, `extra.annals` keeps most of them. */
function leftOut(format: ExportFormat, omitted: Omissions): string {
  if (omitted.size === 0) return ''
  const kept = format === 'atif' ? ' Events are in extra.annals, from which annals import restores them.' : ''
  const lines = [...omitted]
    .sort(([, a], [, b]) => b - a)
    .map(([what, count]) => visible(`  ${count} × ${what}\n`))
  return `${format} has no form for:\n${lines.join('')}${kept === '' ? '' : `${kept.trim()}\n`}`
}
