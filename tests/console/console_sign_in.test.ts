import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnnalsServer, startServer } from '../harness/annals_process.ts'
import { CHROMIUM, NO_BROWSER, useBrowser } from '../harness/browser.ts'
import { httpClient } from '../harness/http_client.ts'

const START_MS_MAX = 60_000
const browser = useBrowser()
let directory: string
let node: AnnalsServer
const links: string[] = []

const start = async () => {
  node = await startServer({ ANNALS_DATA_DIR: join(directory, 'data') })
  const link = /(http:\S+\/console)#code=(\S+)/.exec(node.lines.join('\n'))
  expect(link, node.lines.join('\n')).not.toBeNull()
  links.push(link![2]!)
}

const exchange = (code: string, headers: Record<string, string> = {}) => {
  const client = httpClient(node.url)
  return client
    .request<{ token: string }>('POST', '/console/sign_in', { body: { code }, headers })
    .finally(() => client.close())
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-console-'))
  await start()
}, START_MS_MAX)

afterAll(async () => {
  await node?.stop()
  await rm(directory, { recursive: true, force: true })
})

describe('the link that the start of an embedded service prints', () => {
  it('carries a code that is no API key', async () => {
    const client = httpClient(node.url, links[0]!)
    const answer = await client.request('GET', '/api/v1/session').finally(() => client.close())
    expect([401, 403]).toContain(answer.status)
  })

  it('is refused under a name that is not this machine’s', async () => {
    expect((await exchange(links[0]!, { host: 'annals.example:8029' })).status).toBe(401)
  })

  it('signs in once: of many who bring the code at once, one gets a key, and it opens the project', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(links[0]!)))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(7)
    const client = httpClient(node.url, (won[0]!.json.data as { token: string }).token)
    expect((await client.request('GET', '/api/v1/session')).status).toBe(200)
    expect((await client.request('POST', '/console/data/sign_out')).status).toBe(200)
    client.close()
  })

  it('is not in the log', () => {
    expect(node.logLines.join('\n')).not.toContain(links[0])
  })

  it.skipIf(!CHROMIUM)(
    `opens the console with one click, and leaves no code in the address (${CHROMIUM ? 'here' : NO_BROWSER})`,
    async () => {
      await node.stop()
      await start()
      const { page, complaints } = await browser.open(`${node.url}/console#code=${links[1]}`)
      await page.getByRole('heading', { name: 'No sessions yet' }).waitFor()
      expect(page.url()).toBe(`${node.url}/console`)
      await page.getByRole('button', { name: 'Load the demo' }).click()
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      await page.getByRole('button', { name: 'failed', exact: true }).first().waitFor()
      expect(complaints).toEqual([])
      await page.goto(`${node.url}/console?again#code=${links[1]}`)
      await page.getByRole('alert').filter({ hasText: 'has been used' }).waitFor()
    },
    START_MS_MAX,
  )
})
