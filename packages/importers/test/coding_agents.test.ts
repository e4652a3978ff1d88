import { describe, expect, it } from 'vitest'
import { readImport } from '../src/read_import.ts'
import type { ImportRecord } from '../src/records.ts'
import {
  blobsIn,
  chunks,
  entriesIn,
  fixture,
  formatOf,
  lines,
  outline,
  recordsOf,
  tallyOf,
} from './reading.ts'

const BEGAN = 1_795_000_000_000

function eventsIn(records: ImportRecord[], type = 'otel.span') {
  return entriesIn(records).flatMap((entry) =>
    entry.kind === 'event' && entry.type === type ? [entry.data] : [],
  )
}

function sessionsIn(records: ImportRecord[]) {
  return records.flatMap((record) => (record.kind === 'session' ? [record] : []))
}

/** A file of a folder that has these files. */
async function recordsBeside(name: string, bytes: Uint8Array, names: string[]): Promise<ImportRecord[]> {
  const records: ImportRecord[] = []
  const beside = { names: async () => names, read: async () => undefined }
  for await (const record of readImport({ name, bytes: chunks(bytes), beside })) records.push(record)
  return records
}

describe('a task of Cline', () => {
  it('has what the model was sent and answered, and names its folder', async () => {
    const records = await recordsOf(
      'tasks/1795000000000/api_conversation_history.json',
      fixture('cline.json'),
    )
    expect(formatOf(records)).toBe('cline')
    expect(outline(records)).toEqual([
      's1 {"agent":"cline"}',
      's1 anthropic user at 11:06:40',
      's1 {"model":"claude-sonnet-4"}',
      's1 anthropic assistant at 11:06:41',
      's1 anthropic user at 11:06:42',
    ])
    const shown = await recordsOf('tasks/1795000000000/ui_messages.json', fixture('cline_ui.json'))
    expect(sessionsIn(shown)[0]!.id).toBe(sessionsIn(records)[0]!.id)
    const other = await recordsOf('tasks/1795000000001/ui_messages.json', fixture('cline_ui.json'))
    expect(sessionsIn(other)[0]!.id).not.toBe(sessionsIn(records)[0]!.id)
  })

  it('has the results of calls as such, though the model was told of them in texts', async () => {
    const call = (id: string) => ({ type: 'tool_use', id, name: 'execute_command', input: { command: 'x' } })
    const environment = { type: 'text', text: '<environment_details>\n# Time\n</environment_details>' }
    const text = (said: string) => ({ type: 'text', text: said })
    const told = [
      "[execute_command for 'x\ny'] Result:\nCommand failed with exit code 1.\nOutput:\nno",
      "[execute_command for 'x'] Result:\nCommand executed successfully (exit code 0).",
    ]
    const task = [
      { role: 'user', content: [text('<task>\nFix it\n</task>')], ts: 1 },
      { role: 'assistant', content: [call('toolu_1'), call('toolu_2')], ts: 2 },
      { role: 'user', content: [...told.map(text), environment], ts: 3 },
      { role: 'assistant', content: [text('Done.')], ts: 4 },
      { role: 'user', content: [text('[this] Result:\nis mine')], ts: 5 },
    ]
    const records = await recordsOf('api_conversation_history.json', JSON.stringify(task))
    const [, , answer, , mine] = entriesIn(records)
    expect(answer).toMatchObject({
      blob: {
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: 'Command failed with exit code 1.\nOutput:\nno',
            is_error: true,
          },
          {
            type: 'tool_result',
            tool_use_id: 'toolu_2',
            content: 'Command executed successfully (exit code 0).',
          },
          environment,
        ],
      },
      meta: {
        cline: { headers: ["[execute_command for 'x\ny'] Result:", "[execute_command for 'x'] Result:"] },
      },
    })
    expect(mine).toMatchObject({ blob: { content: [text('[this] Result:\nis mine')] } })
  })

  it('adds what calls used where the page shows it, and says nothing twice', async () => {
    const name = 'tasks/1795000000000/ui_messages.json'
    const records = await recordsBeside(name, fixture('cline_ui.json'), [
      'api_conversation_history.json',
      'ui_messages.json',
    ])
    expect(blobsIn(records)).toEqual([])
    expect(eventsIn(records)).toMatchObject([
      {
        operation: 'model',
        model: 'claude-sonnet-4',
        usage: { input_tokens: 1200, output_tokens: 30, cached_tokens: 7, cache_write_tokens: 5 },
        cost_usd: 0.02,
      },
    ])
    expect(eventsIn(records, 'source.cline.error')).toHaveLength(1)
    expect(eventsIn(records, 'source.cline.error')[0]!.noise).toBeUndefined()
    expect(eventsIn(records, 'source.cline.checkpoint_created')).toMatchObject([{ noise: true }])
  })

  it('is read from the page alone, with calls joined to their results', async () => {
    const records = await recordsOf('ui_messages.json', fixture('cline_ui.json'))
    const said = blobsIn(records) as Record<string, unknown>[]
    expect(said.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'assistant', 'assistant', 'assistant', 'tool', 'tool'],
      ...['assistant', 'user', 'assistant'],
    ])
    expect(said[0]!.content).toContainEqual({
      type: 'image_url',
      image_url: { url: 'data:image/png;base64,AAAA' },
    })
    const [{ id }] = said[4]!.tool_calls as [{ id: string }]
    expect(said[6]).toEqual({ role: 'tool', tool_call_id: id, content: '1 failed' })
    expect(said[7]!.content).toBe('Which one?')
  })
})

describe('a task of Cline of which only the page is there', () => {
  const at = (ts: number) => BEGAN + ts
  const said = (ts: number, say: string, text: unknown) => ({
    ts: at(ts),
    type: 'say',
    say,
    text: typeof text === 'string' ? text : JSON.stringify(text),
    modelInfo: { modelId: 'opus-9' },
  })
  const request = (...results: string[]) =>
    results.map((text) => `[a_tool for 'x'] Result:\n${text}`).join('\n\n')
  const TASK = [
    said(0, 'text', 'Look and build'),
    said(1, 'tool', { tool: 'readFile', path: 'a.ts', content: '/work/a.ts' }),
    said(2, 'tool', { tool: 'newFileCreated', path: 'b.ts', content: 'y = 2' }),
    said(3, 'api_req_started', { request: `${request('x = 1', 'Saved.')}\n<environment_details>` }),
    said(4, 'command', 'npm test'),
    { ...said(5, '', 'one'), say: undefined, type: 'ask', ask: 'command_output' },
    { ...said(6, '', 'two'), say: undefined, type: 'ask', ask: 'command_output' },
  ]

  it('has as results what the model was told, and the model', async () => {
    const failed = request('The tool execution failed with the following error:\nno')
    const records = await recordsOf(
      'ui_messages.json',
      JSON.stringify([
        ...TASK,
        said(7, 'text', 'And again.'),
        said(8, 'tool', { tool: 'readFile', path: 'c.ts', content: '/work/c.ts' }),
        said(9, 'api_req_started', { request: failed }),
      ]),
    )
    expect(blobsIn(records)).toMatchObject([
      { role: 'user' },
      { tool_calls: [{ function: { arguments: '{"path":"a.ts"}' } }] },
      { tool_calls: [{ function: { arguments: '{"path":"b.ts","content":"y = 2"}' } }] },
      { role: 'tool', tool_call_id: `call_${at(1)}`, content: 'x = 1' },
      { role: 'tool', tool_call_id: `call_${at(2)}`, content: 'Saved.' },
      { tool_calls: [{ function: { name: 'execute_command' } }] },
      { role: 'tool', tool_call_id: `call_${at(4)}`, content: 'one\ntwo' },
      { role: 'assistant', content: 'And again.' },
      { tool_calls: [{ id: `call_${at(8)}` }] },
      { content: [{ tool_use_id: `call_${at(8)}`, is_error: true }] },
    ])
    expect(records).toContainEqual(expect.objectContaining({ kind: 'configs', configs: { model: 'opus-9' } }))
  })

  it('keeps what is shown of a call that still runs, and adds its result later', async () => {
    const before = entriesIn(await recordsOf('ui_messages.json', JSON.stringify(TASK)))
    const all = [...TASK, said(7, 'api_req_started', { request: request('one\ntwo') })]
    const after = entriesIn(await recordsOf('ui_messages.json', JSON.stringify(all)))
    const contents = new Map(after.map((entry) => [entry.id, entry]))
    const gone = before.filter(({ id }) => !contents.has(id))
    expect(gone).toMatchObject([{ data: { raw: { text: 'one' } } }, { data: { raw: { text: 'two' } } }])
    for (const entry of before) if (contents.has(entry.id)) expect(contents.get(entry.id)).toEqual(entry)
    expect(after).toContainEqual(
      expect.objectContaining({ blob: expect.objectContaining({ content: 'one\ntwo' }) }),
    )
  })
})

describe('the chat of VS Code', () => {
  it('has calls with their results, thoughts, tokens, times and failures', async () => {
    const records = await recordsOf('vscode_chat.json')
    expect(formatOf(records)).toBe('vscode-chat')
    expect(sessionsIn(records)[0]!.configs).toEqual({ agent: 'GitHub Copilot', title: 'Add a test' })
    expect(blobsIn(records)).toMatchObject([
      { role: 'user', content: 'What is here?' },
      { role: 'assistant', content: 'I list it.', reasoning_content: 'Look.', tool_calls: [{ id: 'c1' }] },
      { role: 'tool', tool_call_id: 'c1', content: 'Read src' },
      { role: 'assistant', content: 'There is `a.ts`.' },
      { role: 'user', content: 'Run the test' },
      { role: 'assistant', tool_calls: [{ id: 'call_7', function: { name: 'run_in_terminal' } }] },
      { role: 'tool', tool_call_id: 'call_7', content: '1 failed' },
      { role: 'assistant', content: 'It fails.' },
    ])
    expect(eventsIn(records)).toMatchObject([
      { model: 'copilot/gpt-5', duration_ms: 1500 },
      { usage: { input_tokens: 900, output_tokens: 40 }, error: 'Rate limited' },
    ])
    expect(entriesIn(records)[0]!.occurred_at).toBe(new Date(BEGAN).toISOString().replace('000Z', '000000Z'))
  })

  it('is known by an export of more than is looked at first, whose requests are all that is there', async () => {
    const { responderUsername, initialLocation, requests } = JSON.parse(
      fixture('vscode_chat.json').toString(),
    )
    requests[0].padding = 'x'.repeat(9 * 1024 * 1024)
    const records = await recordsOf(
      'chat.json',
      JSON.stringify({ responderUsername, initialLocation, requests }),
    )
    expect(formatOf(records)).toBe('vscode-chat')
    expect(blobsIn(records)).toHaveLength(8)
  })

  it('keeps a request without a message as it is', async () => {
    const session = JSON.parse(fixture('vscode_chat.json').toString())
    session.requests.push({ timestamp: BEGAN, prompt: 'Hello', completion: 'Hi' })
    const records = await recordsOf('chat.json', JSON.stringify(session))
    expect(blobsIn(records)).toHaveLength(8)
    expect(eventsIn(records, 'source.vscode-chat.request')).toEqual([{ raw: session.requests[2] }])
  })

  it('replays the log of a session, and names what does not fit it', async () => {
    const session = JSON.parse(fixture('vscode_chat.json').toString())
    const [first, second] = session.requests
    const log = [
      { kind: 0, v: { ...session, requests: [], customTitle: 'Untitled' } },
      { kind: 2, k: ['requests'], v: [{ ...first, response: [], result: undefined }, second] },
      { kind: 2, k: ['requests', 0, 'response'], v: [{ value: 'I beg' }, { value: 'x' }] },
      { kind: 2, k: ['requests', 0, 'response'], v: first.response, i: 0 },
      { kind: 1, k: ['requests', 0, 'result'], v: first.result },
      { kind: 1, k: ['customTitle'], v: 'Add a test' },
      { kind: 1, k: ['toBeGone'], v: 1 },
      { kind: 3, k: ['toBeGone'] },
    ]
    const whole = await recordsOf('vscode_chat.json')
    const replayed = await recordsOf('log.jsonl', lines(...log))
    expect(blobsIn(replayed)).toEqual(blobsIn(whole))
    expect(entriesIn(replayed).map(({ id }) => id)).toEqual(entriesIn(whole).map(({ id }) => id))
    const bad = [
      { kind: 1, k: ['requests', 9, 'x'], v: 1 },
      { kind: 1, k: ['__proto__', 'x'], v: 1 },
      { kind: 2, k: ['requests', 1e9], v: [1] },
    ]
    const records = await recordsOf('log.jsonl', lines(...log, ...bad))
    expect(blobsIn(records)).toEqual(blobsIn(whole))
    expect(tallyOf(records)).toMatchObject({ read: 11, mapped: 8, refused: 3 })
    expect(({} as { x?: number }).x).toBeUndefined()
  })

  it('waits with an answer that is still being written', async () => {
    const session = JSON.parse(fixture('vscode_chat.json').toString())
    session.requests[1].result = undefined
    session.requests[1].modelState = { value: 0 }
    const said = blobsIn(await recordsOf('s.json', JSON.stringify(session))) as { role: string }[]
    expect(said.at(-1)).toEqual({ role: 'user', content: 'Run the test' })
  })
})

describe('the history of Aider', () => {
  const HISTORY = `
# aider chat started at 2026-05-01 12:00:00

> Aider v0.86  
> Main model: openai/gpt-5 with diff edit format  

#### fix the bug  
#### please  

I will:

\`\`\`py
x = 1
\`\`\`

> Tokens: 2.3k sent, 1.1k cache hit, 120 received. Cost: $0.01 message, $0.02 session.  
> Applied edit to x.py  

#### /run pytest  

> litellm.RateLimitError: Error: slow down  

# aider chat started at 2026-05-02 09:00:00

#### hello  
`

  it.each(['\n', '\r\n'])(
    'is a session for each start, with what was said, used and changed (%j)',
    async (end) => {
      const records = await recordsOf('.aider.chat.history.md', HISTORY.replaceAll('\n', end), { chunk: 7 })
      expect(formatOf(records)).toBe('aider')
      expect(outline(records)).toEqual([
        's1 {"agent":"aider"}',
        's1 {"model":"openai/gpt-5"}',
        's1 source.aider.output (noise) at 12:00:00',
        's1 openai user at 12:00:00',
        's1 openai assistant at 12:00:00',
        's1 otel.span at 12:00:00',
        's1 openai user at 12:00:00',
        's1 source.aider.error at 12:00:00',
        's2 {"agent":"aider"}',
        's2 openai user at 09:00:00',
      ])
      expect(blobsIn(records).slice(0, 2)).toEqual([
        { role: 'user', content: 'fix the bug\nplease' },
        { role: 'assistant', content: 'I will:\n\n```py\nx = 1\n```' },
      ])
      expect(eventsIn(records)).toMatchObject([
        {
          model: 'openai/gpt-5',
          usage: { input_tokens: 2300, cached_tokens: 1100, output_tokens: 120 },
          cost_usd: 0.01,
        },
      ])
    },
  )

  it('adds only what is new when it has grown', async () => {
    const ids = async (text: string) =>
      entriesIn(await recordsOf('.aider.chat.history.md', text)).map(({ id }) => id)
    const before = await ids(HISTORY)
    const after = await ids(`${HISTORY}\nHi.\n\n#### bye  \n`)
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after).toHaveLength(before.length + 2)
  })

  it('leaves an answer whole that has edits, headings and quotations', async () => {
    const answer = [
      'I will:\n\n```md\n<<<<<<< SEARCH\n> old\n=======\n#### Usage\n> new\n>>>>>>> REPLACE\n```',
      '#### Afterwards\n\nDone.',
    ].join('\n\n')
    const text = `# aider chat started at 2026-05-03 10:00:00\n\n#### do it  \n\n${answer}\n\n> Applied edit  \n`
    expect(blobsIn(await recordsOf('.aider.chat.history.md', text))).toEqual([
      { role: 'user', content: 'do it' },
      { role: 'assistant', content: answer },
    ])
  })

  it('joins what was pasted in older versions, whose lines had blank ones between', async () => {
    const text =
      '# aider chat started at 2024-08-20 10:00:00\n\n#### /add a.py\n\n#### why?\n\n####\n\n#### Error 1\n\nSo.\n'
    expect(blobsIn(await recordsOf('.aider.chat.history.md', text))).toEqual([
      { role: 'user', content: '/add a.py' },
      { role: 'user', content: 'why?\n\nError 1' },
      { role: 'assistant', content: 'So.' },
    ])
  })
})

describe('what Gemini CLI writes to its output', () => {
  const at = (second: number) => ({ timestamp: `2026-01-30T06:18:0${second}.000Z` })
  const RUN = [
    {
      type: 'message',
      role: 'user',
      content: 'From the one who starts it',
      ts: '2026-01-30T06:18:00.061682',
    },
    { type: 'init', ...at(1), session_id: '6727b31e', model: 'gemini-3-pro' },
    { type: 'message', ...at(2), role: 'user', content: 'Build the page' },
    {
      type: 'tool_use',
      ...at(3),
      tool_name: 'activate_skill',
      tool_id: 'a-1',
      parameters: { name: 'figma' },
    },
    {
      type: 'tool_result',
      ...at(4),
      tool_id: 'a-1',
      status: 'error',
      output: 'Skill "figma" not found.',
      error: { type: 'invalid_tool_params', message: 'Skill "figma" not found.' },
    },
    {
      type: 'tool_use',
      ...at(5),
      tool_name: 'write_file',
      tool_id: 'w-2',
      parameters: { file_path: 'a.ts' },
    },
    { type: 'tool_result', ...at(6), tool_id: 'w-2', status: 'success' },
    { type: 'message', ...at(7), role: 'assistant', content: 'I have ', delta: true },
    { type: 'message', ...at(8), role: 'assistant', content: 'built it.', delta: true },
    {
      type: 'result',
      ...at(9),
      status: 'success',
      stats: {
        total_tokens: 30,
        input_tokens: 20,
        output_tokens: 10,
        cached: 5,
        duration_ms: 8000,
        tool_calls: 2,
      },
    },
  ]

  it('is a session with calls and their results, an answer in one piece, tokens and an outcome', async () => {
    const again = { type: 'init', ...at(9), session_id: '65b8f8e4', model: 'gemini-3-pro' }
    const records = await recordsOf('run.jsonl', lines(...RUN, again))
    expect(formatOf(records)).toBe('gemini')
    expect(outline(records)).toEqual([
      's1 {"agent":"gemini-cli","model":"gemini-3-pro"}',
      's1 gemini user at 06:18:00',
      's1 gemini user at 06:18:02',
      's1 gemini model at 06:18:03',
      's1 gemini user at 06:18:04',
      's1 gemini model at 06:18:05',
      's1 gemini user at 06:18:06',
      's1 gemini model at 06:18:07',
      's1 otel.span at 06:18:09',
      's1 source.gemini.result (noise) at 06:18:09',
      's1 outcome at 06:18:09',
      's2 {"agent":"gemini-cli","model":"gemini-3-pro"}',
    ])
    const response = (id: string, name: string, said: object) => ({
      role: 'user',
      parts: [{ functionResponse: { id, name, response: said } }],
    })
    expect(blobsIn(records)).toMatchObject([
      {},
      {},
      { parts: [{ functionCall: { id: 'a-1', name: 'activate_skill', args: { name: 'figma' } } }] },
      response('a-1', 'activate_skill', { error: 'Skill "figma" not found.' }),
      {},
      response('w-2', 'write_file', { output: null }),
      { role: 'model', parts: [{ text: 'I have built it.' }] },
    ])
    expect(eventsIn(records)).toMatchObject([
      { usage: { input_tokens: 20, output_tokens: 10, cached_tokens: 5 } },
    ])
    expect(eventsIn(records, 'outcome')).toMatchObject([{ success: true, tool_calls: 2 }])
    expect(tallyOf(records)).toMatchObject({ mapped: 11, refused: 0 })
  })
})

describe('what Cursor writes to its output', () => {
  it('has its calls with their results, of which one failed, and names the agent', async () => {
    const of = { session_id: 'c6b62c6f' }
    const called = (id: string, subtype: string, second: number, tool_call: object) => ({
      type: 'tool_call',
      subtype,
      call_id: id,
      tool_call,
      timestamp_ms: 1_785_578_400_000 + second * 1_000,
      ...of,
    })
    const read = { args: { path: 'a.md' } }
    const shell = { args: { command: 'make' } }
    const log = lines(
      { type: 'system', subtype: 'init', apiKeySource: 'login', cwd: '/w', model: 'auto', ...of },
      { type: 'user', message: { role: 'user', content: [{ type: 'text', text: 'Look' }] }, ...of },
      called('t1', 'started', 1, { readToolCall: read }),
      called('t1', 'completed', 2, { readToolCall: { ...read, result: { success: { content: '# A' } } } }),
      called('t2', 'started', 3, { shellToolCall: shell }),
      called('t2', 'completed', 4, { shellToolCall: { ...shell, result: { failure: { exitCode: 2 } } } }),
      { type: 'result', subtype: 'success', is_error: false, result: 'Done', ...of },
    )
    const records = await recordsOf('run.jsonl', log)
    expect(blobsIn(records).slice(1)).toEqual([
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'read', input: read.args }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '# A' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't2', name: 'shell', input: shell.args }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 't2', content: '{"failure":{"exitCode":2}}', is_error: true },
        ],
      },
    ])
    expect(outline(records)[0]).toBe('s1 {"agent":"cursor","cwd":"/w"}')
    expect(outline(records)).toContain('s1 anthropic assistant at 10:00:03')
  })
})
