import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/*
 * `npm run build`. BUILD_IS_CURRENT says that nothing has changed since the last one. It is no line of a shell, because
 * Windows has another.
 */
if (!process.env.BUILD_IS_CURRENT) {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const compiler = ['node_modules/typescript-7/bin/tsc', '-b']
  const { status } = spawnSync(process.execPath, compiler, { cwd, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  await import('./remove_stale_output.js')
  await import('../packages/server/tokens/table.js')
  await import('../packages/server/bundle.js')
  await import('../packages/console/build.js')
}
