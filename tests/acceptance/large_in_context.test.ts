import { randomUUID } from 'node:crypto'
import { AnnalsSessionStore } from '@annals/claude-agent-sdk'
import { Annals } from '@annals/client'
import { AnnalsSession } from '@annals/openai-agents'
import type { AgentInputItem } from '@openai/agents-core'
import { describe, expect, it } from 'vitest'
import { brokenRules } from '../../packages/messages/test/fit/provider_rules.ts'
import { useSharedService } from '../harness/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: it looks into messages of every format
type Item = any
const service = useSharedService()
const user = (content: unknown) => ({ role: 'user', content })
const use = { type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }

describe('what is large stays whole in a context', () => {
  it.each([70_000, 1_200_000])('where Claude Code has read a file of %d characters', async (length) => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const store = new AnnalsSessionStore(annals)
    const key = { projectKey: 'project', sessionId: randomUUID() }
    const content = `é"\\\n${'a line of it\n'.repeat(length / 13)}`
    const entry = (type: string, message: object, more = {}) => ({
      type,
      uuid: randomUUID(),
      message,
      ...more,
    })
    await store.append(key, [
      entry('user', user('Read it')),
      entry('assistant', { role: 'assistant', content: [use] }),
      entry('user', user([{ type: 'tool_result', tool_use_id: 'toolu_1', content }]), {
        toolUseResult: { file: { content } },
      }),
      entry('user', user('Thanks')),
    ])
    const [session] = (await annals.sessions.list().page()).items
    const { items, tokens } = await annals.sessions.context(session!.id, {
      format: 'anthropic',
      max_tokens: 2_000_000,
    })
    expect(brokenRules('anthropic', items)).toEqual([])
    const [read] = (items[2] as Item).content
    expect(read.content === content).toBe(true)
    expect(tokens).toBeGreaterThan(length / 10)
  })

  it('but for a picture that Anthropic refuses, and every list that has it', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const { id } = await annals.sessions.create({})
    const png = (bytes: number) => {
      const data = Buffer.concat([Buffer.from('iVBORw0KGgo=', 'base64'), Buffer.alloc(bytes, bytes % 251)])
      return `data:image/png;base64,${data.toString('base64')}`
    }
    const image = (bytes: number) => ({ type: 'image_url', image_url: { url: png(bytes) } })
    const blob = user([image(3_900_000), image(3_950_000), { type: 'text', text: 'Look.' }])
    const { id: message_id } = await annals.sessions.appendMessage(id, { blob })
    const read = async (format: 'openai' | 'anthropic') => {
      const { items, omitted } = await annals.sessions.context(id, { format, max_tokens: 2_000_000 })
      return { types: (items[0] as Item).content.map(({ type }: Item) => type), omitted }
    }
    expect(await read('anthropic')).toEqual({
      types: ['image', 'text'],
      omitted: [{ id: message_id, reason: 'not_in_format', what: 'image' }],
    })
    expect(await read('openai')).toEqual({ types: ['image_url', 'image_url', 'text'], omitted: [] })
  })

  it('but for a page of HTML that is called a picture, which stays as it was sent in the log', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const { id } = await annals.sessions.create({})
    const data = Buffer.from(`<!DOCTYPE html><html>${'Sign in. '.repeat(6_000)}</html>`).toString('base64')
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
    const csv = Buffer.from(`a,b\n${'1,2\n'.repeat(10_000)}`)
    const file = { filename: 'a.csv', file_data: `data:text/csv;base64,${csv.toString('base64')}` }
    const blob = user([image, { type: 'text', text: 'Look.' }])
    const { id: message_id } = await annals.sessions.appendMessage(id, { format: 'anthropic', blob })
    await annals.sessions.appendMessage(id, { blob: user([{ type: 'file', file }]) })
    const { items, omitted } = await annals.sessions.context(id, { format: 'openai', max_tokens: 2_000_000 })
    expect(items).toEqual([
      user([{ type: 'text', text: 'Look.' }]),
      user([{ type: 'text', text: `a.csv:\n${csv}` }]),
    ])
    expect(omitted).toEqual([{ id: message_id, reason: 'not_in_format', what: 'image_url' }])
    const [stored] = (await annals.sessions.messages(id, { format: 'anthropic', limit: 1 }).page()).items
    expect(stored).toEqual(blob)
  })

  it('where the OpenAI Agents SDK stores a photo, and what a tool returned', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const session = new AnnalsSession({ annals, sessionId: randomUUID() })
    const photo = `data:image/png;base64,${Buffer.alloc(2_000_000, 7).toString('base64')}`
    const text = `${'long '.repeat(240_000)}\ufdd0 and \u0000`
    const items: AgentInputItem[] = [
      { type: 'message', role: 'user', content: [{ type: 'input_image', image: photo }] },
      { type: 'function_call', callId: 'c1', name: 'look', arguments: '{}', status: 'completed' },
      {
        type: 'function_call_result',
        callId: 'c1',
        name: 'look',
        status: 'completed',
        output: { type: 'text', text },
      },
    ]
    await session.addItems(items)
    expect(await session.getItems()).toEqual(items)
    const { items: read } = await annals.sessions.context(session.id, {
      format: 'responses',
      max_tokens: 2_000_000,
    })
    expect(brokenRules('responses', read)).toEqual([])
    expect((read[0] as Item).content[0].image_url === photo).toBe(true)
    expect((read[2] as Item).output === text.replace('\u0000', '\ufffd')).toBe(true)
  })
})
