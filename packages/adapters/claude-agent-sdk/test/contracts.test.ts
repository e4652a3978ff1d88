import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
import { Annals } from '@annals/client'
import { foldSessionSummary, type SessionKey, type SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()
async function newStore(): Promise<AnnalsSessionStore> {
  const { token } = await service.newProject()
  return new AnnalsSessionStore(new Annals({ url: service.node.url, token }))
}
const entry = (more: object): SessionStoreEntry => ({ type: 'x', ...more })
const KEY: SessionKey = { projectKey: 'project', sessionId: 'session' }
const SUB_1: SessionKey = { ...KEY, subpath: 'subagents/agent-1' }
const SUB_2: SessionKey = { ...KEY, subpath: 'subagents/agent-2' }
const one = [entry({ n: 1 })]

describe('the contracts of a session store', () => {
  it('1: what was appended is loaded, equal and in order', async () => {
    const store = await newStore()
    const entries = [
      entry({ uuid: 'b', n: 1 }),
      entry({ uuid: 'a', n: 2, deep: { list: [null, 0.5, '😀'] } }),
    ]
    await store.append(KEY, entries)
    expect(await store.load(KEY)).toEqual(entries)
  })

  it('2: a key that was never written is null, also below one that was', async () => {
    const store = await newStore()
    expect(await store.load(KEY)).toBeNull()
    await store.append(KEY, one)
    expect(await store.load({ ...KEY, subpath: 'none' })).toBeNull()
  })

  it('3: several appends keep the order of their calls, also if nobody waits for them', async () => {
    const store = await newStore()
    const batches = ['z', 'a', 'm', 'b'].map((uuid, n) => [entry({ uuid, n })])
    await Promise.all(batches.map((batch) => store.append(KEY, batch)))
    expect(await store.load(KEY)).toEqual(batches.flat())
  })

  it('4: an append of nothing does nothing', async () => {
    const store = await newStore()
    await store.append(KEY, [])
    expect(await store.load(KEY)).toBeNull()
    expect(await store.listSessions('project')).toEqual([])
  })

  it('5: a subpath is stored apart from the main transcript, also if it comes first', async () => {
    const store = await newStore()
    await store.append(SUB_1, [entry({ n: 's' })])
    expect([await store.load(KEY), await store.listSessions('project')]).toEqual([null, []])
    await store.append(KEY, [entry({ n: 'm' })])
    expect(await store.load(KEY)).toEqual([entry({ n: 'm' })])
    expect(await store.load(SUB_1)).toEqual([entry({ n: 's' })])
  })

  it('6: projects are apart', async () => {
    const store = await newStore()
    for (const projectKey of ['A', 'B'])
      await store.append({ projectKey, sessionId: 's' }, [entry({ projectKey })])
    expect(await store.load({ projectKey: 'A', sessionId: 's' })).toEqual([entry({ projectKey: 'A' })])
    expect(await store.load({ projectKey: 'B', sessionId: 's' })).toEqual([entry({ projectKey: 'B' })])
    expect(await store.listSessions('A')).toHaveLength(1)
  })

  it('7: the sessions of a project are listed, with times in milliseconds', async () => {
    const store = await newStore()
    for (const sessionId of ['a', 'b']) await store.append({ projectKey: 'project', sessionId }, one)
    await store.append({ projectKey: 'other', sessionId: 'c' }, one)
    const sessions = await store.listSessions('project')
    expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual(['a', 'b'])
    for (const { mtime } of sessions) {
      expect(Number.isInteger(mtime)).toBe(true)
      expect(Math.abs(Date.now() - mtime)).toBeLessThan(600_000)
    }
    expect(await store.listSessions('never')).toEqual([])
  })

  it('8: the list of sessions leaves out subpaths', async () => {
    const store = await newStore()
    for (const key of [KEY, SUB_1]) await store.append(key, one)
    expect((await store.listSessions('project')).map(({ sessionId }) => sessionId)).toEqual(['session'])
  })

  it('9: a deleted transcript is null; deleting what is not there does nothing', async () => {
    const store = await newStore()
    await store.delete(KEY)
    await store.append(KEY, one)
    await store.delete(KEY)
    expect(await store.load(KEY)).toBeNull()
    await store.append(KEY, one)
    expect(await store.load(KEY)).toEqual(one)
  })

  it('10: deleting the main transcript deletes its subpaths, and no other session', async () => {
    const store = await newStore()
    const others = [
      { ...KEY, sessionId: 'session-2' },
      { ...KEY, projectKey: 'project-2' },
    ]
    for (const key of [KEY, SUB_1, SUB_2, ...others]) await store.append(key, one)
    await store.delete(KEY)
    for (const key of [KEY, SUB_1, SUB_2]) expect(await store.load(key)).toBeNull()
    for (const key of others) expect(await store.load(key)).toEqual(one)
    expect(await store.listSubkeys(KEY)).toEqual([])
    expect((await store.listSessions('project')).map(({ sessionId }) => sessionId)).toEqual(['session-2'])
  })

  it('11: deleting a subpath deletes only that', async () => {
    const store = await newStore()
    for (const key of [KEY, SUB_1, SUB_2]) await store.append(key, one)
    await store.delete(SUB_1)
    expect(await store.load(SUB_1)).toBeNull()
    expect([await store.load(SUB_2), await store.load(KEY)]).toEqual([one, one])
    expect(await store.listSubkeys(KEY)).toEqual(['subagents/agent-2'])
  })

  it('12: the subpaths of a session are listed, and of no other', async () => {
    const store = await newStore()
    const other = { ...KEY, sessionId: 'other', subpath: 'subagents/agent-x' }
    for (const key of [KEY, SUB_1, SUB_2, other]) await store.append(key, one)
    expect((await store.listSubkeys(KEY)).sort()).toEqual(['subagents/agent-1', 'subagents/agent-2'])
  })

  it('13: the list of subpaths leaves out the main transcript', async () => {
    const store = await newStore()
    await store.append(KEY, one)
    expect(await store.listSubkeys(KEY)).toEqual([])
    expect(await store.listSubkeys({ projectKey: 'project', sessionId: 'never' })).toEqual([])
  })

  it("14: summaries are what the SDK's fold gives, by the clock of the list, and subpaths do not change them", async () => {
    const store = await newStore()
    const batches = [
      [entry({ timestamp: '2026-01-01T00:00:00.000Z', customTitle: 'first' }), entry({ cwd: '/\0home' })],
      [entry({ timestamp: '2026-01-01T00:00:02.000Z', customTitle: 'second' })],
    ]
    for (const batch of batches) await store.append(KEY, batch)
    await store.append({ ...KEY, projectKey: 'other' }, one)
    const folded = batches.reduce(
      (summary, batch) => foldSessionSummary(summary, KEY, batch),
      undefined as Parameters<typeof foldSessionSummary>[0],
    )
    const [summary, ...more] = await store.listSessionSummaries('project')
    expect(more).toEqual([])
    expect(summary).toMatchObject({ sessionId: 'session', data: folded!.data })
    const [listed] = await store.listSessions('project')
    expect(summary!.mtime).toBe(listed!.mtime)
    await store.append(SUB_1, [entry({ customTitle: 'of the sub-agent' })])
    expect((await store.listSessionSummaries('project'))[0]!.data).toEqual(summary!.data)
    expect(await store.listSessionSummaries('never')).toEqual([])
    await store.delete(KEY)
    expect(await store.listSessionSummaries('project')).toEqual([])
  })
})
