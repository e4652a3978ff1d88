import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const { resolve } = createRequire(import.meta.url)
const MANIFEST = resolve('#package.json')
const { version, engines } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as {
  version: string
  engines: { node: string }
}

export const VERSION: string = version

/** The oldest Node that this package runs on, such as 20.19. */
export const NODE_MIN: string = engines.node.replace('>=', '')

/** The path of a file that comes with this package. The build moves modules, so none finds files from where it is. */
export function packagedFile(path: string): string {
  return join(dirname(MANIFEST), path)
}
