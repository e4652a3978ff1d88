import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { execute, queryRows } from '../harness/sql.ts'

const service = useSharedService()
let project: Project
let api: ApiClient

beforeAll(async () => {
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
})

interface Context {
  items: Array<{ role: string; content: unknown }>
  tokens: number
}
const contextOf = async (log: SessionLog, query: Record<string, string | number>) =>
  expectOk(await api.request<Context>('GET', `/api/v1/session/${log.id}/context`, { query }))

const WORDS = 'word '.repeat(400)
const message = (blob: object) => ({ kind: 'message', format: 'anthropic', blob })

describe('tokens', () => {
  it('of the results of MCP tools cut a context as others do', async () => {
    const log = await newSessionLog(api)
    for (let n = 0; n < 20; n++) {
      const content = [
        { type: 'mcp_tool_use', id: `m${n}`, name: 'q', server_name: 's', input: {} },
        {
          type: 'mcp_tool_result',
          tool_use_id: `m${n}`,
          is_error: false,
          content: [{ type: 'text', text: WORDS }],
        },
        { type: 'text', text: 'ok' },
      ]
      expectOk(
        await log.batch([
          message({ role: 'user', content: `go ${n}` }),
          message({ role: 'assistant', content }),
        ]),
        201,
      )
    }
    const { items, tokens } = await contextOf(log, { format: 'anthropic', max_tokens: 1_000 })
    expect(items.length).toBeLessThan(6)
    expect(tokens).toBeLessThanOrEqual(1_000)
    const counts = expectOk(await log.tokens())
    expect(counts.total_tokens).toBeGreaterThan(8_000)
    expect(counts).toMatchObject({ counted: 'all' })
  })

  it('of a large image are those of its size, which its blob has', async () => {
    const log = await newSessionLog(api)
    const bytes = newBytes(60_000)
    bytes.write('\x89PNG\r\n\x1a\n', 'latin1')
    bytes.writeUInt32BE(1_000, 16)
    bytes.writeUInt32BE(1_000, 20)
    const source = { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') }
    expectOk(await log.batch([message({ role: 'user', content: [{ type: 'image', source }] })]), 201)
    expect(expectOk(await log.tokens()).total_tokens).toBe(1_334)
  })

  it.each(['anthropic', 'acontext'])(
    'are saved where results that are only images are cleared: %s',
    async (format) => {
      const log = await newSessionLog(api)
      const image = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
      for (let n = 0; n < 4; n++) {
        const id = `toolu_${n}`
        const call = { type: 'tool_use', id, name: 'computer', input: { action: 'screenshot' } }
        const result = { type: 'tool_result', tool_use_id: id, content: [{ type: 'image', source: image }] }
        const parts = [
          { type: 'tool-result', text: '', meta: { tool_call_id: id } },
          { type: 'image', text: null, meta: { ...image, tool_call_id: id } },
        ]
        const answer = format === 'acontext' ? { role: 'user', parts } : { role: 'user', content: [result] }
        expectOk(await log.add({ role: 'assistant', content: [call] }, { format: 'anthropic' }), 201)
        expectOk(await log.add(answer, { format }), 201)
      }
      const whole = await contextOf(log, { format: 'anthropic' })
      const { items, tokens } = await contextOf(log, { format: 'anthropic', keep_tool_results: 1 })
      const text = JSON.stringify(items)
      expect(text.split('iVBORw0KGgo=')).toHaveLength(2)
      expect(text.match(/\[result cleared: seq \d+, 0 characters, 1 attachment\]/g)).toHaveLength(3)
      expect(tokens).toBeLessThan(whole.tokens - 3_000)
      const edit_strategies = JSON.stringify([
        { type: 'remove_tool_result', params: { keep_recent_n_tool_results: 1 } },
      ])
      const page = expectOk(await log.list({ format: 'anthropic', edit_strategies }))
      expect(JSON.stringify(page.items).split('iVBORw0KGgo=')).toHaveLength(2)
    },
  )

  it('of an earlier version are recounted in the background, and the count says so until then', {
    timeout: 120_000,
  }, async () => {
    const earlier = await service.newProject()
    const client = await service.newClient({ token: earlier.token })
    const logs = [await newSessionLog(client), await newSessionLog(client)]
    const thought = { type: 'thinking', thinking: WORDS, signature: 's' }
    const said = message({ role: 'assistant', content: [thought, { type: 'text', text: 'ok' }] })
    for (const log of logs) for (let n = 0; n < 4; n++) expectOk(await log.batch(Array(90).fill(said)), 201)
    expectOk(
      await client.request('POST', `/api/v1/session/${logs[0]!.id}/retractions`, { body: { last: 5 } }),
      200,
    )
    const totals = async () => Promise.all(logs.map(async (log) => expectOk(await log.tokens())))
    const counted = await totals()
    const own = [earlier.id]
    const database = service.databaseUrl
    await execute(database, 'UPDATE entries SET tokens = 1 WHERE project_id = $1 AND kind = $2', [
      ...own,
      'message',
    ])
    await execute(
      database,
      `UPDATE session_heads h SET total_tokens = (SELECT count(*) FROM entries e
        WHERE e.project_id = $1 AND e.session_id = h.session_id AND e.kind = 'message' AND e.retracted_by IS NULL)
       WHERE h.project_id = $1`,
      own,
    )
    await execute(
      database,
      `INSERT INTO token_recounts (project_id, session_id, seq, leased_until)
       VALUES ($1, '00000000-0000-0000-0000-000000000000', 0, 'infinity')`,
      own,
    )
    expect(await totals()).toEqual([355, 360].map((total_tokens) => ({ total_tokens, counted: 'text' })))
    await execute(database, 'UPDATE token_recounts SET leased_until = now() WHERE project_id = $1', own)
    await vi.waitFor(async () => expect(await totals()).toEqual(counted), { timeout: 90_000 })
    const left = await queryRows(
      database,
      "SELECT count(*) FROM entries WHERE project_id = $1 AND kind = 'message' AND tokens = 1",
      own,
    )
    expect(left[0]).toEqual({ count: '0' })
  })
})

describe('bytes', () => {
  const data = newBytes(1_200_000).toString('base64')
  const safe = data.replaceAll('+', '-').replaceAll('/', '_')
  it.each<[string, string, object]>([
    [
      'of a PDF that the model fetched',
      'anthropic',
      {
        role: 'assistant',
        content: [
          {
            type: 'web_fetch_tool_result',
            tool_use_id: 'srvtoolu_1',
            content: {
              type: 'web_fetch_result',
              url: 'https://example.com/a.pdf',
              content: { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } },
            },
          },
        ],
      },
    ],
    [
      'of a picture that code drew',
      'responses',
      {
        type: 'code_interpreter_call',
        id: 'ci_1',
        container_id: 'c',
        code: 'plot()',
        status: 'completed',
        outputs: [{ type: 'image', url: `data:image/png;base64,${data}` }],
      },
    ],
    ['of what an MCP server returned', 'responses', { type: 'mcp_call', id: 'm', name: 'q', output: data }],
    [
      'of a picture that OpenRouter has beside the text',
      'openai',
      {
        role: 'assistant',
        content: 'Here.',
        images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }],
      },
    ],
    [
      'of a video',
      'openai',
      { role: 'user', content: [{ type: 'video_url', video_url: { url: `data:video/mp4;base64,${data}` } }] },
    ],
    [
      'of a signature, which is as long as its picture,',
      'gemini',
      { role: 'model', parts: [{ text: 'Here.', thoughtSignature: data }] },
    ],
    [
      'of encrypted reasoning',
      'responses',
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: safe },
    ],
    [
      'of redacted thinking',
      'anthropic',
      { role: 'assistant', content: [{ type: 'redacted_thinking', data }] },
    ],
    [
      'of a signature that OpenRouter has beside the text',
      'openai',
      { role: 'assistant', content: 'Here.', reasoning_details: [{ type: 'reasoning.encrypted', data }] },
    ],
    [
      'in the URL-safe alphabet',
      'gemini',
      { role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: safe } }] },
    ],
    [
      'in the URL-safe alphabet without padding',
      'gemini',
      { role: 'user', parts: [{ inline_data: { mime_type: 'image/png', data: `${safe}-w` } }] },
    ],
  ])('%s do not count as text of the body, and come back to the character', async (_, format, blob) => {
    const log = await newSessionLog(api)
    const added = await log.add(blob, { format })
    expectOk(added, 201)
    expect(added.text.length).toBeLessThan(3_000)
    expect(isDeepStrictEqual(expectOk(await log.list({ format })).items, [blob])).toBe(true)
    const [item] = expectOk(await log.timeline()).items
    expect(isDeepStrictEqual(item!.blob, blob)).toBe(true)
    if (!JSON.stringify(blob).includes('inline_data')) return
    const [converted] = expectOk(await log.list({ format: 'anthropic' })).items
    const [{ source }] = converted!.content as [{ source: { data: string } }]
    const sent = JSON.stringify(blob).includes(`${safe}-w`) ? `${data}+w==` : data
    expect(source.data === sent).toBe(true)
  })
})
