import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { StartError } from '../../../kits/src/errors.ts'
import { BackupFile } from '../../src/backup/backup_file.ts'
import { BACKUP_VERSION, type BackupEnd, type BackupHeader, endLine } from '../../src/backup/backup_format.ts'
import { openBackup } from '../../src/backup/restore_backup.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const KEPT = 'a line of the backup\n'
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-backup-'))
})
afterAll(() => rm(directory, { recursive: true }))

const headerOf = (begun_ms: number, what: BackupHeader['what'] = 'database'): BackupHeader => ({
  annals_backup: BACKUP_VERSION,
  what,
  begun_at: new Date(begun_ms).toISOString(),
  annals_version: '0.0.0',
  schema_version: 1,
})

/** A backup whose process was killed while it wrote what is behind its last state. */
async function interruptedBackup(begun_ms = Date.now() - DAY_MS / 2) {
  const path = join(await mkdtemp(join(directory, 'of-')), 'annals.backup')
  const file = await BackupFile.open(path, headerOf(begun_ms), () => true)
  const { offset } = file
  await file.write(Buffer.from(KEPT))
  const section = { project_id: 'p', project: 'p', offset, bytes: KEPT.length, rows: {} }
  file.state = { ...file.state, sections: [section] }
  await file.save()
  await file.write(Buffer.from('half a li'))
  await file.leave()
  const state = JSON.parse(await readFile(`${path}.partial.json`, 'utf8'))
  return { path, begun_at: file.state.header.begun_at, end: offset + KEPT.length, state }
}

const opened: BackupFile[] = []
afterEach(async () => {
  // Some of them belong to somebody else by now, or are closed.
  for (const file of opened.splice(0)) await file.leave().catch(() => {})
})

async function openFile(...args: Parameters<typeof BackupFile.open>): Promise<BackupFile> {
  const file = await BackupFile.open(...args)
  opened.push(file)
  return file
}

describe('a backup that was interrupted', () => {
  it('continues after what its state knows, and replaces an earlier file when it is complete', async () => {
    const { path, begun_at, end } = await interruptedBackup()
    await writeFile(path, 'an earlier backup')
    const file = await openFile(path, headerOf(Date.now()), () => true)
    expect(file).toMatchObject({ is_resumed: true, offset: end, state: { header: { begun_at } } })
    await file.write(Buffer.from('the rest\n'))
    expect(await readFile(path, 'utf8')).toBe('an earlier backup')
    await file.finish()
    const [header, ...lines] = (await readFile(path, 'utf8')).split('\n')
    expect(JSON.parse(header!)).toMatchObject({ begun_at })
    expect(lines).toEqual([KEPT.trim(), 'the rest', ''])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    for (const name of ['partial', 'partial.json'])
      await expect(stat(`${path}.${name}`)).rejects.toThrow('ENOENT')
  })

  it.each<[string, Parameters<typeof openAgain>[0]]>([
    ['is a day old', { begun_ms: Date.now() - DAY_MS }],
    ['was begun before the clock was set back by two days', { begun_ms: Date.now() + 2 * DAY_MS }],
    ['is of a project, where all are wanted', { what: 'project' }],
    ['is of another database', { fits: false }],
    ['has a file that is shorter than its state says', { lost_bytes: 1 }],
    ['has a state that was cut', { state: '{"pid":' }],
    ['has a state of nothing', { state: '{}' }],
    [
      'has a state whose sections are none',
      { state: '{"pid":1,"header":{"begun_at":""},"sections":[null]}' },
    ],
    ['has a file that others may read', { mode: 0o644 }],
  ])('and %s begins anew', async (_what, damage) => {
    const { file, path } = await openAgain(damage)
    expect(file).toMatchObject({ is_resumed: false, state: { sections: [] } })
    await file.leave()
    expect(await readFile(`${path}.partial`, 'utf8')).toBe(`${JSON.stringify(file.state.header)}\n`)
  })

  it('belongs to the process that goes on with it from the first moment', async () => {
    const { path, state } = await interruptedBackup()
    await writeFile(`${path}.partial.json`, JSON.stringify({ ...state, pid: 0x7fffffff, host: hostname() }))
    await openFile(path, headerOf(Date.now()), () => true)
    expect(JSON.parse(await readFile(`${path}.partial.json`, 'utf8'))).toMatchObject({
      ...{ pid: process.pid, host: hostname() },
    })
  })

  it('ends in the process that another one took for dead, and is whole in that one', async () => {
    const { path, state } = await interruptedBackup()
    const [slow, other] = [
      await openFile(path, headerOf(Date.now()), () => true),
      await openFile(path, headerOf(Date.now()), () => true),
    ]
    await other.write(Buffer.from('the rest\n'))
    for (const step of [() => slow.save(), () => slow.finish()])
      await expect(step()).rejects.toThrow('another process has taken over this backup')
    await other.finish()
    expect(await readFile(path, 'utf8')).toBe(`${JSON.stringify(state.header)}\n${KEPT}the rest\n`)
    await expect(slow.finish()).rejects.toThrow(StartError)
    expect(await readFile(path, 'utf8')).toContain('the rest')
  })

  it('is left alone for a while after somebody on another machine wrote to it', async () => {
    const { path, state } = await interruptedBackup()
    await writeFile(`${path}.partial.json`, JSON.stringify({ ...state, host: 'another' }))
    const open = () => openFile(path, headerOf(Date.now()), () => true)
    await expect(open()).rejects.toThrow('another seems to be writing this backup')
    const before = new Date(Date.now() - 60_000)
    await utimes(`${path}.partial`, before, before)
    expect(await open()).toMatchObject({ is_resumed: true })
  })

  it('is left alone while the process that writes it lives', async () => {
    const { path, state } = await interruptedBackup()
    const another = JSON.stringify({ ...state, pid: process.ppid })
    await writeFile(`${path}.partial.json`, another)
    const opened = openFile(path, headerOf(Date.now()), () => true)
    await expect(opened).rejects.toThrow(`Process ${process.ppid} is writing this backup`)
    expect(await readFile(`${path}.partial.json`, 'utf8')).toBe(another)
    expect(await readFile(`${path}.partial`, 'utf8')).toContain('half a li')
  })
})

interface Damage {
  begun_ms?: number
  what?: BackupHeader['what']
  fits?: boolean
  lost_bytes?: number
  state?: string
  mode?: number
}

async function openAgain({ begun_ms, what, fits = true, lost_bytes, state, mode }: Damage) {
  const { path, end } = await interruptedBackup(begun_ms)
  if (lost_bytes) await truncate(`${path}.partial`, end - lost_bytes)
  if (state) await writeFile(`${path}.partial.json`, state)
  if (mode) await chmod(`${path}.partial`, mode)
  return { path, file: await openFile(path, headerOf(Date.now(), what), () => fits) }
}

describe('a backup to a place', () => {
  const begin = (path: string) => openFile(path, headerOf(Date.now()), () => true)

  it.each<[string, (path: string) => Promise<unknown>]>([
    ['is a directory', (path) => mkdir(path)],
    ['is a device', (path) => symlink('/dev/null', path)],
  ])('that %s is refused before anything is written', async (_what, make) => {
    const path = join(await mkdtemp(join(directory, 'of-')), 'annals.backup')
    await make(path)
    await expect(begin(path)).rejects.toThrow(
      /annals\.backup cannot be written \(it exists, and is not a file\)/,
    )
    expect((await readdir(dirname(path))).length).toBe(1)
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true)
  })

  it('that is a link replaces what it points at', async () => {
    const [path, link] = [join(directory, 'pointed at'), join(directory, 'latest')]
    await writeFile(path, 'earlier')
    await symlink(path, link)
    await (await begin(link)).finish()
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ what: 'database' })
    expect((await lstat(link)).isSymbolicLink()).toBe(true)
  })

  it('beside which somebody put files of its names writes into none of them', async () => {
    const path = join(await mkdtemp(join(directory, 'of-')), 'annals.backup')
    const [read, pointed] = [join(directory, 'read by others'), join(directory, 'pointed')]
    for (const name of [read, pointed]) await writeFile(name, 'theirs', { mode: 0o644 })
    await link(read, `${path}.partial`)
    await symlink(pointed, `${path}.partial.json.new`)
    const file = await begin(path)
    await file.finish()
    for (const name of [read, pointed]) expect(await readFile(name, 'utf8')).toBe('theirs')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it.each<[string, (path: string) => Promise<unknown>, (file: BackupFile) => Promise<void>]>([
    ['whose state cannot be kept', (path) => mkdir(`${path}.partial.json.new`), (file) => file.save()],
    ['that has become a directory', (path) => mkdir(path), (file) => file.finish()],
    ['whose folder is gone', (path) => rm(dirname(path), { recursive: true }), (file) => file.finish()],
  ])('%s fails with a sentence', async (_what, change, step) => {
    const path = join(await mkdtemp(join(directory, 'of-')), 'annals.backup')
    const file = await begin(path)
    await change(path)
    await expect(step(file)).rejects.toThrow(StartError)
    await expect(step(file)).rejects.toThrow(/annals\.backup cannot be written \(/)
  })
})

it('what is not a file is told from a backup', async () => {
  await expect(openBackup(directory, 1)).rejects.toThrow(/cannot be read \(EISDIR/)
  await expect(openBackup(join(directory, 'none'), 1)).rejects.toThrow(/cannot be read \(ENOENT/)
})

describe('the first and the last line of a backup', () => {
  const header = headerOf(0)
  const first = JSON.stringify(header)
  const section = {
    project_id: 'p',
    project: 'p',
    offset: first.length + 1,
    bytes: KEPT.length,
    rows: { users: 1 },
  }
  const catalogue = { offset: first.length + 1 + KEPT.length, bytes: 0, sha256: 'a' }
  const end: BackupEnd = { kind: 'end_of_backup', finished_at: '', sections: [section], catalogue }
  const last = endLine(header, end)

  async function opened(firstLine: string, lastLine: string) {
    const path = join(directory, 'changed.backup')
    await writeFile(path, `${firstLine}\n${KEPT}${lastLine}\n`)
    return openBackup(path, 1)
  }

  it('are read as they were written, also without a checksum', async () => {
    expect(await opened(first, last)).toMatchObject({ header, end })
    expect(await opened(first, JSON.stringify(end))).toMatchObject({ header, end })
  })

  it('are refused with a sentence whichever byte was changed or lost', async () => {
    for (const [line, open] of [
      [first, (changed: string) => opened(changed, last)],
      [last, (changed: string) => opened(first, changed)],
    ] as const)
      for (let at = 0; at < line.length; at += 1)
        for (const other of ['', '0', '}', '"']) {
          const changed = line.slice(0, at) + other + line.slice(at + 1)
          if (changed !== line) await expect(open(changed), changed).rejects.toThrow(StartError)
        }
  })

  it.each<[string, object]>([
    ['no sections', { sections: null }],
    ['a section that is none', { sections: [null] }],
    ['a section before the first line', { sections: [{ ...section, offset: 0 }] }],
    ['sections out of order', { sections: [section, section] }],
    ['a section of no project', { sections: [{ ...section, project_id: 1 }] }],
    ['counts that are none', { sections: [{ ...section, rows: { users: -1 } }] }],
    ['no catalogue', { catalogue: undefined }],
    ['a catalogue of negative bytes', { catalogue: { ...catalogue, bytes: -5 } }],
    ['a catalogue that is longer than the file', { catalogue: { ...catalogue, bytes: 5 } }],
    ['a checksum that is none', { sha256: null }],
  ])('are refused without a checksum, where they have %s', async (_what, change) => {
    const refused = opened(first, JSON.stringify({ ...end, ...change }))
    await expect(refused).rejects.toThrow(/its last line was changed: /)
  })
})
