#!/usr/bin/env node
import module from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Node 22.8 and newer keep compiled code, so that the next start has a sixth less to do. Where they keep it by default,
// among temporary files, another user could put code of theirs.
const { HOME, XDG_CACHE_HOME = HOME && join(HOME, '.cache') } = process.env
if (XDG_CACHE_HOME) module.enableCompileCache?.(join(XDG_CACHE_HOME, 'annals', 'compiled'))

try {
  await import('../dist/bundle/annals.js')
} catch (error) {
  // A file of ours that is not there yet; any other failure is shown as it is.
  const missing = `Cannot find module '${fileURLToPath(new URL('../dist/', import.meta.url))}`
  if (error?.code !== 'ERR_MODULE_NOT_FOUND' || !error.message.startsWith(missing)) throw error
  process.stderr.write('annals: Annals is not built yet: run npm run build (npm start does it by itself).\n')
  process.exitCode = 1
}
