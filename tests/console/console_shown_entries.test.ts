import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const OPTIONS = { timeout: 60_000 }
const service = useSharedService()
const browser = useBrowser()
let tab: Tab

/** A question, two calls of which the second fails after 14 events of progress, and an answer. */
beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
  const event = (type: string, data: object) => ({ kind: 'event', type, data })
  const entries = [
    { kind: 'message', blob: { role: 'user', content: 'Pay it.' } },
    event('tool_call', { name: 'find', call_id: 'a', arguments: {} }),
    event('tool_result', { call_id: 'a', result: 'found' }),
    event('tool_call', { name: 'pay', call_id: 'b', arguments: {} }),
    ...Array.from({ length: 14 }, (_, n) => event('progress', { n })),
    event('tool_result', { call_id: 'b', result: 'Error: no money' }),
    { kind: 'message', blob: { role: 'assistant', content: 'There is no money.' } },
  ]
  expectOk(await log.batch(entries), 201)
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${log.id}`)
}, OPTIONS.timeout)

describe.skipIf(!CHROMIUM)(`a log (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, OPTIONS, () => {
  const rows = () => tab.page.getByRole('article').evaluateAll((all) => all.map((row) => row.ariaLabel))
  const entries = (...seqs: number[]) => seqs.map((seq) => `Entry ${seq}`)

  it('folds many events of one type in a row, and shows them when they are asked for', async () => {
    const timeline = tab.page.getByRole('region', { name: 'Timeline' })
    const fold = timeline.getByRole('button', { name: '14 × progress' })
    await fold.waitFor()
    expect(await rows()).toEqual(entries(1, 2, 4, 20))
    await tab.page.getByRole('navigation', { name: 'Tool calls' }).getByText('14 × progress').waitFor()
    await fold.click()
    await tab.page.getByRole('article', { name: 'Entry 6' }).waitFor()
  })

  it('shows messages, calls, failed calls or events alone', async () => {
    const { page } = tab
    for (const [name, seqs] of [
      ['Messages', [1, 20]],
      ['Tool calls', [2, 4]],
      ['Failed calls', [4]],
    ] as const) {
      await page.getByLabel('Show').selectOption(name)
      await expect.poll(rows).toEqual(entries(...seqs))
    }
    expect(new URL(page.url()).searchParams.get('show')).toBe('failed')
    await page.getByLabel('Show').selectOption('Everything')
    await page.getByRole('article', { name: 'Entry 6' }).waitFor()
    expect(tab.complaints).toEqual([])
  })
})
