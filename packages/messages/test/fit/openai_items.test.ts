import { describe, expect, it } from 'vitest'
import { type FitOptions, FitToSend } from '../../src/fit/index.js'
import { MESSAGE_FORMATS, type MessageFormat } from '../../src/index.js'
import { messageId } from '../stored_run.js'
import { brokenRules } from './provider_rules.js'

const ASKED = { role: 'user', content: 'x' }
const MORE = { role: 'user', content: 'Never mind.' }
const request = (id: string) => ({
  type: 'mcp_approval_request',
  id,
  name: 'f',
  arguments: '{}',
  server_label: 's',
})
const response = (approval_request_id: string, approve = true) => ({
  type: 'mcp_approval_response',
  approval_request_id,
  approve,
})
const program = { type: 'program', id: 'prog_1', call_id: 'p', code: 'look()', fingerprint: 'f' }
const ended = { type: 'program_output', id: 'prog_out_1', call_id: 'p', result: '1', status: 'completed' }
const caller = { type: 'program', caller_id: 'p' }
const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'look', arguments: '{}', caller })
const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: '1', caller })
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }
const answer = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'y', annotations: [] }],
}
const shell = { type: 'shell_call', id: 'sh_1', call_id: 'c', action: { commands: ['ls'] } }
const outcome = { type: 'exit', exit_code: 0 }

const APPROVED = [ASKED, request('mcpr_1'), request('mcpr_2'), response('mcpr_1'), response('mcpr_2', false)]
const PROGRAM = [ASKED, reasoning, program, call('a'), call('b'), output('a'), output('b'), ended, answer]

const CONVERSATIONS: Record<string, object[]> = {
  'requests for approval that are answered': APPROVED,
  'a request for approval that nobody answered': [ASKED, reasoning, request('mcpr_1'), MORE],
  'a request for approval that waits': [ASKED, request('mcpr_1')],
  'an approval after other words': [ASKED, request('mcpr_1'), MORE, response('mcpr_1')],
  'a program that called tools': PROGRAM,
  'a program whose call was answered late': [...PROGRAM.slice(0, 5), MORE, output('a'), output('b'), ended],
  'a program that waits for a tool': PROGRAM.slice(0, 7),
  'a program that called again': [...PROGRAM.slice(0, 7), call('c'), output('c')],
  'a program that was killed': [...PROGRAM.slice(0, 5), MORE],
  'a program that was cut off': PROGRAM.slice(0, 3),
  'a program that came after its call': [ASKED, call('a'), program, output('a')],
  'the end of a program': [ended, answer, MORE],
  'what a program’s calls became without it': [call('a'), output('a'), MORE],
  'a search of a kind that Codex does not know': [
    ASKED,
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'other' } },
  ],
  'the name of an argument that is none': [
    ASKED,
    {
      type: 'tool_search_call',
      id: 'tsc_1',
      call_id: 'c',
      execution: 'client',
      arguments: { ['x'.repeat(300)]: 1 },
    },
    { type: 'tool_search_output', call_id: 'c', execution: 'client', tools: [] },
  ],
  'an input that is too long': [
    ASKED,
    { type: 'custom_tool_call', call_id: 'c', name: 'f', input: ' '.repeat(1_100_000) },
  ],
  'a shell’s output with its author': [
    ASKED,
    shell,
    {
      type: 'shell_call_output',
      call_id: 'c',
      output: [{ stdout: '', stderr: '', outcome, created_by: 'm' }],
    },
  ],
}

function sent(to: MessageFormat, blobs: readonly object[], options?: FitOptions) {
  const list = new FitToSend(to, options)
  for (const [i, blob] of blobs.entries())
    list.add({
      id: messageId(i),
      parent_id: i === 0 ? null : messageId(i - 1),
      seq: i + 1,
      format: 'responses',
      blob: JSON.stringify(blob),
    })
  const { items, omitted, added, sent_seqs } = list.finish()
  return { items: items.map(({ json }) => JSON.parse(json) as object), omitted, added, sent_seqs }
}

describe.each(MESSAGE_FORMATS)('fit to be sent in %s', (to) => {
  it.each(Object.entries(CONVERSATIONS))('is a session with %s', (_, blobs) => {
    for (let length = 1; length <= blobs.length; length++) {
      const { items } = sent(to, blobs.slice(0, length))
      expect(brokenRules(to, items), JSON.stringify(items)).toEqual([])
    }
  })
})

describe('a list for OpenAI', () => {
  it('has an output that failed as incomplete, which a request may say', () => {
    for (const type of ['function_call', 'computer_call']) {
      const failed = { type: `${type}_output`, call_id: 'a', output: '', status: 'failed' }
      const made = { type, id: type === 'function_call' ? 'fc_1' : 'cu_1', call_id: 'a', name: 'f' }
      expect(sent('responses', [ASKED, made, failed]).items[2]).toEqual({ ...failed, status: 'incomplete' })
    }
  })

  it('has each request for approval with its answer, and none without', () => {
    expect(sent('responses', APPROVED).items).toEqual(APPROVED)
    const name = 'a request for approval that nobody answered'
    const { items, omitted } = sent('responses', CONVERSATIONS[name]!)
    expect(items).toEqual([ASKED, MORE])
    expect(omitted).toEqual([
      { id: messageId(2), reason: 'no_result', call_id: 'mcpr_1' },
      { id: messageId(1), reason: 'reasoning' },
    ])
    expect(sent('responses', CONVERSATIONS['an approval after other words']!).items).toEqual([
      ASKED,
      request('mcpr_1'),
      response('mcpr_1'),
      MORE,
    ])
  })

  it('has what it can of names and inputs that are too long, and says so', () => {
    const [, search] = sent('responses', CONVERSATIONS['the name of an argument that is none']!).items
    expect(search).toMatchObject({ arguments: { unparsed_arguments: `{"${'x'.repeat(300)}":1}` } })
    const { items, omitted } = sent('responses', CONVERSATIONS['an input that is too long']!)
    expect(items[1]).toMatchObject({ type: 'custom_tool_call', input: '' })
    expect(omitted).toEqual([{ id: messageId(1), reason: 'not_in_format', what: 'input' }])
    const custom = { name: 'f', input: ' '.repeat(1_100_000) }
    const chat = new FitToSend('openai')
    const blob = { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'custom', custom }] }
    chat.add({ id: messageId(0), parent_id: null, seq: 1, format: 'openai', blob: JSON.stringify(blob) })
    expect(chat.finish().omitted).toEqual([{ id: messageId(0), reason: 'not_in_format', what: 'input' }])
  })

  it('says that a call was approved, where a list was sent before without the request', () => {
    const blobs = [ASKED, request('mcpr_1'), MORE, response('mcpr_1')]
    const { items, added, sent_seqs } = sent('responses', blobs, { begun_seq: 3, sent_seqs: [3] })
    const content = 'Result of the call mcpr_1, which came later:\nApproved.'
    expect(items).toEqual([ASKED, MORE, { type: 'message', role: 'user', content }])
    expect(added).toEqual([{ id: messageId(3), reason: 'late_result', call_id: 'mcpr_1' }])
    expect(sent_seqs).toEqual([3])
  })

  it('says what tools of its own put out, where a list was sent before without their calls', () => {
    const screenshot = { type: 'computer_screenshot', image_url: 'data:image/png;base64,iVBORw0KGgo=' }
    const printed = [{ stdout: 'a.txt', stderr: '', outcome }]
    const told = (type: string, more: object) => {
      const calls = { type: `${type}_call`, id: `${type}_1`, call_id: 'c', action: {}, status: 'completed' }
      const blobs = [ASKED, calls, MORE, { type: `${type}_call_output`, call_id: 'c', ...more }]
      const { items } = sent('responses', blobs, { begun_seq: 3, sent_seqs: [3] })
      expect(brokenRules('responses', items)).toEqual([])
      return items.slice(2).map((one) => (one as { content: unknown }).content)
    }
    const result = 'Result of the call c, which came later:\n'
    expect(told('shell', { output: printed })).toEqual([`${result}a.txt`])
    expect(told('apply_patch', { status: 'failed' })).toEqual([`${result}failed`])
    const { image_url } = screenshot
    expect(told('computer', { output: screenshot })).toEqual([
      result,
      [{ type: 'input_image', detail: 'auto', image_url }],
    ])
  })

  it('has a program with what it called and its end, or while it waits for a call', () => {
    expect(sent('responses', PROGRAM).items).toEqual(PROGRAM)
    expect(sent('responses', PROGRAM.slice(0, 7)).items).toEqual(PROGRAM.slice(0, 7))
    const unanswered = sent('responses', PROGRAM.slice(0, 4)).items.at(-1)
    expect(unanswered).toMatchObject({ call_id: 'a', status: 'incomplete', caller })
    const { caller: _, ...lost } = output('a')
    expect(sent('responses', [...PROGRAM.slice(0, 4), lost]).items.at(-1)).toEqual(output('a'))
  })

  it('has the calls of a program that was killed as the model’s own', () => {
    const { items, omitted } = sent('responses', [ASKED, program, call('a'), output('a'), MORE])
    const { caller: _, ...asked } = call('a')
    const { caller: __, ...said } = output('a')
    expect(items).toEqual([ASKED, asked, said, MORE])
    expect(omitted).toEqual([{ id: messageId(1), reason: 'no_result', call_id: 'p' }])
  })
})
