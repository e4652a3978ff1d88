import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { useClientCommands } from '../harness/client_commands.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const VECTORS = new URL('../../packages/messages/test/vectors/calls.json', import.meta.url)
const service = useSharedService()
const commands = useClientCommands(service)
const browser = useBrowser()
let tab: Tab

/** A call in so many words, as both readers should tell of it. */
type Told = { number: number; name: string; seq: number; verdict: string }
const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as {
  vectors: { name: string; entries: Record<string, unknown>[]; calls: Told[]; shown_elsewhere: number[] }[]
}
const SHOWN = [
  'a call in a message, an event that repeats it, a result that begins with Exception:, and an event of the type tool-call',
  'a message that repeats calls of events',
  'a call and its result in the format gemini, without an id',
  'tools that the provider runs',
  'calls and results in the format responses',
  'built-in tools of OpenAI that the caller runs',
  'events without ids: results go to the calls of their name, oldest first',
  'a stream of the AI SDK, whose parts end anywhere in its events',
  'messages that a graph of LangGraph writes',
  'messages of Pydantic AI',
]
const STATES: Record<string, string> = { failed: 'failed', answered: 'ok', 'no result yet': 'open' }

beforeAll(async () => {
  if (!CHROMIUM) return
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, commands.token)
})

describe.skipIf(!CHROMIUM)(`a session’s tool calls (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it.each(SHOWN)('are the same on the page and on the command line: %s', async (name) => {
    const { entries, calls, shown_elsewhere } = vectors.find((vector) => vector.name === name)!
    const id = await commands.newSession()
    const log = sessionLog(commands.api, id)
    for (const entry of entries) expectOk(await log.batch([entry]), 201)
    const expected = calls.map(({ number, name, seq, verdict }) => ({ number, name, seq, verdict }))
    expect(await onTheCommandLine(id)).toEqual(expected)
    await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
    await expect.poll(onThePage).toEqual(expected)
    for (const seq of shown_elsewhere)
      expect(await tab.page.getByRole('article', { name: `Entry ${seq}`, exact: true }).count()).toBe(0)
    // Somebody who asks for such an entry is led to its call.
    for (const seq of shown_elsewhere) {
      await tab.page.goto(`${service.node.url}/console/sessions/${id}?seq=${seq}`)
      const entry = tab.page.getByRole('article', { name: `Entry ${seq}`, exact: true })
      await entry
        .getByRole('button', { name: /^(?:call \d+, |the text at entry )/ })
        .first()
        .waitFor()
      expect(await entry.getByRole('region').count()).toBe(0)
    }
    expect(tab.complaints).toEqual([])
  })

  it('show the result of a call far above, as it is stored', async () => {
    const id = await commands.newSession()
    const log = sessionLog(commands.api, id)
    expectOk(await log.addEvent('tool-call', { id: 'c', name: 'find', arguments: { n: 1 } }))
    expectOk(await log.addEvent('note', { text: 'between' }))
    await tab.page.goto(`${service.node.url}/console/sessions/${id}`)
    const state = tab.page.getByRole('region', { name: 'Tool call 1: find' }).locator('.call-state')
    await state.filter({ hasText: 'no result yet' }).waitFor()
    await tab.page.getByRole('button', { name: 'Live' }).waitFor()
    expectOk(await log.addEvent('tool_result', { id: 'c', result: 'Exception: nothing is found' }))
    await state.filter({ hasText: 'failed' }).waitFor()
    expect(await onTheCommandLine(id)).toEqual([{ number: 1, name: 'find', seq: 1, verdict: 'failed' }])
  })

  it('stand as items of their own beside what was said, in the format that has them so', async () => {
    const id = await commands.newSession()
    const called = { name: 'find', arguments: '{}' }
    const tool_calls = [{ id: 'call_77', type: 'function', function: called }]
    expectOk(
      await sessionLog(commands.api, id).add({ role: 'assistant', content: 'One moment', tool_calls }),
      201,
    )
    await tab.page.goto(`${service.node.url}/console/sessions/${id}?format=responses`)
    const entry = tab.page.getByRole('article', { name: 'Entry 1', exact: true })
    for (const text of ['One moment', 'function_call', 'call_77']) await entry.getByText(text).waitFor()
    expect(tab.complaints).toEqual([])
  })
})

async function onTheCommandLine(id: string): Promise<Told[]> {
  const calls = await commands.values<Omit<Told, 'verdict'> & { result: { is_error: boolean } | null }>(
    'show',
    id,
    '--tools',
    '--json',
  )
  return calls.map(({ number, name, seq, result }) => ({
    number,
    name,
    seq,
    verdict: result === null ? 'open' : result.is_error ? 'failed' : 'ok',
  }))
}

async function onThePage(): Promise<Told[]> {
  const cards = await tab.page.getByRole('region', { name: /^Tool call \d+: / }).all()
  return Promise.all(
    cards.map(async (card) => {
      const label = (await card.getAttribute('aria-label'))!
      const [, number, name] = /^Tool call (\d+): (.*)$/.exec(label)!
      const entry = card.locator('xpath=ancestor::article')
      const state = (await card.locator('.call-state').innerText()).replace(/ in .*/s, '').trim()
      return {
        number: Number(number),
        name: name!,
        seq: Number((await entry.getAttribute('aria-label'))!.slice('Entry '.length)),
        verdict: STATES[state] ?? state,
      }
    }),
  )
}
