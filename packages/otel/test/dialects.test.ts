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

const json = JSON.stringify

describe.each(FIXTURES)('$name', ({ model, tool, usage, session, user }) => {
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
