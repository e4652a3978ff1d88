import { beforeAll, describe, expect, it } from 'vitest'
import { putBlob, sha256Of } from '../harness/blobs.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { bombStream, bombStreams, pdfStream, redPdf } from '../harness/pdf.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

/* PDFs in the console: their pages are drawn, and nothing in them runs. */

/** To unpack half a gigabyte takes a quiet machine up to 20 s. */
const OPTIONS = { timeout: 300_000 }
/** Long before that, so that the test of a busy machine says what it waited for. */
const SHOWN = { timeout: 60_000 }
const service = useSharedService()
const browser = useBrowser()
let tab: Tab

const RUN = "app.alert('run'); globalThis.hasRun = true; alert('run'); fetch('https://example.com/run')"
const ACTION = `<< /S /JavaScript /JS (${RUN.replaceAll(/[()]/g, '\\$&')}) >>`
/** Everything at once in which a PDF can carry something that runs, or that is fetched. */
const HOSTILE = redPdf(1, {
  more: `/OpenAction ${ACTION} /AA << /WC ${ACTION} >> /Names << /JavaScript << /Names [(a) ${ACTION}] >> >>
    /AcroForm << /Fields [5 0 R] /XFA 7 0 R >>`,
  objects: [
    `<< /Type /Annot /Subtype /Widget /FT /Tx /T (name) /V (value) /Rect [0 0 50 20] /A ${ACTION}
      /AA << /F ${ACTION} /C ${ACTION} /E ${ACTION} >> >>`,
    '<< /Type /Annot /Subtype /Link /Rect [0 0 200 100] /A << /S /URI /URI (https://example.com/link) >> >>',
    pdfStream(`<xdp><script contentType="application/x-javascript">${RUN}</script></xdp>`),
    pdfStream('d0 0 0 10 10 re f'),
  ],
  page: '/Annots [5 0 R 6 0 R]',
  // What a reader that makes functions of text runs as code.
  font: `<< /Type /Font /Subtype /Type3 /FontBBox [0 0 10 10] /FontMatrix [1 0 0 1 0 (0\\); alert\\(1\\); //)]
    /CharProcs << /a 8 0 R >> /Encoding << /Differences [82 /a] >> /FirstChar 82 /LastChar 82 /Widths [10] >>`,
})
const FILES: Record<string, Buffer> = {
  'report.pdf': redPdf(9),
  'hostile.pdf': HOSTILE,
  'damaged.pdf': Buffer.concat([redPdf(1).subarray(0, 60), Buffer.alloc(4_000, 7)]),
  // A megabyte of nothing, which unpacks to a gigabyte.
  'bomb.pdf': redPdf(1, { content: bombStream(1_024) }),
  'huge-page.pdf': Buffer.from(redPdf(1).toString('latin1').replace('200 100]', '9e9 1e-9]'), 'latin1'),
}

const BOMBS = Object.entries(bombStreams()).map(([name, content]) => [name, redPdf(1, { content })] as const)
for (const [name, bytes] of BOMBS) FILES[name] = bytes

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
  const content: object[] = [{ type: 'text', text: 'See what I attached' }]
  for (const [filename, bytes] of Object.entries(FILES)) {
    expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
    const file_data = { annals_blob: sha256Of(bytes), media_type: 'application/pdf', filename }
    content.push({ type: 'file', file: { file_data, filename } })
  }
  const inline = `data:application/pdf;base64,${redPdf(1).toString('base64')}`
  content.push({ type: 'file', file: { file_data: inline, filename: 'inline.pdf' } })
  expectOk(await log.add({ role: 'user', content }), 201)
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${log.id}`)
}, OPTIONS.timeout)

const figure = (name: string) => tab.page.locator('figure').filter({ hasText: name })
const show = (name: string) => figure(name).getByRole('button', { name: 'Show', exact: true }).click()
const page = (name: string, number: number) =>
  figure(name).getByRole('img', { name: `${name}, page ${number}`, exact: true })
/** The colour in the upper left corner of a page. */
const cornerOf = (name: string, number: number) =>
  page(name, number).evaluate((element) => {
    const { data } = (element as HTMLCanvasElement).getContext('2d')!.getImageData(5, 5, 1, 1)
    return [...data]
  })
const RED = [255, 0, 0, 255]
/** On a busy machine, its time may be over first. */
const TOO_MUCH = /cannot be shown: it (unpacks to more than 512 MB|takes more than 20 seconds)\.$/

describe.skipIf(!CHROMIUM)(`PDFs (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, OPTIONS, () => {
  it('load nothing until somebody asks for their pages', async () => {
    await figure('report.pdf').waitFor()
    const scripts = await tab.page.evaluate<string[]>(
      "performance.getEntriesByType('resource').map(({ name }) => name)",
    )
    expect(scripts.filter((name) => name.includes('pdf'))).toEqual([])
    expect(tab.page.workers()).toEqual([])
  })

  it('are drawn, the first pages first, then more', async () => {
    await show('report.pdf')
    await expect.poll(() => cornerOf('report.pdf', 2)).toEqual(RED)
    await figure('report.pdf').getByText('Pages 1 to 2 of 9').waitFor()
    await figure('report.pdf').getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => cornerOf('report.pdf', 7)).toEqual(RED)
    await figure('report.pdf').getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => cornerOf('report.pdf', 9)).toEqual(RED)
    expect(await figure('report.pdf').getByRole('button', { name: 'Show more' }).count()).toBe(0)
  })

  it('are drawn where they stand in the message itself', async () => {
    await show('inline.pdf')
    await expect.poll(() => cornerOf('inline.pdf', 1)).toEqual(RED)
  })

  it('run none of the scripts that they carry, and fetch nothing', async () => {
    await show('hostile.pdf')
    await expect.poll(() => cornerOf('hostile.pdf', 1)).toEqual(RED)
    expect(await tab.page.evaluate("'hasRun' in globalThis")).toBe(false)
    expect(await tab.page.locator('iframe, object, embed, a[href*="example.com"]').count()).toBe(0)
    for (const worker of tab.page.workers()) {
      expect(await worker.evaluate("'hasRun' in globalThis")).toBe(false)
      const fetched = "fetch('/console').then(() => 'fetched', () => 'refused')"
      expect(await worker.evaluate(fetched)).toBe('refused')
    }
    expect(tab.complaints.filter((line) => !line.includes('Content Security Policy'))).toEqual([])
  })

  it('say what is wrong with them where they are damaged, and the rest of the page goes on', async () => {
    await show('damaged.pdf')
    await figure('damaged.pdf')
      .getByText(/^damaged\.pdf cannot be shown: /)
      .waitFor()
    await show('bomb.pdf')
    await figure('bomb.pdf').getByText(TOO_MUCH).waitFor(SHOWN)
    await show('huge-page.pdf')
    await figure('huge-page.pdf')
      .getByText(/cannot be shown: |Page 1 of 1/)
      .first()
      .waitFor()
    const [saved] = await Promise.all([
      tab.page.waitForEvent('download'),
      figure('damaged.pdf').getByRole('button', { name: 'Download' }).click(),
    ])
    expect(saved.suggestedFilename()).toBe('damaged.pdf')
  })

  it.each(BOMBS)('are not unpacked beyond a limit, whatever filters they go through: %s', async (name) => {
    await show(name)
    await figure(name).getByText(TOO_MUCH).waitFor(SHOWN)
  })

  it('leave no worker behind when their entry is gone', async () => {
    expect(tab.page.workers().length).toBeGreaterThan(0)
    await tab.page.getByRole('link', { name: 'Sessions' }).first().click()
    await expect.poll(() => tab.page.workers().length).toBe(0)
  })
})
