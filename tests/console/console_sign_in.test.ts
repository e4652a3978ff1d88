import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnnalsServer, runAnnals, startServer } from '../harness/annals_process.ts'
import { CHROMIUM, NO_BROWSER, useBrowser } from '../harness/browser.ts'
import { consoleHeaders, signInToConsole } from '../harness/console_session.ts'
import { watchEventLoop } from '../harness/event_loop_watch.ts'
import { httpClient } from '../harness/http_client.ts'
import { readRawAnswer, sendRaw } from '../harness/raw_connection.ts'

const browser = useBrowser()
const watch = watchEventLoop()
let directory: string
let node: AnnalsServer
const links: string[] = []

const start = async () => {
  node = await startServer({ ANNALS_DATA_DIR: join(directory, 'data'), ...watch.env })
  const link = /(http:\S+\/console)#code=(\S+)/.exec(node.lines.join('\n'))
  expect(link, node.lines.join('\n')).not.toBeNull()
  links.push(link![2]!)
}

const exchange = (code: string) => {
  const client = httpClient(node.url)
  return signInToConsole(client, { code }).finally(() => client.close())
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-console-'))
  await start()
})

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

  it('signs in once: of many who bring the code at once, one gets a session, and it opens the project', async () => {
    const tried = await Promise.all(Array.from({ length: 8 }, () => exchange(links[0]!)))
    const won = tried.filter(({ answer }) => answer.status === 200)
    expect(won).toHaveLength(1)
    expect(tried.filter(({ answer }) => answer.status === 401)).toHaveLength(7)
    const client = httpClient(node.url)
    const { answer, session } = won[0]!
    const headers = consoleHeaders(session.cookie, answer.json.data.project_id)
    const listed = await client.request('GET', '/console/api/v1/session', { headers })
    client.close()
    expect(listed.status).toBe(200)
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
  )

  it.skipIf(!CHROMIUM)(
    `can be had anew from \`annals console\`, and holds in every tab, without a key in reach of scripts (${CHROMIUM ? 'here' : NO_BROWSER})`,
    async () => {
      const printed = await runAnnals(['console'], { ANNALS_DATA_DIR: join(directory, 'data') })
      expect(printed.stdout).toMatch(new RegExp(`^${node.url}/console#code=[\\w-]{43}$`))
      const { page, complaints } = await browser.open(printed.stdout)
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      const another = await page.context().newPage()
      await another.goto(`${node.url}/`)
      await another.getByRole('table', { name: 'Sessions' }).waitFor()
      expect(new URL(another.url()).pathname).toBe('/console')
      const reachable = 'document.cookie + JSON.stringify({ ...sessionStorage, ...localStorage })'
      expect(await another.evaluate(reachable)).not.toMatch(/sk-|code/)
      await page.getByRole('button', { name: /^Project / }).click()
      await page.getByRole('button', { name: /^Sign out/ }).click()
      await page.getByLabel('API key').waitFor()
      await another.reload()
      await another.getByLabel('API key').waitFor()
      expect(complaints).toEqual([])
    },
  )
})

describe('a caller without a key who signs in', () => {
  it.each([
    ['a field', '', 1_000_000],
    ['a parameter', `?a${'+'.repeat(14_000)}b=1`, 2],
  ])('holds the event loop for 20 ms at most, whatever the name of %s', async (what, query, length) => {
    const body = JSON.stringify({ [`a${' '.repeat(length)}b`]: 1 })
    const head = [
      `POST /console/sign_in${query} HTTP/1.1`,
      `Host: ${new URL(node.url).host}`,
      'X-Annals-Console: none',
      'Connection: close',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ]
    // A body that is too large is cut off, which may take the answer with it.
    await watch.check(what, async () =>
      readRawAnswer(await sendRaw(node.url, [...head, '', body].join('\r\n'))),
    )
    expect(watch.noted().join('\n')).toBe('')
  })
})
