import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let tab: Tab
const cells = (region: string, row: string) =>
  tab.page
    .getByRole('region', { name: region })
    .getByRole('row')
    .filter({ has: tab.page.getByRole('rowheader', { name: row }) })
    .getByRole('cell')
    .allInnerTexts()

/** Three sessions: `pay` failed in two of them, `find` in one. */
beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  for (const n of [0, 1, 2]) {
    const configs = { agent: n === 2 ? 'helper' : 'desk', outcome: n === 0 ? 'passed' : 'failed' }
    const log = sessionLog(api, expectOk(await api.createSession({ configs }), 201).id)
    expectOk(await log.add({ role: 'user', content: `Question ${n}` }), 201)
    for (const [name, is_bad] of [
      ['find', n === 0],
      ['pay', n > 0],
    ] as const) {
      const id = `${name}-${n}`
      const tool_calls = [{ id, type: 'function', function: { name, arguments: '{}' } }]
      expectOk(await log.add({ role: 'assistant', content: null, tool_calls }), 201)
      const content = is_bad ? `Error: ${name} is down` : 'done'
      expectOk(await log.add({ role: 'tool', tool_call_id: id, content }), 201)
    }
    expectOk(await log.add({ role: 'assistant', content: `Sorry, answer ${n}` }), 201)
  }
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/activity`)
})

describe.skipIf(!CHROMIUM)(`activity (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('shows which tool failed most, and what the agent said after it', async () => {
    const { page } = tab
    const failed = page.getByRole('region', { name: 'Failed calls of pay' })
    await failed.waitFor()
    // While calls are still being counted, the figures say so.
    await expect.poll(async () => (await cells('Tools', 'pay')).slice(0, 4)).toEqual(['2', '67 %', '3', '3'])
    expect((await cells('Tools', 'find')).slice(0, 4)).toEqual(['1', '33 %', '3', '3'])
    expect(await failed.locator('blockquote').allInnerTexts()).toEqual([
      'Sorry, answer 2 entry 6',
      'Sorry, answer 1 entry 6',
    ])
    expect(await failed.getByText('Error: pay is down').count()).toBe(2)
    expect(await failed.getByText('2 ×').count()).toBe(1)
    await page.getByRole('button', { name: 'find' }).click()
    await page.getByText('Sorry, answer 0').waitFor()
  })

  it('compares agents, by any member of configs', async () => {
    const { page } = tab
    expect((await cells('Agents', 'desk')).slice(0, 3)).toEqual(['1', '50 %', '2'])
    expect((await cells('Agents', 'helper')).slice(0, 3)).toEqual(['1', '100 %', '1'])
    await page.getByLabel('Sessions by').selectOption('outcome')
    await expect.poll(async () => (await cells('Agents', 'passed'))[2]).toBe('1')
    await page.getByRole('link', { name: 'failed', exact: true }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('filter')).toBe('{"outcome":"failed"}')
    await page.goBack()
  })

  it('leads from a failed call to its entry', async () => {
    const { page } = tab
    await page
      .getByRole('region', { name: /^Failed calls/ })
      .getByRole('link', { name: 'Question 0' })
      .click()
    await page.getByRole('region', { name: 'Tool call 1: find' }).waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('marks figures as lower bounds while not all calls are counted', async () => {
    const { page } = tab
    await page.route(/\/tools(?:[/?]|$)/, async (route) => {
      const response = await route.fetch()
      const answer = await response.json()
      await route.fulfill({ response, json: { ...answer, data: { ...answer.data, complete: false } } })
    })
    await page.goto(`${service.node.url}/console/activity?tool=pay`)
    await expect
      .poll(async () => (await cells('Tools', 'pay')).slice(0, 4))
      .toEqual(['≥ 2', '67 %', '≥ 3', '≥ 3'])
    await page.getByText(/pay failed ≥ 2 times/).waitFor()
    await page.unrouteAll()
  })
})
