/** How this program was called, for a hint that can be pasted. */
export function commandName(env: NodeJS.ProcessEnv = process.env): string {
  return env.npm_command === 'exec' ? 'npx annals' : 'annals'
}

/** A command that can be pasted into a shell. */
export function commandLine(words: string[]): string {
  return [commandName(), ...words.map(shellWord)].join(' ')
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
