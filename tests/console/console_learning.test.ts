import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { ApiClient, Page } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
let space = ''
/** Sessions by the tool that failed in them. */
const sessions: Record<string, string> = {}
const open = (path: string) => tab.page.goto(`${service.node.url}/console${path}`)
const region = (name: string) => tab.page.getByRole('region', { name, exact: true })
const shown = () => region('Statements').getByRole('article')
const post = <T = Record<string, unknown>>(path: string, body: unknown) =>
  api.request<T>('POST', `/api/v1${path}`, { body })

interface Statement {
  id: string
  text: string
  state: string
}
const statements = async () =>
  expectOk(await api.request<Page<Statement>>('GET', `/api/v1/learning_spaces/${space}/statements`)).items
const decide = async (tool: string, state: string) => {
  const { id } = (await statements()).find(({ text }) => text.startsWith(`\`${tool}\``))!
  expectOk(await api.request('PATCH', `/api/v1/statements/${id}`, { body: { state } }))
}

/** A session of the space in which a tool fails. */
async function failIn(tool: string) {
  const { id } = expectOk(await api.createSession({ user: 'ada' }), 201)
  const entries = [
    { kind: 'message', blob: { role: 'user', content: `Please ${tool}` } },
    {
      kind: 'event',
      type: 'tool_call',
      data: { name: tool, arguments: {}, error: `${tool} is not possible` },
    },
  ]
  expectOk(await post(`/session/${id}/entries`, { entries }), 201)
  expectOk(await post(`/learning_spaces/${space}/learn`, { session_id: id }), 201)
  sessions[tool] = id
}

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  space = expectOk(await api.createLearningSpace({}), 201).id
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`what a space learnt (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('says of a new space how to begin, and shows proposals without a reload when it has learnt', async () => {
    await open(`/spaces/${space}`)
    await region('Statements').getByText(`npx annals spaces learn ${space}`).waitFor()
    await region('Skills').getByText('approve one').waitFor()
    for (const tool of ['book', 'seek', 'cancel', 'refund']) await failIn(tool)
    await expect.poll(() => shown().count()).toBe(4)
    await region('Statements').getByRole('button', { name: 'Proposed 4' }).waitFor()
    const card = shown().filter({ hasText: 'book' })
    const said = await card.innerText()
    for (const words of ['fact', 'found by rules', '1 session supports it', 'book answered']) {
      expect(said).toContain(words)
    }
  })

  it('opens the entry that a citation names', async () => {
    const { page } = tab
    const id = sessions.book!
    const name = `[${id.slice(0, 4)}…${id.slice(-8)}#2]`
    const line = shown().filter({ hasText: 'book' }).getByRole('listitem')
    expect(await line.innerText()).toContain('book is not possible')
    await line.getByRole('link', { name }).click()
    await page.getByRole('article', { name: 'Entry 2', exact: true }).waitFor()
    expect(page.url()).toContain(`/sessions/${id}?seq=2`)
  })

  it('approves, edits and rejects by the keyboard, one statement for each press', async () => {
    const { page } = tab
    await open(`/spaces/${space}`)
    await expect.poll(() => shown().count()).toBe(4)
    const focused = () => page.evaluate('document.activeElement?.getAttribute("aria-label")')
    // No key decides before a statement was chosen.
    await page.keyboard.press('a')
    await page.keyboard.press('j')
    await expect.poll(focused).toContain('`refund`')
    // A key that is held repeats: that must not decide on what nobody has seen.
    await page.keyboard.down('r')
    await page.keyboard.down('r')
    await page.getByText('It is under Retired now').waitFor()
    await page.keyboard.down('r')
    await page.keyboard.up('r')
    await region('Statements').getByRole('button', { name: 'Retired 1' }).waitFor()
    await expect.poll(focused).toContain('`cancel`')
    await page.keyboard.press('e')
    const field = page.getByRole('textbox', { name: 'Statement' })
    await field.fill('Bookings cannot be cancelled on the day.')
    await page.getByLabel('Kind').selectOption('pitfall')
    await field.press('Control+Enter')
    await expect.poll(focused).toBe('Bookings cannot be cancelled on the day.')
    await page.keyboard.press('a')
    await region('Statements').getByRole('button', { name: 'Active 1' }).waitFor()
    await region('History').getByText('Approved.').waitFor()
    const states = (await statements()).map(({ text, state }) => [text.slice(0, 8), state])
    expect(Object.fromEntries(states)).toEqual({
      '`book` a': 'proposed',
      '`seek` a': 'proposed',
      Bookings: 'active',
      '`refund`': 'retired',
    })
    await page.keyboard.press('o')
    await page.getByRole('article', { name: 'Entry 2', exact: true }).waitFor()
  })

  it('changes how the space learns, and says that no model was asked', async () => {
    await open(`/spaces/${space}`)
    const policy = region('How it learns')
    await policy.getByText('No model was asked').waitFor()
    await policy.getByRole('combobox').selectOption('auto')
    await policy.getByRole('spinbutton').fill('5000')
    await policy.getByRole('button', { name: 'Save' }).click()
    await policy.getByText('becomes active once two users support it').waitFor()
    const path = `/api/v1/learning_spaces/${space}/policy`
    expect(expectOk(await api.request('GET', path))).toEqual({ mode: 'auto', max_tokens_per_day: 5_000 })
    await policy.getByRole('spinbutton').fill('')
    await policy.getByRole('button', { name: 'Save' }).click()
    await expect.poll(async () => expectOk(await api.request('GET', path))).toEqual({ mode: 'auto' })
  })

  it('says why a decision is refused, and shows what became of the statement', async () => {
    const { page } = tab
    await open(`/spaces/${space}`)
    const card = shown().filter({ hasText: 'seek' })
    await card.waitFor()
    // While the decision is on its way, the session that the statement rests on is deleted.
    await page.route('**/api/v1/statements/*', async (route) => {
      expectOk(await api.request('DELETE', `/api/v1/session/${sessions.seek}`))
      await route.continue()
    })
    await card.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('alert').filter({ hasText: 'Not changed' }).waitFor()
    await expect.poll(() => shown().count()).toBe(1)
    await page.unroute('**/api/v1/statements/*')
  })

  it('approves several that were chosen at once', async () => {
    const { page } = tab
    for (const tool of ['pack', 'ship']) await failIn(tool)
    const proposed = async () => (await statements()).filter(({ state }) => state === 'proposed')
    await vi.waitFor(async () => expect(await proposed()).toHaveLength(3), { timeout: 40_000 })
    await open(`/spaces/${space}`)
    await expect.poll(() => shown().count()).toBe(3)
    await page.getByRole('button', { name: 'Choose all 3' }).click()
    await shown().filter({ hasText: 'book' }).getByRole('checkbox').uncheck()
    await page.getByRole('button', { name: 'Approve 2' }).click()
    await expect.poll(() => shown().count()).toBe(1)
    const active = (await statements()).filter(({ state }) => state === 'active')
    expect(active.map(({ text }) => text.slice(0, 6)).toSorted()).toEqual(['Bookin', '`pack`', '`ship`'])
  })

  it('shows each state on an address of its own, the skill of what is active, and what was revoked and why', async () => {
    const { page } = tab
    await decide('book', 'active')
    await open(`/spaces/${space}?state=retired`)
    await shown().filter({ hasText: 'refund' }).waitFor()
    const skill = region('Skills').getByRole('listitem').filter({ hasText: 'book' })
    await skill.locator('summary').click()
    const file = region('SKILL.md of book')
    await file.waitFor()
    expect(await file.innerText()).toContain(`[${sessions.book}#2]`)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await skill.getByRole('button', { name: 'Copy' }).click()
    await page.getByText('Copied SKILL.md of book.').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await file.textContent())

    expectOk(await api.request('DELETE', `/api/v1/session/${sessions.book}`))
    await vi.waitFor(async () =>
      expect((await statements()).filter(({ state }) => state === 'revoked')).toHaveLength(2),
    )
    await page.reload()
    await region('Statements').getByRole('button', { name: 'Revoked 2' }).click()
    await shown().getByText('Its text is gone').first().waitFor()
    expect(new URL(page.url()).searchParams.get('state')).toBe('revoked')
    const version = region('History').getByRole('listitem').filter({ hasText: 'by an erasure' })
    await version.getByText('A session that it was learnt from was deleted.').click()
    await version.getByText('The text of this version is gone').waitFor()
    expect(tab.complaints).toEqual([])
  })
})
