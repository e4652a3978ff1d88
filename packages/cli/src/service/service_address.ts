import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A service stores its address in the data directory of its embedded database, so that commands in the same directory
 * find it, whatever its port. Several services can share the directory: a line for each, the newest last. A killed
 * service leaves its line.
 */
const pathOf = (data_dir: string) => join(data_dir, 'address')

/** Stores a service's address. An unwritable directory is no reason not to serve. */
export function keepAddress(data_dir: string, url: string): void {
  store(data_dir, [...othersThan(data_dir, url), url])
}

export function forgetAddress(data_dir: string, url: string): void {
  store(data_dir, othersThan(data_dir, url))
}

/** The stored address of this directory's newest service, if any. */
export function keptAddress(data_dir: string): string | undefined {
  return addresses(data_dir).at(-1)
}

function othersThan(data_dir: string, url: string): string[] {
  return addresses(data_dir).filter((other) => other !== url)
}

function addresses(data_dir: string): string[] {
  try {
    return readFileSync(pathOf(data_dir), 'utf8')
      .split('\n')
      .filter((line) => URL.canParse(line))
  } catch {
    return []
  }
}

function store(data_dir: string, urls: string[]): void {
  const draft = `${pathOf(data_dir)}.${process.pid}`
  try {
    writeFileSync(draft, `${urls.join('\n')}\n`)
    if (urls.length > 0) renameSync(draft, pathOf(data_dir))
    else rmSync(pathOf(data_dir), { force: true })
  } catch {
    // Then commands need the URL.
  }
  rmSync(draft, { force: true })
}
