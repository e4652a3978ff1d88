import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

/** Draws the pictures in docs/images from the demo, on a service of its own: `npm run screenshots`. */
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const ANNALS = join(ROOT, 'packages/server/bin/annals.js')
const BROWSER = [
  process.env.CHROMIUM,
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => path && existsSync(path))
const directory = mkdtempSync(join(tmpdir(), 'annals-screenshots-'))
const env = { ...process.env, ANNALS_DATA_DIR: join(directory, 'data'), PORT: '0', NO_COLOR: '1' }

/** Each picture: its view, and what has to be on the screen. */
const VIEWS = [
  ['console', (page, id) => open(page, `/sessions/${id}?seq=4`, 'Timeline')],
  ['console-search', (page) => open(page, '/search?q=refund', 'Entries found', 'list')],
  [
    'console-activity',
    (page) => open(page, '/activity?last=7d&tool=issue_refund', 'Failed calls of issue_refund'),
  ],
]

async function open(page, path, name, role = 'region') {
  await page.goto(`${new URL(page.url()).origin}/console${path}`)
  await page.getByRole(role, { name }).waitFor()
  await page.getByText('Indexing: ').waitFor({ state: 'detached' })
  await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => {})
}

async function linkOf(output) {
  for await (const line of createInterface({ input: output })) {
    const link = /http:\/\/\S+\/console#code=[\w-]+/.exec(line)?.[0]
    if (link) return link
  }
  throw new Error('The service printed no link to its console.')
}

// Before the service, which would outlive a script that finds no browser.
const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] })
const service = spawn(process.execPath, [ANNALS, 'serve'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
const ended = new Promise((resolve) => service.once('exit', resolve))
try {
  const link = await linkOf(service.stdout)
  service.stdout.resume()
  const demo = spawnSync(process.execPath, [ANNALS, 'demo'], { env, encoding: 'utf8' })
  if (demo.status !== 0) throw new Error(demo.stderr)
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(link)
  await page.getByRole('table', { name: 'Sessions' }).waitFor()
  await open(page, '/sessions?user=omar&filter={"outcome":"failed"}', 'Sessions, scrollable')
  const id = (await page.locator('.row-link').first().getAttribute('href')).split('/').at(-1)
  for (const [name, show] of VIEWS) {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme })
      await show(page, id)
      const file = `${name}${colorScheme === 'dark' ? '-dark' : ''}.png`
      await page.screenshot({ path: join(ROOT, 'docs/images', file) })
    }
  }
} finally {
  await browser.close()
  service.kill()
  await ended
  rmSync(directory, { recursive: true, force: true })
}
