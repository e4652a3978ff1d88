import { constants, type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { StartError } from '@annals/kits/errors.js'
import { cannotWrite } from '../transfer/export_output.js'
import { type BackupState, bytesOf } from './backup_format.js'

/** An older one is begun anew: its first projects would be of another day than its last. */
const RESUMED_MS_MAX = 24 * 60 * 60 * 1_000
/** Of a file that a process on another machine, or in another container, may still write. */
const SILENT_MS_MAX = 15_000
/** How often it is looked whether the file is still this process's. */
const LOOK_MS = 1_000

/**
 * The file of a backup that is being written, beside which stands how far it is. It gets its name when it is complete;
 * until then an earlier backup of that name stays. What was interrupted, even by `kill -9` or a loss of power, is taken
 * up after its last complete project.
 */
export class BackupFile {
  private bytes: number
  /** The state as this process kept it last, and when that was looked at. */
  private kept: string | undefined
  private looked_at = 0

  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    public state: BackupState,
    readonly is_resumed: boolean,
  ) {
    this.bytes = bytesOf(state)
  }

  /** Takes up the unfinished backup at the path if `fits`, or begins one. @throws StartError */
  static open(
    path: string,
    header: BackupState['header'],
    fits: (state: BackupState) => boolean,
  ): Promise<BackupFile> {
    return writing(path, async () => {
      const target = await targetOf(path)
      const state = await readState(`${target}.partial.json`)
      if (state) await expectNobodyElse(target, state)
      const is_recent = state && isWithin(RESUMED_MS_MAX, Date.parse(state.header.begun_at))
      const file =
        is_recent && state.header.what === header.what && fits(state)
          ? await resumed(`${target}.partial`, bytesOf(state))
          : undefined
      if (!file) return BackupFile.begin(target, header)
      const backup = new BackupFile(target, file, { ...state!, pid: process.pid, host: hostname() }, true)
      await backup.save()
      return backup
    })
  }

  private static async begin(path: string, header: BackupState['header']): Promise<BackupFile> {
    const line = Buffer.from(`${JSON.stringify(header)}\n`)
    const state = { pid: process.pid, host: hostname(), header, header_bytes: line.length, sections: [] }
    const backup = new BackupFile(path, await newFile(`${path}.partial`), state, false)
    backup.bytes = 0
    await backup.write(line)
    await backup.save()
    return backup
  }

  get offset(): number {
    return this.bytes
  }

  async rewind(): Promise<void> {
    this.bytes = bytesOf(this.state)
    await writing(this.path, () => this.file.truncate(this.bytes))
  }

  async write(bytes: Buffer): Promise<void> {
    await writing(this.path, async () => {
      if (performance.now() - this.looked_at > LOOK_MS) await this.expectOurs()
      for (let from = 0; from < bytes.length; )
        from += (await this.file.write(bytes, from, undefined, this.bytes + from)).bytesWritten
    })
    this.bytes += bytes.length
  }

  /** Keeps the state for the next run. */
  async save(): Promise<void> {
    await writing(this.path, async () => {
      await this.file.datasync()
      await this.expectOurs()
      const file = await newFile(`${this.state_path}.new`)
      try {
        await file.writeFile(JSON.stringify(this.state))
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(`${this.state_path}.new`, this.state_path)
      this.kept = await versionOf(this.state_path)
    })
  }

  async finish(): Promise<void> {
    await writing(this.path, async () => {
      await this.expectOurs()
      await this.file.sync()
      await this.file.close()
      await rename(`${this.path}.partial`, this.path)
      await rm(this.state_path, { force: true })
    })
  }

  async leave(): Promise<void> {
    await this.save().finally(() => this.file.close())
  }

  private get state_path(): string {
    return `${this.path}.partial.json`
  }

  /** Two that write one file would leave one that cannot be restored. @throws StartError */
  private async expectOurs(): Promise<void> {
    this.looked_at = performance.now()
    const found = this.kept && (await versionOf(this.state_path))
    if (!found || found === this.kept) return
    throw new StartError(`${this.path}: another process has taken over this backup, so this one stops.`)
  }
}

/** @throws StartError why the file cannot be written */
async function writing<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof StartError ? error : cannotWrite(path, error)
  }
}

/** The file that the backup will be: a link stays a link. A device or a pipe cannot be gone on with, nor renamed. */
async function targetOf(path: string): Promise<string> {
  const existing = await stat(path).catch(() => undefined)
  if (existing && !existing.isFile())
    throw new StartError(`${path} cannot be written (it exists, and is not a file).`)
  return existing ? realpath(path) : path
}

/** Stored data is only for the file's owner, who is not whoever put a file or a link of this name there before. */
async function newFile(path: string): Promise<FileHandle> {
  await rm(path, { force: true })
  return open(path, 'wx', 0o600)
}

/** An unfinished file up to a byte of it, if it has as many, and is ours alone. */
async function resumed(path: string, bytes: number): Promise<FileHandle | undefined> {
  const file = await open(path, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0)).catch(() => undefined)
  const found = await file?.stat()
  const isOurs = process.getuid === undefined || (found?.uid === process.getuid() && !(found.mode & 0o077))
  if (file && isOurs && found!.isFile() && found!.size >= bytes) {
    await file.truncate(bytes)
    return file
  }
  await file?.close()
  return undefined
}

/** Undefined if there is none, or it is not one: what cannot be gone on with begins anew. */
async function readState(name: string): Promise<BackupState | undefined> {
  try {
    const state = JSON.parse(await readFile(name, 'utf8')) as BackupState
    const { pid, header, sections } = state
    const isState = [pid, bytesOf(state)].every(Number.isSafeInteger) && Array.isArray(sections)
    return isState && typeof header.begun_at === 'string' ? state : undefined
  } catch {
    return undefined
  }
}

/** @throws StartError if the process that wrote this state is still at work, as far as can be seen from here */
async function expectNobodyElse(path: string, { pid, host = hostname() }: BackupState): Promise<void> {
  if (host === hostname()) {
    if (pid === process.pid || !isRunning(pid)) return
    throw new StartError(
      `Process ${pid} is writing this backup. If that process is another program, delete ${path}.partial.json.`,
    )
  }
  const changed = await stat(`${path}.partial`).catch(() => undefined)
  if (changed && isWithin(SILENT_MS_MAX, changed.mtimeMs))
    throw new StartError(
      `${host} seems to be writing this backup. If nothing runs there, delete ${path}.partial.json, or wait for ${SILENT_MS_MAX / 1_000} s.`,
    )
}

/** A clock that was set back must not make it of today for as long as that. */
function isWithin(ms: number, of_ms: number): boolean {
  return Math.abs(Date.now() - of_ms) < ms
}

/** Changes with whoever keeps a state there; undefined if there is none. */
async function versionOf(path: string): Promise<string | undefined> {
  const found = await stat(path, { bigint: true }).catch(() => undefined)
  return found && `${found.ino} ${found.mtimeNs}`
}

/** Whether a process exists, of whatever user. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
