/** Words that people type for commands which have another name here. */
const SAME_MEANING: Record<string, string> = {
  start: 'serve',
  run: 'serve',
  server: 'serve',
  up: 'serve',
  ls: 'sessions list',
  list: 'sessions list',
  create: 'sessions create',
  delete: 'sessions delete',
  rm: 'sessions delete',
  get: 'show',
  read: 'show',
  view: 'show',
  cat: 'show',
  log: 'show',
  logs: 'tail',
  follow: 'tail',
  watch: 'tail',
  add: 'append',
  push: 'append',
  copy: 'fork',
  clone: 'fork',
  branch: 'fork',
  undo: 'retract',
  pop: 'retract',
  keys: 'token list',
  tokens: 'token list',
  quota: 'usage',
  cleanup: 'prune',
  check: 'doctor',
  status: 'doctor',
  fsck: 'verify',
  dump: 'export',
  restore: 'import',
  load: 'import',
  upgrade: 'migrate',
  version: '--version',
}

/** The command that somebody who typed `word` probably meant, by its meaning or its beginning. */
export function commandMeant(word: string, commands: string[]): string | undefined {
  const lower = word.toLowerCase()
  if (Object.hasOwn(SAME_MEANING, lower)) return SAME_MEANING[lower]
  return commands.find((name) => lower.length > 1 && name.startsWith(lower))
}
