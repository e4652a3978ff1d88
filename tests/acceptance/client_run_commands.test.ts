import { describe, expect, it } from 'vitest'
import { Annals } from '../../packages/client/dist/index.js'
import { useClientCommands } from '../harness/client_commands.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values } = commands

describe('annals send, runs, requests, approve, deny and answer', () => {
  it('send input, show what waits, and answer it once', async () => {
    const client = new Annals({ url: service.node.url, token: commands.token })
    const { id } = await client.sessions.create()
    const [sent] = await values('send', id, 'Stop, please.', '--mode', 'interrupt')
    expect(sent).toMatchObject({ state: 'pending', input: { mode: 'interrupt', role: 'user' } })
    expect((await annals(['send', id])).code).toBe(2)
    expect(await values('runs', '--state', 'queued')).toMatchObject([{ session_id: id, run: { pending: 1 } }])

    const call = { name: 'refund\u001b[2J', arguments: { amount: 12 } }
    const first = await client.runs.request(id, { kind: 'approval', call })
    const second = await client.runs.request(id, { kind: 'approval', text: 'Go on?' })
    expect((await values('requests')).map((one) => (one as { id: string }).id)).toEqual([second.id, first.id])
    const listed = await annals(['requests'])
    expect(listed.stdout).toContain('refund\\u001b[2J')
    expect(await values('approve', first.id, '--by', 'ada')).toMatchObject([
      { decision: 'approve', by: 'ada' },
    ])
    expect(await values('deny', second.id)).toMatchObject([{ decision: 'deny' }])
    const late = await annals(['deny', first.id])
    expect([late.code, late.stderr]).not.toEqual([0, ''])
    expect(late.stderr).toContain('approve, by "ada"')

    const third = await client.runs.request(id, { kind: 'question', text: 'Which one?' })
    expect((await annals(['approve', third.id])).stderr).toContain('answer')
    expect(await values('answer', third.id, 'The blue one.', '--by', 'ada')).toMatchObject([
      { decision: 'answer', answer: 'The blue one.', by: 'ada' },
    ])
  })
})
