import { existsSync } from 'node:fs'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { BenchFailure } from '../failure.ts'
import type { Service } from '../service.ts'

const PLACES = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser']
const TURN_MS = 30

/** What a reader sees of a way through a list or a log: ms between frames, and how much work a frame is. */
export interface Frames {
  name: string
  half_ms: number
  p95_ms: number
  longest_ms: number
  work_ms: number
}

/** Chromium, with a tab at the console. */
export class ConsoleTab {
  readonly page: Page
  readonly #browser: Browser
  readonly #devtools: CDPSession

  private constructor(browser: Browser, page: Page, devtools: CDPSession) {
    this.#browser = browser
    this.page = page
    this.#devtools = devtools
  }

  /** A tab that is signed in and shows the list. */
  static async open({ url, token }: Service): Promise<ConsoleTab> {
    const executablePath = PLACES.find((path) => path && existsSync(path))
    if (!executablePath) throw new BenchFailure('No Chromium is here: install it, or name one in CHROMIUM.')
    // Chromium does not run for root within its own sandbox.
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('Performance.enable')
    await page.goto(`${url}/console`)
    await page.getByLabel('API key').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const tab = new ConsoleTab(browser, page, devtools)
    await tab.firstRows()
    return tab
  }

  async firstRows(): Promise<void> {
    await this.page
      .getByRole('link', { name: /^Session / })
      .first()
      .waitFor()
  }

  /** Turns the wheel over the middle of the page. */
  async turn(times: number, px: number): Promise<void> {
    await this.page.mouse.move(500, 550)
    for (let turn = 0; turn < times; turn++) {
      await this.page.mouse.wheel(0, px)
      await this.page.waitForTimeout(TURN_MS)
    }
  }

  /** The frames that are shown while `work` runs. */
  async frames(name: string, work: () => Promise<void>): Promise<Frames> {
    await this.page.evaluate(`{
      const frames = (window.bench_frames = [])
      let before = performance.now()
      const seen = (now) => {
        frames.push(now - before)
        before = now
        if (window.bench_frames === frames) requestAnimationFrame(seen)
      }
      requestAnimationFrame(seen)
    }`)
    const began_s = await this.#taskSeconds()
    await work()
    const took_ms = ((await this.#taskSeconds()) - began_s) * 1000
    const frames = (await this.page.evaluate('bench_frames.splice(0)')) as number[]
    frames.sort((a, b) => a - b)
    const at = (share: number) => Math.round(frames[Math.floor((frames.length - 1) * share)]!)
    const work_ms = Math.round(took_ms / frames.length)
    return { name, half_ms: at(0.5), p95_ms: at(0.95), longest_ms: at(1), work_ms }
  }

  async close(): Promise<void> {
    await this.#browser.close()
  }

  async #taskSeconds(): Promise<number> {
    const { metrics } = await this.#devtools.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration')!.value
  }
}

/** ms that something took. */
export async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return Math.round(performance.now() - began)
}
