import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loggedErrors, NewLines } from '../world/new_lines.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'annals-new-lines-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('lines that are added to a file', () => {
  it('are taken once each, and when they are whole', () => {
    const file = join(directory, 'log')
    const lines = new NewLines(file)
    expect(lines.take()).toEqual([])
    appendFileSync(file, 'one\ntw')
    expect(lines.take()).toEqual(['one'])
    appendFileSync(file, 'o\nthree\n')
    expect(lines.take()).toEqual(['two', 'three'])
  })
})

describe('what was logged as an error', () => {
  it('is counted by its message, whatever else stands in the log', () => {
    const failed = JSON.stringify({ level: 50, msg: 'request failed', err: { message: 'boom' } })
    const warned = JSON.stringify({ level: 40, msg: 'closed connections' })
    expect(loggedErrors(['Starting PostgreSQL', failed, warned, '{"level":5', failed])).toEqual({
      'request failed: boom': 2,
    })
  })
})
