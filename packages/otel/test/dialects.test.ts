import { describe, expect, it } from 'vitest'
import {
  conversationOf,
  meaningOf,
  openAiMessage,
  type SpanEvent,
  sessionNamed,
  userNamed,
} from '../src/index.js'
import { ANSWERED, ASKED, FIXTURES } from './fixtures.js'
import { VENDOR_FIXTURES } from './vendor_fixtures.js'

const json = JSON.stringify

describe.each([...FIXTURES, ...VENDOR_FIXTURES])('$name', ({ model, tool, usage, session, user }) => {
  const { span = 'span', attributes } = model
  const events = (model.events ?? []) as SpanEvent[]

  it('says what the model was sent and answered', () => {
    expect(meaningOf(span, attributes)).toMatchObject({
      operation: 'model',
      model: 'm',
      ...(usage && { usage }),
    })
    const found = conversationOf({ attributes, events })!
    expect(found.input.map(openAiMessage)).toEqual(ASKED)
    expect(found.output.map(openAiMessage)).toEqual(ANSWERED)
    expect(found.used.length).toBeGreaterThan(0)
  })

  it.runIf(tool)('says which tool was called, with what, and its result', () => {
    const { span: name = 'span', attributes: told, events: more = [] } = tool!
    const { operation, tool: called } = meaningOf(name, told, more as SpanEvent[])
    expect([operation, called]).toEqual([
      'tool',
      expect.objectContaining({ name: 'weather', arguments: '{"city":"Oslo"}', result: '4 degrees' }),
    ])
  })

  it('says whose session it is', () => {
    expect(sessionNamed(attributes)?.[1]).toBe(session)
    expect(userNamed(attributes)).toBe(user)
  })
})

it('names that other conventions use mean nothing where their own does not follow it', () => {
  const attributes = { 'gen_ai.operation.name': 'chat', input: 'a', output: 'b', name: 'c' }
  expect(conversationOf({ attributes, events: [] })).toBeUndefined()
  expect(sessionNamed({ 'session.id': "[Scrubbed due to 'session']", 'langfuse.session.id': 's' })).toEqual([
    'langfuse.session.id',
    's',
  ])
})

it('what a tool was given is what its schema describes, not the schema, nor how Python was called', () => {
  const openInference = {
    'openinference.span.kind': 'TOOL',
    'tool.parameters': json({ type: 'object', properties: { city: { type: 'string' } } }),
    'input.value': '{"city":"Oslo"}',
  }
  expect(meaningOf('weather', openInference).tool).toEqual({
    name: 'weather',
    arguments: '{"city":"Oslo"}',
  })
  const decorated = {
    'traceloop.span.kind': 'tool',
    'traceloop.entity.input': json({ args: [], kwargs: { city: 'Oslo' } }),
  }
  expect(meaningOf('weather', decorated).tool).toMatchObject({ arguments: { city: 'Oslo' } })
})

it('Claude Code reports calls of tools and of models by records of logs', () => {
  const attributes = {
    'event.name': 'tool_result',
    'session.id': 's',
    tool_name: 'Bash',
    success: 'true',
    tool_parameters: '{"command":"ls"}',
  }
  expect(meaningOf('', attributes)).toMatchObject({
    operation: 'tool',
    tool: { name: 'Bash', arguments: '{"command":"ls"}' },
  })
  const request = { 'event.name': 'api_request', model: 'm', input_tokens: '12', output_tokens: '3' }
  expect(meaningOf('', request)).toMatchObject({
    operation: 'model',
    model: 'm',
    usage: { input_tokens: 12, output_tokens: 3 },
  })
  expect(sessionNamed(attributes)).toEqual(['session.id', 's'])
})

it('Codex and Gemini CLI report calls of tools and what answers used by records of logs', () => {
  const codex = {
    'event.name': 'codex.tool_result',
    'conversation.id': 's',
    tool_name: 'shell',
    call_id: 'c1',
    arguments: '{"command":["ls"]}',
    output: 'src',
  }
  expect(meaningOf('', codex)).toMatchObject({
    operation: 'tool',
    tool: { name: 'shell', id: 'c1', arguments: '{"command":["ls"]}', result: 'src' },
  })
  const completed = {
    'event.name': 'codex.sse_event',
    'event.kind': 'response.completed',
    model: 'm',
    input_token_count: '12',
    output_token_count: '3',
    cached_token_count: '8',
  }
  const usage = { input_tokens: 12, output_tokens: 3, cached_tokens: 8 }
  expect(meaningOf('', completed)).toMatchObject({ operation: 'model', model: 'm', usage })
  for (const agent of ['gemini_cli', 'qwen-code']) {
    const response = {
      'event.name': `${agent}.api_response`,
      model: 'm',
      input_token_count: 12,
      output_token_count: 3,
      cached_content_token_count: 8,
    }
    expect(meaningOf('', response)).toMatchObject({ operation: 'model', usage })
    const call = { 'event.name': `${agent}.tool_call`, function_name: 'run_shell', function_args: '{"a":1}' }
    expect(meaningOf('', call).tool).toMatchObject({ name: 'run_shell', arguments: '{"a":1}' })
  }
})

it('of several answers to choose from, the first was said; texts and calls of one answer stay one', () => {
  const answer = (...parts: object[]) => ({ role: 'assistant', parts, finish_reason: 'stop' })
  const said = (...answers: object[]) =>
    conversationOf({
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.output.messages': json(answers) },
      events: [],
    })!.output.map(openAiMessage)
  const text = (content: string) => ({ type: 'text', content })
  expect(said(answer(text('A')), answer(text('B')))).toEqual([{ role: 'assistant', content: 'A' }])
  const call = { type: 'tool_call', id: 'c1', name: 'f', arguments: {} }
  expect(said(answer(text('A')), answer(call))).toEqual([
    {
      role: 'assistant',
      content: 'A',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
  ])
})

it('pictures are pictures, in whatever block a convention has their bytes', () => {
  const data = 'iVBORw0KGgo='
  const blocks = [
    { type: 'blob', modality: 'image', mime_type: 'image/png', content: data },
    { type: 'file', mediaType: 'image/png', data },
    { type: 'binary', media_type: 'image/png', content: data },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
    { inlineData: { mimeType: 'image/png', data } },
    { image: { format: 'png', source: { bytes: data } } },
    { type: 'image', image: { image: { url: `data:image/png;base64,${data}` } } },
  ]
  for (const block of blocks) {
    const attributes = { 'gen_ai.input.messages': json([{ role: 'user', content: [block] }]) }
    const [message] = conversationOf({ attributes, events: [] })!.input.map(openAiMessage)
    expect(message, json(block)).toEqual({
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }],
    })
  }
})
