import { Annals } from '@annals/client'
import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const browser = useBrowser()
let annals: Annals
let tab: Tab

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  annals = new Annals({ url: service.node.url, token: project.token })
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`runs in the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('answers requests by the keyboard, each once, with the call that was read', async () => {
    const { page } = tab
    const { id } = await annals.sessions.create({ configs: { title: 'Refund 4711' } })
    const call = { name: 'issue_refund', arguments: { order: { id: '4711', lines: [{ sku: 'A-1' }] } } }
    const approval = await annals.runs.request(id, { kind: 'approval', text: 'Pay it back?', call })
    const question = await annals.runs.request(id, { kind: 'question', options: ['Home', 'Office'] })
    const denied = await annals.runs.request(id, { kind: 'approval', text: 'Twice?', call })
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    const cards = page.getByRole('region', { name: 'Requests' }).getByRole('article')
    await expect.poll(() => cards.count()).toBe(3)
    expect(await cards.first().innerText()).toContain('sku A-1')
    const stateOf = async (one: { id: string }) => {
      const { state, decision, answer } = await annals.runs.getRequest(one.id)
      return [state, decision, answer]
    }
    await page.keyboard.press('a')
    await page.keyboard.press('j')
    await page.keyboard.press('1')
    expect(await stateOf(approval)).toEqual(['open', undefined, undefined])
    await page.keyboard.press('a')
    await expect.poll(() => stateOf(approval)).toEqual(['resolved', 'approve', undefined])
    await expect.poll(() => cards.count()).toBe(2)
    await page.keyboard.press('2')
    await expect.poll(() => stateOf(question)).toEqual(['resolved', 'answer', 'Office'])
    await expect.poll(() => cards.count()).toBe(1)
    // Somebody else is faster: the console says so, and what was decided stays.
    await page.route('**/requests?**', (route) => route.abort())
    await annals.runs.resolve(denied.id, { decision: 'deny', by: 'ada' })
    await page.keyboard.press('a')
    await page.getByRole('alert').filter({ hasText: 'Not answered' }).waitFor()
    await page.unroute('**/requests?**')
    await page.getByText('Nothing waits for an answer.').waitFor()
    expect(await stateOf(denied)).toEqual(['resolved', 'deny', undefined])
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await page
      .getByRole('region', { name: 'Answer to a request' })
      .filter({ hasText: /Denied\s*by ada/ })
      .waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
  })

  it('shows who works on a session, and sends it input and a stop, which can be withdrawn', async () => {
    const { page } = tab
    const { id } = await annals.sessions.create({ configs: { title: 'Nightly' } })
    await annals.runs.takeLease(id, { owner: 'worker/7', ttl_ms: 600_000 })
    await page.goto(`${service.node.url}/console/runs`)
    const runs = page.getByRole('region', { name: 'Sessions by run' })
    await runs.getByRole('row', { name: /Nightly.*worker\/7/ }).waitFor()
    await page.goto(`${service.node.url}/console/sessions`)
    await page.getByRole('cell', { name: 'Nightly running' }).waitFor()
    await runs.waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Session Nightly' }).click()
    const run = page.getByRole('region', { name: 'Run', exact: true })
    await run.getByText('worker/7').waitFor()
    await run.getByRole('button', { name: 'Send…' }).click()
    await run.getByRole('textbox', { name: 'Message to the runner' }).fill('Stop after this table')
    await run.getByRole('combobox').selectOption('steer')
    await page.keyboard.press('Control+Enter')
    await run.getByRole('button', { name: 'Stop' }).click()
    const pending = async () =>
      (await annals.runs.inbox(id).page()).items.map(({ mode, type, blob }) => [mode, type ?? blob])
    const message = ['steer', { role: 'user', content: 'Stop after this table' }]
    await expect.poll(pending).toEqual([message, ['interrupt', 'stop']])
    const inputs = run.getByRole('list', { name: 'Pending input' }).getByRole('listitem')
    await inputs.filter({ hasText: 'interrupt' }).getByRole('button', { name: 'Withdraw' }).click()
    await expect.poll(pending).toEqual([message])
    await expect.poll(() => inputs.count()).toBe(1)
    expect(tab.complaints.filter((text) => !/409|ERR_FAILED/.test(text))).toEqual([])
  })

  it('keeps no row for a session that has no run, and sends it its first input from the head', async () => {
    const { page } = tab
    const { id } = await annals.sessions.create({ configs: { title: 'Quiet' } })
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    const send = page.getByRole('button', { name: 'Send…' })
    await send.waitFor()
    const run = page.getByRole('region', { name: 'Run', exact: true })
    expect(await run.count()).toBe(0)
    await send.click()
    await run.getByRole('textbox', { name: 'Message to the runner' }).fill('Begin')
    await page.keyboard.press('Control+Enter')
    await run.getByRole('list', { name: 'Pending input' }).getByText('Begin').waitFor()
    expect((await annals.runs.inbox(id).page()).items.map(({ blob }) => blob)).toEqual([
      { role: 'user', content: 'Begin' },
    ])
  })

  it('counts a busy queue exactly, narrows it to one tool, and leads past it to the sessions by run', async () => {
    const project = await service.newProject()
    const many = new Annals({ url: service.node.url, token: project.token })
    const { id } = await many.sessions.create({ configs: { title: 'Busy' } })
    for (let number = 0; number < 60; number++)
      await many.runs.request(id, {
        kind: 'approval',
        call: { name: number % 20 === 0 ? 'pay' : 'look_up', arguments: { number } },
      })
    const { page, complaints } = await browser.open(`${service.node.url}/console/runs`, { width: 390 })
    await page.getByLabel('API key').fill(project.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const requests = page.getByRole('region', { name: 'Requests' })
    await requests.getByRole('heading', { name: 'Requests 60' }).waitFor()
    await requests.getByLabel('Show').selectOption('pay')
    await expect.poll(() => requests.getByRole('article').count()).toBe(3)
    await page.keyboard.press('j')
    await page.keyboard.press('d')
    await expect.poll(() => requests.getByRole('article').count()).toBe(2)
    await page.getByRole('button', { name: 'Skip to sessions by run' }).click()
    await page.locator('section:focus').getByRole('heading', { name: 'Sessions' }).waitFor()
    expect(complaints).toEqual([])
  })

  it('shows all columns of a run beside a title of any length', async () => {
    const { page } = tab
    const { id } = await annals.sessions.create({ configs: { title: 'a very long title '.repeat(30) } })
    await annals.runs.request(id, { kind: 'question', options: ['Yes', 'No'] })
    await page.goto(`${service.node.url}/console/runs?state=waiting`)
    const runs = page.getByRole('region', { name: 'Runs', exact: true })
    await runs.getByRole('link', { name: /a very long title/ }).waitFor()
    expect(await runs.evaluate((region) => region.scrollWidth - region.clientWidth)).toBe(0)
    const last = runs.getByRole('columnheader', { name: 'Open requests' })
    const box = (await last.boundingBox())!
    expect(box.x + box.width).toBeLessThanOrEqual(1280)
  })
})
