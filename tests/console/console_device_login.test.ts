import { describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, useBrowser } from '../harness/browser.ts'
import { cookies, useSignIns } from '../harness/sign_ins.ts'

const { service, here, goToIssuer, newAccount } = await useSignIns()
const { open, screenshot } = useBrowser()

describe.skipIf(!CHROMIUM)(`a browser that approves a command line (${CHROMIUM ?? NO_BROWSER})`, () => {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${service.node.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await response.json()) as { data: Record<string, string> }
  }

  it('shows who asks, and sends the decision by a button, without script', async () => {
    const project = await service.newProject()
    const { data } = await post('/console/oidc/device', { name: 'annals login on build-7' })
    const { id } = newAccount([`annals:${project.id}:member`])
    const start = `${service.node.url}/console/oidc/start?login=${data.user_code}`
    const { browser, back } = await goToIssuer(id, start)
    const { page } = await open('about:blank', { width: 720, height: 560 })
    // The service under its public address, to which the issuer sends people.
    await page.route(`${new URL(back).origin}/**`, async (route) => {
      const cookie = cookies(browser)
      const response = await route.fetch({
        url: here(route.request().url()),
        headers: { ...route.request().headers(), cookie },
      })
      await route.fulfill({ response })
    })
    await page.goto(back)
    expect(await page.getByRole('heading').textContent()).toBe('Approve a command line?')
    const text = await page.innerText('body')
    for (const shown of [data.user_code!, 'annals login on build-7', '127.0.0.1', 'refuse'])
      expect(text).toContain(shown)
    await screenshot(page, 'device-login')
    await page.getByRole('button', { name: `Approve for ${project.name}` }).click()
    await page.getByRole('heading', { name: 'The command line is signed in' }).waitFor()
    const taken = await post('/console/oidc/device/token', { device_code: data.device_code })
    expect(taken.data.token).toMatch(/^pat-annals-/)
  })
})
