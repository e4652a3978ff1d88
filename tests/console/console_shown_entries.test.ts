import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let tab: Tab
let api: ApiClient
let token: string

async function signInHere(page: Tab['page']): Promise<void> {
  await page.getByLabel('API key').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** A question, two calls of which the second fails after 14 events of progress, and an answer. */
beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  token = project.token
  api = await service.newClient({ token })
  const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
  const at = (minute: number) => ({ occurred_at: `2026-01-01T09:0${minute}:00Z` })
  const event = (type: string, data: object) => ({ kind: 'event', type, data })
  const entries = [
    { kind: 'message', blob: { role: 'user', content: 'Pay it.' }, ...at(0) },
    { ...event('tool_call', { name: 'find', call_id: 'a', arguments: {} }), ...at(1) },
    { ...event('tool_result', { call_id: 'a', result: 'found' }), ...at(2) },
    {
      ...event('tool_call', { name: 'pay', call_id: 'b', arguments: { amount: 1, command: 'npm run pay' } }),
      ...at(4),
    },
    ...Array.from({ length: 14 }, (_, n) => event('progress', { n })),
    event('tool_result', { call_id: 'b', result: 'Error: no money' }),
    { kind: 'message', blob: { role: 'assistant', content: 'There is no money.' } },
    event('source.codex.turn_context', { raw: { cwd: '/src' }, noise: true }),
  ]
  expectOk(await log.batch(entries), 201)
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${log.id}`)
})

describe.skipIf(!CHROMIUM)(`a log (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  const rows = () => tab.page.getByRole('article').evaluateAll((all) => all.map((row) => row.ariaLabel))
  const entries = (...seqs: number[]) => seqs.map((seq) => `Entry ${seq}`)

  it('folds many events of one type in a row, and shows them when they are asked for', async () => {
    const timeline = tab.page.getByRole('region', { name: 'Timeline' })
    const fold = timeline.getByRole('button', { name: '14 × progress' })
    await fold.waitFor()
    expect(await rows()).toEqual(entries(1, 2, 4, 20))
    await timeline.getByRole('button', { name: '1 × turn_context' }).waitFor()
    // Noise has no line in the outline, which names what a call is about.
    const outline = tab.page.getByRole('navigation', { name: 'Tool calls' })
    await outline.getByRole('button', { name: /pay.*npm run pay/ }).waitFor()
    expect(await outline.getByText('progress').count()).toBe(0)
    await fold.click()
    await tab.page.getByRole('article', { name: 'Entry 6' }).waitFor()
  })

  it('folds events that follow each other among those that are shown', async () => {
    const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
    const noise = { kind: 'event', type: 'source.codex.token_count', data: { noise: true } }
    const said = { kind: 'message', blob: { role: 'user', content: 'Go on.' } }
    const other = { ...noise, type: 'source.codex.turn_context' }
    expectOk(await log.batch([noise, said, noise, other, said, noise]), 201)
    const { page } = await browser.open(`${service.node.url}/console/sessions/${log.id}?show=events`)
    await signInHere(page)
    const timeline = page.getByRole('region', { name: 'Timeline' })
    await timeline.getByRole('button', { name: '3 × token_count, 1 × turn_context' }).waitFor()
    await page.goto(`${service.node.url}/console/sessions/${log.id}`)
    await expect.poll(() => timeline.getByRole('button', { name: '1 × token_count' }).count()).toBe(3)
    await timeline.getByRole('button', { name: '1 × token_count, 1 × turn_context' }).waitFor()
  })

  it('names a pause only where nothing is left out before it', async () => {
    const { page } = tab
    const pay = page.getByRole('article', { name: 'Entry 4' })
    await pay.getByText('2 min 0 s later').waitFor()
    await page.getByLabel('Show').selectOption('Failed calls')
    await expect.poll(rows).toEqual(entries(4))
    expect(await pay.getByText('later').count()).toBe(0)
    await page.getByLabel('Show').selectOption('Everything')
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
  })

  it('shows messages, calls, failed calls or events alone', async () => {
    const { page } = tab
    for (const [name, seqs] of [
      ['Messages', [1, 20]],
      ['Tool calls', [2, 4]],
      ['Failed calls', [4]],
    ] as const) {
      await page.getByLabel('Show').selectOption(name)
      await expect.poll(rows).toEqual(entries(...seqs))
    }
    expect(new URL(page.url()).searchParams.get('show')).toBe('failed')
    await page.getByLabel('Show').selectOption('Everything')
    await page.getByRole('article', { name: 'Entry 6' }).waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('numbers calls and counts failures where the entries above are not loaded', async () => {
    const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
    const call = (n: number) => ({
      kind: 'event',
      type: 'tool_call',
      data: { id: `c${n}`, name: 'step', arguments: {}, result: n % 100 === 0 ? 'Error: no' : 'ok' },
    })
    for (let from = 0; from < 3_500; from += 500)
      expectOk(await log.batch(Array.from({ length: 500 }, (_, n) => call(from + n + 1))), 201)
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${log.id}?seq=3450`)
    await page.getByRole('region', { name: 'Tool call 3450: step' }).waitFor()
    const outline = page.getByRole('navigation', { name: 'Tool calls' })
    await expect.poll(() => outline.locator('h2').innerText()).toBe('Tool calls 3,500')
    await outline.getByText('Failed only 35').waitFor()
  })
})
