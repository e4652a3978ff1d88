import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'
import { execute } from '../harness/sql.ts'

const CALLS = 333
const FAILED = [120, 250]
const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
let id: string

const outline = () => tab.page.getByRole('navigation', { name: 'Tool calls and events' })
const seqHere = () => tab.page.evaluate('new URLSearchParams(location.search).get("seq")')

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  id = expectOk(await api.createSession({}), 201).id
  const entries = Array.from({ length: CALLS }, (_, index) => {
    const result = FAILED.includes(index + 1) ? 'Error: away' : 'found'
    return {
      kind: 'event',
      type: 'tool_call',
      data: { id: `c${index}`, name: `step_${index + 1}`, arguments: {}, result },
    }
  })
  expectOk(await sessionLog(api, id).batch(entries), 201)
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
})

describe.skipIf(!CHROMIUM)(`finding a place in a session (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('shows in the outline the call that is on the screen, after a jump and while scrolling', async () => {
    const { page } = tab
    await outline().getByText(String(CALLS), { exact: true }).first().waitFor()
    await page.goto(`${service.node.url}/console/sessions/${id}?seq=201`)
    await outline().getByRole('button', { name: 'step_201' }).waitFor()
    await expect.poll(() => outline().locator('.is-here').innerText()).toContain('step_201')
    await page.getByRole('region', { name: 'Timeline' }).hover()
    await page.mouse.wheel(0, 2_000)
    await expect.poll(() => outline().locator('.is-here').innerText()).not.toContain('step_201')
  })

  it('has what was stored late where it happened', async () => {
    const { page } = tab
    const late = expectOk(await api.createSession({}), 201).id
    const call = (name: string, minute: number) => ({
      ...{ kind: 'event', type: 'tool_call', data: { id: name, name, arguments: {}, result: 'found' } },
      occurred_at: `2026-01-02T03:0${minute}:00Z`,
    })
    expectOk(await sessionLog(api, late).batch([call('second', 2), call('third', 3), call('first', 1)]), 201)
    await page.goto(`${service.node.url}/console/sessions/${late}`)
    await outline().getByRole('button', { name: 'first' }).waitFor()
    expect(await outline().locator('.outline-title').allInnerTexts()).toEqual(['first', 'second', 'third'])
    await page.goto(`${service.node.url}/console/sessions/${id}`)
  })

  it('leads from one failure to the next, and shows the failed calls alone, in the log too', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await outline().getByText(String(CALLS), { exact: true }).first().waitFor()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
    await page.keyboard.press('f')
    await expect.poll(seqHere).toBe('120')
    await page.keyboard.press('f')
    await expect.poll(seqHere).toBe('250')
    await page.keyboard.press('Shift+F')
    await expect.poll(seqHere).toBe('120')
    await outline().getByLabel('Failed only').check()
    await expect.poll(() => outline().getByRole('button').count()).toBe(FAILED.length)
    await expect.poll(() => new URL(page.url()).searchParams.get('show')).toBe('failed')
    await expect.poll(() => page.getByRole('article').count()).toBe(FAILED.length)
  })

  it('leads from one long pause to the next, and draws when each call ran and how long', async () => {
    const { page } = tab
    const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
    const call = { id: 'c', type: 'function', function: { name: 'look_up', arguments: '{}' } }
    const said = [
      { role: 'user', content: 'Where is it?' },
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'found' },
      { role: 'assistant', content: 'Here.' },
      { role: 'user', content: 'Thanks' },
    ]
    const began = Date.now()
    // The call takes 8 seconds, and the user a minute.
    for (const [index, later_s] of [0, 0, 8, 8, 68].entries()) {
      const { seq } = expectOk(await log.add(said[index]), 201)
      const at = new Date(began + later_s * 1_000).toISOString()
      const later = 'UPDATE entries SET created_at = $1 WHERE session_id = $2 AND seq = $3'
      await execute(service.databaseUrl, later, [at, log.id, seq])
    }
    await page.goto(`${service.node.url}/console/sessions/${log.id}`)
    await page
      .getByRole('article', { name: 'Entry 5', exact: true })
      .getByText(/^1 min/)
      .waitFor()
    expect(await outline().locator('.outline-span').getAttribute('title')).toBe('8.0 s')
    // What the call took is not a pause as well.
    expect(await page.locator('.gap').allInnerTexts()).toEqual([expect.stringMatching(/^1 min/)])
    for (const seq of ['2', '5']) {
      await page.keyboard.press('p')
      await expect.poll(seqHere).toBe(seq)
    }
  })

  it('shows a session in the tree of those that it comes from, and of sub-sessions and forks', async () => {
    const { page } = tab
    const failed = { title: 'A helper', outcome: 'failed' }
    const below = expectOk(await api.createSession({ parent: id, configs: failed }), 201)
    const call = { name: 'look_up', arguments: {}, result: 'Error: away' }
    expectOk(await api.appendEvent(below.id, { type: 'tool_call', data: call }))
    const lowest = expectOk(await api.createSession({ parent: below.id, configs: { title: 'Its own' } }), 201)
    const copied = await sessionLog(api, id).copy({ body: { up_to_seq: 7, configs: { title: 'A fork' } } })
    const fork = expectOk(copied).new_session_id
    const tree = page.getByRole('navigation', { name: 'Related sessions' })
    const shown = () =>
      tree.locator('ul ul > li > .twig > a:first-child').evaluateAll((links) =>
        links.map((link) => {
          let level = 0
          for (
            let at = link.closest('ul')?.parentElement;
            at?.matches('li');
            at = at.closest('ul')!.parentElement
          )
            level += 1
          const isHere = link.getAttribute('aria-current') === 'page' ? '*' : ''
          return `${level}${isHere} ${link.textContent?.trim().replaceAll(/\s+/g, ' ')}`
        }),
      )
    const helper = 'A helper 1 entry failed 1 failed call'
    await page.goto(`${service.node.url}/console/sessions/${lowest.id}`)
    await expect.poll(shown).toEqual([`1 ${helper}`, '2* Its own 0 entries', '1 A fork 7 entries'])
    // From there, by the keyboard alone.
    const link = tree.getByRole('link', { name: helper })
    await link.focus()
    await page.keyboard.press('Enter')
    await expect.poll(shown).toEqual([`1* ${helper}`, '2 Its own 0 entries', '1 A fork 7 entries'])
    expect(page.url()).toContain(below.id)
    await page.goto(`${service.node.url}/console/sessions/${fork}`)
    await expect.poll(shown).toEqual([`1 ${helper}`, '2 Its own 0 entries', '1* A fork 7 entries'])
    await tree.getByRole('link', { name: 'fork up to entry 7' }).click()
    await expect.poll(() => page.url()).toContain(`${id}?seq=7`)
    await expect.poll(() => tree.locator('[aria-current=page]').innerText()).toContain(`${CALLS} entries`)
    expect(tab.complaints).toEqual([])
  })

  it('shows the first fifty of many related sessions, its own ones before others, and counts the rest', async () => {
    const { page } = tab
    const root = expectOk(await api.createSession({ configs: { title: 'Root' } }), 201).id
    for (let n = 1; n <= 60; n++)
      expectOk(await api.createSession({ parent: root, configs: { title: `Child ${n}` } }), 201)
    const last = expectOk(await api.listSessions({ parent: root, time_desc: true, limit: 1 })).items[0]!
    expectOk(await api.createSession({ parent: last.id, configs: { title: 'Grandchild' } }), 201)
    await page.goto(`${service.node.url}/console/sessions/${last.id}`)
    const tree = page.getByRole('navigation', { name: 'Related sessions' })
    await tree.getByText('62 related sessions').click()
    for (const name of ['Root', 'Child 60', 'Grandchild', 'Child 1', 'Child 47'])
      await tree.getByRole('link', { name: `${name} 0 entries`, exact: true }).waitFor()
    expect(await tree.getByRole('link').count()).toBe(50)
    await tree.getByText('and 12 that are not shown').waitFor()
  })
})
