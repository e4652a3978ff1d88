import { describe, expect, it } from 'vitest'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values, newSession } = commands

describe('annals tools', () => {
  it('shows which tool failed most, and what the agent said after it', { timeout: 90_000 }, async () => {
    expect(await annals(['tools', '--no-json'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('no tool calls'),
    })
    const sessions = [await newSession({ configs: { agent: 'old' } }), await newSession({ user: 'omar' })]
    for (const [index, id] of sessions.entries()) {
      const log = sessionLog(commands.api, id)
      const call = (name: string, result: string) =>
        log.addEvent('tool_call', { name, arguments: {}, result })
      expectOk(await call('find', 'found'))
      expectOk(await call('refund', 'Error: the card has expired'))
      if (index === 1) expectOk(await call('find', 'Error: no such order'))
      if (index === 1) expectOk(await call('refund', 'Error: the card has expired'))
      expectOk(await log.add({ role: 'assistant', content: `Sorry ${index}` }), 201)
    }
    const refund = { name: 'refund', calls: 3, failures: 3, sessions: 2 }
    const find = { name: 'find', calls: 3, failures: 1, sessions: 2 }
    expect(await values('tools')).toEqual([refund, find])
    expect(await values('tools', '--user', 'omar')).toMatchObject([
      { failures: 2 },
      { calls: 2, failures: 1 },
    ])
    expect(await values('tools', 'find', '--sessions', '1')).toHaveLength(1)
    expect(await values('tools', 'find', '--configs', 'agent=old')).toEqual([])
    expect(await values('tools', 'refund')).toMatchObject([
      { session_id: sessions[1], seq: 2, said: { seq: 5, text: 'Sorry 1' } },
      { session_id: sessions[1], seq: 4, said: { text: 'Sorry 1' } },
      { session_id: sessions[0], seq: 2, result: 'Error: the card has expired', said: { text: 'Sorry 0' } },
    ])
    const failed = await annals(['tools', 'refund', '--no-json'])
    expect(failed.stdout).toMatch(
      new RegExp(
        `^${sessions[1]} +seq 2\\n +returned +Error: the card has expired\\n +then said +Sorry 1\\n`,
      ),
    )
    expect(failed.stderr).toContain(`show ${sessions[1]} --from-seq 2`)
    const { stdout, stderr } = await annals(['tools', '--no-json'])
    expect(stdout).toMatch(/refund\s+3\s+3\s+100 %\s+2\n.*find\s+1\s+3\s+33 %/s)
    expect(stderr).toContain('tools refund')
  })

  it('says what it looked at where that is not all', async () => {
    const configs = { agent: 'partial' }
    const [old, recent] = [await newSession({ configs }), await newSession({ configs })]
    const call = (id: string, name: string, result: string) =>
      sessionLog(commands.api, id).addEvent('tool_call', { name, arguments: {}, result })
    expectOk(await call(old, 'pay', 'Error: no money'))
    expectOk(await call(recent, 'pay', 'paid'))
    const tools = (...args: string[]) => annals(['tools', ...args, '--configs', 'agent=partial', '--no-json'])
    const { stdout, stderr } = await tools('pay', '--sessions', '1')
    expect(stdout).toBe('')
    expect(stderr).toMatch(/No call of pay failed in the newest session\. Older ones were not looked at/)
    expect((await tools('--sessions', '1')).stdout).toMatch(/pay\s+≥ 0\s+≥ 1\s+0 %\s+≥ 1$/)
    expect(await values('tools', '--configs', 'agent=partial', '--sessions', '1')).toMatchObject([
      { name: 'pay', is_partial: true },
    ])
    expect((await tools('--sessions', '2')).stdout).toMatch(/pay\s+1\s+2\s+50 %\s+2$/)
    expect((await tools('seek')).stderr).toContain('No call of seek failed in 2 sessions.')
  })

  it('finds the failures of a tool also after many of another', async () => {
    const id = await newSession({ configs: { agent: 'noisy' } })
    const log = sessionLog(commands.api, id)
    const call = (name: string, result: string) => log.addEvent('tool_call', { name, arguments: {}, result })
    for (let count = 0; count < 22; count += 1) expectOk(await call('loud', `Error: ${count}`))
    expectOk(await call('quiet', 'Error: hidden'))
    const of = (tool: string) => annals(['tools', tool, '--configs', 'agent=noisy', '--no-json'])
    expect((await of('quiet')).stdout).toContain('Error: hidden')
    expect((await of('loud')).stderr).toContain('2 more failed calls')
  })
})
