import { describe, expect, it } from 'vitest'
import { expectOk } from '../harness/expectations.ts'
import { ENTRIES, keyed, UNCOPIED, useLongSession } from '../harness/long_copy.ts'
import { insertLongSession } from '../harness/long_session.ts'
import { sessionLog } from '../harness/session_log.ts'

const on = useLongSession()
const { service, rows, expectSound } = on

describe('a copy of a session that is longer than one statement copies', () => {
  it('is the whole session, and sound', async () => {
    const { new_session_id } = expectOk(await on.source.copy())
    expect(await rows()).toEqual({ ...UNCOPIED, sessions: 3, session_heads: 3, entries: 2 * ENTRIES })
    await expectSound()
    const copy = sessionLog(on.api, new_session_id)
    expect(expectOk(await copy.addEvent()).seq).toBe(ENTRIES + 1)
    expect(expectOk(await copy.tokens())).toEqual(expectOk(await on.source.tokens()))
    expect(expectOk(await copy.list()).items).toEqual(expectOk(await on.source.list()).items)
    const [from, to] = [
      expectOk(await on.api.getSession(on.source.id)),
      expectOk(await on.api.getSession(copy.id)),
    ]
    expect({ user_id: to.user_id, configs: to.configs }).toEqual({
      user_id: from.user_id,
      configs: from.configs,
    })
    const newest = expectOk(await on.api.listSessions({ user: 'ada', time_desc: true, limit: 1 })).items
    expect(newest.map(({ id }) => id)).toEqual([copy.id])
  })

  it('holds the log up to one seq while others append', async () => {
    let enough = false
    const appending = Array.from({ length: 3 }, async () => {
      while (!enough) expectOk(await on.source.addEvent())
    })
    const copy = sessionLog(on.api, expectOk(await on.source.copy()).new_session_id)
    enough = true
    await Promise.all(appending)
    const last = expectOk(await copy.timeline({ time_desc: true, limit: 1 })).items[0]!.seq
    expect(last).toBeGreaterThanOrEqual(ENTRIES)
    expect((await rows()).entries).toBe(expectOk(await on.source.addEvent()).seq - 1 + last)
    await expectSound()
  })

  it('is made once with one Idempotency-Key, also several times at once, and before and after', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => on.source.copy(keyed('copy'))))
    for (const answer of [...answers, await on.source.copy(keyed('copy'))])
      expect(answer.text).toBe(answers[0]!.text)
    expectOk(answers[0]!)
    expect(await rows()).toMatchObject({ sessions: 3, entries: 2 * ENTRIES, idempotency_keys: 1 })
  })

  it('takes no statement that runs for long', async () => {
    const hasty = await service.startNode({ ANNALS_STATEMENT_MS_MAX: '700' })
    const client = await service.newClient({ token: on.project.token, node: hasty })
    const id = await insertLongSession(service.databaseUrl, on.project.id, [{ count: 100_000, type: 'note' }])
    expectOk(await sessionLog(client, id).copy())
  })
})
