import { describe, expect, it } from 'vitest'
import { entriesIn, lines, recordsOf } from './reading.ts'

const SESSION = '7c0c1d7e-0000-4000-8000-000000000001'
const uuidOf = (number: number) => `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`

/** A line of Claude Code, after another one. */
function said(number: number, after: number | null, sessionId = SESSION) {
  const role = number % 2 === 0 ? 'user' : 'assistant'
  const content = role === 'user' ? `Do ${number}` : [{ type: 'text', text: `Done ${number}` }]
  return {
    type: role,
    uuid: uuidOf(number),
    parentUuid: after === null ? null : uuidOf(after),
    sessionId,
    timestamp: '2026-05-01T10:00:00.000Z',
    message: { role, content },
  }
}

describe('A long file', () => {
  it('takes back just the messages that a prompt leaves behind after three thousand lines', async () => {
    const all = Array.from({ length: 3_000 }, (_, number) => said(number, number === 0 ? null : number - 1))
    const records = await recordsOf('long.jsonl', lines(...all, said(3_000, 2_995)))
    const ids = entriesIn(records).map(({ id }) => id)
    const taken = records.flatMap((record) => (record.kind === 'retraction' ? record.ids : []))
    expect(taken).toEqual(ids.slice(2_996, 3_000))
  })

  it('takes back what a prompt leaves behind when it has forgotten how the session began', async () => {
    const all = Array.from({ length: 25_000 }, (_, number) => said(number, number === 0 ? null : number - 1))
    const records = await recordsOf('long.jsonl', lines(...all, said(25_000, 24_995)))
    const ids = entriesIn(records).map(({ id }) => id)
    const taken = records.flatMap((record) => (record.kind === 'retraction' ? record.ids : []))
    expect(taken).toEqual(ids.slice(24_996, 25_000))
  })

  it('takes back nothing if the model goes on in spite of a prompt that stands somewhere else', async () => {
    const all = Array.from({ length: 8 }, (_, number) => said(number, number === 0 ? null : number - 1))
    const queued = [said(20, 3), said(22, 20)]
    const takenIn = async (...more: object[]) =>
      (await recordsOf('queued.jsonl', lines(...all, ...queued, ...more))).flatMap((record) =>
        record.kind === 'retraction' ? record.ids : [],
      )
    expect(await takenIn(said(9, 7))).toEqual([])
    // The model answers the prompt.
    expect(await takenIn(said(23, 22), said(9, 7))).toHaveLength(4)
    // Nobody knows yet.
    expect(await takenIn()).toHaveLength(4)
    // What it went on with is left later.
    expect(await takenIn(said(9, 7), said(30, 3), said(31, 30))).toHaveLength(7)
  })

  it('still sees what was rewound in the sessions that it wrote to last', async () => {
    const sessions = Array.from({ length: 22 }, (_, nth) => uuidOf(0xa000 + nth))
    const first = sessions.flatMap((session, nth) =>
      Array.from({ length: 1_000 }, (_, at) =>
        said(nth * 1_000 + at, at === 0 ? null : nth * 1_000 + at - 1, session),
      ),
    )
    const rewound = (nth: number, number: number) => said(number, nth * 1_000 + 997, sessions[nth])
    const records = await recordsOf('many.jsonl', lines(...first, rewound(21, 40_000), rewound(0, 40_002)))
    const ids = entriesIn(records).map(({ id }) => id)
    const taken = records.flatMap((record) => (record.kind === 'retraction' ? record.ids : []))
    expect(taken).toEqual(ids.slice(21_998, 22_000))
  })

  it('gives each line an id of its own that repeats another one, and the same one each time', async () => {
    const notes = Array.from({ length: 5_000 }, (_, number) => ({
      timestamp: '2026-05-01T10:00:00.000Z',
      type: 'event_msg',
      payload: { type: 'note', text: `Note ${number % 3_000}` },
    }))
    const idsOf = async () => entriesIn(await recordsOf('rollout.jsonl', lines(...notes))).map(({ id }) => id)
    const ids = await idsOf()
    expect(new Set(ids).size).toBe(5_000)
    expect(await idsOf()).toEqual(ids)
  })
})
