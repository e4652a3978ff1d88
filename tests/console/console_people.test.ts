import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { newPerson } from '../harness/people.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
let space = ''
let project: Project
const open = (path: string) => tab.page.goto(`${service.node.url}/console${path}`)

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
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
})

describe.skipIf(!CHROMIUM)(`users and spaces (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('shows of each user the sessions, how many failed, and the last activity', async () => {
    const { page } = tab
    await open('/users')
    const row = (name: string) =>
      page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
    const cells = (name: string) => row(name).getByRole('cell').allInnerTexts()
    await expect.poll(async () => (await cells('ada')).slice(1, 3)).toEqual(['2', '2'])
    expect((await cells('grace')).slice(1, 3)).toEqual(['1', '–'])
    expect((await cells('grace'))[3]).toMatch(/^\d\d:\d\d:\d\d$/)
    await row('ada').getByRole('link', { name: '2' }).click()
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
    const field = page.getByLabel('Meta (a JSON object)')
    // What is above it comes bit by bit, and a click misses a button that moves while it is pressed.
    await vi.waitFor(async () => {
      const edit = page.getByRole('button', { name: 'Edit', exact: true })
      if (!(await field.isVisible())) await edit.click({ timeout: 5_000 })
      await field.waitFor({ timeout: 2_000 })
    }, 30_000)
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

  it('lets an administrator invite, change and remove members, make and revoke tokens, and see who read what', async () => {
    const settings = { body: { audit_reads: 'people' } }
    expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, settings))
    const ada = await newPerson(service.databaseUrl, project.id, 'admin', { is_in_console: true })
    const url = `${service.node.url}/console`
    const { page, complaints } = await browser.open(url)
    await page.context().addCookies([{ name: `annals_${project.id}`, value: ada.token, url: `${url}/` }])
    await page.goto(url)
    await page.getByRole('table', { name: 'Sessions' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    const members = page.getByRole('region', { name: 'Members' })
    const row = members.getByRole('row').filter({ hasText: 'bob@example.com' })
    await members.getByLabel('Address of a new member').fill('Bob@example.com')
    await members.getByLabel('Role of the new member').selectOption('viewer')
    await members.getByRole('button', { name: 'Invite' }).click()
    await row.getByText('invited').waitFor()
    await row.getByLabel('Role of bob@example.com').selectOption('member')
    const rolesOf = async () =>
      (
        await service.rawClient(ada.token).request<{ items: { role: string }[] }>('GET', '/api/v1/members')
      ).json.data.items.map(({ role }) => role)
    await expect.poll(rolesOf).toEqual(['admin', 'member'])
    // The last administrator stays one, and the page says why.
    const own = members.getByLabel(`Role of ${ada.email}`)
    await own.selectOption('viewer')
    await members.getByRole('alert').filter({ hasText: 'last' }).waitFor()
    await expect.poll(() => own.inputValue()).toBe('admin')
    await row.getByRole('button', { name: 'Remove bob@example.com' }).click()
    await page.getByLabel('Type bob@example.com to confirm').fill('bob@example.com')
    await page.getByRole('button', { name: 'Remove the member' }).click()
    await expect.poll(() => row.count()).toBe(0)

    const tokens = page.getByRole('region', { name: 'Your personal tokens' })
    await tokens.getByLabel('New personal token').fill('laptop')
    await tokens.getByLabel('may only read').check()
    await tokens.getByRole('button', { name: 'Create token' }).click()
    const secret = await tokens.locator('code').innerText()
    expect((await service.rawClient(secret).request('GET', '/api/v1/session')).status).toBe(200)
    await tokens.getByRole('button', { name: 'Revoke laptop' }).click()
    await expect.poll(() => tokens.getByRole('row').filter({ hasText: 'laptop' }).count()).toBe(0)

    const id = expectOk(await api.listSessions({ limit: 1 })).items[0]!.id
    const noted = `/admin/v1/audit?reads_of=${project.id}&session_id=${id}`
    await expect
      .poll(
        async () => {
          expectOk(await service.rawClient(ada.token).request('GET', `/api/v1/session/${id}`))
          const page = await service.adminClient().request<{ items: object[] }>('GET', noted)
          return expectOk(page).items.length
        },
        { timeout: 30_000, interval: 500 },
      )
      .toBeGreaterThan(0)
    await page.reload()
    const reads = page.getByRole('region', { name: 'Who read sessions' })
    await reads.getByRole('row').filter({ hasText: ada.email }).filter({ hasText: id }).first().waitFor()
    const one = reads.getByLabel('Reads of one session')
    await one.fill(randomUUID())
    await reads.getByText('No read of this session is noted.').waitFor()
    await one.fill(id)
    await reads.getByRole('row').filter({ hasText: id }).first().waitFor()
    expect(complaints).toEqual([])
  })
})
