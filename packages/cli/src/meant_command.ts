/** Words that people type for commands which have another name here. */
const WORDS_FOR: Record<string, string> = {
  serve: 'start run server up',
  'sessions list': 'ls list',
  'sessions create': 'create',
  'sessions delete': 'delete rm',
  show: 'get read view cat log',
  tail: 'logs follow watch',
  append: 'add push',
  fork: 'copy clone branch',
  retract: 'undo pop',
  compact: 'summarize summarise summary',
  'token list': 'keys tokens',
  usage: 'quota',
  prune: 'cleanup',
  doctor: 'check status',
  verify: 'fsck',
  export: 'dump',
  import: 'load',
  migrate: 'upgrade',
  '--version': 'version',
}

/** The command that `word` was probably meant for, by its meaning or its beginning. */
export function commandMeant(word: string, commands: string[]): string | undefined {
  const lower = word.toLowerCase()
  const [meant] = Object.entries(WORDS_FOR).find(([, words]) => words.split(' ').includes(lower)) ?? []
  return meant ?? commands.find((name) => lower.length > 1 && name.startsWith(lower))
}
