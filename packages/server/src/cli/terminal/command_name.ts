/** How this command line was called, for a hint that can be pasted. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env.npm_command === 'exec' ? 'npx annals' : 'annals'
}
