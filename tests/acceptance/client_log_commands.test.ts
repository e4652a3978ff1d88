import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { startAnnals } from '../harness/annals_process.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { cuttingProxy } from '../harness/cutting_proxy.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const { annals, values, newSession } = commands
/** It ends what hangs: a busy machine takes many times as long to start a command as a quiet one. */
const TAIL_MS_MAX = 30_000

describe('annals append', () => {
  it('appends an event and a message, from the command line, a file and stdin', async () => {
    const id = await newSession()
    const path = join(commands.directory, 'message.json')
    await writeFile(path, '{"role":"user","content":"Hallo"}')
    const inline = await annals(['append', id, '--type', 'note', '--data', '{"n":1}'])
    expect(JSON.parse(inline.stdout)).toMatchObject({ seq: 1, type: 'note', data: { n: 1 } })
    expect((await annals(['append', id, '--format', 'openai', '--data', `@${path}`])).code).toBe(0)
    expect((await annals(['append', id, '--type', 'note', '--data', '-'], {}, '{"n":3}')).code).toBe(0)
    const dated = ['--occurred-at', '2024-02-29T23:30:00-01:30']
    const old = await annals(['append', id, '--type', 'note', '--data', '{}', ...dated])
    expect(JSON.parse(old.stdout)).toMatchObject({ occurred_at: '2024-03-01T01:00:00.000000Z' })
    const items = await values('show', id)
    expect(items.map(({ kind, seq }) => [kind, seq])).toEqual([
      ['event', 1],
      ['message', 2],
      ['event', 3],
      ['event', 4],
    ])
  })

  it('shows what was stored late where it happened, and as JSON in the order of the log', async () => {
    const id = await newSession()
    for (const [n, minute] of ['2', '3', '1'].entries()) {
      const at = ['--occurred-at', `2024-02-29T12:0${minute}:00Z`]
      await annals(['append', id, '--type', `minute_${minute}`, '--data', `{"n":${n}}`, ...at])
    }
    const { stdout } = await annals(['show', id, '--no-json'])
    expect(stdout.match(/minute_\d/g)).toEqual(['minute_1', 'minute_2', 'minute_3'])
    expect((await values('show', id)).map(({ seq }) => seq)).toEqual([1, 2, 3])
  })

  it('shows noise that an import kept on one line, and entry by entry with --full and as JSON', async () => {
    const id = await newSession()
    for (const type of ['progress', 'progress', 'mode', 'hologram'])
      await annals([
        'append',
        id,
        '--type',
        `source.claude-code.${type}`,
        '--data',
        `{"noise":${type !== 'hologram'}}`,
      ])
    const { stdout } = await annals(['show', id, '--no-json'])
    expect(stdout).toMatch(/\n {4}1 {2}[\d:]+ {2}2 × progress, 1 × mode\n {4}4 .*\n?/)
    expect((await annals(['show', id, '--no-json', '--full'])).stdout).not.toContain('×')
    expect(await values('show', id)).toHaveLength(4)
  })

  it('keeps every digit there and back', async () => {
    const id = await newSession()
    const data = '{"number":12345678901234567890.123456789012345678901}'
    await annals(['append', id, '--type', 'order', '--data', data])
    expect((await annals(['show', id])).stdout).toContain('12345678901234567890.123456789012345678901')
  })

  it('stores once what is appended twice with one key', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', '{}', '--idempotency-key', 'k-1']
    expect((await annals(args)).stdout).toBe((await annals(args)).stdout)
    expect(await values('show', id)).toHaveLength(1)
  })

  it('says that nothing was stored where nobody listens, and how to repeat what may have been stored', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', `{"text":"it's"}`]
    const closed = await cuttingProxy(service.node.url)
    await closed.close()
    const away = await annals(args, { ANNALS_URL: closed.url })
    expect(away).toMatchObject({ code: 5, stderr: expect.stringContaining('Nothing was stored') })
    const proxy = await cuttingProxy(service.node.url)
    try {
      proxy.script.push(...Array<'lose_answer'>(6).fill('lose_answer'))
      const lost = await annals(args, { ANNALS_URL: proxy.url })
      expect(lost).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('The entry may or may not have been stored'),
      })
      const again = `annals append ${id} --type note --data '{"text":"it'\\''s"}' --idempotency-key `
      expect(lost.stderr).toContain(`\n${again}`)
      const key = lost.stderr.split(again)[1]!
      expect((await annals([...args, '--idempotency-key', key])).code).toBe(0)
    } finally {
      await proxy.close()
    }
    expect(await values('show', id)).toHaveLength(1)
  }, 60_000)

  it('appends on a condition, and says by its code that it does not hold', async () => {
    const id = await newSession()
    const args = ['append', id, '--type', 'note', '--data', '{}', '--if-match', '0']
    expect((await annals(args)).code).toBe(0)
    expect(await annals(args)).toMatchObject({ code: 6, stderr: expect.stringContaining('1') })
  })
})

describe('annals show', () => {
  it('says whether it is the user or the filter that nothing fits', async () => {
    await newSession({ user: 'raj', configs: { outcome: 'solved' } })
    const failed = ['--configs', 'outcome=failed']
    for (const [args, sentence] of [
      [['--user', 'nobody', ...failed], 'There is no user nobody: see `annals users list`'],
      [['--user', 'RA', ...failed], 'There is no user RA: is it raj?'],
      [
        ['--user', 'raj', ...failed],
        'raj has 1 session, and none has configs that contain {"outcome":"failed"}',
      ],
      [['--user', 'raj', ...failed], 'annals sessions list --user raj'],
      [['--configs', 'outcome=odd'], 'No session has configs that contain {"outcome":"odd"}'],
    ] as [string[], string][]) {
      const refused = await annals(['show', ...args])
      expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining(sentence) })
    }
  })

  it('says where a session ends that has no entry of the seq asked for', async () => {
    const id = await newSession()
    const beyond = async () => (await annals(['show', id, '--from-seq', '9'])).stderr
    expect(await beyond()).toContain('has no entries')
    for (const n of [1, 2]) await commands.api.appendEvent(id, { type: 'tick', data: { n } })
    expect(await beyond()).toContain('ends at entry 2')
    expect(await values('show', id, '--from-seq', '3')).toEqual([])
  })
})

describe('annals tail', () => {
  it(
    'gives the last entries and then each new one, across a service that restarts, and says how to go on',
    async () => {
      const node = await service.startNode()
      const id = await newSession()
      for (const n of [1, 2, 3]) await commands.api.appendEvent(id, { type: 'tick', data: { n } })
      const tail = startAnnals(['tail', id, '--last', '2'], { ...commands.env, ANNALS_URL: node.url })
      const seqs = () => tail.lines.map((line) => (JSON.parse(line) as { seq: number }).seq)
      await vi.waitFor(() => expect(seqs()).toEqual([2, 3]), TAIL_MS_MAX)
      await commands.api.appendEvent(id, { type: 'tick', data: { n: 4 } })
      await vi.waitFor(() => expect(seqs()).toEqual([2, 3, 4]), TAIL_MS_MAX)
      await node.stop()
      await vi.waitFor(() => expect(tail.logLines.join()).toContain('reconnecting'), TAIL_MS_MAX)
      await commands.api.appendEvent(id, { type: 'tick', data: { n: 5 } })
      await service.startNode({ PORT: new URL(node.url).port })
      await vi.waitFor(() => expect(seqs()).toEqual([2, 3, 4, 5]), TAIL_MS_MAX)
      tail.child.kill('SIGINT')
      const { code, stderr } = await tail.exited
      expect(code).toBe(130)
      const { created_at } = JSON.parse(tail.lines.at(-1)!) as { created_at: string }
      expect(stderr).toContain(`annals tail ${id} --after 5@${created_at}`)
      const other = await annals(['tail', id, '--after', `5@${created_at.replace('20', '19')}`])
      expect([other.code, other.stderr]).toEqual([6, expect.stringContaining('Entry 5 is no longer')])
    },
    4 * TAIL_MS_MAX,
  )

  it(
    'begins where it is told to, with what it is told to',
    async () => {
      const id = await newSession()
      for (const type of ['a', 'b', 'a']) await commands.api.appendEvent(id, { type, data: {} })
      for (const [args, expected] of [
        [
          ['--after', '1'],
          [2, 3],
        ],
        [
          ['--since', '5m'],
          [1, 2, 3],
        ],
        [
          ['--type', 'a'],
          [1, 3],
        ],
      ] as [string[], number[]][]) {
        const tail = startAnnals(['tail', id, ...args], commands.env)
        await vi.waitFor(() => {
          expect(tail.lines.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(expected)
        }, TAIL_MS_MAX)
        tail.child.kill('SIGTERM')
        expect((await tail.exited).code).toBe(130)
      }
    },
    4 * TAIL_MS_MAX,
  )
})

describe('annals latest and annals retract', () => {
  it('list the newest entry of each key, and take entries back', async () => {
    const id = await newSession()
    for (const [key, n] of [
      ['plan/a', 1],
      ['plan/b', 2],
      ['plan/a', 3],
      ['note', 4],
    ])
      await annals(['append', id, '--type', 'step', '--data', `{"n":${n}}`, '--key', String(key)])
    const keysOf = async (...more: string[]) =>
      (await values('latest', id, ...more)).map(({ key, seq }) => [key, seq])
    expect(await keysOf('--prefix', 'plan/')).toEqual([
      ['plan/a', 3],
      ['plan/b', 2],
    ])
    const [retracted] = await values('retract', id, '--after', '2')
    expect(retracted).toMatchObject({ retraction: { seq: 5 }, items: [{ seq: 3 }, { seq: 4 }] })
    expect(await keysOf()).toEqual([
      ['plan/a', 1],
      ['plan/b', 2],
    ])
    const one = await annals(['retract', id, '--last', '1', '--no-json'])
    expect(one.stdout).toBe('Retracted seq 2, by the event at seq 6.')
    expect(await keysOf('--key', 'plan/b')).toEqual([])
    const both = await annals(['retract', id, '--last', '1', '--after', '2'])
    expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('--last or --after') })
  })
})

describe('annals compact', () => {
  it('lets a summary stand for entries, which show prints with what it covers', async () => {
    const id = await newSession()
    const say = (content: string) =>
      annals(['append', id, '--format', 'openai', '--data', JSON.stringify({ role: 'user', content })])
    for (const text of ['first', 'second']) await say(text)
    const asked = ['compact', id, '--to', '1', '--summary', ' What came first. ', '--by', 'a person']
    const { stdout } = await annals([...asked, '--no-json'])
    expect(stdout).toContain('The summary at seq 3 stands for 1 entry, seq 1 to 1.')
    const shown = await annals(['show', id, '--no-json'])
    expect(shown.stdout).toContain('summary  seq 1 to 1 · 1 entry · a person')
    expect(shown.stdout).toContain('What came first.')
    const [retracted] = await values('retract', id, '--last', '1')
    expect(retracted).toMatchObject({ items: [{ seq: 3 }] })
    const empty = await annals(['compact', id, '--to', '1', '--summary', ' '])
    expect(empty).toMatchObject({ code: 2, stderr: expect.stringContaining('--summary is empty') })
  })
})

describe('annals fork', () => {
  it('leaves two logs that can be compared: where they part, and which calls only one has', async () => {
    const [left, right] = [await newSession(), await newSession()]
    for (const [id, tools] of [
      [left, ['find', 'pay']],
      [right, ['find']],
    ] as const) {
      await values(
        'append',
        id,
        '--format',
        'openai',
        '--data',
        '{"role":"user","content":"Refund my kettle"}',
      )
      for (const name of tools)
        await values(
          'append',
          id,
          '--type',
          'tool_call',
          '--data',
          JSON.stringify({ name, id: name, arguments: { command: `run ${name}` }, result: 'ok' }),
        )
    }
    const [compared] = await values<{ only_left: Array<{ name: string }> }>('compare', left, right)
    expect(compared).toMatchObject({ steps: 3, same_before: 2, only_left: [{ name: 'pay' }], only_right: [] })
    const { stdout } = await annals(['compare', left, right, '--no-json'])
    expect(stdout).toContain('1 of 3 steps differ. They part after 2.')
    expect(stdout).toMatch(/1 call only on the left\n\s+3 {2}pay run pay/)
    expect((await annals(['compare', left, left, '--no-json'])).stdout).toContain('All 3 steps are the same.')
  })

  it('copies a log up to a seq, once for one id, with configs of its own', async () => {
    const id = await newSession()
    for (const n of [1, 2, 3]) await annals(['append', id, '--type', 'step', '--data', `{"n":${n}}`])
    const own = randomUUID()
    const more = ['--up-to', '2', '--configs', 'agent=forked', '--id', own]
    const [fork] = await values('fork', id, ...more)
    expect(fork).toMatchObject({ id: own, forked_from: id, configs: { agent: 'forked' } })
    expect((await values('show', own)).map(({ seq }) => seq)).toEqual([1, 2])
    const again = await annals(['fork', id, ...more, '--no-json'])
    expect(again.stdout).toBe(`Created session ${own}.`)
    const beyond = await annals(['fork', id, '--up-to', '4'])
    expect(beyond.code).not.toBe(0)
    expect(beyond.stderr).toContain('4')
  })
})
