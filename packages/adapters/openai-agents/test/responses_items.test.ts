import { unescapeJson } from '@annals/adapter-kit'
import { Annals } from '@annals/client'
import { AnnalsSession, itemOf, responsesItemOf } from '@annals/openai-agents'
import type { AgentInputItem } from '@openai/agents-core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()

/** An item of each kind that the SDK has, and what it is stored as. */
const ITEMS: Array<[string, AgentInputItem]> = [
  ['message', { role: 'user', content: 'Hello \u0000 \ud800' }],
  [
    'message',
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'this' },
        { type: 'input_image', image: 'https://example.com/a.png', detail: 'low' },
        { type: 'input_image', image: { id: 'file_1' } },
      ],
    },
  ],
  [
    'message',
    {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hi' }],
    },
  ],
  [
    'function_call',
    { type: 'function_call', id: 'fc_1', callId: 'c1', name: 'book', arguments: '{}', status: 'completed' },
  ],
  [
    'function_call_output',
    {
      type: 'function_call_result',
      callId: 'c1',
      name: 'book',
      status: 'completed',
      output: { type: 'text', text: 'ok' },
    },
  ],
  [
    'function_call_output',
    { type: 'function_call_result', callId: 'c1', name: 'book', status: 'completed', output: 'ok' },
  ],
  [
    'function_call_output',
    {
      type: 'function_call_result',
      callId: 'c1',
      name: 'book',
      status: 'completed',
      output: { type: 'image', image: 'data:image/png;base64,AAAA' },
    },
  ],
  [
    'openai_agents.item',
    {
      type: 'function_call_result',
      callId: 'c1',
      name: 'draw',
      status: 'completed',
      output: { type: 'image', image: { data: new Uint8Array([1, 2, 255]), mediaType: 'image/png' } },
    },
  ],
  ['reasoning', { type: 'reasoning', id: 'rs_1', content: [{ type: 'input_text', text: 'I think' }] }],
  [
    'hosted_tool_call',
    { type: 'hosted_tool_call', name: 'web_search', status: 'completed', output: 'found' },
  ],
  ['compaction', { type: 'compaction', encrypted_content: 'abc' }],
  ['unknown', { type: 'unknown', providerData: { any: [1, null] } }],
]

describe('items of the SDK', () => {
  it('come back as they were added, through a service', async () => {
    const { token } = await service.newProject()
    const annals = new Annals({ url: service.node.url, token })
    const session = new AnnalsSession({ annals, sessionId: 'all kinds' })
    const items = ITEMS.map(([, item]) => item)
    await session.addItems(items)
    expect(await session.getItems()).toEqual(items)
    const stored = (await annals.sessions.timeline(session.id).page()).items
    expect(stored.map((item) => item.kind === 'message' && (item.blob.type ?? 'message'))).toEqual(
      ITEMS.map(([type]) => type),
    )
    const messages = (await annals.sessions.messages(session.id, { format: 'openai' }).page()).items
    expect(messages).toContainEqual(
      expect.objectContaining({ role: 'tool', tool_call_id: 'c1', content: 'ok' }),
    )
    for (const [, item] of ITEMS.toReversed()) expect(await session.popItem()).toEqual(item)
  })

  it('come back whatever is in them', () => {
    const members = fc.dictionary(
      fc.constantFrom(
        'callId',
        'call_id',
        'output',
        'output_form',
        'content',
        'image',
        'a/b',
        'a~',
        'providerData',
      ),
      fc.oneof(
        fc.jsonValue({ maxDepth: 3 }),
        fc.uint8Array({ maxLength: 4 }),
        fc.array(
          fc.record({
            type: fc.constantFrom('input_image', 'text'),
            image: fc.string(),
            image_url: fc.string(),
          }),
        ),
        fc.constant(undefined),
      ),
    )
    const types = [
      'message',
      'function_call',
      'function_call_result',
      'function_call_output',
      'openai_agents.item',
      'x',
    ]
    const item = fc.tuple(fc.constantFrom(...types), members).map(([type, more]) => ({ ...more, type }))
    fc.assert(
      fc.property(item, (given) => {
        const back = itemOf(unescapeJson(responsesItemOf(given as unknown as AgentInputItem)))
        const clean = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
        expect(withPlainZeros(back)).toEqual(withPlainZeros(clean))
      }),
      { examples: [[{ type: 'function_call_result', output: null } as { type: string }]] },
    )
  })
})

/** JSON has no negative zero. */
function withPlainZeros(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value]
  return JSON.parse(
    JSON.stringify(value, (_key, one: unknown) => (one instanceof Uint8Array ? [...one] : one)),
  )
}
