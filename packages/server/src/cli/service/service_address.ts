import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Beside its embedded database a service keeps where it listens, so that commands in the same directory find it,
 * whatever its port. A service that was killed leaves it; the next one writes its own.
 */
const pathOf = (data_dir: string) => join(data_dir, 'address')

/** Says where a service listens. A directory that takes no file is no reason not to serve. */
export function keepAddress(data_dir: string, url: string): void {
  const draft = `${pathOf(data_dir)}.${process.pid}`
  try {
    writeFileSync(draft, `${url}\n`)
    renameSync(draft, pathOf(data_dir))
  } catch {
    rmSync(draft, { force: true })
  }
}

/** Forgets it, unless another service has come since. */
export function forgetAddress(data_dir: string, url: string): void {
  if (keptAddress(data_dir) === url) rmSync(pathOf(data_dir), { force: true })
}

/** Where the service of this directory listens, as far as anybody has said so. */
export function keptAddress(data_dir: string): string | undefined {
  try {
    const url = readFileSync(pathOf(data_dir), 'utf8').trim()
    return URL.canParse(url) ? url : undefined
  } catch {
    return undefined
  }
}
