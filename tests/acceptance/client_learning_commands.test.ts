import { describe, expect, it, vi } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { useSharedService } from '../harness/service.ts'

const commands = useClientCommands(useSharedService())

describe('the commands of learning spaces', () => {
  it('learn from sessions, list statements, and approve and reject them', async () => {
    const { values, annals, api } = commands
    const [space] = await values('spaces', 'create')
    const session = await commands.newSession()
    await api.appendEvent(session, {
      type: 'tool_call',
      data: { name: 'pay', arguments: {}, error: 'the card expired' },
    })
    const id = String(space!.id)
    expect(await values('spaces', 'learn', id, session)).toMatchObject([{ session_id: session }])
    const proposed = await vi.waitFor(async () => {
      const list = await values('spaces', 'statements', id, '--state', 'proposed')
      expect(list).toHaveLength(1)
      return String(list[0]!.id)
    }, 25_000)
    expect((await annals(['spaces', 'statements', id, '--no-json'])).stdout).toContain('the card expired')
    expect(await values('spaces', 'approve', proposed)).toMatchObject([{ state: 'active' }])
    expect(await values('spaces', 'reject', proposed)).toMatchObject([{ state: 'retired' }])
    expect((await annals(['spaces', 'learn', id, session])).code).not.toBe(0)
    expect((await annals(['spaces', 'statements', id, '--state', 'odd'])).code).toBe(2)
  })
})
