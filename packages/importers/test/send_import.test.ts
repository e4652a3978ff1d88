import { Annals } from '@annals/client'
import { expect, it } from 'vitest'
import type { ImportRecord } from '../src/records.ts'
import { sendImport } from '../src/sending/send_import.ts'

/** A session with so many entries of 2 KB. */
async function* session(id: string, count: number): AsyncGenerator<ImportRecord> {
  yield { kind: 'session', id, configs: {} }
  for (let line = 1; line <= count; line++) {
    const entry = {
      id: `${id}-${line}`,
      kind: 'event',
      type: 'note',
      data: { text: 'x'.repeat(2_000) },
    } as const
    yield { kind: 'entry', session_id: id, entry, place: { file: id, line } }
  }
  yield { kind: 'end', session_id: id }
}

const answer = (data: object) => Response.json({ data, error: null, msg: 'ok' })

it('sends the appends of a session in turn, without waiting for those of the session before', async () => {
  const appends: string[] = []
  let answered = 0
  let secondCame = () => {}
  const secondHasCome = new Promise<void>((resolve) => {
    secondCame = resolve
  })
  const annals = new Annals({
    token: 'sk-test',
    fetch: async (url, init) => {
      const body = JSON.parse(String(init?.body))
      if (new URL(String(url)).pathname.endsWith('/session'))
        return answer({ id: body.use_uuid, created_at: '1', updated_at: '1' })
      const of = body.appends.map(({ session_id }: { session_id: string }) => session_id).join()
      appends.push(of)
      if (of === 'second') secondCame()
      // As a service that is busy with the first session.
      else await secondHasCome
      answered += 1
      return answer({
        appends: body.appends.map(({ entries }: { entries: object[] }) => ({ seqs: entries.map(() => 1) })),
      })
    },
  })
  const records = async function* () {
    yield* session('first', 300)
    yield* session('second', 100)
  }
  await sendImport(annals, records(), { onNote: () => {} })
  expect(answered).toBe(appends.length)
  // Its other appends wait until the first is answered, which is after the second session's.
  expect(appends.slice(0, 2).sort()).toEqual(['first', 'second'])
  expect(appends.filter((of) => of === 'first').length).toBeGreaterThan(1)
})
