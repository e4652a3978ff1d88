import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { useSharedService } from '../harness/service.ts'
import { skillZip } from '../harness/skills.ts'

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

  it('show how a space learns and change what is named, and only that', async () => {
    const { values, annals } = commands
    const [space] = await values('spaces', 'create')
    const policy = (...options: string[]) => values('spaces', 'policy', String(space!.id), ...options)
    expect(await policy()).toEqual([{ mode: 'suggest' }])
    await policy('--mode', 'auto', '--max-tokens', '200000', '--reward', '/reward')
    const changed = { mode: 'auto', reward: '/reward', group: '/task' }
    expect(await policy('--max-tokens', 'none', '--group', '/task')).toEqual([changed])
    expect((await annals(['spaces', 'policy', String(space!.id), '--no-json'])).stdout).toContain(
      'mode: auto',
    )
    for (const wrong of [
      ['--mode', 'odd'],
      ['--max-tokens', '-1'],
      ['--reward', 'reward'],
    ])
      expect((await annals(['spaces', 'policy', String(space!.id), ...wrong])).code).toBe(2)
    expect(await policy()).toEqual([changed])
  })

  it('upload a skill, include it in a space, list it and take it out', async () => {
    const { values, annals, directory } = commands
    const [space] = await values('spaces', 'create')
    const id = String(space!.id)
    const zip = join(directory, 'skill.zip')
    await writeFile(zip, skillZip('from-a-file'))
    const [skill] = await values('spaces', 'skills', id, '--upload', zip, '--user', 'ada')
    expect(skill).toMatchObject({ name: 'from-a-file', source: 'written' })
    expect((await annals(['spaces', 'skills', id, '--no-json'])).stdout).toContain('What from-a-file is for.')
    expect(await values('spaces', 'skills', id, '--exclude', String(skill!.id))).toEqual([])
    const lost = await annals(['spaces', 'skills', id, '--upload', join(directory, 'none.zip')])
    expect([lost.code, lost.stderr]).toEqual([2, expect.stringContaining('none.zip')])
  })
})
