import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CHROMIUM, NO_BROWSER, signIn, useBrowser } from '../harness/browser.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const browser = useBrowser()
const FIXTURE = fileURLToPath(
  new URL('../../packages/importers/test/fixtures/claude_code.jsonl', import.meta.url),
)

describe.skipIf(!CHROMIUM)(`importing in the console (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('reads a chosen file and a dropped one in the browser, stores what is new, and names what it refuses', async () => {
    const { page, complaints } = await browser.open(`${service.node.url}/console`)
    await signIn(page, (await service.newProject()).token)
    await page.getByLabel(/choose them/).setInputFiles(FIXTURE)
    const dialog = page.getByRole('dialog', { name: 'Import' })
    await dialog.getByText('claude_code.jsonl is claude-code: 16 lines read').waitFor()
    await dialog.getByText('Imported 2 sessions').waitFor()
    await dialog.getByRole('button', { name: 'Show the sessions' }).click()
    await page.getByRole('table', { name: 'Sessions' }).getByText('Failing tests').first().waitFor()

    const text = `${readFileSync(FIXTURE, 'utf8')}{"type":\n`
    await page.evaluate((content) => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(new File([content], 'again.jsonl'))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }))
    }, text)
    await dialog.getByText('Imported 0 sessions, 0 entries. Already there: 2 sessions').waitFor()
    await dialog.getByText('again.jsonl, line 17: refused, it is not JSON').waitFor()
    expect(complaints).toEqual([])
  })
})
