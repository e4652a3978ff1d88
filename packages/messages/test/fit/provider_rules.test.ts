import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS } from '../../src/index.js'
import { messageId, rendered, storedAs } from '../stored_run.js'
import { conversation, toldIn } from './conversations.js'
import { brokenRules } from './provider_rules.js'

describe('the check of the providers’ rules', () => {
  it.each(MESSAGE_FORMATS)(
    'finds that many conversations cannot be sent as they are stored in %s',
    (format) => {
      const conversations = fc.sample(conversation, { numRuns: 100, seed: 1 })
      const broken = conversations.filter(
        (steps) => brokenRules(format, rendered(storedAs(format, toldIn(format, steps)), format)).length > 0,
      )
      expect(broken.length).toBeGreaterThan(40)
    },
  )
})

describe('a result in OpenAI’s format', () => {
  const PICTURE = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const asked = { role: 'user', content: 'Look' }
  const calls = ['a', 'b'].map((id) => ({
    id,
    type: 'function',
    function: { name: 'look', arguments: '{}' },
  }))
  const sent = (...blobs: object[]) => {
    const list = new FitToSend('openai')
    for (const [i, blob] of [
      asked,
      { role: 'assistant', content: null, tool_calls: calls },
      ...blobs,
    ].entries())
      list.add({ id: messageId(i), parent_id: null, seq: i, format: 'openai', blob: JSON.stringify(blob) })
    return list.finish().items.map(({ json }) => JSON.parse(json) as object)
  }
  const result = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content })

  it('has only texts: pictures come after all results of its turn', () => {
    const items = sent(result('a', [{ type: 'text', text: 'seen' }, PICTURE]), result('b', [PICTURE]))
    expect(items.slice(2)).toEqual([
      result('a', [{ type: 'text', text: 'seen' }]),
      result('b', ''),
      { role: 'user', content: [PICTURE] },
      { role: 'user', content: [PICTURE] },
    ])
    expect(brokenRules('openai', items)).toEqual([])
  })

  it('has no empty list, no empty text and no field of an answer', () => {
    const items = sent(
      { ...result('a', []), id: 'msg_1', model: 'm' },
      result('b', [{ type: 'text', text: '' }]),
    )
    expect(items.slice(2)).toEqual([result('a', ''), result('b', '')])
  })
})
