import { createHash } from 'node:crypto'
import { FORMAT_VERSION } from '@annals/archive'
import { messageEntry } from 'annals/dist/log/append_bodies.js'
import { type DemoDocument, type DemoSession, startOf, timeOf } from './demo_document.js'

/** The demo as an export made now, with sessions of the last days: docs/export-format.md. */
export function demoExport({ sessions, learning_spaces }: DemoDocument, now: number): string {
  const lines: object[] = [{ annals_export: FORMAT_VERSION, what: 'project' }]
  const begun = timeOf(Math.min(now, ...sessions.map(({ hours_ago }) => startOf(hours_ago, now))))
  const users = [...sessions.map(({ session }) => session.user), ...learning_spaces.map(({ user }) => user)]
  for (const identifier of new Set(users.filter((user) => user !== undefined))) {
    lines.push({
      kind: 'user',
      id: idOf('user', identifier),
      identifier,
      created_at: begun,
      updated_at: begun,
    })
  }
  for (const { user, meta } of learning_spaces) {
    lines.push({
      kind: 'learning_space',
      id: idOf('space', meta.demo),
      ...ownerOf(user),
      created_at: begun,
      updated_at: timeOf(now),
      meta,
    })
  }
  for (const session of sessions) lines.push(...sessionLines(session, now))
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const sha256 = createHash('sha256').update(body).digest('hex')
  return `${body}${JSON.stringify({ kind: 'end', lines: lines.length, sha256 })}\n`
}

function sessionLines({ hours_ago, session, at_ms, entries }: DemoSession, now: number): object[] {
  const { use_uuid: session_id, user, configs } = session
  const start = startOf(hours_ago, now)
  let parent_id: string | null = null
  let total_tokens = 0
  const lines: object[] = []
  for (const [index, entry] of entries.entries()) {
    const created_at = timeOf(start + (at_ms[index] ?? 0))
    const bytes = Buffer.byteLength(JSON.stringify(entry))
    const place = { session_id, seq: index + 1, id: entry.id, created_at, updated_at: created_at, bytes }
    if (entry.kind === 'event') {
      const { type, data } = entry
      const none = { parent_id: null, role: null, format: null, meta: null, patched_meta: null }
      lines.push({ kind: 'event', ...place, ...none, tokens: 0, type, data })
      continue
    }
    const { format = 'openai', meta = {}, blob } = entry
    const { role, tokens } = messageEntry(format, JSON.stringify(blob), blob, entry.id, `/entries/${index}`)
    const said = { parent_id, tokens, type: null, role, format, meta, patched_meta: null, data: blob }
    lines.push({ kind: 'message', ...place, ...said })
    parent_id = entry.id
    total_tokens += tokens
  }
  const head = {
    kind: 'session',
    id: session_id,
    ...ownerOf(user),
    disable_task_tracking: false,
    created_at: timeOf(start),
    updated_at: timeOf(start + (at_ms.at(-1) ?? 0)),
    last_seq: entries.length,
    total_tokens,
    last_message_id: parent_id,
    configs,
  }
  return [head, ...lines]
}

function ownerOf(user: string | undefined): { user_id: string | null; user: string | null } {
  return user === undefined ? { user_id: null, user: null } : { user_id: idOf('user', user), user }
}

/** The same id for the same item, whenever the demo is loaded. */
export function idOf(kind: string, name: string): string {
  const hex = createHash('sha256').update(`annals demo/${kind}/${name}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
