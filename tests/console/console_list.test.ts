import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
const LONG = 'Lost luggage in Oslo, a brown suitcase with two wheels and a tag of the hotel'
const TITLES = ['Refund of a kettle', 'A seat by the window', LONG]

const titles = () =>
  tab.page
    .locator('.sessions-table .row-link')
    .evaluateAll((links) => links.map((link) => link.lastChild?.textContent))
const parameter = (name: string) => new URL(tab.page.url()).searchParams.get(name)
const row = (title: string) => tab.page.getByRole('row').filter({ hasText: title })

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  for (const [index, content] of TITLES.entries()) {
    const configs = { outcome: index === 1 ? 'passed' : 'failed', agent: 'desk' }
    const log = sessionLog(api, expectOk(await api.createSession({ user: `user-${index}`, configs }), 201).id)
    expectOk(await log.add({ role: 'user', content }), 201)
    const found = { name: 'find', arguments: {}, result: index === 0 ? 'Error: no such order' : 'found' }
    for (let call = 0; call <= index; call++)
      expectOk(await log.addEvent('tool_call', { ...found, id: `c${call}` }))
  }
  tab = await browser.open(`${service.node.url}/console`, { width: 1600 })
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`the list of sessions (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('names each session by what was asked, with its entries, calls and failures', async () => {
    await expect.poll(titles).toEqual(TITLES.toReversed())
    const first = row(TITLES[0]!)
    await expect.poll(() => first.locator('.is-entries').innerText()).toMatch(/^2/)
    expect(await first.locator('.is-calls').innerText()).toBe('1')
    expect(await first.locator('.is-failures').innerText()).toBe('1')
    expect(await row(TITLES[2]!).locator('.is-failures').innerText()).toBe('–')
    expect(await row(TITLES[2]!).locator('.is-calls').innerText()).toBe('3')
  })

  it('cuts a long title off at its end, within its cell', async () => {
    const cell = row(LONG).locator('.cell-id')
    expect(await cell.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0)
    const link = cell.locator('.row-link')
    expect(await link.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)).toBe(true)
  })

  it('offers values that sessions share, and no ids that each has for itself; a phone sees what failed, too', async () => {
    const own = await service.newProject()
    const api = await service.newClient({ token: own.token })
    const failed = { name: 'find', arguments: {}, result: 'Error: no such order', id: 'c1' }
    for (const [run_id, agent] of ['coder', 'coder', 'critic'].entries()) {
      const { id } = expectOk(await api.createSession({ configs: { agent, run_id: `r${run_id}` } }), 201)
      if (agent === 'critic') expectOk(await sessionLog(api, id).addEvent('tool_call', failed))
    }
    const { page } = await browser.open(`${service.node.url}/console`, { width: 390 })
    await signIn(page, own.token)
    await expect.poll(() => page.locator('.is-failures.is-bad').allInnerTexts()).toEqual(['1 failed'])
    await page.getByText('Filter').click()
    const values = page.getByRole('group', { name: 'Values in this list' }).getByRole('button')
    expect(await values.allInnerTexts()).toEqual(['agent coder 2', 'agent critic 1'])
  })

  it('splits the chart by outcome', async () => {
    await tab.page.getByRole('img', { name: /3 sessions, 2 failed, 1 passed, by [\w.]+$/ }).waitFor()
  })

  it('shows the columns that were chosen, also to whoever opens the address', async () => {
    const { page } = tab
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('Tokens').uncheck()
    await page.getByLabel('Last activity').check()
    await page.keyboard.press('Escape')
    await page.getByRole('columnheader', { name: 'Last activity' }).waitFor()
    await page.reload()
    await page.getByRole('columnheader', { name: 'Last activity' }).waitFor()
    expect(await page.getByRole('columnheader', { name: 'Tokens' }).count()).toBe(0)
  })

  it('keeps a view under a name, and leads back to it', async () => {
    const { page } = tab
    await row(TITLES[1]!).getByRole('button', { name: 'passed', exact: true }).click()
    await expect.poll(titles).toEqual([TITLES[1]])
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('button', { name: 'Save this view…' }).click()
    await page.getByLabel('Name').fill('What passed')
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click()
    await page.goto(`${service.node.url}/console/sessions`)
    await expect.poll(titles).toHaveLength(3)
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('button', { name: 'What passed' }).click()
    await expect.poll(titles).toEqual([TITLES[1]])
    expect(parameter('columns')).toContain('activity')
  })

  it('shows only sessions of a time range, in either order', async () => {
    const { page } = tab
    const sessions = expectOk(await api.listSessions({})).items
    const [from, to] = [sessions[1]!.created_at, sessions[2]!.created_at].map(encodeURIComponent)
    const ms = (at: string) => Date.parse(at)
    // The address has milliseconds; sessions made within one cannot be told apart.
    expect(new Set(sessions.map(({ created_at }) => ms(created_at))).size).toBe(3)
    for (const order of ['newest', 'oldest']) {
      await page.goto(`${service.node.url}/console/sessions?from=${from}&to=${to}&order=${order}`)
      await expect.poll(titles).toEqual([TITLES[1]])
    }
    await page.goto(`${service.node.url}/console/sessions`)
    await page.getByRole('combobox', { name: 'Created' }).selectOption('Last 24 hours')
    expect(parameter('last')).toBe('24h')
    await expect.poll(titles).toHaveLength(3)
    await page.goto(`${service.node.url}/console/sessions?to=2020-01-01T00:00:00Z`)
    await page.getByRole('heading', { name: 'No session matches this filter' }).waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('shows and counts outcomes in the words of the project', async () => {
    const { project_id } = expectOk(await api.createSession({ configs: { exit_status: 'submitted' } }), 201)
    const outcomes = { submitted: 'passed', desk: 'failed' }
    const path = `/admin/v1/projects/${project_id}`
    expectOk(await service.adminClient().request('PATCH', path, { body: { outcomes } }))
    await tab.page.goto(`${service.node.url}/console/sessions`)
    await tab.page.locator('.outcome.is-passed', { hasText: 'submitted' }).waitFor()
    expect(tab.complaints).toEqual([])
  })
})
