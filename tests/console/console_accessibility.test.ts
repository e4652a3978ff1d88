import axe from 'axe-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { ADMIN_TOKEN } from '../harness/annals_process.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useService } from '../harness/service.ts'

const TEST_MS_MAX = 60_000
const service = useService()
const browser = useBrowser()
const views: Array<{ name: string; path: string; heading: string }> = []
let project: Project

interface Demo {
  sessions: Array<{ session: object; entries: object[] }>
  learning_spaces: object[]
}

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const demo = JSON.parse((await service.rawClient().request('GET', '/console/demo.json')).text) as Demo
  for (const { session, entries } of demo.sessions) {
    const { id } = expectOk(await api.createSession(session), 201)
    expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
  }
  const space = expectOk(await api.createLearningSpace(demo.learning_spaces[0]), 201)
  const [failed] = expectOk(
    await api.listSessions({ filter_by_configs: '{"outcome":"failed"}', limit: 1 }),
  ).items
  views.push(
    { name: 'sessions', path: '/sessions', heading: 'Sessions' },
    { name: 'filtered', path: '/sessions?user=omar&filter={"outcome":"failed"}', heading: 'Sessions' },
    { name: 'nothing', path: '/sessions?user=nobody-has-this-name', heading: 'No session fits this filter' },
    { name: 'session', path: `/sessions/${failed!.id}?seq=5`, heading: failed!.id },
    { name: 'absent', path: '/sessions/01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d', heading: 'Not found' },
    { name: 'users', path: '/users', heading: 'Users' },
    { name: 'user', path: '/users/omar', heading: 'omar' },
    { name: 'spaces', path: '/spaces', heading: 'Learning spaces' },
    { name: 'space', path: `/spaces/${space.id}`, heading: space.id },
    { name: 'activity', path: '/activity', heading: 'Activity' },
    { name: 'keys', path: '/admin', heading: 'Keys and projects' },
  )
}, TEST_MS_MAX)

/** What axe finds on the page as it is now, each finding as a line. */
async function findings({ page }: Tab): Promise<string[]> {
  await page.evaluate(axe.source)
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  const { violations } = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(tags)} })`,
  )) as axe.AxeResults
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${html.slice(0, 160)} ${any[0]?.message ?? ''}`),
  )
}

describe.skipIf(!CHROMIUM)(`axe (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 360],
  ] as const)(
    'finds nothing on any view, in the %s theme at %i px',
    async (theme, width) => {
      const tab = await browser.open(`${service.node.url}/console`, {
        theme,
        width,
        height: width < 500 ? 780 : 800,
      })
      const { page } = tab
      await page.getByLabel('API key').waitFor()
      const found = (await findings(tab)).map((line) => `sign in: ${line}`)
      await browser.screenshot(page, `sign-in-${theme}-${width}`)
      await signIn(page, project.token)
      await page.goto(`${service.node.url}/console/admin?sign_in=1`)
      await page.getByLabel('API key').fill(ADMIN_TOKEN)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('heading', { name: 'Keys and projects' }).waitFor()
      for (const { name, path, heading } of views) {
        await page.goto(`${service.node.url}/console${path}`)
        await page.getByRole('heading', { name: heading }).first().waitFor()
        await expect.poll(() => page.getByRole('status').filter({ hasText: 'Reading' }).count()).toBe(0)
        await browser.screenshot(page, `${name}-${theme}-${width}`)
        found.push(...(await findings(tab)).map((line) => `${name}: ${line}`))
      }
      await page.goto(`${service.node.url}/console/sessions`)
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
      found.push(...(await findings(tab)).map((line) => `help: ${line}`))
      await page.keyboard.press('Escape')
      await page.getByRole('button', { name: '+ Configs' }).click()
      found.push(...(await findings(tab)).map((line) => `filter: ${line}`))
      expect(found).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      expect(tab.complaints).toEqual([])
    },
    TEST_MS_MAX,
  )

  it(
    'is not needed to see that the keys alone lead from the list to a tool call',
    async () => {
      const tab = await browser.open(`${service.node.url}/console`)
      const { page } = tab
      await signIn(page, project.token)
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      await page.keyboard.press('g')
      await page.keyboard.press('u')
      await page.getByRole('heading', { name: 'Users' }).waitFor()
      await page.keyboard.press('g')
      await page.keyboard.press('s')
      await page.getByRole('table', { name: 'Sessions' }).waitFor()
      await page.keyboard.press('j')
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.getByRole('region', { name: 'Timeline' }).waitFor()
      await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
      await page.keyboard.press('t')
      await expect.poll(() => new URL(page.url()).searchParams.get('seq')).not.toBeNull()
      await page
        .getByRole('article', { name: `Entry ${new URL(page.url()).searchParams.get('seq')}`, exact: true })
        .getByRole('region', { name: /^Tool call 1/ })
        .waitFor()
    },
    TEST_MS_MAX,
  )
})
