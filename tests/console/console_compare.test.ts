import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let project: Project
let tab: Tab

/** Two runs of one task: one looks the order up and pays, the other pays the wrong order, which fails. */
beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  for (const is_good of [true, false]) {
    const configs = {
      title: is_good ? 'The good run' : 'The bad run',
      outcome: is_good ? 'passed' : 'failed',
    }
    const log = sessionLog(api, expectOk(await api.createSession({ configs }), 201).id)
    const call = async (name: string, given: object, content: string) => {
      const tool_calls = [
        { id: name, type: 'function', function: { name, arguments: JSON.stringify(given) } },
      ]
      expectOk(await log.add({ role: 'assistant', content: null, tool_calls }), 201)
      expectOk(await log.add({ role: 'tool', tool_call_id: name, content }), 201)
    }
    expectOk(await log.add({ role: 'user', content: 'Refund my kettle' }), 201)
    if (is_good) await call('look_up', { item: 'kettle' }, 'order 7')
    await call('refund', { order: is_good ? 7 : 8 }, is_good ? 'done' : 'Error: no such order')
    expectOk(await log.add({ role: 'assistant', content: `Your refund ${is_good ? 'is' : 'has'} paid` }), 201)
  }
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`comparing sessions (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('begins by selecting two in the list', async () => {
    const { page } = tab
    await page.getByRole('checkbox', { name: 'Compare The good run' }).check()
    await page.getByText('Select one more session to compare').waitFor()
    await page.getByRole('checkbox', { name: 'Compare The bad run' }).check()
    await page.getByRole('link', { name: 'Compare', exact: true }).click()
    await page.getByRole('heading', { name: 'Compare', exact: true }).waitFor()
  })

  it('puts messages and calls that belong together side by side, and marks what differs', async () => {
    const { page } = tab
    await page.getByText('3 of 4 steps differ').waitFor()
    const heads = page.locator('.compared-row.is-head').getByRole('link')
    await expect.poll(() => heads.allInnerTexts()).toEqual(['The good run', 'The bad run'])
    const parting = page.getByRole('region', { name: 'Where they part' })
    expect((await parting.innerText()).replaceAll(/\s+/g, ' ')).toBe(
      'The first step is the same: then left calls look_up (entry 2); right has nothing here 1 call only on the left 2 look_up kettle No calls only on the right',
    )
    await page.getByLabel('Show').selectOption('Tool calls')
    await expect.poll(() => page.locator('.compared-row:not(.is-head)').count()).toBe(2)
    await page.getByLabel('Show').selectOption('Everything')
    await page.getByText('1 step is the same').click()
    await page.getByText('Refund my kettle').first().waitFor()
    const rows = await page
      .locator('.compared-row:not(.is-head)')
      .evaluateAll((all) =>
        all.map((row) => [...row.children].map((side) => (side.textContent ?? '').slice(0, 60))),
      )
    const [same, look_up, refund, said] = rows
    expect(same).toEqual([
      expect.stringContaining('Refund my kettle'),
      expect.stringContaining('Refund my kettle'),
    ])
    expect(look_up).toEqual([expect.stringContaining('look_up'), 'Only at the left'])
    expect(refund).toEqual([expect.stringContaining('refund'), expect.stringContaining('refundfailed')])
    expect(said?.[0]).toContain('Your refund is paid')
    const changed = await page.locator('.compared :is(del, ins)').allInnerTexts()
    expect(changed).toEqual(expect.arrayContaining(['7', '8', 'is', 'has']))
  })

  it('shows in another tab what its address says, and leads to the entries', async () => {
    const { page } = tab
    await page.reload()
    await page.getByText('3 of 4 steps differ').waitFor()
    await page.getByRole('region', { name: 'Entry 4, left' }).getByRole('link', { name: '4' }).click()
    await page.getByRole('region', { name: 'Tool call 2: refund' }).waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('stands one below the other on a phone, without a page that is wider than it', async () => {
    const { page } = tab
    const { width, height } = page.viewportSize()!
    await page.goBack()
    await page.setViewportSize({ width: 390, height: 800 })
    const step = page.locator('.compared-row:not(.is-head)').filter({ hasText: 'refund' }).last()
    const [left, right] = await Promise.all(
      [0, 1].map((side) => step.locator(':scope > *').nth(side).boundingBox()),
    )
    expect(right!.y).toBeGreaterThanOrEqual(left!.y + left!.height)
    expect(right!.width).toBeGreaterThan(250)
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    await page.setViewportSize({ width, height })
  })
})

describe.skipIf(!CHROMIUM)(`on a phone, the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('folds its tools away, and has the outline', async () => {
    const { page } = await browser.open(`${service.node.url}/console`, { width: 360, height: 780 })
    await signIn(page, project.token)
    const order = page.getByRole('combobox', { name: 'Order' })
    expect(await order.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'View', exact: true }).click()
    await order.waitFor()
    await page.getByRole('link', { name: 'The good run' }).click()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
    const format = page.getByRole('combobox', { name: 'Format' })
    expect(await format.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Tools' }).click()
    await format.waitFor()
    const outline = page.getByRole('navigation', { name: 'Tool calls and events' })
    const line = outline.getByRole('button', { name: /look_up/ })
    expect(await line.isVisible()).toBe(false)
    await outline.getByRole('button', { name: /^Outline: 2 tool calls/ }).click()
    await line.click()
    await expect.poll(() => new URL(page.url()).searchParams.get('seq')).toBe('2')
    expect(await line.isVisible()).toBe(false)
  })
})
