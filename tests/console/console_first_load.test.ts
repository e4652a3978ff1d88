import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { addDemoSessions } from '../harness/demo_sessions.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const FIRST_LOAD_BYTES_MAX = 280_000
const SESSIONS = 50
const service = useSharedService()
const browser = useBrowser()
let tab: Tab

async function fill(api: ApiClient): Promise<void> {
  await addDemoSessions(service, api)
  for (let index = 0; index < SESSIONS; index++) {
    const configs = { agent: 'desk', outcome: index % 2 ? 'solved' : 'failed', attempt: index }
    const session = expectOk(await api.createSession({ user: `user-${index % 7}@example.com`, configs }), 201)
    const content = `Please look at order ${index * 37} again: it has not arrived, and nobody answers.`
    expectOk(await sessionLog(api, session.id).add({ role: 'user', content }), 201)
  }
}

/** The bytes of each request of the page as somebody opens it who never did, as the browser's network log counts them. */
async function openAnew({ page }: Tab): Promise<Map<string, number>> {
  const address = page.url()
  // Ends the requests of the page before.
  await page.goto('about:blank')
  const protocol = await page.context().newCDPSession(page)
  const urls = new Map<string, string>()
  const bytes = new Map<string, number>()
  protocol.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url))
  protocol.on('Network.loadingFinished', ({ requestId, encodedDataLength }) =>
    bytes.set(`${requestId} ${urls.get(requestId)}`, encodedDataLength),
  )
  await protocol.send('Network.enable')
  await protocol.send('Network.clearBrowserCache')
  await page.goto(address)
  await untilRead(page)
  return bytes
}

/** Until the figures of the sessions are there, and all that was asked for. */
async function untilRead(page: Tab['page']): Promise<void> {
  await page.locator('.sessions-table .is-entries', { hasText: /\d/ }).first().waitFor()
  await page.waitForLoadState('networkidle')
}

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  await fill(await service.newClient({ token: project.token }))
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  // The calls of new sessions are counted.
  await untilRead(tab.page)
})

describe.skipIf(!CHROMIUM)(`the first load (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it(`takes at most ${FIRST_LOAD_BYTES_MAX / 1000} kB, its data included, of a project with the demo and ${SESSIONS} sessions`, async () => {
    const loaded = await openAnew(tab)
    const urls = [...loaded.keys()].join('\n')
    for (const part of [/\.js$/m, /\.css$/m, /\.woff2$/m, /\/session\?/, /\/figures\?/])
      expect(urls).toMatch(part)
    const bytes = [...loaded.values()].reduce((sum, length) => sum + length, 0)
    expect(bytes, urls).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX)
  })
})
