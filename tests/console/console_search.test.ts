import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { untilIndexed } from '../harness/search.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let project: Project
let api: ApiClient
let tab: Tab
const parameter = (name: string) => new URL(tab.page.url()).searchParams.get(name)
/** What the browser marks on the page, without an element of its own. */
const marks = () =>
  tab.page.evaluate<string[]>(`[...(CSS.highlights.get('found') ?? [])].map((range) => range.toString())`)

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  const texts = ['Where is my refund?', 'A seat by the window', `${'Sand. '.repeat(600)}Refund the kettle.`]
  for (const [index, content] of texts.entries()) {
    const session = { user: index === 0 ? 'omar' : 'lea', configs: { run: { env: index } } }
    const log = sessionLog(api, expectOk(await api.createSession(session), 201).id)
    expectOk(await log.add({ role: 'user', content }), 201)
    expectOk(await log.addEvent('note', { text: 'the end' }))
  }
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`search in the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('is offered where it is off, with what it costs', async () => {
    const { page } = tab
    await page.keyboard.press('/')
    await page.keyboard.type('refund')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Search is off for this project' }).waitFor()
    await page.getByText(/This project has 6 entries with \d+ kB/).waitFor()
    await page.getByRole('button', { name: 'Switch search on' }).click()
    await page.getByRole('heading', { name: 'Search', exact: true }).waitFor()
    await untilIndexed(api)
  })

  it('finds entries of all sessions, with the words marked, and leads to them', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/users`)
    await page.getByRole('heading', { name: 'Users', exact: true }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('refund')
    await page.keyboard.press('Enter')
    const found = page.getByRole('list', { name: 'Entries found' })
    await expect.poll(() => found.getByRole('link', { name: /^Entry/ }).count()).toBe(2)
    expect(await found.locator('mark').allInnerTexts()).toEqual(['Refund', 'refund'])
    expect(await page.getByRole('searchbox', { name: 'Search all sessions' }).inputValue()).toBe('refund')
    await found.getByRole('link', { name: 'Where is my refund?' }).click()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
    expect([parameter('seq'), parameter('q')]).toEqual(['1', 'refund'])
    await expect.poll(marks).toEqual(['refund'])
  })

  it('finds only in the sessions of a user, or with certain configs', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/search?q=refund`)
    const found = page.locator('.found > li')
    await expect.poll(() => found.count()).toBe(2)
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    const focused = found.first().getByRole('link', { name: 'Entry 1' })
    await expect.poll(() => focused.evaluate((link) => link === document.activeElement)).toBe(true)
    await page.getByLabel('User').fill('omar')
    await page.keyboard.press('Enter')
    await expect.poll(() => found.allInnerTexts()).toEqual([expect.stringContaining('Where is my refund?')])
    expect(parameter('user')).toBe('omar')
    await page.getByRole('button', { name: 'Show the sessions of all users' }).click()
    await expect.poll(() => found.count()).toBe(2)
    await page.getByRole('button', { name: '+ Configs' }).click()
    await page.getByRole('combobox', { name: 'Key' }).fill('run.env')
    await page.getByRole('combobox', { name: 'Type' }).selectOption('number')
    await page.getByRole('combobox', { name: 'Value' }).fill('2')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await expect.poll(() => found.allInnerTexts()).toEqual([expect.stringContaining('Refund the kettle')])
    expect(parameter('filter')).toBe('{"run":{"env":2}}')
    await page.goto(`${service.node.url}/console/search?q=refund&user=omar&filter={"run":{"env":2}}`)
    await page.getByRole('heading', { name: 'Nothing matches “refund”' }).waitFor()
  })

  it('shows the sessions that come closest where no entry has all words, with their entries, and says so', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/search?q=did+omar+get+his+refunds`)
    await page.getByText('No entry has all of these words. These come closest.').waitFor()
    const closest = page.getByRole('list', { name: 'Sessions that come closest' })
    await expect.poll(() => closest.getByRole('listitem').count()).toBe(2)
    expect((await closest.locator('mark').allInnerTexts()).toSorted()).toEqual(['Refund', 'refund'])
    await page.getByLabel('User').fill('lea')
    await page.keyboard.press('Enter')
    await expect.poll(() => closest.getByRole('listitem').count()).toBe(1)
    await closest.getByRole('link', { name: 'Entry 1', exact: true }).click()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
    expect([parameter('seq'), parameter('q')]).toEqual(['1', null])
    await page.goto(`${service.node.url}/console/search?q=refund`)
    await page.getByRole('list', { name: 'Entries found' }).waitFor()
    expect(await page.getByText('These come closest').count()).toBe(0)
  })

  it('says when nothing matches', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/search?q=submarine`)
    await page.getByRole('heading', { name: 'Nothing matches “submarine”' }).waitFor()
    expect(await page.getByText('There is no OR').count()).toBe(0)
    await page.goto(`${service.node.url}/console/search?q=submarine+OR+periscope`)
    await page.getByText('There is no OR').waitFor()
  })

  it('says what is wrong with a query, and does not offer to repeat it', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/search?q=-refund`)
    await page.getByText('at least one word').waitFor()
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  it('reads on by itself where a page ends with little of a phrase, and groups entries by session, each with its tool', async () => {
    const { page } = tab
    const apart = Array.from({ length: 600 }, () => 'umbrella lost')
    const entries = ['the lost umbrella', ...apart].map((text) => {
      return { kind: 'event', type: 'note', data: { text } }
    })
    const data = { id: 'c', name: 'look_up', arguments: {}, result: 'a lost umbrella' }
    entries.push({ kind: 'event', type: 'tool_call', data: data as never })
    expectOk(await sessionLog(api, expectOk(await api.createSession(), 201).id).batch(entries), 201)
    await untilIndexed(api)
    // As it is before the call has been read, which happens in the background.
    const unread = { data: { items: [], is_whole: false }, error: null, msg: 'ok' }
    await page.route('**/console/data/result_tools?**', (route) => route.fulfill({ json: unread }), {
      times: 1,
    })
    await page.goto(`${service.node.url}/console/search?q="lost umbrella"`)
    const found = page.locator('.found > li')
    await expect.poll(() => found.getByRole('link', { name: /^Entry/ }).count()).toBe(2)
    expect(await found.count()).toBe(1)
    await found.getByText('result of look_up').waitFor()
    await found.getByText('2 entries').waitFor()
    await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' })
  })

  it('opens within a session what hides the words, and marks them', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/search?q="refund the"`)
    await page.getByRole('list', { name: 'Entries found' }).getByRole('link').first().click()
    await page.getByText('Refund the kettle.').waitFor()
    await expect.poll(marks).toEqual(['Refund the'])
    await page.keyboard.press('s')
    await page.keyboard.type('end')
    await expect.poll(marks).toEqual(['end'])
    await page.keyboard.press('Escape')
    await page.getByRole('searchbox', { name: 'Search this session' }).fill('')
    await expect.poll(marks).toEqual([])
    expect(tab.complaints).toEqual([])
  })

  it('does not offer to switch it on to a key that may only read', async () => {
    const other = await service.newProject()
    const admin = service.adminClient()
    const { token } = expectOk(
      await admin.request<{ token: string }>('POST', `/admin/v1/projects/${other.id}/tokens`, {
        body: { name: 'reader', scopes: ['read'] },
      }),
      201,
    )
    const { page } = await browser.open(`${service.node.url}/console`)
    await signIn(page, token)
    await page.goto(`${service.node.url}/console/search?q=refund`)
    await page.getByText('Your key is read-only.').waitFor()
    expect(await page.getByRole('button', { name: 'Switch search on' }).count()).toBe(0)
    const reader = await service.newClient({ token })
    expect((await reader.request('POST', '/console/data/search')).status).toBe(403)
  })
})
