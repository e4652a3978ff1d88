import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const browser = useBrowser()
let api: ApiClient
let tab: Tab

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  api = await service.newClient({ token: project.token })
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
})

describe.skipIf(!CHROMIUM)(`the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  const say = async (id: string, content: string) =>
    expectOk(
      await api.request('POST', `/api/v1/session/${id}/messages`, {
        body: { blob: { role: 'user', content } },
      }),
      201,
    )
  const entry = (seq: number) => tab.page.getByRole('article', { name: `Entry ${seq}`, exact: true })

  it('shows a session in which a message is made to take it down', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    const quotes = `${'>'.repeat(2_400)} so deep`
    const emphasis = `${'*a_'.repeat(7_000)} so much`
    for (const content of ['before', quotes, emphasis, 'after']) await say(id, content)
    await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
    await entry(1).getByText('before').waitFor()
    await entry(4).getByText('after').waitFor()
    expect(await entry(2).innerText()).toContain('>'.repeat(2_400))
    await entry(3)
      .getByRole('button', { name: /^Show all/ })
      .click()
    await entry(3).getByText('so much').waitFor()
    expect(tab.complaints).toEqual([])
  })

  it('keeps what a session offers within the window, however long its names are', async () => {
    const user = 'u'.repeat(256)
    const configs = { title: 'long '.repeat(50), ['key_'.repeat(40)]: 'value '.repeat(50) }
    const { id } = expectOk(await api.createSession({ user, configs }), 201)
    await say(id, 'Hello')
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await entry(1).getByText('Hello').waitFor()
    await page.getByRole('link', { name: user }).waitFor()
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      const { x, width: taken } = (await page.getByRole('button', { name: 'Delete…' }).boundingBox())!
      expect(x + taken).toBeLessThanOrEqual(width)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  it('shows characters that deceive by their names, wherever they are drawn, and keeps joiners of scripts and emoji', async () => {
    const hostile = ['\u202e', '\u2066', '\u200b', '\u200c', '\u200d', '\u00ad', '\ufeff', '\u{e0041}']
    const within = (word: string) => hostile.map((character) => `${word}${character}x`).join(' ')
    const fine = 'نامه\u200cای 👩\u200d👧 क्\u200dष'
    const user = `us${hostile.join('')}er`
    const configs = { title: within('title'), [within('key')]: within('value') }
    const { id } = expectOk(await api.createSession({ user, configs }), 201)
    await say(id, `${within('said')} \`${within('code')}\` ${fine}`)
    const called = {
      id: 'c1',
      type: 'function',
      function: {
        name: within('tool'),
        arguments: JSON.stringify({ [within('argument')]: within('given') }),
      },
    }
    const blobs = [
      { role: 'assistant', content: null, tool_calls: [called] },
      { role: 'tool', tool_call_id: 'c1', content: within('result') },
    ]
    for (const blob of blobs)
      expectOk(await api.request('POST', `/api/v1/session/${id}/messages`, { body: { blob } }), 201)
    expectOk(await api.appendEvent(id, { type: within('type'), data: { [within('name')]: within('data') } }))
    expectOk(await api.createLearningSpace({ user, meta: { [within('meta')]: within('of a space') } }), 201)
    const { page } = tab
    /** All that is drawn, read out, or shown of an element, and what the tab is called. */
    const shown = () =>
      page.evaluate(() =>
        [
          document.title,
          document.body.innerText,
          ...Array.from(document.querySelectorAll('*'), (element) =>
            ['title', 'aria-label', 'alt', 'placeholder'].map((name) => element.getAttribute(name) ?? ''),
          ).flat(),
        ].join('\n'),
      )
    for (const path of [
      `sessions/${id}`,
      'sessions',
      'users',
      'spaces',
      `users/${encodeURIComponent(user)}`,
    ]) {
      await page.goto(`${service.node.url}/console/${path}`)
      await page.getByText('U+202E').filter({ visible: true }).first().waitFor()
      if (path.endsWith(id)) {
        await entry(1).getByText('نامه').waitFor()
        await entry(4).getByText('U+200C').first().waitFor()
        expect((await entry(1).innerText()).includes(fine)).toBe(true)
      }
      const text = (await shown()).replaceAll(fine, '')
      for (const character of hostile) {
        const at = text.indexOf(character)
        const place = `${path} ${character.codePointAt(0)!.toString(16)}: ${JSON.stringify(text.slice(Math.max(at - 40, 0), at + 40))}`
        expect(at, place).toBe(-1)
      }
    }
    expect(tab.complaints).toEqual([])
  })

  it('shows where a link leads beside what it says, and lets no text reorder what stands beside it', async () => {
    const { id } = expectOk(await api.createSession({ user: 'דוד' }), 201)
    await say(
      id,
      '[https://bank.example](https://evil.example/x) and [here](https://bаnk.example/) and https://a.example/',
    )
    const { page } = tab
    await page.goto(`${service.node.url}/console/sessions/${id}`)
    await entry(1).getByText('here').waitFor()
    const text = await entry(1).innerText()
    expect(text).toContain('https://bank.example (https://evil.example/x)')
    // The second letter of this host is Cyrillic.
    expect(text).toContain('here (https://xn--bnk-6cd.example/)')
    expect(text).toContain('and https://a.example/')
    expect(text).not.toContain('(https://a.example/)')
    const isolation = await page
      .getByText('דוד')
      .first()
      .evaluate((element) => getComputedStyle(element).unicodeBidi)
    expect(isolation).toMatch(/isolate|plaintext/)
  })

  it('shows the other entries where one cannot be drawn', async () => {
    const { id } = expectOk(await api.createSession({}), 201)
    await say(id, 'before')
    expectOk(await api.appendEvent(id, { type: 'cannot_be_drawn', data: { a: 1 } }))
    await say(id, 'after')
    // No entry is known that cannot be: here, what an event's card calls fails on this one.
    await tab.page.addInitScript(() => {
      const write = JSON.stringify
      JSON.stringify = (value: unknown, ...more: []) => {
        if (value !== null && typeof value === 'object' && 'a' in value) throw new Error('cannot be written')
        return write(value, ...more)
      }
    })
    await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
    await entry(1).getByText('before').waitFor()
    await entry(2).getByText('cannot be written').waitFor()
    await entry(3).getByText('after').waitFor()
  })
})
