import { readFileSync } from 'node:fs'

const { version, engines } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string; engines: { node: string } }

/** The version in the package's own package.json. */
export const VERSION: string = version

/** The oldest Node that this package runs on, such as 20.19. */
export const NODE_MIN: string = engines.node.replace('>=', '')
