import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Annals } from '../src/index.js'

/** The public methods of an object's class. */
const methodsOf = (object: object) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor')

it('the README names every method of the client', async () => {
  const readme = await readFile(join(import.meta.dirname, '../README.md'), 'utf8')
  const annals = new Annals({ url: 'http://127.0.0.1:1', token: 'none' })
  const lineOf = (place: string) =>
    readme.split('\n').find((line) => line.startsWith(`| \`${place}\` |`)) ?? ''
  const places: Array<[string, object]> = [
    ['annals', annals],
    ...(['sessions', 'learningSpaces', 'skills', 'users', 'blobs', 'webhooks'] as const).map(
      (name): [string, object] => [`annals.${name}`, annals[name]],
    ),
  ]
  for (const [place, object] of places) {
    const line = lineOf(place)
    for (const method of methodsOf(object)) expect(line, place).toContain(`\`${method}\``)
  }
})
