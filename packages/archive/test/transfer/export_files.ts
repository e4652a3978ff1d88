import { createHash } from 'node:crypto'

/** A line of an export that is being made: members without a value are left out. */
export type Line = Record<string, unknown>

const TIME = '2026-11-21T09:30:00.123456Z'

export const HEADER: Line = {
  annals_export: 1,
  what: 'project',
  project_id: '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d',
  project: 'default',
  exported_at: '2026-11-21T10:00:00.000Z',
  annals_version: '0.1.0',
  schema_version: 1,
}

/** The n-th id. */
export function idOf(n: number): string {
  return `01931b0e-7d3c-7a52-9d3f-${String(n).padStart(12, '0')}`
}

export function user(n: number, more: Line = {}): Line {
  return { kind: 'user', id: idOf(n), identifier: `user ${n}`, created_at: TIME, updated_at: TIME, ...more }
}

export function session(n: number, more: Line = {}): Line {
  return {
    kind: 'session',
    id: idOf(n),
    user_id: null,
    user: null,
    disable_task_tracking: false,
    created_at: TIME,
    updated_at: TIME,
    last_seq: 0,
    total_tokens: 0,
    last_message_id: null,
    configs: {},
    ...more,
  }
}

export function event(session: number, seq: number, more: Line = {}): Line {
  return {
    kind: 'event',
    session_id: idOf(session),
    seq,
    id: idOf(session * 1_000 + seq),
    parent_id: null,
    created_at: TIME,
    updated_at: TIME,
    bytes: 20,
    tokens: 0,
    type: 'tick',
    role: null,
    format: null,
    meta: null,
    patched_meta: null,
    data: { n: seq },
    ...more,
  }
}

export function message(session: number, seq: number, more: Line = {}): Line {
  const own = { kind: 'message', type: null, role: 'user', format: 'openai', meta: {}, tokens: 3 }
  return { ...event(session, seq), ...own, data: { role: 'user', content: 'Hi' }, ...more }
}

/** An export with these lines between its header and a last line that fits. */
export function exportOf(...lines: Line[]): Buffer {
  const text = [HEADER, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('')
  const end = {
    kind: 'end',
    lines: lines.length + 1,
    sha256: createHash('sha256').update(text).digest('hex'),
  }
  return Buffer.from(`${text}${JSON.stringify(end)}\n`)
}

/** The bytes as a file gives them, in chunks of a size. */
export async function* chunksOf(bytes: Buffer, size = bytes.length): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}
