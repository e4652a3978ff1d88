import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

const SERVICE_PATHS = [
  '/api',
  '/admin',
  '/metrics',
  '/console/data',
  '/console/api',
  '/console/admin/v1',
  '/console/access',
  '/console/sign_in',
  '/console/sign_out',
  '/console/demo.json',
]

/** Where the library grows the buffers into which all its filters unpack: its own worker counts these. */
const GROWS = 'const buffer2 = new Uint8Array(size);'

const countBuffers = () => ({
  name: 'count-buffers',
  transform(code, id) {
    if (!id.endsWith('/pdfjs-dist/build/pdf.worker.mjs')) return undefined
    const parts = code.split(GROWS)
    if (parts.length !== 2) throw new Error('pdf.js grows its buffers elsewhere now: count them there')
    return { code: parts.join(`globalThis.countUnpacked(size - buffer.byteLength);${GROWS}`), map: null }
  },
})

// What is built goes into the server's package, which serves it; addresses in it are those that it has there.
export default defineConfig({
  base: '/console/',
  // Every element passes through src/jsx, which shows what deceives.
  plugins: [react({ jsxImportSource: '#jsx' })],
  // For work on the page: what it asks for comes from a service that runs.
  server: { proxy: Object.fromEntries(SERVICE_PATHS.map((path) => [path, 'http://127.0.0.1:8029'])) },
  worker: { format: 'es', plugins: () => [countBuffers()] },
  build: {
    outDir: '../server/dist/console',
    emptyOutDir: true,
    // A file of its own for each, as the page's policy takes no data: URL but for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
