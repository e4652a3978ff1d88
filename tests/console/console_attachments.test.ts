import { beforeAll, describe, expect, it } from 'vitest'
import { putBlob, sha256Of } from '../harness/blobs.ts'
import { CHROMIUM, NO_BROWSER, signIn, type Tab, useBrowser } from '../harness/browser.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'
import { sessionLog } from '../harness/session_log.ts'

const service = useSharedService()
const browser = useBrowser()
let tab: Tab
/** One pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
/** A hundredth of a second of silence. */
const WAV = Buffer.concat([
  Buffer.from('RIFF'),
  Buffer.from([0xc4, 0, 0, 0]),
  Buffer.from('WAVEfmt '),
  Buffer.from([16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0]),
  Buffer.from('data'),
  Buffer.from([0xa0, 0, 0, 0]),
  Buffer.alloc(160),
])
const PDF = Buffer.from('%PDF-1.4 not much of one')
const SVG = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>',
)
const HTML = Buffer.from('<!doctype html><script>alert(3)</script><img src="x" onerror="alert(4)">')

beforeAll(async () => {
  if (!CHROMIUM) return
  const project = await service.newProject()
  const api = await service.newClient({ token: project.token })
  const log = sessionLog(api, expectOk(await api.createSession({}), 201).id)
  for (const bytes of [PNG, WAV, PDF, SVG, HTML])
    expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  const blob = (bytes: Buffer, media_type: string, filename: string) => ({
    annals_blob: sha256Of(bytes),
    media_type,
    filename,
  })
  const content = [
    { type: 'text', text: 'See what I attached' },
    { type: 'image_url', image_url: { url: blob(PNG, 'image/png', 'pixel.png') } },
    { type: 'input_audio', input_audio: { data: blob(WAV, 'audio/wav', 'silence.wav'), format: 'wav' } },
    { type: 'file', file: { file_data: blob(PDF, 'application/pdf', 'report.pdf'), filename: 'report.pdf' } },
    { type: 'image_url', image_url: { url: blob(SVG, 'image/svg+xml', 'evil.svg') } },
    { type: 'image_url', image_url: { url: blob(HTML, 'image/png', 'page.png') } },
    { type: 'image_url', image_url: { url: blob(SVG, 'image/png', 'drawing.png') } },
    { type: 'input_audio', input_audio: { data: WAV.toString('base64'), format: 'wav' } },
  ]
  expectOk(await log.add({ role: 'user', content }), 201)
  expectOk(await log.addEvent('chart', { shot: blob(PNG, 'image/png', 'chart.png') }))
  tab = await browser.open(`${service.node.url}/console`)
  await signIn(tab.page, project.token)
  await tab.page.goto(`${service.node.url}/console/sessions/${log.id}`)
})

describe.skipIf(!CHROMIUM)(`attachments (${CHROMIUM ? 'in Chromium' : NO_BROWSER})`, () => {
  it('are shown where they are images or recordings, also those of events', async () => {
    const { page } = tab
    const widths = (all: unknown[]) => all.map((one) => (one as { naturalWidth: number }).naturalWidth)
    await expect.poll(() => page.locator('img.picture').evaluateAll(widths)).toEqual([1, 1])
    await page.getByRole('img', { name: 'chart.png' }).waitFor()
    await expect
      .poll(() =>
        page
          .locator('audio')
          .evaluateAll((all) => all.map((one) => (one as unknown as { duration: number }).duration)),
      )
      .toEqual([0.01, 0.01])
  })

  it('are saved where they are files, and run nothing', async () => {
    const { page } = tab
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page
        .locator('figure')
        .filter({ hasText: 'report.pdf' })
        .getByRole('button', { name: 'Download' })
        .click(),
    ])
    expect(saved.suggestedFilename()).toBe('report.pdf')
    await page.locator('figure').filter({ hasText: 'image/svg+xml' }).waitFor()
    // What is no image says so, whatever it is called.
    const unread = page.getByText('Not shown: your browser cannot read it as image/png.')
    await expect.poll(() => unread.count()).toBe(2)
    expect(await page.locator('iframe, object, embed').count()).toBe(0)
    expect(await page.locator('img.picture').count()).toBe(2)
    expect(page.frames()).toHaveLength(1)
    expect(tab.complaints).toEqual([])
  })
})
