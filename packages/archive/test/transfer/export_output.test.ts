import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fileOutput, OutputClosed, streamOutput } from '../../src/transfer/export_output.js'

let directory: string
let path: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-output-'))
  path = join(directory, 'export.ndjson')
})
afterEach(() => rm(directory, { recursive: true }))

describe('an export to a file', () => {
  it('appears when it is whole, for its owner alone', async () => {
    const output = await fileOutput(path)
    await output.write(Buffer.from('half'))
    await expect(stat(path)).rejects.toThrow('ENOENT')
    await output.write(Buffer.from(' and half'))
    await output.finish()
    expect(await readFile(path, 'utf8')).toBe('half and half')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(directory)).toEqual(['export.ndjson'])
  })

  it('leaves the earlier one when it fails', async () => {
    await writeFile(path, 'earlier')
    const output = await fileOutput(path)
    await output.write(Buffer.from('half'))
    await output.abandon()
    expect(await readFile(path, 'utf8')).toBe('earlier')
    expect(await readdir(directory)).toEqual(['export.ndjson'])
  })

  it('is not kept from being written by what a killed process with the same id left', async () => {
    await writeFile(`${path}.${process.pid}.partial`, 'half')
    const output = await fileOutput(path)
    await output.write(Buffer.from('whole'))
    await output.finish()
    expect(await readFile(path, 'utf8')).toBe('whole')
  })

  it('replaces what a link points at, not the link', async () => {
    const link = join(directory, 'latest')
    await writeFile(path, 'earlier')
    await symlink(path, link)
    const output = await fileOutput(link)
    await output.write(Buffer.from('new'))
    await output.finish()
    expect(await readFile(path, 'utf8')).toBe('new')
    expect((await readdir(directory)).sort()).toEqual(['export.ndjson', 'latest'])
  })

  it('to a device leaves the device', async () => {
    const output = await fileOutput('/dev/null')
    await output.write(Buffer.from('x'))
    await output.finish()
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true)
  })

  it('says so when its folder goes while it is written', async () => {
    const folder = await mkdtemp(join(directory, 'of-'))
    const output = await fileOutput(join(folder, 'x'))
    await rm(folder, { recursive: true })
    await expect(output.finish()).rejects.toThrow(/x cannot be written \(ENOENT/)
  })

  it('says where it cannot write', async () => {
    await expect(fileOutput(join(directory, 'none', 'x'))).rejects.toThrow(/x cannot be written \(ENOENT/)
    await expect(fileOutput(directory)).rejects.toThrow(/cannot be written \(EISDIR/)
  })
})

describe('an export to a pipe', () => {
  it('waits until it may write more', async () => {
    let take = () => {}
    const stream = new Writable({
      write: (_chunk, _encoding, done) => {
        take = done
      },
    })
    let isWritten = false
    const writing = streamOutput(stream)
      .write(Buffer.from('x'))
      .then(() => {
        isWritten = true
      })
    await new Promise(setImmediate)
    expect(isWritten).toBe(false)
    take()
    await writing
  })

  it('ends when its reader is gone', async () => {
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const output = streamOutput(new Writable({ write: (_chunk, _encoding, done) => done(gone) }))
    await expect(output.write(Buffer.from('x'))).rejects.toBeInstanceOf(OutputClosed)
  })
})

describe('an export to a terminal', () => {
  it('is the same JSON, in which nothing moves the cursor or turns the writing around', async () => {
    const lines = `${JSON.stringify({ name: 'é\u202Eevil\u009B2J\u007F' })}\n${JSON.stringify({ n: 1 })}\n`
    const bytes = Buffer.from(lines)
    const written = async (isTTY: boolean) => {
      let text = ''
      const stream = new Writable({
        write: (chunk, _encoding, done) => {
          text += chunk
          done()
        },
      })
      const output = streamOutput(Object.assign(stream, { isTTY }))
      // Cut within a character.
      for (const piece of [bytes.subarray(0, 10), bytes.subarray(10)]) await output.write(piece)
      return text
    }
    const shown = await written(true)
    expect(shown).toContain('é\\u202eevil\\u009b2J\\u007f')
    expect(shown.split('\n').map((line) => line && JSON.parse(line))).toEqual(
      lines.split('\n').map((line) => line && JSON.parse(line)),
    )
    expect(shown.split('\n')).toHaveLength(3)
  })
})
