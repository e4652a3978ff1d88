import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { issueToken } from '../harness/tokens.ts'
import { type FailedRun, findFailedRun, importRuns } from './failed_run.ts'

const service = useSharedService()
const commands = useClientCommands(service)
const browser = useBrowser()
let project: Project
let api: ApiClient
let tab: Tab
let run: FailedRun

const firstSession = (page: Tab['page']) => page.getByRole('link', { name: /^Session / }).first()

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  run = await findFailedRun(api, await importRuns(commands, project))
  tab = await browser.open(`${service.node.url}/console`)
})

describe.skipIf(!CHROMIUM)(`the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('refuses a key that is none, and a link that is cut off, and says so', async () => {
    await tab.page.goto(`${service.node.url}/console?cut#code=UpsPwNkhj`)
    await tab.page.getByRole('alert').filter({ hasText: 'This link is not complete' }).waitFor()
    await tab.page.getByLabel('API key').fill('sk-nobody-has-this-key-at-all-0123456789')
    await tab.page.getByRole('button', { name: 'Sign in' }).click()
    await tab.page
      .getByRole('alert')
      .filter({ hasText: 'This key is not valid, or it was revoked' })
      .waitFor()
  })

  it('leads to the third tool call of a user’s latest failed run by what is on the page alone', async () => {
    const { page } = tab
    await signIn(page, project.token)
    const values = page.getByRole('group', { name: 'Values in this list' })
    await expect.poll(async () => (await values.boundingBox())?.height).toBeGreaterThan(20)
    await page.getByRole('combobox', { name: 'User' }).fill(run.user)
    await values.getByRole('button', { name: /failed reward/ }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('filter')).toMatch(/^\{"reward":0/)
    expect(new URL(page.url()).searchParams.get('user')).toBe(run.user)
    await page.locator('.filter-json', { hasText: '{"reward":0}' }).waitFor()
    await expect.poll(() => firstSession(page).getAttribute('href')).toContain(run.session.id)
    await page.getByRole('row').nth(1).getByRole('link').click()
    await page.locator('.session-id', { hasText: run.session.id }).waitFor()
    await page.getByRole('navigation', { name: 'Tool calls and events' }).getByRole('button').nth(2).click()
    const card = page.getByRole('region', { name: `Tool call 3: ${run.third.name}` })
    await card.waitFor()
    const words = run.third.result.match(/[\w-]{4,}/)
    await expect.poll(() => card.innerText()).toContain(words?.[0] ?? run.third.result)
    const [argument] = Object.values(JSON.parse(run.third.arguments) as Record<string, unknown>)
    if (typeof argument === 'string') expect(await card.innerText()).toContain(argument)
  })

  it('shows in another tab what its address says', async () => {
    const address = `${service.node.url}/console/sessions?user=${encodeURIComponent(run.user)}&filter=${encodeURIComponent('{"reward":0}')}`
    const { page } = await browser.open(address)
    await page.getByLabel('API key').fill(project.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect.poll(() => page.getByRole('combobox', { name: 'User' }).inputValue()).toBe(run.user)
    await page.locator('.filter-json', { hasText: '{"reward":0}' }).waitFor()
    await expect.poll(() => firstSession(page).getAttribute('href')).toContain(run.session.id)
    await page.getByRole('row').nth(1).locator('time').last().click()
    await page.locator('.session-id', { hasText: run.session.id }).waitFor()
  })

  it('leads from a user to the newest session of that user', async () => {
    const { page } = tab
    const [newest] = expectOk(await api.listSessions({ user: run.user, time_desc: 'true', limit: 1 })).items
    await page.goto(`${service.node.url}/console/users/${encodeURIComponent(run.user)}`)
    await page
      .getByRole('table', { name: 'Sessions' })
      .getByRole('link', { name: /^Session / })
      .first()
      .click()
    await page.locator('.session-id', { hasText: newest!.id }).waitFor()
  })

  it('says that a user’s name is matched whole where none fits, and names users with such a name', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions?user=${encodeURIComponent(run.user.slice(0, 3))}`)
    await page.getByText('Names must match exactly').waitFor()
    expect(await page.getByText('Types matter').count()).toBe(0)
    await page.getByRole('button', { name: run.user, exact: true }).click()
    await expect.poll(() => page.getByRole('combobox', { name: 'User' }).inputValue()).toBe(run.user)
    await firstSession(page).waitFor()
  })

  it('says that the service does not answer, for as long as it does not', async () => {
    const { page } = await browser.open(`${service.node.url}/console`)
    await signIn(page, project.token)
    const said = page.getByRole('status').filter({ hasText: 'The service does not answer' })
    const away = /\/health$|\/assets\/|\/console\/(?:data|api)\//
    await page.route(away, (route) => route.abort())
    await said.waitFor()
    // A view that was not opened before keeps the shell, and opens as soon as it can.
    await page.getByRole('link', { name: 'Activity' }).click()
    await page.getByText('This view opens as soon as it does.').waitFor()
    await page.getByRole('navigation', { name: 'Views' }).waitFor()
    await page.unroute(away)
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    await said.waitFor({ state: 'hidden' })
  })

  it('builds a filter with a nested key and a typed value', async () => {
    const { page } = tab
    const { id } = expectOk(
      await api.createSession({ user: 'nested', configs: { run: { number: 7 }, reward: 0 } }),
      201,
    )
    await page.goto(`${service.node.url}/console/sessions`)
    await page.getByRole('button', { name: '+ Configs' }).click()
    await page.getByLabel('Key', { exact: true }).fill('run.number')
    await page.getByLabel('Type').selectOption('number')
    await page.getByLabel('Value', { exact: true }).fill('seven')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: 'not a number' }).waitFor()
    await page.getByLabel('Value', { exact: true }).fill('7')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.locator('.filter-json', { hasText: '{"run":{"number":7}}' }).waitFor()
    await expect.poll(() => page.getByRole('link', { name: /^Session / }).count()).toBe(1)
    expect(await page.getByRole('link', { name: /^Session / }).getAttribute('href')).toContain(id)
  })

  it('shows an entry as it is stored, and finds it by search', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${run.session.id}`)
    await page.getByRole('button', { name: 'Live' }).click()
    await page.evaluate('window.was_here = true')
    const { seq } = expectOk(
      await api.appendEvent(run.session.id, {
        type: 'checkpoint_passed',
        data: { remark: 'written while you look' },
      }),
    )
    await page.getByRole('region', { name: 'Event checkpoint_passed' }).waitFor()
    expect(await page.evaluate('window.was_here')).toBe(true)
    await page.getByRole('searchbox', { name: 'Search this session' }).fill('while you LOOK')
    await page.getByText('1 found').waitFor()
    await page.getByRole('searchbox', { name: 'Search this session' }).press('Enter')
    await expect.poll(() => new URL(page.url()).searchParams.get('seq')).toBe(String(seq))
  })

  it('shows what strangers wrote, and runs and fetches none of it', async () => {
    const { page, complaints } = tab
    const { id } = expectOk(
      await api.createSession({ configs: { '<b>key</b>': '<img src=x onerror=alert(1)>' } }),
      201,
    )
    const content = [
      '<script>alert(2)</script><img src=x onerror="alert(3)">',
      'This is **bold**.',
      '[click](javascript:alert(4)) ![pixel](https://evil.example/pixel.png) [out](https://evil.example/)',
      '<iframe src="https://evil.example"></iframe><svg onload=alert(5)>',
      '```html\n<script>alert(6)</script>\n```',
    ].join('\n\n')
    const image = { type: 'image_url', image_url: { url: 'https://evil.example/tracker.png' } }
    const script_image = {
      type: 'image_url',
      image_url: { url: 'data:image/svg+xml,<svg onload=alert(7)>' },
    }
    const blob = { role: 'user', content: [{ type: 'text', text: content }, image, script_image] }
    expectOk(await api.request('POST', `/api/v1/session/${id}/messages`, { body: { blob } }), 201)
    expectOk(
      await api.appendEvent(id, {
        type: '<script>alert(8)</script>',
        data: { '<i>': '<script>alert(9)</script>' },
      }),
    )
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    const entry = page.getByRole('article', { name: 'Entry 1', exact: true })
    await entry.getByText('bold', { exact: true }).waitFor()
    expect(await entry.innerText()).toContain('<script>alert(2)</script>')
    expect(await page.locator('main :is(script, iframe, svg, img, object, embed)').count()).toBe(0)
    expect(await page.locator('main a[href^="javascript:" i]').count()).toBe(0)
    expect(await entry.getByRole('link', { name: 'out' }).getAttribute('rel')).toContain('noopener')
    expect(complaints).toEqual([])
  })

  it('lets a key that may only read see no button that writes', async () => {
    const { token } = await issueToken(service.adminClient(), project.id, {
      name: 'reader',
      scopes: ['read'],
    })
    const { page } = await browser.open(`${service.node.url}/console`)
    await signIn(page, token)
    await page.getByText('read only').waitFor()
    for (const path of [`/sessions/${run.session.id}`, `/users/${encodeURIComponent(run.user)}`, '/spaces']) {
      await page.evaluate(`history.replaceState(null, '', ${JSON.stringify(`/console${path}`)})`)
      await page.reload()
      await page
        .getByRole('heading', { level: 1 })
        .or(page.getByRole('heading', { level: 2 }))
        .first()
        .waitFor()
      expect(await page.getByRole('button', { name: /erase|delete|new learning space/i }).count(), path).toBe(
        0,
      )
    }
  })

  it('makes a learning space, and erases a user after the identifier was typed', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/spaces`)
    await page.getByRole('button', { name: 'New learning space' }).click()
    await page.getByLabel(/^User \(empty/).fill(run.user)
    await page.getByLabel('Name', { exact: true }).fill('Refunds of kettles')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Refunds of kettles' }).waitFor()
    await page.goto(`${service.node.url}/console/spaces`)
    await page.getByRole('link', { name: 'Learning space Refunds of kettles' }).waitFor()
    await page.goto(`${service.node.url}/console/users/${encodeURIComponent(run.user)}`)
    await page.getByRole('button', { name: 'Erase this user…' }).click()
    const erase = page.getByRole('button', { name: 'Erase for good' })
    expect(await erase.isDisabled()).toBe(true)
    await page
      .getByRole('dialog')
      .getByText('1 learning space')
      .or(page.getByRole('dialog').getByText('learning spaces'))
      .first()
      .waitFor()
    await page.getByLabel(/to confirm$/).fill(run.user)
    await erase.click()
    await page.getByRole('heading', { name: 'Users' }).waitFor()
    await expect.poll(async () => expectOk(await api.listSessions({ user: run.user })).items).toEqual([])
  })

  it('forgets the key when it signs out', async () => {
    const { page, complaints } = tab
    await page.getByRole('button', { name: `Project ${project.name}` }).click()
    await page.getByRole('button', { name: /^Sign out/ }).click()
    await page.getByLabel('API key').waitFor()
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })')).not.toContain(
      project.token,
    )
    await page.reload()
    await page.getByLabel('API key').waitFor()
    expect(complaints).toEqual([])
  })
})
