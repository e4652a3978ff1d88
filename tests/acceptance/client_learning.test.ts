import { describe, expect, it, vi } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { useSharedService } from '../harness/service.ts'
import { skillZip } from '../harness/skills.ts'

const service = useSharedService()

describe('the client’s learning spaces', () => {
  it('learn from a session, and return what a person approved', async () => {
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

  it('include skills that people wrote', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const zip = new Uint8Array(skillZip('by-hand', { 'notes.txt': 'a note' }))
    const skill = await annals.skills.create(zip, { user: 'ada', meta: { n: 1 } })
    expect(await annals.skills.create(zip, { user: 'ada', meta: { n: 1 } })).toEqual(skill)
    expect((await annals.skills.list({ user: 'ada' }).page()).items.map(({ id }) => id)).toEqual([skill.id])
    const { content } = await annals.skills.file(skill.id, 'notes.txt')
    expect(content).toEqual({ type: 'text', raw: 'a note' })
    const { id } = await annals.learningSpaces.create()
    expect(await annals.learningSpaces.includeSkill(id, skill.id)).toMatchObject({ skill_id: skill.id })
    expect(await annals.learningSpaces.skills(id)).toEqual([await annals.skills.get(skill.id)])
    await annals.learningSpaces.excludeSkill(id, skill.id)
    expect(await annals.learningSpaces.skills(id)).toEqual([])
    const copy = await annals.skills.create(await annals.skills.download(skill.id), { user: 'bob' })
    expect(copy.file_index).toEqual(skill.file_index)
    await annals.skills.delete(skill.id)
    await expect(annals.skills.get(skill.id)).rejects.toMatchObject({ error: 'skill_not_found' })
  })
})
