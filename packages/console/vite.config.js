import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// What is built goes into the server's package, which serves it; addresses in it are those that it has there.
export default defineConfig({
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: '../server/dist/console',
    emptyOutDir: true,
    // A file of its own for each, as the page's policy takes no data: URL but for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2023',
    chunkSizeWarningLimit: 1_000,
  },
})
