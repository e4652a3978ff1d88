import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { newPerson } from '../harness/people.ts'
import { type Project, useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

// The first webhook of a project sends within a minute.
const service = useSharedService()
const browser = useBrowser()
let project: Project
let api: ApiClient
let tab: Tab
const URL_OF_HOOK = 'https://receiver.invalid/hook'
const hook = () => tab.page.getByRole('region', { name: `Webhook ${URL_OF_HOOK}` })

beforeAll(async () => {
  if (!CHROMIUM) return
  project = await service.newProject()
  api = await service.newClient({ token: project.token })
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, (await newPerson(service.databaseUrl, project.id, 'admin')).token)
  await tab.page.getByRole('link', { name: 'Webhooks' }).click()
})

describe.skipIf(!CHROMIUM)(`webhooks in the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('creates one, shows its secret once, and says what the service refuses', async () => {
    const { page } = tab
    const form = page.getByRole('form', { name: 'New webhook' })
    await form.getByLabel('URL').fill('ftp://receiver.invalid')
    await form.getByRole('button', { name: 'Create webhook' }).click()
    await form.getByRole('alert').filter({ hasText: 'url' }).waitFor()
    await form.getByLabel('URL').fill(URL_OF_HOOK)
    await form.getByLabel('What to send').fill('message, event.tool_call')
    await form.getByRole('button', { name: 'Create webhook' }).click()
    const secret = page.getByRole('status').filter({ hasText: /whsec_/ })
    expect(await secret.innerText()).toContain(`The signing secret of ${URL_OF_HOOK}.`)
    await secret.getByRole('button', { name: 'I have saved it' }).click()
    await secret.waitFor({ state: 'detached' })
    expect(await hook().innerText()).toContain('message, event.tool_call')
    expect(await hook().innerText()).toMatch(/Waiting\s+nothing\s+Given up\s+none\s+Last failure\s+none/)
  })

  it('shows what waits for a receiver that is away, and why', async () => {
    const { id } = expectOk(await api.createSession(), 201)
    expectOk(await sessionLog(api, id).add({ role: 'user', content: 'Hello?' }), 201)
    await expect
      .poll(() => hook().innerText(), { timeout: 90_000 })
      .toMatch(/Waiting\s+entries of 1 session\s+[\s\S]*The receiver could not be reached/)
  })

  it('deletes one after its host was typed', async () => {
    const { page } = tab
    await hook().getByRole('button', { name: 'Delete…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete this webhook' })
    await dialog.getByRole('textbox').fill('receiver.invalid')
    await dialog.getByRole('button', { name: 'Delete the webhook' }).click()
    await page.getByText('The project has no webhook.').waitFor()
    const { items } = expectOk(await api.request<{ items: object[] }>('GET', '/api/v1/webhooks'))
    expect(items).toEqual([])
    expect(tab.complaints).toEqual([])
  })

  it('is for administrators: others are told so, and find no link', async () => {
    const { page } = await browser.open(`${service.node.url}/console`)
    await signIn(page, project.token)
    expect(await page.getByRole('link', { name: 'Webhooks' }).count()).toBe(0)
    await page.goto(`${service.node.url}/console/webhooks`)
    await page.getByRole('heading', { name: 'Webhooks are for administrators of the project' }).waitFor()
  })
})
