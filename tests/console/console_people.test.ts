import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const OPTIONS = { timeout: 60_000 }
const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
let space = ''
const open = (path: string) => tab.page.goto(`${service.node.url}/console${path}`)

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  for (const [user, outcome] of Object.entries({ ada: 'failed', 'ada ': 'failed', grace: 'passed' })) {
    const session = expectOk(await api.createSession({ user: user.trim(), configs: { outcome } }), 201)
    expectOk(await sessionLog(api, session.id).add({ role: 'user', content: `Asked by ${user}` }), 201)
    if (user !== 'grace') continue
    const meta = { topic: 'seats', size: 1, keep: { exact: 12345678901234567890n.toString() } }
    space = expectOk(await api.createLearningSpace({ user: 'grace', meta }), 201).id
    expectOk(
      await api.request('POST', `/api/v1/learning_spaces/${space}/learn`, {
        body: { session_id: session.id },
      }),
      201,
    )
  }
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
}, OPTIONS.timeout)

describe.skipIf(!CHROMIUM)(`users and spaces (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, OPTIONS, () => {
  it('shows of each user the sessions, how many failed, and the last activity', async () => {
    const { page } = tab
    await open('/users')
    const cells = (name: string) =>
      page.getByRole('row').filter({ hasText: name }).getByRole('cell').allInnerTexts()
    await expect.poll(async () => (await cells('ada')).slice(1, 3)).toEqual(['2', '2'])
    expect((await cells('grace')).slice(1, 3)).toEqual(['1', '–'])
    expect((await cells('grace'))[3]).toMatch(/^\d\d:\d\d:\d\d$/)
    await page.getByRole('row').filter({ hasText: 'ada' }).getByRole('link', { name: '2' }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('user')).toBe('ada')
  })

  it('shows the sessions that a space learns from', async () => {
    const { page } = tab
    await open(`/spaces/${space}`)
    const sessions = page.getByRole('region', { name: 'Sessions of this space' })
    await sessions.getByRole('link', { name: 'Asked by grace' }).click()
    await page.getByRole('article', { name: 'Entry 1', exact: true }).waitFor()
  })

  it('changes the meta of a space, and leaves what somebody else changed meanwhile', async () => {
    const { page } = tab
    await open(`/spaces/${space}`)
    await page.getByRole('button', { name: 'Edit', exact: true }).click()
    const field = page.getByLabel('Meta (a JSON object)')
    const form = page.locator('form').filter({ has: field })
    await field.fill('[1]')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Meta must be a JSON object').waitFor()
    expectOk(await api.request('PATCH', `/api/v1/learning_spaces/${space}`, { body: { meta: { size: 2 } } }))
    await field.fill('{"topic": "windows", "size": 1, "new": true}')
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved the meta.').waitFor()
    const { meta } = expectOk(await api.request<{ meta: object }>('GET', `/api/v1/learning_spaces/${space}`))
    expect(meta).toEqual({ topic: 'windows', size: 2, new: true })
    await page.getByRole('heading', { name: 'windows' }).waitFor()
    expect(tab.complaints).toEqual([])
  })
})
