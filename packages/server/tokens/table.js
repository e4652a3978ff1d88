import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants'

/**
 * Makes the table of o200k_base that packages/messages/src/tokens reads: 4 MB that are used as they are read. Objects
 * of the same tokens take 50 MB in each thread, and most of a second to load. One that was made of the same stays.
 *
 * Unsigned integers of 32 bits: how many tokens, slots, and bytes of the pattern there are; where each token begins
 * among the bytes of all, and where the last one ends; the slots, with 1 + a token's rank, or 0. Then the pattern and
 * the bytes.
 */
const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const OUTPUT = here('../dist/o200k_base.bin')
const SOURCES = [here('table.js'), here('../../../package-lock.json')]
/** Two fifths of them are used, so that a search soon meets an empty one. */
const SLOTS = 2 ** 19

const changedAt = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
if (!SOURCES.every((source) => changedAt(source) < changedAt(OUTPUT))) makeTable()

function makeTable() {
  const data = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken')
  const tokens = []
  for (const line of readFileSync(data, 'latin1').trim().split('\n')) {
    const [bytes, rank] = line.split(' ')
    tokens[Number(rank)] = Buffer.from(bytes, 'base64')
  }
  const begins = new Uint32Array(tokens.length + 1)
  const slots = new Uint32Array(SLOTS)
  for (const [rank, token] of tokens.entries()) {
    begins[rank + 1] = begins[rank] + token.length
    let slot = hashOf(token) & (SLOTS - 1)
    while (slots[slot] !== 0) slot = (slot + 1) & (SLOTS - 1)
    slots[slot] = rank + 1
  }
  const pattern = Buffer.from(O200K_TOKEN_SPLIT_REGEX.source)
  const head = Uint32Array.of(tokens.length, SLOTS, pattern.length)
  const parts = [head, begins, slots].map(({ buffer }) => Buffer.from(buffer))
  const file = `${OUTPUT}.${process.pid}`
  // The licence goes wherever the table goes.
  const licence = readFileSync(join(dirname(data), '../LICENSE'))
  writeFileSync(file, Buffer.concat([...parts, pattern, ...tokens, licence]))
  renameSync(file, OUTPUT)
}

/** FNV-1a. */
function hashOf(bytes) {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash
}
