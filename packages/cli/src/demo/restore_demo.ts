import { ExportReader, importExport } from '@annals/archive'
import { AnnalsError } from '@annals/kits/errors.js'
import { registryOf } from '@annals/kits/lifecycle/registry.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { attachSession } from 'annals/dist/learning/sessions/space_sessions.js'
import { READ_HEAD } from 'annals/dist/log/read/read_queries.js'
import { changeProject, findProject } from 'annals/dist/projects/projects.js'
import type { UsageDays } from 'annals/dist/projects/usage.js'
import { MODULES } from 'annals/dist/service/modules.js'
import { operatorName } from '../database/with_database.js'
import type { DemoDocument, DemoSession, DemoTotals } from './demo_document.js'
import { demoExport, idOf } from './demo_export.js'

/** Loads the demo as an import does, which can set times, and switches search on. Existing data is left alone. */
export async function restoreDemo(
  { database, usage }: { database: Database; usage: UsageDays },
  project: string,
  demo: DemoDocument,
  signal: AbortSignal,
): Promise<DemoTotals> {
  const project_id = await findProject(database, project)
  const sessions = await withoutKnown(database, project_id, demo.sessions)
  // Over the API, spaces got other ids; where all sessions are there, so are they.
  const missing = sessions.length === 0 ? { sessions, learning_spaces: [] } : { ...demo, sessions }
  const { tables } = registryOf(MODULES)
  const source = [Buffer.from(demoExport(missing, Date.now()))]
  const { tallies } = await importExport(database, new ExportReader(iterate(source), tables), {
    tables,
    project_id,
    dry_run: false,
    signal,
    onProgress: () => {},
    onConflict: () => {},
    onStored: (stored) => usage.addImported(project_id, stored),
  })
  for (const { meta, learns_from } of missing.learning_spaces)
    for (const session_id of learns_from)
      await attachSession({ database, project_id }, idOf('space', meta.demo), { session_id }).catch(
        unlessKnown,
      )
  await changeProject(database, operatorName(), project_id, { search: true })
  return {
    sessions: { stored: tallies.sessions!.stored, known: demo.sessions.length - sessions.length },
    entries: tallies.entries!.stored,
    spaces: tallies.learning_spaces!.stored,
  }
}

/** A session that is in its space already stays there. */
function unlessKnown(error: unknown): void {
  if (!(error instanceof AnnalsError) || error.error !== 'session_in_space') throw error
}

async function withoutKnown(
  database: Database,
  project_id: string,
  sessions: DemoSession[],
): Promise<DemoSession[]> {
  const unknown = []
  for (const session of sessions) {
    const [head] = await database.query(READ_HEAD, [project_id, session.session.use_uuid, null])
    if (!head) unknown.push(session)
  }
  return unknown
}

async function* iterate(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}
