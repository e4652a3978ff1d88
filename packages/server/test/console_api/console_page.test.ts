import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fastify from 'fastify'
import { afterAll, expect, it } from 'vitest'
import type { AppServer } from '../../../kits/src/http/app_server.ts'
import { type ConsoleParts, consoleRoutes } from '../../src/console_api/console_routes.js'

const directory = mkdtempSync(join(tmpdir(), 'annals-console-page-'))
afterAll(() => rmSync(directory, { recursive: true }))

const CONSOLE = join(directory, 'dist/console')

/** The page, and a script with a name of its own, as each build makes it. */
function build(script: string): void {
  rmSync(CONSOLE, { recursive: true, force: true })
  mkdirSync(join(CONSOLE, 'assets'), { recursive: true })
  writeFileSync(join(CONSOLE, 'assets', script), '')
  writeFileSync(join(CONSOLE, 'index.html'), `<script src="/console/assets/${script}"></script>`)
}

it('the console of a clone that is built while the service runs is what was built last', async () => {
  build('index-1.js')
  const app = fastify()
  const parts = { config: {}, tokens: {}, database: { of: () => ({}) } }
  await consoleRoutes(app as unknown as AppServer, parts as unknown as ConsoleParts, `${CONSOLE}/`)
  const page = () => app.inject('/console/sessions')
  expect((await page()).body).toContain('index-1.js')
  rmSync(CONSOLE, { recursive: true })
  expect(await page()).toMatchObject({ statusCode: 404, body: expect.stringContaining('npm run build') })
  build('index-2.js')
  expect(await page()).toMatchObject({ statusCode: 200, body: expect.stringContaining('index-2.js') })
  expect(await app.inject('/console/assets/index-2.js')).toMatchObject({ statusCode: 200 })
  await app.close()
})
