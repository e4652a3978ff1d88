import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { stableId } from '@annals/adapter-kit'
import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
import { Annals } from '@annals/client'
import { foldSessionSummary, type SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { describe, expect, it } from 'vitest'
import { cuttingProxy } from '../../../../tests/harness/cutting_proxy.ts'
import { useService, useSharedService } from '../../../../tests/harness/service.ts'

const shared = useSharedService()
const KEY = { projectKey: 'project', sessionId: 'session' }
const SESSION_ID = stableId('claude-agent-sdk', 'project', 'session')

function user(content: unknown, more: object = {}): SessionStoreEntry {
  return { type: 'user', uuid: randomUUID(), message: { role: 'user', content }, ...more }
}

async function newAnnals(): Promise<Annals> {
  const { token } = await shared.newProject()
  return new Annals({ url: shared.node.url, token })
}

/** A turn as Claude Code writes it: lines with a uuid and lines without. */
function turn(n: number): SessionStoreEntry[] {
  const call = { type: 'tool_use', id: `call_${n}`, name: 'Bash', input: { command: 'ls' } }
  const result = { type: 'tool_result', tool_use_id: `call_${n}`, content: 'README.md' }
  return [
    { type: 'mode', mode: 'default' },
    user(`prompt ${n}`, { timestamp: '2026-01-01T00:00:00.000Z', cwd: '/home' }),
    { type: 'assistant', uuid: randomUUID(), message: { role: 'assistant', content: [call], usage: { n } } },
    user([result], { toolUseResult: { stdout: 'README.md', stderr: '' } }),
    { type: 'custom-title', customTitle: `title ${n}` },
  ]
}

describe('a transcript', () => {
  it('is not stored again when it is imported again, by this process or another', async () => {
    const annals = await newAnnals()
    const entries = [...turn(1), ...turn(2), ...turn(3)]
    const store = new AnnalsSessionStore(annals)
    await store.append(KEY, entries)
    const summaries = await store.listSessionSummaries('project')
    for (const again of [store, new AnnalsSessionStore(annals)]) await again.append(KEY, entries)
    expect(await store.load(KEY)).toEqual(entries)
    expect(await store.listSessionSummaries('project')).toEqual(summaries)
  })

  it('reads as messages and tool calls in Annals', async () => {
    const annals = await newAnnals()
    await new AnnalsSessionStore(annals).append(KEY, turn(1))
    const messages = annals.sessions.messages(SESSION_ID, { format: 'openai' })
    const roles: unknown[] = []
    for await (const { role, tool_calls } of messages) roles.push(tool_calls ? 'calls' : role)
    expect(roles).toEqual(['user', 'calls', 'tool'])
  })

  it('keeps what PostgreSQL cannot hold, an image of 3 MB, and messages that are none', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const image = (bytes: number) => {
      const data = Buffer.alloc(bytes, 'image').toString('base64')
      return { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
    }
    const entries = [
      user('nul \0, half \uD83D, \uFDD0', { '\0key': '\0' }),
      user([image(3 * 1024 * 1024)]),
      user([image(200 * 1024)]),
      { type: 'assistant', uuid: randomUUID(), message: { role: 'user', content: 7 } },
      user('text', { toolUseResult: 'r'.repeat(100_000) }),
      { type: '\0', annals_parts: 1 },
    ]
    await store.append(KEY, entries)
    const sub = { ...KEY, subpath: 'subagents/agent-1' }
    await store.append(sub, entries)
    for (const key of [KEY, sub]) {
      const loaded = (await store.load(key))!
      // A difference of megabytes is no message for people.
      const equal = entries.map((entry, index) => isDeepStrictEqual(loaded[index], entry))
      expect([equal, loaded.length]).toEqual([entries.map(() => true), entries.length])
    }
  })

  it.each([
    ['repeats the content beside the message', 70_500],
    ['is larger than a request', 1_200_000],
  ])('keeps a result as a message that answers its call where it %s', async (_, length) => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const content = 'line of a file\n'.repeat(Math.ceil(length / 15))
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { file: 'big.txt' } }
    const entries = [
      user('Read big.txt'),
      { type: 'assistant', uuid: randomUUID(), message: { role: 'assistant', content: [call] } },
      user([{ type: 'tool_result', tool_use_id: 'toolu_1', content }], {
        toolUseResult: { type: 'text', file: { filePath: 'big.txt', content } },
      }),
      user('Thanks'),
    ]
    await store.append(KEY, entries)
    await new AnnalsSessionStore(annals).append(KEY, entries)
    expect(isDeepStrictEqual(await store.load(KEY), entries)).toBe(true)
    const { items } = await annals.sessions.context(SESSION_ID, { format: 'openai', max_tokens: 1_000_000 })
    expect(items.map((item) => [item.role, item.tool_call_id])).toEqual([
      ['user', undefined],
      ['assistant', undefined],
      ['tool', 'toolu_1'],
      ['user', undefined],
    ])
    const { content: read } = items[2] as { content: string }
    expect(read === content).toBe(true)
  })

  it('begins a context with the summary that Claude Code wrote, and with what it kept beside it', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const [kept, ...old] = [user('and this?'), ...turn(1), ...turn(2)]
    const boundary = {
      type: 'system',
      subtype: 'compact_boundary',
      uuid: randomUUID(),
      compactMetadata: { trigger: 'auto', preservedMessages: { uuids: [kept!.uuid!] } },
    }
    const summary = user('They listed files.', { isCompactSummary: true })
    const entries = [...old, kept!, boundary, summary, user('Go on.')]
    await store.append(KEY, entries)
    for (const again of [store, new AnnalsSessionStore(annals)]) await again.append(KEY, entries)
    expect(await store.load(KEY)).toEqual(entries)
    const { items } = await annals.sessions.context(SESSION_ID, { format: 'openai' })
    expect(items.map(({ content }) => content)).toEqual(['They listed files.', 'and this?', 'Go on.'])
    const whole = await annals.sessions.context(SESSION_ID, { format: 'openai', compaction: 'none' })
    expect(whole.items).toHaveLength(9)
    const log = await annals.sessions.timeline(SESSION_ID, { limit: 200 }).page()
    const types = log.items.map((item) => (item.kind === 'event' ? item.type : item.kind))
    expect(types.filter((type) => type === 'annals.compaction')).toHaveLength(1)
  })

  it('has contexts follow its tree: what was rewound is in none, and comes back when it is gone on with', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const after = (parent: SessionStoreEntry | null, message: object, type = 'user') => ({
      type,
      uuid: randomUUID(),
      parentUuid: parent?.uuid ?? null,
      message,
    })
    const said = (content: unknown) => ({ role: 'user', content })
    const answer = (id: string, content: unknown) => ({ id, role: 'assistant', content })
    const use = (id: string) => ({ type: 'tool_use', id, name: 'Read', input: {} })
    const result = (id: string) => said([{ type: 'tool_result', tool_use_id: id, content: id }])
    const first = after(null, said('look'))
    const calls = [after(first, answer('m1', [use('a')]), 'assistant')]
    calls.push(after(calls[0]!, answer('m1', [use('b')]), 'assistant'))
    const results = [after(calls[0]!, result('a')), after(calls[1]!, result('b'))]
    const done = after(results[1]!, answer('m2', 'done'), 'assistant')
    const wrong = after(done, said('delete it'))
    const deleted = after(wrong, answer('m3', 'deleted'), 'assistant')
    await store.append(KEY, [first, ...calls, ...results, done])
    await store.append(KEY, [wrong, deleted])
    const contents = async () => {
      const { items } = await annals.sessions.context(SESSION_ID, { format: 'openai' })
      return items.map(({ content }) => content)
    }
    expect(await contents()).toEqual(['look', null, 'a', 'b', 'done', 'delete it', 'deleted'])
    const right = after(done, said('keep it'))
    const kept = after(right, answer('m4', 'kept'), 'assistant')
    await new AnnalsSessionStore(annals).append(KEY, [right, kept])
    expect(await contents()).toEqual(['look', null, 'a', 'b', 'done', 'keep it', 'kept'])
    await store.append(KEY, [after(deleted, said('undo'))])
    expect(await contents()).toEqual(['look', null, 'a', 'b', 'done', 'delete it', 'deleted', 'undo'])
    await store.append(KEY, [after(null, said('anew'))])
    expect(await contents()).toEqual(['anew'])
    expect(await store.load(KEY)).toHaveLength(12)
  })

  it('has nothing of a sub-agent in contexts, though its lines are among those of the conversation', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const answer = (content: unknown, more = {}) => ({
      type: 'assistant',
      uuid: randomUUID(),
      message: { role: 'assistant', content },
      ...more,
    })
    const entries = [
      user('look'),
      answer([{ type: 'tool_use', id: 'task', name: 'Task', input: {} }]),
      user('You are to look.', { isSidechain: true }),
      answer('I looked.', { isSidechain: true }),
      user([{ type: 'tool_result', tool_use_id: 'task', content: 'It looked.' }]),
      answer('Done'),
    ]
    await store.append(KEY, entries)
    expect(await store.load(KEY)).toEqual(entries)
    const { items } = await annals.sessions.context(SESSION_ID, { format: 'openai' })
    expect(items.map(({ content }) => content)).toEqual(['look', null, 'It looked.', 'Done'])
    const below = { ...KEY, subpath: 'subagents/agent-1' }
    await store.append(below, entries.slice(2, 4))
    const session_id = stableId('claude-agent-sdk', 'project', 'session', below.subpath)
    const { items: said } = await annals.sessions.context(session_id, { format: 'openai' })
    expect(said.map(({ content }) => content)).toEqual(['You are to look.', 'I looked.'])
  })

  it('has nothing in contexts that the command wrote in place of the model', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const limit = {
      type: 'assistant',
      uuid: randomUUID(),
      isApiErrorMessage: true,
      message: {
        role: 'assistant',
        model: '<synthetic>',
        content: [{ type: 'text', text: 'Limit reached' }],
      },
    }
    const entries = [user('look'), limit, user('go on')]
    await store.append(KEY, entries)
    expect(await store.load(KEY)).toEqual(entries)
    const { items } = await annals.sessions.context(SESSION_ID, { format: 'openai' })
    expect(items.map(({ content }) => content)).toEqual(['look', 'go on'])
  })

  it('has the right summary after eight processes append at once', async () => {
    const annals = await newAnnals()
    const stores = Array.from({ length: 8 }, () => new AnnalsSessionStore(annals))
    await Promise.all(stores.map((store, n) => store.append(KEY, turn(n))))
    const loaded = (await stores[0]!.load(KEY))!
    expect(loaded).toHaveLength(40)
    const [summary] = await stores[0]!.listSessionSummaries('project')
    expect(summary!.data).toEqual(foldSessionSummary(undefined, KEY, loaded).data)
  })

  it('gets a batch once whose answer was lost and which the SDK sends again, with and without uuids', async () => {
    const { token } = await shared.newProject()
    const proxy = await cuttingProxy(shared.node.url)
    try {
      const store = new AnnalsSessionStore(new Annals({ url: proxy.url, token, retries: 0 }))
      const untitled = [{ type: 'mode', mode: 'plan' }]
      await store.append(KEY, untitled)
      for (const [key, batch] of [
        [KEY, turn(1)],
        [KEY, untitled],
        [{ ...KEY, subpath: 'subagents/agent-1' }, untitled],
      ] as const) {
        if ('subpath' in key) await store.append(key, turn(2))
        proxy.script.push('lose_answer')
        await expect(store.append(key, batch)).rejects.toThrow()
        await store.append(key, batch)
      }
      await store.append(KEY, untitled)
      const types = (await store.load(KEY))!.map(({ type }) => type)
      expect(types.filter((type) => type === 'mode')).toHaveLength(4)
      expect(types).toHaveLength(8)
      expect(await store.load({ ...KEY, subpath: 'subagents/agent-1' })).toHaveLength(6)
    } finally {
      await proxy.close()
    }
  })

  it('leaves out what was retracted in Annals', async () => {
    const annals = await newAnnals()
    const store = new AnnalsSessionStore(annals)
    const entries = [user('one'), user('two')]
    await store.append(KEY, entries)
    await annals.sessions.retract(SESSION_ID, { last: 1 })
    await store.append(KEY, [user('three')])
    expect((await store.load(KEY))!.map(({ message }) => (message as { content: string }).content)).toEqual([
      'one',
      'three',
    ])
  })
})

describe('a service that is killed in the middle of a long transcript', () => {
  const service = useService()

  it('loses and doubles nothing', async () => {
    const { token } = await service.newProject()
    const first = service.node
    const { port } = new URL(first.url)
    const store = new AnnalsSessionStore(
      new Annals({ url: first.url, token, retries: 200, timeout_ms: 120_000 }),
    )
    const turns = Array.from({ length: 40 }, (_, n) => turn(n))
    const appends = turns.map(async (batch, n) => {
      await store.append(KEY, batch)
      if (n === 12) await first.kill()
    })
    await first.exited
    await service.startNode({ PORT: port })
    await Promise.all(appends)
    expect(await store.load(KEY)).toEqual(turns.flat())
  })
})
