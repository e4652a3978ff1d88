import { importExport } from '../../lifecycle/transfer/import_export.js'
import { ExportReader } from '../../lifecycle/transfer/read_export.js'
import { FIND_SPACES } from '../../lifecycle/transfer/restore_queries.js'
import type { Database } from '../../postgres/database.js'
import { findProject } from '../../projects/projects.js'
import { READ_HEAD } from '../../sessions/session_queries.js'
import type { DemoDocument, DemoTotals } from './demo_document.js'
import { demoExport, idOf } from './demo_export.js'

/** Loads the demo as an import does, which can set times. Existing data is left alone. */
export async function restoreDemo(
  database: Database,
  project: string,
  demo: DemoDocument,
  signal: AbortSignal,
): Promise<DemoTotals> {
  const project_id = await findProject(database, project)
  const missing = await withoutKnown(database, project_id, demo)
  const source = [Buffer.from(demoExport(missing, Date.now()))]
  const totals = await importExport(database, new ExportReader(iterate(source)), {
    project_id,
    dry_run: false,
    signal,
    onProgress: () => {},
    onConflict: () => {},
  })
  return {
    sessions: { stored: totals.sessions.stored, known: demo.sessions.length - missing.sessions.length },
    entries: totals.entries.stored,
    learning_spaces: totals.learning_spaces.stored,
  }
}

async function withoutKnown(
  database: Database,
  project_id: string,
  demo: DemoDocument,
): Promise<DemoDocument> {
  const sessions = []
  for (const session of demo.sessions) {
    const [head] = await database.query(READ_HEAD, [project_id, session.session.use_uuid])
    if (!head) sessions.push(session)
  }
  const ids = demo.learning_spaces.map(({ meta }) => idOf('space', meta.demo))
  const known = new Set((await database.query(FIND_SPACES, [project_id, ids])).map((row) => row.id))
  // If the demo was loaded through the API, its spaces have other ids; if all sessions exist, so do the spaces.
  const learning_spaces =
    sessions.length === 0
      ? []
      : demo.learning_spaces.filter(({ meta }) => !known.has(idOf('space', meta.demo)))
  return { sessions, learning_spaces }
}

async function* iterate(chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks
}
