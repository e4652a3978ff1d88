#!/usr/bin/env node
import { fileURLToPath } from 'node:url'

try {
  await import('../dist/bundle/annals.js')
} catch (error) {
  // A file of ours that is not there yet; any other failure is shown as it is.
  const missing = `Cannot find module '${fileURLToPath(new URL('../dist/', import.meta.url))}`
  if (error?.code !== 'ERR_MODULE_NOT_FOUND' || !error.message.startsWith(missing)) throw error
  process.stderr.write('annals: Annals is not built yet: run npm run build (npm start does it by itself).\n')
  process.exitCode = 1
}
