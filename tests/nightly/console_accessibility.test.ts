import axe from 'axe-core'
import { beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { ADMIN_TOKEN } from '../harness/annals_process.ts'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { addDemoSessions, type Demo } from '../harness/demo_sessions.ts'
import { expectOk } from '../harness/expectations.ts'
import { redPdf } from '../harness/pdf.ts'
import { newPerson } from '../harness/people.ts'
import { switchSearch, untilIndexed } from '../harness/search.ts'
import { type Project, useService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const service = useService()
const browser = useBrowser()
/** A failed session and a learning space of the demo, and a session with a PDF. */
const ids = { failed: '', other: '', space: '', pdf: '', run: '' }
/** Views: what each is called, its path, its heading. */
const VIEWS: Array<[name: string, path: () => string, heading: () => string]> = [
  ['sessions', () => '/sessions', () => 'Sessions'],
  ['filtered', () => '/sessions?user=omar&filter={"outcome":"failed"}', () => 'Sessions'],
  ['nothing', () => '/sessions?user=nobody-has-this-name', () => 'No session matches this filter'],
  ['session', () => `/sessions/${ids.failed}?seq=5`, () => 'Where is my refund for L-20377?'],
  ['absent', () => '/sessions/01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d', () => 'Not found'],
  ['compare', () => `/compare?a=${ids.failed}&b=${ids.other}`, () => 'Compare'],
  ['search', () => '/search?q=refund', () => 'Search'],
  ['runs', () => '/runs?state=waiting', () => 'Runs'],
  ['run', () => `/sessions/${ids.run}`, () => 'A run'],
  ['people', () => '/people', () => 'People'],
  ['webhooks', () => '/webhooks', () => 'Webhooks'],
  ['users', () => '/users', () => 'Users'],
  ['user', () => '/users/omar', () => 'omar'],
  ['spaces', () => '/spaces', () => 'Learning spaces'],
  ['space', () => `/spaces/${ids.space}`, () => ids.space],
  ['activity', () => '/activity?tool=issue_refund', () => 'Activity'],
  ['keys', () => '/admin', () => 'Keys and projects'],
]
/** In a database that all files share, that of keys has a part for each of hundreds of projects. */
const SHOWN = inject('testServer').mode === 'shared' ? VIEWS.filter(([name]) => name !== 'keys') : VIEWS
let project: Project

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  await switchSearch(service.adminClient(), project.id, true)
  ids.pdf = expectOk(await api.createSession(), 201).id
  const file = {
    file_data: `data:application/pdf;base64,${redPdf(3).toString('base64')}`,
    filename: 'receipt.pdf',
  }
  const content = [{ type: 'file', file }]
  expectOk(await sessionLog(api, ids.pdf).add({ role: 'user', content }), 201)
  const demo = await addDemoSessions(service, api)
  ids.space = await learntSpace(api, demo.learning_spaces)
  ids.run = await waitingRun(api)
  const webhook = { url: 'https://agents.example.invalid/hook', events: ['message', 'event.tool_call'] }
  expectOk(await api.request('POST', '/api/v1/webhooks', { body: webhook }), 201)
  await untilIndexed(api)
  const failed = { filter_by_configs: '{"outcome":"failed"}', limit: 1 }
  ids.other = expectOk(await api.listSessions({ limit: 1 })).items[0]!.id
  ids.failed = expectOk(await api.listSessions(failed)).items[0]!.id
  // Its tree has a sub-session and forks.
  expectOk(await api.createSession({ parent: ids.failed, configs: { title: 'A helper' } }), 201)
  for (const up_to_seq of [6, 7]) expectOk(await sessionLog(api, ids.failed).copy({ body: { up_to_seq } }))
})

/** A session with pending input, and a request of each kind that waits. */
async function waitingRun(api: ApiClient): Promise<string> {
  const { id } = expectOk(await api.createSession({ configs: { title: 'A run', status: 'submitted' } }), 201)
  const call = { name: 'pay', arguments: { order: { id: 7 } } }
  const stop = { kind: 'event', type: 'stop', data: {}, mode: 'interrupt' }
  for (const [path, body] of [
    ['requests', { kind: 'approval', text: 'Pay it?', call }],
    ['requests', { kind: 'question', text: 'Where to?', options: ['Home', 'Office'] }],
    ['inbox', stop],
  ] as const)
    expectOk(await api.request('POST', `/api/v1/session/${id}/${path}`, { body }), 201)
  return id
}

/** A space that learnt from sessions of the demo, with a statement that waits and one that was approved. */
async function learntSpace(api: ApiClient, spaces: Demo['learning_spaces']): Promise<string> {
  const { id } = expectOk(await api.createLearningSpace({}), 201)
  const path = `/api/v1/learning_spaces/${id}`
  for (const session_id of new Set(spaces.flatMap(({ learns_from }) => learns_from)))
    expectOk(await api.request('POST', `${path}/learn`, { body: { session_id } }), 201)
  const list = () => api.request<Page<{ id: string }>>('GET', `${path}/statements`)
  await vi.waitFor(async () => expect(expectOk(await list()).items.length).toBeGreaterThan(1), 25_000)
  const [first] = expectOk(await list()).items
  expectOk(await api.request('PATCH', `/api/v1/statements/${first!.id}`, { body: { state: 'active' } }))
  return id
}

/** In what each view is looked at: a phone, a laptop and a large screen, by day and by night. */
const SIZES = [
  { width: 1280, height: 800 },
  { width: 360, height: 780 },
  { width: 2560, height: 1440 },
]
const THEMES = ['light', 'dark'] as const
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** What axe finds on the page as it is now, each finding as a line. */
async function findings({ page }: Tab, rules = RULES): Promise<string[]> {
  const type = rules === RULES ? 'tag' : 'rule'
  // What passes has a selector for each element, which takes longer to write than to find.
  const options = JSON.stringify({ runOnly: { type, values: rules }, resultTypes: ['violations'] })
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source)
  const violations = (await page.evaluate(
    `axe.run(document, ${options}).then(({ violations }) => violations)`,
  )) as axe.Result[]
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${html.slice(0, 160)} ${any[0]?.message ?? ''}`),
  )
}

/** Until the rows stand still: a list measures them again when the window changes, and until then they overlap. */
const ROWS_STAND_STILL = `new Promise((done) => {
  let before, same = 0
  const look = () => {
    const rows = [...document.querySelectorAll('[role=row]')].map((row) => row.getBoundingClientRect().top).join()
    same = rows === before ? same + 1 : 0
    before = rows
    if (same < 10) requestAnimationFrame(look)
    else done()
  }
  look()
})`

/** Looks at a view in both themes on a phone and a laptop, and in one on a large screen, and leaves a picture of each. Unless the run is thorough, axe does not look at the phone by day. */
async function look(tab: Tab, name: string): Promise<string[]> {
  const { page } = tab
  const found: string[] = []
  for (const size of SIZES) {
    await page.setViewportSize(size)
    // The large screen has the laptop's layout and colours; what may differ is whether the page is wider than it.
    const isLarge = size.width > 2000
    for (const theme of isLarge ? (['light'] as const) : THEMES) {
      await page.emulateMedia({ colorScheme: theme })
      await expect.poll(() => page.getByRole('status').filter({ hasText: 'Loading' }).count()).toBe(0)
      await page.evaluate(ROWS_STAND_STILL)
      await browser.screenshot(page, `${name}-${theme}-${size.width}`)
      const isPhone = size.width < 500
      if (isLarge || (isPhone && theme === 'light' && !IS_THOROUGH)) continue
      // The dark theme has the light one's names and roles.
      const rules = theme === 'dark' && !isPhone ? ['color-contrast'] : RULES
      found.push(...(await findings(tab, rules)))
    }
    if (!(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')))
      found.push(`it is wider than ${size.width} px`)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(SIZES[0]!)
  return found
}

describe.skipIf(!CHROMIUM)(`axe (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  let tab: Tab
  beforeAll(async () => {
    if (!CHROMIUM) return
    tab = await browser.open(`${service.node.url}/console`)
  })

  it('finds nothing where one signs in, and in a project without sessions', async () => {
    const { page } = tab
    await page.getByLabel('API key').waitFor()
    expect(await look(tab, 'sign-in')).toEqual([])
    await signIn(page, (await service.newProject()).token)
    await page.getByRole('button', { name: 'Load the demo' }).waitFor()
    expect(await look(tab, 'empty')).toEqual([])
    await page.goto(`${service.node.url}/console/search?q=refund`)
    await page.getByRole('button', { name: 'Switch search on' }).waitFor()
    expect(await look(tab, 'search-off')).toEqual([])
    await page.goto(`${service.node.url}/console/sessions?sign_in=1`)
    // Whoever sees the most.
    await signIn(page, (await newPerson(service.databaseUrl, project.id, 'admin')).token)
    await page.goto(`${service.node.url}/console/admin?sign_in=1`)
    await page.getByLabel('API key').fill(ADMIN_TOKEN)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Keys and projects' }).waitFor()
  })

  it.each(SHOWN)(
    'finds nothing on the view “%s”, light and dark, from 360 px to 2560',
    async (name, path, heading) => {
      await tab.page.goto(`${service.node.url}/console${path()}`)
      await tab.page.getByRole('heading', { name: heading() }).first().waitFor()
      expect(await look(tab, name)).toEqual([])
      expect(tab.complaints).toEqual([])
    },
  )

  it('finds nothing where a PDF is open', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${ids.pdf}`)
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByRole('img', { name: 'receipt.pdf, page 2' }).waitFor()
    expect(await look(tab, 'pdf')).toEqual([])
  })

  it('finds nothing in the help and in the builder of filters', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions`)
    await page.getByRole('table', { name: 'Sessions' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    expect(await findings(tab)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: '+ Configs' }).click()
    expect(await findings(tab)).toEqual([])
  })

  it('is not needed to see that the keys alone lead from the list to a tool call', async () => {
    const tab = await browser.open(`${service.node.url}/console`)
    const { page } = tab
    await signIn(page, project.token)
    await page.getByRole('table', { name: 'Sessions' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('u')
    await page.getByRole('heading', { name: 'Users' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await page.getByRole('table', { name: 'Sessions' }).getByRole('row').nth(2).waitFor()
    for (const row of [0, 1]) {
      await page.keyboard.press('j')
      await page.locator(`[data-index="${row}"] .row-link:focus`).waitFor()
    }
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Timeline' }).waitFor()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
    await page.keyboard.press('t')
    await expect.poll(() => new URL(page.url()).searchParams.get('seq')).not.toBeNull()
    await page
      .getByRole('article', { name: `Entry ${new URL(page.url()).searchParams.get('seq')}`, exact: true })
      .getByRole('region', { name: /^Tool call 1/ })
      .waitFor()
  })
})
