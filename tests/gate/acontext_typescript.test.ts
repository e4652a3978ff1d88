import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'
import { skillZip } from '../harness/skills.ts'

/** A call of the client, what it sends, and the types of the fields that it reads. */
interface Exchange {
  call: string
  method: string
  path: string
  query?: Record<string, string>
  body?: unknown
  form?: Record<string, string | { filename: string; type: string }>
  status: number
  answer?: unknown
  /** What the `id` of the answer is called in the lines below. */
  save?: string
}

/** Recorded of `@acontext/acontext` 0.1.21, a line each, in the order in which they were sent. */
const EXCHANGES = readFileSync(
  new URL('../fixtures/acontext_typescript_0.1.21.ndjson', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Exchange)

const service = useSharedService()
const ids: Record<string, string> = { uuid: randomUUID() }
let token: string
beforeAll(async () => {
  ;({ token } = await service.newProject())
})

/** The same with the ids of this run. */
const here = <T>(recorded: T): T =>
  JSON.parse(JSON.stringify(recorded).replaceAll(/\{(\w+)\}/g, (all, name) => ids[name] ?? all))

it.each(EXCHANGES)(
  '$call of the TypeScript client @acontext/acontext is answered as it reads it',
  async (recorded) => {
    const { method, path, query, body, form } = here(recorded)
    const url = `${service.node.url}/api/v1${path}?${new URLSearchParams(query)}`
    const headers = {
      Authorization: `Bearer ${token}`,
      ...(body ? { 'Content-Type': 'application/json' } : {}),
    }
    const sent = form ? formOf(form) : body === undefined ? null : JSON.stringify(body)
    const answer = await fetch(url, { method, headers, body: sent })
    expect([answer.status, answer.ok]).toEqual([recorded.status, true])
    if (recorded.answer === undefined) return
    const { data } = (await answer.json()) as { data: { id: string } }
    expect(data).toEqual(typed(recorded.answer))
    if (recorded.save) ids[recorded.save] = data.id
  },
)

function formOf(fields: NonNullable<Exchange['form']>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.append(name, value)
    else {
      const bytes = value.filename.endsWith('.zip') ? skillZip('recorded') : Buffer.from('%PDF-1.4')
      form.append(name, new Blob([new Uint8Array(bytes)], { type: value.type }), value.filename)
    }
  }
  return form
}

/** Matches what has these fields, of these types, and any others. */
function typed(types: unknown): unknown {
  if (types === 'null') return null
  if (typeof types === 'string') return expect.toSatisfy((value) => typeof value === types, `is a ${types}`)
  if (Array.isArray(types)) return types.length === 0 ? [] : expect.arrayContaining(types.map(typed))
  return expect.objectContaining(
    Object.fromEntries(Object.entries(types as object).map(([name, type]) => [name, typed(type)])),
  )
}
