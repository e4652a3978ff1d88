import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startChat } from '../../examples/chat/server.mjs'
import { tokenFor } from '../harness/access_requests.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, type Tab, useBrowser } from '../harness/browser.ts'
import { type CuttingProxy, cuttingProxy } from '../harness/cutting_proxy.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { expiring } from '../harness/tokens.ts'

const LIFE_S = 3
/** How long the page sleeps at least: ASLEEP_S=600 takes ten minutes. */
const ASLEEP_MS = Number(process.env.ASLEEP_S ?? 0) * 1_000
const PATIENCE = { timeout: 60_000 }
const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let log: Awaited<ReturnType<typeof newSessionLog>>
let proxy: CuttingProxy
let server: Server
let tab: Tab
const ALL = ['read', 'append', 'inbox', 'resolve']
/** What the next tokens of the page allow. */
let scopes = ALL
/** When the tokens expire that the page was given. */
const expiries: number[] = []
const tokens: string[] = []
/** Where the page sent anything. */
const urls: string[] = []

beforeAll(async () => {
  if (!CHROMIUM) return
  const { token } = await service.newProject()
  api = await service.newClient({ token })
  log = await newSessionLog(api)
  proxy = await cuttingProxy(service.node.url)
  const make = async (origin: string) => {
    const long = await tokenFor(api, { session_id: log.id }, scopes, { origin })
    const exp = Math.ceil(Date.now() / 1_000) + LIFE_S
    expiries.push(exp)
    const token = await expiring(service.databaseUrl, long, exp)
    tokens.push(token)
    return { token }
  }
  const chat = await startChat({ url: proxy.url, token, session_id: log.id, port: 0, tokenFor: make })
  server = chat.server
  tab = await browser.open(chat.url)
  tab.page.setDefaultTimeout(30_000)
  tab.page.on('request', (request) => urls.push(request.url()))
})
afterAll(async () => {
  server?.closeAllConnections()
  server?.close()
  await proxy?.close()
})

const shown = () => tab.page.locator('ol li').allInnerTexts()
/** To the processes that draw the browser's pages, as a machine that is closed and opened does. */
async function signal(name: 'SIGSTOP' | 'SIGCONT') {
  const cdp = await tab.page.context().browser()!.newBrowserCDPSession()
  const { processInfo } = await cdp.send('SystemInfo.getProcessInfo')
  for (const { type, id } of processInfo) if (type === 'renderer') process.kill(id, name)
  await cdp.detach()
}
const pending = () => tab.page.locator('ul li').allInnerTexts()
const said = async (content: string) => expectOk(await log.add({ role: 'assistant', content }), 201)
const say = async (text: string) => {
  await tab.page.getByLabel('Message').fill(text)
  await tab.page.getByRole('button', { name: 'Send' }).click()
}
/** What the page shows is the log: each entry once, in order. */
async function expectLog(last: string) {
  await expect.poll(async () => (await shown()).at(-1), PATIENCE).toContain(last)
  const { items } = expectOk(
    await api.request<{ items: Array<{ seq: number }> }>(
      'GET',
      `/api/v1/session/${log.id}/timeline?limit=1000`,
    ),
  )
  expect(
    await tab.page.locator('ol li').evaluateAll((all) => all.map((one) => one.getAttribute('value'))),
  ).toEqual(items.map(({ seq }) => String(seq)))
}

describe.skipIf(!CHROMIUM)(
  `a chat page (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`,
  { timeout: 240_000 + ASLEEP_MS },
  () => {
    it('shows what is there and what comes, also past the life of its tokens', async () => {
      await said('first')
      await expectLog('first')
      await say('hello')
      await expectLog('user: hello')
      expect(await pending()).toEqual([])
      await vi.waitFor(() => expect(expiries.length).toBeGreaterThan(2), PATIENCE)
      await said('still here')
      await expectLog('still here')
    })

    it('keeps what is said without a network, and stores it once and in order', async () => {
      proxy.cutOff(true)
      await say('offline one')
      await say('offline two')
      await said('meanwhile')
      await expect
        .poll(pending, PATIENCE)
        .toEqual([
          expect.stringContaining('offline one (sending)'),
          expect.stringContaining('offline two (sending)'),
        ])
      await expect.poll(() => tab.page.getByRole('status').innerText(), PATIENCE).toContain('offline')
      proxy.cutOff(false)
      await expectLog('offline two')
      await expect.poll(pending, PATIENCE).toEqual([])
      expect((await shown()).slice(-3)).toEqual([
        'assistant: meanwhile',
        'user: offline one',
        'user: offline two',
      ])
    })

    it('goes on where it was after a sleep that was longer than its token lived', async () => {
      await signal('SIGSTOP')
      const asleep = expiries.length
      const last = expiries.at(-1)!
      await said('while it slept 1')
      await sleep(ASLEEP_MS)
      await vi.waitFor(() => expect(Date.now()).toBeGreaterThan((last + 1) * 1_000), PATIENCE)
      for (const n of [2, 3, 4]) await said(`while it slept ${n}`)
      expect(expiries).toHaveLength(asleep)
      await signal('SIGCONT')
      await said('awake')
      await expectLog('awake')
    })

    it('shows why an entry was refused, and sends it again', async () => {
      const another = async () => {
        const given = expiries.length
        await vi.waitFor(() => expect(expiries.length).toBeGreaterThan(given), PATIENCE)
      }
      scopes = ['read']
      await another()
      await say('not yet')
      await expect.poll(pending, PATIENCE).toEqual([expect.stringMatching(/^not yet \(failed\) .*"append"/)])
      scopes = ALL
      await another()
      await tab.page.getByRole('button', { name: 'Try again' }).click()
      await expectLog('user: not yet')
      expect(await pending()).toEqual([])
    })

    it('asks what a runner asks, until somebody has answered', async () => {
      const body = { kind: 'approval', text: 'Shall I book?', call: { name: 'book', arguments: {} } }
      expectOk(await api.request('POST', `/api/v1/session/${log.id}/requests`, { body }), 201)
      await tab.page.getByText('Shall I book?').waitFor()
      await tab.page.getByRole('button', { name: 'Yes' }).click()
      await expect.poll(() => tab.complaints.filter((one) => one.startsWith('error'))).toEqual([])
      await expect.poll(() => tab.page.getByText('Shall I book?').count()).toBe(0)
      await expectLog('annals.resolution')
      expect(tab.complaints.filter((one) => !/^(?:request|console): /.test(one))).toEqual([])
      expect(urls.length).toBeGreaterThan(10)
      expect(urls.filter((url) => tokens.some((token) => url.includes(token)))).toEqual([])
    })
  },
)
