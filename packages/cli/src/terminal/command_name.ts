/** How this program was called, for a hint that can be pasted: npm and npx do not put it on the PATH. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env.npm_command === undefined ? 'annals' : 'npx annals'
}

/** A command that can be pasted into a shell. */
export function commandLine(words: string[]): string {
  return [commandName(), ...words.map(shellWord)].join(' ')
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
