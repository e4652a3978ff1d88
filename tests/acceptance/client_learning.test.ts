import { describe, expect, it, vi } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()

describe('the client’s learning spaces', () => {
  it('learn from a session, and give back what a person approved', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const spaces = annals.learningSpaces
    const { id } = await spaces.create()
    const session = await annals.sessions.create()
    await annals.sessions.append(session.id, {
      type: 'tool_call',
      data: { name: 'pay', arguments: {}, error: 'the card expired' },
    })
    expect(await spaces.learn(id, session.id, { now: true })).toMatchObject({ session_id: session.id })
    await vi.waitFor(async () => {
      expect(await spaces.session(id, session.id)).toMatchObject({ status: 'completed', learnt_seq: 1 })
    }, 25_000)
    expect(await spaces.sessions(id)).toHaveLength(1)
    const { items } = await spaces.statements(id, { state: 'proposed' }).page()
    expect(items.map(({ text }) => text)).toEqual(['`pay` answered “the card expired”.'])
    await spaces.changeStatement(items[0]!.id, { state: 'active' })
    await spaces.addStatement(id, { text: 'Ask for another card.', kind: 'procedure' })
    const { ids, text } = await spaces.context(id, { q: 'card expired' })
    expect(ids).toHaveLength(2)
    expect(text).toContain('Ask for another card.')
    await spaces.feedback(id, { statement_ids: ids, session_id: session.id, helped: true })
    expect((await spaces.history(id).page()).items).toHaveLength(2)
    expect(await spaces.setPolicy(id, { mode: 'off' })).toEqual({ mode: 'off' })
    expect(await spaces.policy(id)).toEqual({ mode: 'off' })
  })
})
