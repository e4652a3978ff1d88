import { fileOutput, OutputClosed, streamOutput } from '@annals/archive'
import type { Annals, Session } from '@annals/client'
import { type ExportFormat, exportSession, type Omissions } from '@annals/importers'
import { AnnalsError } from 'annals/dist/errors.js'
import { EXIT_CODES } from '../exit_codes.js'
import { countOf } from '../terminal/count.js'
import { showProgress } from '../terminal/progress.js'
import { visible } from '../terminal/visible.js'
import { type ConnectionOptions, connect } from './connection.js'
import { findSession } from './pick_session.js'
import { knownUsers } from './user_names.js'

const RETRIES = 5
const PAGE_MAX = 200
const ENTRIES_MAX = 1_000
const WRITE_LENGTH = 64 * 1024

export interface ExportSessionsOptions extends ConnectionOptions {
  format: ExportFormat
  user?: string
  session?: string
  output: string
}

/** Writes sessions in another format, read through a service, and says what the format left out. */
export async function exportSessions(options: ExportSessionsOptions, signal: AbortSignal): Promise<void> {
  const { annals } = await connect(options, RETRIES)
  const users = await knownUsers(annals)
  const output = options.output === '-' ? streamOutput(process.stdout) : await fileOutput(options.output)
  const progress = showProgress('Exporting', 'sessions', 0)
  const omitted: Omissions = new Map()
  let count = 0
  try {
    for await (const session of sessionsOf(annals, options)) {
      const user = session.user_id === null ? undefined : (options.user ?? users.get(session.user_id))
      const entries = annals.sessions.timeline(session.id, { limit: ENTRIES_MAX }, { signal })
      let text = ''
      for await (const part of exportSession({ session, user, entries }, options.format, omitted)) {
        text += part
        if (text.length < WRITE_LENGTH) continue
        await output.write(Buffer.from(text))
        text = ''
      }
      await output.write(Buffer.from(text))
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
    throw new AnnalsError('user_not_found', `No session has the user ${JSON.stringify(options.user)}.`)
}

/** What the format has no form for; of ATIF, `extra.annals` keeps most of it. */
function leftOut(format: ExportFormat, omitted: Omissions): string {
  if (omitted.size === 0) return ''
  const kept = format === 'atif' ? ' Events are in extra.annals, from which annals import restores them.' : ''
  const lines = [...omitted]
    .sort(([, a], [, b]) => b - a)
    .map(([what, count]) => visible(`  ${count} × ${what}\n`))
  return `${format} has no form for:\n${lines.join('')}${kept === '' ? '' : `${kept.trim()}\n`}`
}
