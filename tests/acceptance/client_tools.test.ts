import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
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
    const counted = { complete: true, unanswered: 0 }
    const refund = { name: 'refund', calls: 3, failures: 3, sessions: 2, ...counted }
    const find = { name: 'find', calls: 3, failures: 1, sessions: 2, ...counted }
    // A request waits a second for the index to have read what is stored.
    await vi.waitFor(async () => expect(await values('tools')).toMatchObject([refund, find]), {
      timeout: 60_000,
    })
    expect(await values('tools', '--user', 'omar', '--from', '1h')).toMatchObject([
      { failures: 2 },
      { calls: 2, failures: 1 },
    ])
    expect(await values('tools', '--to', '1h')).toEqual([])
    expect(await values('tools', 'find', '--configs', 'agent=old')).toEqual([])
    const said = { seq: 5, text: 'Sorry 1' }
    expect(await values('tools', 'refund')).toMatchObject([
      {
        message: 'the card has expired',
        failures: 3,
        sessions: 2,
        examples: [
          { session_id: sessions[1], seq: 4, said, called: null },
          { session_id: sessions[1], seq: 2, said, called: { seq: 3, name: 'find' } },
          {
            session_id: sessions[0],
            seq: 2,
            result: 'Error: the card has expired',
            said: { text: 'Sorry 0' },
          },
        ],
      },
    ])
    const next = await annals(['tools', 'find', '--no-json'])
    expect(next.stdout).toMatch(/\n +then called +refund, seq 4\n +then said +Sorry 1\n/)
    const ofTool = async (...args: string[]) =>
      (await values('show', sessions[1]!, ...args)).map((one) => one.number)
    expect(await ofTool('--tool', 'refund')).toEqual([2, 4])
    expect(await ofTool('--failed')).toEqual([2, 3, 4])
    expect(await ofTool('--failed', '--tool', 'find')).toEqual([3])
    const no_call = await annals(['show', sessions[1]!, '--tool', 'seek'])
    expect(no_call).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('4 tool calls, and no call of seek'),
    })
    const failed = await annals(['tools', 'refund', '--no-json'])
    expect(failed.stdout).toMatch(
      new RegExp(
        `^refund failed in 3 of 3 calls, which are in 2 sessions.\\n\\n3 × the card has expired\\n +returned +Error: the card has expired\\n +then said +Sorry 1\\n +${sessions[1]} +seq 4\\n`,
      ),
    )
    expect(failed.stderr).toContain(`show ${sessions[1]} --from-seq 4`)
    const { stdout, stderr } = await annals(['tools', '--no-json'])
    expect(stdout).toMatch(/refund\s+3\s+3\s+100 %\s+2.*\n.*find\s+1\s+3\s+33 %/s)
    expect(stderr).toContain('tools refund')
    expect(stderr).toContain('How long calls took is not known')
    expect((await annals(['tools', 'seek', '--no-json'])).stderr).toContain(
      'seek was not called; `annals tools`',
    )
    const fine = await annals(['tools', 'find', '--configs', 'agent=old', '--no-json'])
    expect(fine.stderr).toContain('find did not fail in 1 call.')
  })

  it('names a tool in a hint as in its table: a terminal interprets nothing of it', {
    timeout: 90_000,
  }, async () => {
    const log = sessionLog(commands.api, await newSession({ user: 'mallory' }))
    const name = 'get\u001B]0;title\u0007\u001B[2J\u202Eevil'
    expectOk(await log.addEvent('tool_call', { name, arguments: {}, result: 'Error: no such order' }))
    const of = ['--user', 'mallory']
    await vi.waitFor(async () => expect(await values('tools', ...of)).toHaveLength(1), { timeout: 60_000 })
    const list = await annals(['tools', ...of, '--no-json'])
    expect(list.stderr).toContain(String.raw`To see its failures: annals tools 'get\u001b`)
    const none = await annals(['tools', `${name}x`, ...of, '--no-json'])
    for (const shown of [list.stdout, list.stderr, none.stderr]) {
      expect(shown).toContain(String.raw`\u001b[2J\u202eevil`)
      for (const character of ['\u001B', '\u0007', '\u202E']) expect(shown).not.toContain(character)
    }
  })

  it('says of which tools no call has a result', { timeout: 90_000 }, async () => {
    const id = await newSession({ user: 'nobody answers' })
    const log = sessionLog(commands.api, id)
    expectOk(await log.addEvent('tool_call', { name: 'ask', arguments: {} }))
    expectOk(await log.addEvent('tool_call', { name: 'find', arguments: {}, result: 'found' }))
    const of = ['--user', 'nobody answers']
    await vi.waitFor(async () => expect(await values('tools', ...of)).toHaveLength(2), { timeout: 60_000 })
    const { stdout, stderr } = await annals(['tools', ...of, '--no-json'])
    expect(stdout).toMatch(/\nask +0 +1 +1\n/)
    expect(stdout).toMatch(/\nfind +0 +1 +0 % +1$/)
    expect(stderr).toContain('No call of ask has a result here')
  })

  it('has a lower bound with its sign where not all calls are counted, in tables and in sentences', async () => {
    const counted = {
      complete: false,
      counted_from: '2026-11-01T00:00:00.000000Z',
      indexing: null,
      has_more: false,
    }
    const pay = { name: 'pay', calls: 1_250, failures: 3, unanswered: 0, sessions: 7, p50_ms: 5, p95_ms: 9 }
    const group = { message: 'no money', failures: 3, sessions: 2, first_at: 'x', last_at: 'x', examples: [] }
    const server = createServer(({ url = '' }, response) => {
      const data = /tools\/pay/.test(url)
        ? { ...pay, groups: [group], ...counted }
        : { items: [{ ...pay, ...counted }], ...counted }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ code: 0, error: '', msg: 'ok', data }))
    }).listen(0, '127.0.0.1')
    try {
      await once(server, 'listening')
      const at = ['--no-json', '--url', `http://127.0.0.1:${(server.address() as AddressInfo).port}`]
      const table = await annals(['tools', ...at])
      expect(table.stdout).toMatch(/\npay +≥ 3 +≥ 1,250 +\S+ %? +≥ 7 /)
      expect(table.stderr).toContain('Only the newest 500,000 calls are counted: those since 2026-11-01')
      const failures = await annals(['tools', 'pay', ...at])
      expect(failures.stdout).toContain('pay failed in ≥ 3 of ≥ 1,250 calls, which are in ≥ 7 sessions.')
      expect(failures.stdout).toContain('≥ 3 × no money')
    } finally {
      server.close()
      server.closeAllConnections()
    }
  })
})
