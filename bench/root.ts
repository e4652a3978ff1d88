import { fileURLToPath } from 'node:url'

/** The repository's directory, seen from `bench/dist`. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export const ANNALS_BIN = `${ROOT}packages/server/bin/annals.js`
