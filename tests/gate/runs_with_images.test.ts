import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { type AgentRun, agentRuns } from '../harness/agent_runs.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { newBytes } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { queryRows } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

/** The runs that are sent: the gate's thorough run takes more. */
const RUNS = IS_THOROUGH ? 150 : 4
const FORMATS = ['anthropic', 'gemini', 'responses', 'acontext']
const service = useSharedService()
let api: ApiClient

beforeAll(async () => {
  api = await service.newClient()
})

type Said = Record<string, unknown>

/** The run with an image in every other message of its user, each longer than what stays in a message. */
function withImages(run: AgentRun): { messages: Said[]; images: string[] } {
  const images: string[] = []
  const messages = (run.messages as Said[]).map((message, index) => {
    if (message.role !== 'user' || (index % 4 === 3 && images.length > 0)) return message
    const data = newBytes(25_000 + 7 * index).toString('base64')
    images.push(data)
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
    return { ...message, content: [{ type: 'text', text: message.content }, image] }
  })
  return { messages, images }
}

async function store(messages: Said[], format: string): Promise<SessionLog> {
  const log = await newSessionLog(api)
  expectOk(await log.batch(messages.map((blob) => ({ kind: 'message', format, blob }))), 201)
  return log
}

const read = async (log: SessionLog, format: string) => expectOk(await log.list({ format })).items

/** What a message says in a format, apart from what the service adds to whole messages. */
const said = (format: string, items: Said[]) =>
  format === 'acontext' ? items.map(({ role, parts }) => ({ role, parts })) : items

describe('a recorded run with images', () => {
  it('comes back as it was sent, in every format that it is written and read in', {
    timeout: 600_000,
  }, async () => {
    for (const run of agentRuns(RUNS)) {
      const { messages, images } = withImages(run)
      const log = await store(messages, 'openai')
      expect(isDeepStrictEqual(await read(log, 'openai'), messages)).toBe(true)
      const [stored] = await queryRows(
        service.databaseUrl,
        'SELECT max(length(data::text))::int AS longest, count(*)::int AS entries FROM entries WHERE session_id = $1',
        [log.id],
      )
      expect(stored!.entries).toBe(messages.length)
      expect(Number(stored!.longest)).toBeLessThan(30_000)
      for (const format of FORMATS) {
        const items = said(format, await read(log, format))
        const text = JSON.stringify(items)
        for (const data of images) expect(text.split(data).length, format).toBe(2)
        const own = await store(items, format)
        expect(isDeepStrictEqual(said(format, await read(own, format)), items), format).toBe(true)
        const back = JSON.stringify(await read(own, 'openai'))
        for (const data of images) expect(back.split(data).length, format).toBe(2)
      }
    }
  })
})
