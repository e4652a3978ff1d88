import { readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { type SessionLog, sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab
let log: SessionLog
let id: string

const entry = (seq: number) => tab.page.getByRole('article', { name: `Entry ${seq}`, exact: true })
const notice = (text: string) => tab.page.getByRole('status', { name: 'Notice' }).filter({ hasText: text })
const clipboard = () => tab.page.evaluate('navigator.clipboard.readText()') as Promise<string>
const call = { id: 'c1', type: 'function', function: { name: 'find', arguments: '{"where":"a >= b"}' } }

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  id = expectOk(await api.createSession({ configs: { agent: 'reader' } }), 201).id
  log = sessionLog(api, id)
  expectOk(await log.add({ role: 'user', content: 'Which a is >= b, and why -> there?' }), 201)
  expectOk(await log.add({ role: 'assistant', content: null, tool_calls: [call] }), 201)
  expectOk(await log.addEvent('tool_call', { id: 'c1', name: 'find', arguments: { where: 'a >= b' } }))
  expectOk(await log.add({ role: 'tool', tool_call_id: 'c1', content: 'seven *rows* != **none**' }), 201)
  expectOk(await log.add({ role: 'assistant', content: 'Seven.' }), 201)
  tab = await browser.open(`${service.node.url}/console`)
  await tab.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
  await entry(5).waitFor()
})

describe.skipIf(!CHROMIUM)(`reading a session (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('has the title of what the user asked, on the page and in the tab', async () => {
    await tab.page.getByRole('heading', { level: 1, name: 'Which a is >= b' }).waitFor()
    await expect.poll(() => tab.page.title()).toMatch(/^Which a is >= b.* · Annals$/)
  })

  it('shows no ligature anywhere, and a plain result in the fixed font as it is', async () => {
    const result = entry(2).locator('.plain-text', { hasText: 'seven *rows* != **none**' })
    await result.waitFor()
    expect(await result.evaluate((element) => getComputedStyle(element).fontFamily)).toMatch(/Mono/)
    const settings = await tab.page.evaluate(() =>
      [...document.querySelectorAll('body *')].map((element) => {
        const { fontVariantLigatures, fontFeatureSettings } = getComputedStyle(element)
        return `${fontVariantLigatures} ${/"(?:calt|liga|dlig)"/.test(fontFeatureSettings)}`
      }),
    )
    expect(new Set(settings)).toEqual(new Set(['none false']))
  })

  it('shows a call that is recorded twice once, and its result with it, without a row of their own', async () => {
    expect(await tab.page.getByRole('region', { name: /^Tool call/ }).count()).toBe(1)
    expect(await tab.page.getByText('Result of').count()).toBe(0)
    for (const seq of [3, 4]) expect(await entry(seq).count()).toBe(0)
    await entry(1).getByRole('button', { name: 'Go to entry 1' }).click()
    const seqs: string[] = []
    for (let step = 0; step < 2; step++) {
      await tab.page.keyboard.press('j')
      seqs.push(await tab.page.evaluate('new URLSearchParams(location.search).get("seq")'))
    }
    expect(seqs).toEqual(['2', '5'])
  })

  it('opens the JSON of a format down to what was said', async () => {
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${id}?format=anthropic`)
    for (const text of ['tool_use', 'a >= b']) await entry(2).getByText(text).waitFor()
    expect(await entry(2).getByRole('button', { expanded: false }).count()).toBe(0)
    await page.goto(`${service.node.url}/console/sessions/${id}`)
  })

  it.each([
    ['JSON', 'json', (text: string) => JSON.parse(text)],
    [
      'NDJSON',
      'ndjson',
      (text: string) =>
        text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
    ],
  ])('saves the whole conversation as %s, as the API has it', async (name, ending, parse) => {
    const text = await saved(`Download ${name}`, `session-${id}.${ending}`)
    const items = expectOk(await log.timeline({})).items
    expect(parse(text)).toEqual(items)
  })

  it('saves the conversation in the chosen format, and copies and saves it as Markdown', async () => {
    const { page } = tab
    await page.getByLabel('Format').selectOption('anthropic')
    const messages = JSON.parse(await saved('Download Anthropic JSON', `session-${id}.anthropic.json`))
    const stored = await api.request<{ items: unknown[] }>('GET', `/api/v1/session/${id}/messages`, {
      query: { format: 'anthropic' },
    })
    expect(messages).toEqual(expectOk(stored).items)
    await page.getByLabel('Format').selectOption('')
    const text = await saved('Download Markdown', `session-${id}.md`)
    for (const part of ['Which a is >= b', 'Tool call 1: `find`', 'seven *rows* != **none**'])
      expect(text.split(part)).toHaveLength(2)
    await page.getByRole('button', { name: 'Whole conversation' }).click()
    await page.getByRole('button', { name: 'Copy as Markdown' }).click()
    await notice('Copied the conversation as Markdown').waitFor()
    expect(await clipboard()).toBe(text)
  })

  it('says what was copied: a link that leads to its entry, and an entry by its key', async () => {
    const { page } = tab
    await entry(5).hover()
    await entry(5).getByRole('button', { name: 'Link' }).click()
    await notice('Copied the link to entry 5').waitFor()
    expect(await clipboard()).toBe(`${service.node.url}/console/sessions/${id}?seq=5`)
    await entry(2).getByRole('button', { name: 'Go to entry 2' }).click()
    await page.keyboard.press('c')
    await notice('Copied entry 2 as JSON').waitFor()
    expect(JSON.parse(await clipboard())).toMatchObject({ seq: 2 })
  })

  it('says how many entries are new below what is read, and leads to them', async () => {
    const { page } = tab
    const long = Array.from({ length: 40 }, (_, n) => ({ kind: 'event', type: `step_${n}`, data: {} }))
    expectOk(await log.batch(long), 201)
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await page.getByRole('button', { name: 'Live' }).waitFor()
    expect(await page.getByRole('button', { name: /new ↓$/ }).count()).toBe(0)
    expectOk(await log.batch(long.slice(0, 3)), 201)
    await page.getByRole('button', { name: '3 new ↓' }).click()
    await entry(48).waitFor()
    await expect.poll(() => page.getByRole('button', { name: /new ↓$/ }).count()).toBe(0)
    expectOk(await log.addEvent('followed', {}))
    await entry(49).waitFor()
    expect(await page.getByRole('button', { name: /new ↓$/ }).count()).toBe(0)
  })

  it('shows what was retracted, and by which entry', async () => {
    const retracted = await api.request('POST', `/api/v1/session/${id}/retractions`, { body: { last: 1 } })
    expect(retracted.status).toBeLessThan(300)
    await tab.page.goto(`${service.node.url}/console/sessions/${id}?seq=49`)
    await entry(49).getByText('Retracted by entry').waitFor()
    expect(await tab.page.locator('.is-retracted').count()).toBe(1)
    expect(tab.complaints).toEqual([])
  })

  it('folds a summary, and leads to the entries that it stands for', async () => {
    const body = {
      to_seq: 48,
      summary: { blob: { role: 'user', content: 'What was said so far.' } },
      by: 'me',
    }
    const compacted = await api.request<{ seq: number }>('POST', `/api/v1/session/${id}/compactions`, {
      body,
    })
    const { seq } = expectOk(compacted, 201)
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${id}?seq=${seq}`)
    const card = page.getByRole('region', { name: 'Summary' })
    await card.getByText('stands for entries 1 to 48 in contexts').waitFor()
    expect(await card.getByText('What was said so far.').isVisible()).toBe(false)
    await card.getByText('What it says').click()
    await card.getByText('What was said so far.').waitFor()
    await card.getByRole('button', { name: '48' }).click()
    await entry(48).waitFor()
    expect(tab.complaints).toEqual([])
  })
})

/** What an item of the menu saves as a file of this name. */
async function saved(item: string, name: string): Promise<string> {
  await tab.page.getByRole('button', { name: 'Whole conversation' }).click()
  const [file] = await Promise.all([
    tab.page.waitForEvent('download'),
    tab.page.getByRole('button', { name: item }).click(),
  ])
  expect(file.suggestedFilename()).toBe(name)
  return readFile(await file.path(), 'utf8')
}
