import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A service stores its address in the data directory of its embedded database, so that commands in the same directory
 * find it, whatever its port. A killed service leaves the file; the next one overwrites it.
 */
const pathOf = (data_dir: string) => join(data_dir, 'address')

/** Stores a service's address. An unwritable directory is no reason not to serve. */
export function keepAddress(data_dir: string, url: string): void {
  const draft = `${pathOf(data_dir)}.${process.pid}`
  try {
    writeFileSync(draft, `${url}\n`)
    renameSync(draft, pathOf(data_dir))
  } catch {
    rmSync(draft, { force: true })
  }
}

/** Deletes it, unless another service has replaced it. */
export function forgetAddress(data_dir: string, url: string): void {
  if (keptAddress(data_dir) === url) rmSync(pathOf(data_dir), { force: true })
}

/** The stored address of this directory's service, if any. */
export function keptAddress(data_dir: string): string | undefined {
  try {
    const url = readFileSync(pathOf(data_dir), 'utf8').trim()
    return URL.canParse(url) ? url : undefined
  } catch {
    return undefined
  }
}
