import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'

const LIBRARIES = ['x86_64', 'aarch64', 'arm', 'i386'].map(
  (machine) => `/usr/lib/${machine}-linux-gnu${machine === 'arm' ? 'eabihf' : ''}/faketime/libfaketime.so.1`,
)

/** libfaketime of Debian's package `faketime`, undefined where it is not installed. */
export const FAKETIME = LIBRARIES.find((path) => existsSync(path))

/** A clock that can be set while the process that uses it runs. */
export class Clock {
  readonly file: string

  constructor(file: string) {
    this.file = file
  }

  async set(offset_s: number): Promise<void> {
    await writeFile(this.file, `${offset_s < 0 ? '-' : '+'}${Math.abs(offset_s)}`)
    await chmod(this.file, 0o644)
  }

  /** The environment of a process that uses this clock; its timers follow the real one. */
  get environment(): Record<string, string> {
    return {
      LD_PRELOAD: FAKETIME ?? '',
      FAKETIME_TIMESTAMP_FILE: this.file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
      DONT_FAKE_MONOTONIC: '1',
    }
  }
}
