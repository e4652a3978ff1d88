import { readFile } from 'node:fs/promises'
import type { NewEntry } from '@annals/client'

/** The demo as it ships, in demo/sessions.json: each body as the API takes it, with the times that go with it. */
export interface DemoDocument {
  learning_spaces: { user?: string; meta: { demo: string } }[]
  sessions: DemoSession[]
}

export interface DemoSession {
  /** When it began, before now. */
  hours_ago: number
  session: { use_uuid: string; user?: string; configs: object }
  /** When each entry was appended, in ms since the session began. */
  at_ms: number[]
  entries: (NewEntry & { id: string })[]
}

/** What a loading of the demo stored, and what it found there. */
export interface DemoTotals {
  sessions: { stored: number; known: number }
  entries: number
  learning_spaces: number
}

/** The demo that ships with the package. */
export async function readDemo(): Promise<DemoDocument> {
  const path = new URL('../../../demo/sessions.json', import.meta.url)
  return JSON.parse(await readFile(path, 'utf8')) as DemoDocument
}
