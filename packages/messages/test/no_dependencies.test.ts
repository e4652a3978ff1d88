import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { importsOf } from '../../server/test/source_imports.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(SRC, name), 'utf8') }))

// The compiler refuses Node's globals, such as `Buffer`: the package is compiled without their types.
describe('the package', () => {
  it('imports its own files alone, so that a browser can load it', () => {
    expect(files.length).toBeGreaterThan(15)
    const foreign = files.flatMap(({ name, text }) =>
      importsOf(text)
        .filter((specifier) => !specifier.startsWith('.'))
        .map((specifier) => `${name} imports ${specifier}`),
    )
    expect(foreign).toEqual([])
  })
})
