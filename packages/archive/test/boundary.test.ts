import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { importsOf } from '../../server/test/source_imports.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))
/** Beside Node and its own files: the kits, what learning knows of skills, and the server’s tables and SQL, not what serves requests or composes the service. */
const MAY_IMPORT =
  /^(node:|\.|@annals\/(messages|embedded-postgres|learning)(\/|$)|@annals\/kits\/(?!http\/)|annals\/dist\/(?!service\/|cluster\/|console_api\/|.*(_routes|\/module)\.js$))/

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(SRC, name), 'utf8') }))

it('imports the tables and the SQL of the server, and nothing that serves requests', () => {
  const wrong = files.flatMap(({ name, text }) =>
    importsOf(text)
      .filter((specifier) => !MAY_IMPORT.test(specifier))
      .map((specifier) => `${name} imports ${specifier}`),
  )
  expect(files.length).toBeGreaterThan(30)
  expect(wrong).toEqual([])
})
