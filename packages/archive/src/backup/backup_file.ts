import { type FileHandle, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { StartError } from '@annals/kits/errors.js'
import { cannotWrite } from '../transfer/export_output.js'
import { type BackupState, bytesOf } from './backup_format.js'

/** An older one is begun anew: its first projects would be of another day than its last. */
const RESUMED_MS_MAX = 24 * 60 * 60 * 1_000

/**
 * The file of a backup that is being written, beside which stands how far it is. It gets its name when it is complete;
 * until then an earlier backup of that name stays. What was interrupted, even by `kill -9` or a loss of power, is taken
 * up after its last complete project.
 */
export class BackupFile {
  private bytes: number

  private constructor(
    private readonly path: string,
    private readonly file: FileHandle,
    public state: BackupState,
    readonly is_resumed: boolean,
  ) {
    this.bytes = bytesOf(state)
  }

  /** Takes up the unfinished backup at the path if `fits`, or begins one. @throws StartError */
  static async open(
    path: string,
    header: BackupState['header'],
    fits: (state: BackupState) => boolean,
  ): Promise<BackupFile> {
    const partial = `${path}.partial`
    const found = await readState(`${partial}.json`)
    if (found && found.pid !== process.pid && isRunning(found.pid))
      throw new StartError(
        `Process ${found.pid} is writing this backup. If it is another program, delete ${partial}.json.`,
      )
    try {
      const is_recent = found && Date.now() - Date.parse(found.header.begun_at) < RESUMED_MS_MAX
      const file =
        is_recent && found.header.what === header.what && fits(found)
          ? await open(partial, 'r+').catch(() => undefined)
          : undefined
      if (file && (await file.stat()).size >= bytesOf(found!)) {
        await file.truncate(bytesOf(found!))
        return new BackupFile(path, file, { ...found!, pid: process.pid }, true)
      }
      await file?.close()
      const line = Buffer.from(`${JSON.stringify(header)}\n`)
      const state = { pid: process.pid, header, header_bytes: line.length, sections: [] }
      // Stored data is only for the file's owner.
      const backup = new BackupFile(path, await open(partial, 'w', 0o600), state, false)
      backup.bytes = 0
      await backup.write(line)
      await backup.save()
      return backup
    } catch (error) {
      throw error instanceof StartError ? error : cannotWrite(path, error)
    }
  }

  get offset(): number {
    return this.bytes
  }

  async rewind(): Promise<void> {
    this.bytes = bytesOf(this.state)
    await this.file.truncate(this.bytes)
  }

  async write(bytes: Buffer): Promise<void> {
    try {
      for (let from = 0; from < bytes.length; )
        from += (await this.file.write(bytes, from, undefined, this.bytes + from)).bytesWritten
      this.bytes += bytes.length
    } catch (error) {
      throw cannotWrite(this.path, error)
    }
  }

  /** Keeps the state for the next run. */
  async save(): Promise<void> {
    await this.file.datasync()
    const name = `${this.path}.partial.json`
    await writeFile(`${name}.new`, JSON.stringify(this.state), { mode: 0o600, flush: true })
    await rename(`${name}.new`, name)
  }

  async finish(): Promise<void> {
    await this.file.sync()
    await this.file.close()
    await rename(`${this.path}.partial`, this.path)
    await rm(`${this.path}.partial.json`, { force: true })
  }

  async leave(): Promise<void> {
    await this.save()
    await this.file.close()
  }
}

async function readState(name: string): Promise<BackupState | undefined> {
  try {
    return JSON.parse(await readFile(name, 'utf8')) as BackupState
  } catch {
    return undefined
  }
}

/** Whether a process exists, of whatever user. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
