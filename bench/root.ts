import { fileURLToPath } from 'node:url'
import { ROOT as ROOT_URL } from '../lab/root.ts'

/** The repository's directory, as a path. */
export const ROOT = fileURLToPath(ROOT_URL)
