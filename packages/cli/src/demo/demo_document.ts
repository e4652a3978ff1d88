import { readFile } from 'node:fs/promises'
import type { NewEntry } from '@annals/client'
import { packagedFile } from '@annals/kits/version.js'

/** The demo in demo/sessions.json: request bodies of the API, and their times. */
export interface DemoDocument {
  /** `learns_from`: ids of sessions. */
  learning_spaces: { user?: string; meta: { demo: string }; learns_from: string[] }[]
  sessions: DemoSession[]
}

export interface DemoSession {
  /** How long before now it began. */
  hours_ago: number
  session: { use_uuid: string; user?: string; configs: object }
  /** When each entry was appended, in ms since the session began. */
  at_ms: number[]
  entries: (NewEntry & { id: string })[]
}

/** How much of the demo was stored, and how much already existed. */
export interface DemoTotals {
  sessions: { stored: number; known: number }
  entries: number
  spaces: number
}

/** The demo that ships with the package. */
export async function readDemo(): Promise<DemoDocument> {
  return JSON.parse(await readFile(packagedFile('demo/sessions.json'), 'utf8')) as DemoDocument
}

/** When a session began, in ms since 1970. */
export function startOf(hours_ago: number, now: number): number {
  return now - Math.round(hours_ago * 3_600_000)
}

export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}
