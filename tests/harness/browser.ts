import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { LEASE_MS } from './lease.ts'

/** The directory for pictures of each view, for whoever wants to look. They take a quarter of these tests' time. */
const { SCREENSHOTS } = process.env
// The shell is Chromium without windows of its own, and takes little more than half the CPU time.
const PLACES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** As long as a poll of vitest's: a page of a busy machine may take its time. */
const WAIT_MS_MAX = 60_000 + LEASE_MS

/** The machine's Chromium; undefined where there is none. */
export const CHROMIUM = PLACES.find((path) => path && existsSync(path))

/** Why tests that need a browser are skipped here. */
export const NO_BROWSER =
  'no Chromium is here: install it (apt-get install chromium-headless-shell), or name one in CHROMIUM, to run the tests of the console'

export interface TabOptions {
  width?: number
  height?: number
  theme?: 'light' | 'dark'
}

/** A tab, and what it did that a console must not do: errors, and requests to anywhere else. */
export interface Tab {
  page: Page
  complaints: string[]
}

export interface Browsers {
  open(url: string, options?: TabOptions): Promise<Tab>
  /** Where `SCREENSHOTS` names a directory. */
  screenshot(page: Page, name: string): Promise<void>
}

let launched: Promise<Browser> | undefined

/** One for all files of a process, with which it ends: what a tab keeps is its own, and a start takes a second. */
function launch(): Promise<Browser> {
  // Chromium does not run for root within its own sandbox.
  launched ??= chromium.launch({ executablePath: CHROMIUM!, args: ['--no-sandbox'] })
  return launched
}

/** Registers the hooks that start a browser before, and close its tabs after, the tests of the calling file. */
export function useBrowser(): Browsers {
  let browser: Browser | undefined
  const contexts: BrowserContext[] = []
  beforeAll(async () => {
    if (CHROMIUM) browser = await launch()
  })
  afterAll(async () => {
    for (const context of contexts) await context.close()
  })
  return {
    open: async (url, { width = 1280, height = 800, theme = 'light' } = {}) => {
      const context = await browser!.newContext({
        viewport: { width, height },
        colorScheme: theme,
        // A pulse that nobody sees is drawn sixty times a second for as long as its tab is open.
        reducedMotion: 'reduce',
      })
      context.setDefaultTimeout(WAIT_MS_MAX)
      contexts.push(context)
      const page = await context.newPage()
      const complaints = watch(page, new URL(url).origin)
      await page.goto(url)
      return { page, complaints }
    },
    screenshot: async (page, name) => {
      if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
    },
  }
}

function watch(page: Page, origin: string): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`))
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    // What the service refuses is shown on the page; the browser's own line about it says nothing more.
    const is_refusal = message.text().startsWith('Failed to load resource')
    if (message.type() === 'error' && !is_refusal) complaints.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(`${origin}/`) && !/^(?:data|blob):/.test(url)) complaints.push(`request: ${url}`)
  })
  return complaints
}

/** Signs in with an API key, as a person does. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('API key').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
}
