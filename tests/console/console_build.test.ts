import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'

const BUILT = fileURLToPath(new URL('../../packages/server/dist/console/', import.meta.url))
const SCRIPT_BYTES_MAX = 360_000
/** The files of the first view; with its data it is measured in console_first_load.test.ts. */
const FIRST_FILES_BYTES_MAX = 240_000
/** Of a bold figure or call, which the first view has none of. */
const LATER_FONTS = /-600-/

/** Names in standards and addresses in the messages of libraries: the page shows some, and fetches none. */
const NAMES_ONLY = [
  /^https?:\/\/www\.w3\.org\//,
  /^https:\/\/react\.dev\/(?:errors|link)\//,
  /^http:\/\/127\.0\.0\.1:8029$/,
  // Of the library that reads PDFs.
  /^(?:http:\/\/example\.com|https:\/\/foo\.bar|http:\/\/)$/,
  /^http:\/\/(?:ns\.adobe\.com|www\.xfa\.org|www\.apache\.org)\//,
]

/** Loaded when somebody asks for the pages of a PDF. */
const FOR_PDFS = /^pdf/
const PDF_BYTES_MAX = 400_000
const assets = readdirSync(join(BUILT, 'assets'))
const read = (name: string) => readFileSync(join(BUILT, 'assets', name))

describe('the built console', () => {
  it(`has less than ${SCRIPT_BYTES_MAX / 1000} kB of compressed JavaScript, but for what reads PDFs`, () => {
    const scripts = assets.filter((name) => name.endsWith('.js') && !FOR_PDFS.test(name))
    expect(scripts).not.toEqual([])
    const bytes = scripts.reduce((sum, name) => sum + gzipSync(read(name)).length, 0)
    expect(bytes).toBeLessThan(SCRIPT_BYTES_MAX)
  })

  it(`takes less than ${FIRST_FILES_BYTES_MAX / 1000} kB of files to show the first view, its fonts included`, () => {
    const page = readFileSync(join(BUILT, 'index.html'), 'utf8')
    const first = [...page.matchAll(/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => name!)
    const fonts = assets.filter((name) => name.endsWith('.woff2') && !LATER_FONTS.test(name))
    expect(fonts).toHaveLength(3)
    const bytes = [...first.map((name) => `${name}.br`), ...fonts]
      .map((name) => read(name).length)
      .reduce((sum, length) => sum + length, 0)
    expect(bytes).toBeLessThan(FIRST_FILES_BYTES_MAX)
  })

  it(`reads PDFs by less than ${PDF_BYTES_MAX / 1000} kB, which no page loads by itself`, () => {
    const reads = assets.filter((name) => FOR_PDFS.test(name) && name.endsWith('.br'))
    expect(reads).toHaveLength(2)
    expect(reads.reduce((sum, name) => sum + read(name).length, 0)).toBeLessThan(PDF_BYTES_MAX)
    expect(readFileSync(join(BUILT, 'index.html'), 'utf8')).not.toMatch(/pdf/i)
  })

  it('has every file compressed beside it that is worth it', () => {
    const plain = assets.filter((name) => /\.(?:m?js|css)$/.test(name))
    expect(
      plain.flatMap((name) => [`${name}.br`, `${name}.gz`]).filter((name) => !assets.includes(name)),
    ).toEqual([])
  })

  it('names nothing that would be fetched from elsewhere', () => {
    const page = readFileSync(join(BUILT, 'index.html'), 'utf8')
    const texts = [
      page,
      ...assets.filter((name) => /\.(?:js|css|svg)$/.test(name)).map((name) => read(name).toString()),
    ]
    const addresses = texts.flatMap((text) =>
      [...text.matchAll(/\b(?:https?:|wss?:)\/\/[\w.-]+(?:[:/][\w./-]*)?/g)].map(([url]) => url),
    )
    expect(addresses.filter((url) => !NAMES_ONLY.some((name) => name.test(url)))).toEqual([])
    expect(texts.join('\n')).not.toMatch(/(?:src|href)="\/\/|url\(["']?\/\/|@import/)
  })

  it('has no script and no style in the page itself', () => {
    const page = readFileSync(join(BUILT, 'index.html'), 'utf8')
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/)
  })
})
